// SPDX-License-Identifier: Apache-2.0
#include "host/cli/generate/texts.h"

#include <algorithm>
#include <stdexcept>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/cli.h"

namespace tenon::cli {

Texts::Texts(const Parameters& parameters, std::string layer, std::string separator)
    : layer_(std::move(layer)), separator_(std::move(separator)) {
  for (Names& names : parameters.names())
    if (names.slot == layer_) names_ = std::move(names.texts);
  if (names_.empty()) separator_ = " ";
  for (size_t i = 0; i < names_.size(); ++i) {
    ids_.emplace(names_[i], static_cast<int64_t>(i));
    longest_ = std::max(longest_, names_[i].size());
  }
}

namespace {

constexpr size_t kMostShown = 60;  // bytes of a name in a message

int64_t number_of(const std::string& option, const std::string& name) {
  size_t used = 0;
  try {
    const int64_t result = std::stoll(name, &used);
    if (used == name.size()) return result;
  } catch (const std::logic_error&) {  // is not a number
  }
  throw Failure(kUsage, option + ": the ids of the model have no names; expected a number, got \"" +
                            base::shortened(name, kMostShown) + "\"");
}

}  // namespace

int64_t Texts::id(const std::string& option, const std::string& name) const {
  if (name.empty()) return -1;
  if (names_.empty()) return number_of(option, name);
  const auto found = ids_.find(name);
  if (found == ids_.end())
    throw Failure(kUsage, option + ": \"" + base::shortened(name, kMostShown) + "\" is not among the names of \"" +
                              layer_ + "\"" + base::suggestion(name, names_));
  return found->second;
}

std::vector<int64_t> Texts::ids(const std::string& prompt) const {
  std::vector<int64_t> result;
  for (size_t at = 0; at < prompt.size();) {
    const size_t end = separator_.empty() ? at + longest_at(prompt, at) : prompt.find(separator_, at);
    const std::string part = prompt.substr(at, end == std::string::npos ? end : end - at);
    if (!part.empty()) result.push_back(id("--prompt", part));
    at = end == std::string::npos ? prompt.size() : end + separator_.size();
  }
  return result;
}

std::string Texts::text(int64_t id, bool first) const {
  const auto at = static_cast<size_t>(id);
  const std::string named = names_.empty()       ? std::to_string(id)
                            : at < names_.size() ? plain(names_[at])
                                                 : "<" + std::to_string(id) + ">";  // an id without a name
  return (first ? "" : separator_) + named;
}

size_t Texts::longest_at(const std::string& prompt, size_t at) const {
  for (size_t size = std::min(longest_, prompt.size() - at); size > 0; --size)
    if (ids_.count(prompt.substr(at, size)) > 0) return size;
  throw Failure(kUsage, "--prompt: \"" + prompt.substr(at, longest_) + "\", at byte " + std::to_string(at + 1) +
                            ", begins with none of the names of \"" + layer_ + "\"");
}

Prompts::Prompts(const Texts& texts, const std::vector<std::string>& prompts) {
  for (const std::string& prompt : prompts) {
    const std::vector<int64_t> more = texts.ids(prompt);
    ids.insert(ids.end(), more.begin(), more.end());
    ends.push_back(static_cast<int64_t>(ids.size()));
  }
}

Feed Prompts::feed(const std::string& layer) const {
  return {layer, Array::sequences(TN_I64, {static_cast<int64_t>(ids.size())}, ids.data(),
                                  static_cast<int64_t>(ends.size()) - 1, ends.data())};
}

std::string Prompts::text(const Texts& texts, size_t prompt, const std::vector<int64_t>& more, int64_t end_id) const {
  std::string result;
  bool first = true;
  const auto add = [&](int64_t id) {
    result += texts.text(id, first);
    first = false;
  };
  for (int64_t i = ends[prompt]; i < ends[prompt + 1]; ++i) add(ids[static_cast<size_t>(i)]);
  for (const int64_t id : more)
    if (id != end_id) add(id);
  return result;
}

}  // namespace tenon::cli
