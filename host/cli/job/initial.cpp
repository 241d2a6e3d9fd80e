// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/initial.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/cli.h"
#include "weights/layout.h"
#include "weights/vectors.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

// What a name has in the places of the "*" of a pattern, and what it has below the pattern, such as ".weight"; nothing
// if it does not fit.
struct Match {
  std::vector<std::string> stars;
  std::string rest;
};
std::optional<Match> match(const std::string& name, const std::string& pattern, const char* separators = ".") {
  Match result;
  size_t at = 0;
  for (const char letter : pattern) {
    if (letter != '*') {
      if (at == name.size() || name[at++] != letter) return std::nullopt;
      continue;
    }
    const size_t end = std::min(name.find_first_of(separators, at), name.size());
    if (end == at) return std::nullopt;
    result.stars.push_back(name.substr(at, end - at));
    at = end;
  }
  result.rest = name.substr(at);
  if (!result.rest.empty() && std::strchr(separators, result.rest[0]) == nullptr) return std::nullopt;
  return result;
}

// Whether a name is `above`, a name or pattern, or below it.
bool is_below(const std::string& name, const std::string& above, const char* separators = ".") {
  return match(name, above, separators).has_value();
}

// What stands between the parts of names in the file.
const char* separators_of(const JobInit& init) { return init.layout == "keras" ? "./" : "."; }

std::vector<std::string> parameter_names(const json& parameters) {
  std::vector<std::string> names;
  for (const json& each : parameters) names.push_back(each.at("name"));
  return names;
}

[[noreturn]] void fail(const JobInit& init, const std::string& message) {
  throw Failure(kBadConfig, (init.place.empty() ? std::string() : init.place + ": [init]: ") + message);
}

// Refuses a name, or pattern, that includes none of `known`.
void require_some(const JobInit& init, const char* key, const std::string& name, const std::vector<std::string>& known,
                  const std::string& where) {
  const auto is_here = [&](const std::string& each) { return is_below(each, name, separators_of(init)); };
  if (std::none_of(known.begin(), known.end(), is_here))
    fail(init, "key \"" + std::string(key) + "\": " + where + " has no parameter \"" + name + "\"" +
                   base::suggestion(name, known));
}

// Returns the job's name for a parameter of the file: the longest renamed name above it decides.
std::string renamed(const JobInit& init, const std::string& name) {
  size_t longest = 0;
  std::string result = name;
  for (const auto& [from, to] : init.rename) {
    const std::optional<Match> matched = match(name, from, separators_of(init));
    if (!matched || from.size() < longest) continue;
    longest = from.size();
    result.clear();
    auto star = matched->stars.begin();
    for (const char letter : to)
      if (letter == '*')
        result += *star++;
      else
        result += letter;
    const bool dropped = result.empty() && !matched->rest.empty();  // with the dot behind it
    result += matched->rest.substr(dropped ? 1 : 0);
  }
  return result;
}

std::string shown(const json& parameter) {
  return parameter.at("dtype").get<std::string>() + " " + parameter.at("shape").dump();
}

// What is said of a tensor that does not become the parameter; "" if it does.
std::string fault_of(const JobInit& init, const json& stored, const json& arrived, const json& parameter) {
  const std::string name = parameter.at("name").get<std::string>() + ": ";
  if (arrived.contains("fault"))
    return name + shown(stored) + " in the file " + arrived.at("fault").get<std::string>() + " for " +
           shown(parameter) + " in " + init.target;
  if (arrived.at("shape") == parameter.at("shape") && arrived.at("dtype") == parameter.at("dtype")) return "";
  const bool changed = arrived.at("shape") != stored.at("shape");
  return name + shown(stored) + " in the file, " + (changed ? "which becomes " + shown(arrived) + ", " : "") +
         shown(parameter) + " in " + init.target;
}

// The names that `init` gives vectors to, among those of the job.
bool has_vectors(const JobInit& init, const std::string& name) {
  return std::any_of(init.vectors.begin(), init.vectors.end(),
                     [&](const JobVectors& each) { return is_below(name, each.name); });
}

std::string report_of(const JobInit& init, const InitialFit& fit) {
  std::string line =
      std::to_string(fit.taken.size()) + (fit.taken.size() == 1 ? " parameter" : " parameters") + " from " + init.file;
  if (!fit.skipped.empty()) line += "; skipped: " + base::joined(fit.skipped);
  if (!fit.extra.empty()) line += "; only in the file: " + base::joined(fit.extra);
  return line;
}

void require_fit(const JobInit& init, const InitialFit& fit) {
  if (fit.faults.empty()) return;
  std::string all = base::joined(fit.faults, {}, "; ");
  if (!fit.extra.empty()) all += "; only in the file: " + base::joined(fit.extra);
  fail(init, "\"" + init.file + "\" does not fit " + init.target + ": " + all);
}

}  // namespace

InitialFit fit(const JobInit& init, const json& file, const json& job, const Arrival& arrival) {
  const std::vector<std::string> file_names = parameter_names(file), job_names = parameter_names(job);
  for (const auto& [from, to] : init.rename) {
    require_some(init, "rename", from, file_names, "\"" + init.file + "\"");
    if (!to.empty() && (init.layout.empty() || init.layout == "tenon"))
      require_some(init, "rename", to, job_names, init.target);
  }
  for (const std::string& name : init.skip) require_some(init, "skip", name, job_names, init.target);
  std::map<std::string, std::pair<const json*, json>> arrivals;  // as stored and as arrived, by the job's name
  InitialFit result;
  for (const json& each : file) {
    const std::string from = each.at("name");
    json arrived = each;
    arrived["name"] = renamed(init, from);
    if (arrival) arrived = arrival(each, arrived["name"]);
    const std::string to = arrived.at("name");
    if (std::find(job_names.begin(), job_names.end(), to) == job_names.end()) {
      result.extra.push_back(from);
      continue;
    }
    const auto [at, added] = arrivals.emplace(to, std::pair(&each, std::move(arrived)));
    if (!added)
      fail(init, "the parameters \"" + at->second.first->at("name").get<std::string>() + "\" and \"" + from +
                     "\" of \"" + init.file + "\" both become \"" + to + "\"");
  }
  for (const json& each : job) {
    const std::string name = each.at("name");
    const auto source = arrivals.find(name);
    if (has_vectors(init, name)) continue;
    if (std::any_of(init.skip.begin(), init.skip.end(), [&](const auto& above) { return is_below(name, above); })) {
      result.skipped.push_back(name);
    } else if (source == arrivals.end()) {
      result.faults.push_back(name + ": not in the file");
    } else if (std::string fault = fault_of(init, *source->second.first, source->second.second, each); !fault.empty()) {
      result.faults.push_back(std::move(fault));
    } else {
      result.taken.push_back({source->second.first->at("name"), name});
    }
  }
  return result;
}

Initial::Initial(const Host& host, const JobInit& init) : init_(init) {
  if (init.file.empty()) return;
  tensors_ = weights::read_tensors(host, init.file);
  if (tensors_.has_topology) {
    if (!init.layout.empty())
      fail(init, "key \"layout\": \"" + init.file + "\" is a model of Tenon, whose layouts are known");
    model_ = host.load(init.file);
  } else if (init.layout.empty() && tensors_.of_pytorch()) {
    fail(init, "\"" + init.file +
                   "\" was written by PyTorch: set key \"layout\" to \"pytorch\", or to \"tenon\" to take names and "
                   "layouts as they are");
  }
}

std::vector<Names> Initial::names() const { return model_ ? model_->parameters.names() : std::vector<Names>(); }

InitialFit Initial::give_tensors(const Parameters& to, const Layers& outputs) const {
  std::map<std::string, const weights::StoredTensor*> by_name;
  json file = json::array();
  for (const weights::StoredTensor& tensor : tensors_.tensors) {
    by_name.emplace(tensor.name, &tensor);
    file.push_back({{"name", tensor.name}, {"shape", tensor.shape}, {"dtype", tensor.type}});
  }
  std::optional<weights::Layout> layout;
  if (!init_.layout.empty() && init_.layout != "tenon") layout.emplace(init_.layout, outputs);
  std::map<std::string, weights::Move> moves;  // by the name in the file
  // Of numbers all types become float32.
  const auto arrival = [&](const json& tensor, const std::string& renamed) {
    json result = tensor;
    result["dtype"] = "float32";
    result["name"] = renamed;
    if (!layout) return result;
    const std::string name = layout->dotted(renamed);
    const size_t dot = std::min(name.rfind('.'), name.size());
    result["name"] = "";
    for (const weights::Part& part : layout->parts()) {
      if (part.name != name.substr(0, dot)) continue;
      const std::string last = name.substr(std::min(dot + 1, name.size()));
      std::optional<weights::Move> move = layout->move(part, last, tensor.at("shape"));
      if (!move) break;
      result["name"] = move->to;
      result["shape"] = move->shape;
      if (!move->mismatch.empty()) result["fault"] = move->mismatch;
      moves.emplace(tensor.at("name"), std::move(*move));
    }
    return result;
  };
  InitialFit fitted = fit(init_, file, json::parse(to.describe()), arrival);
  require_fit(init_, fitted);
  if (layout)
    std::erase_if(fitted.extra,
                  [&](const std::string& name) { return layout->ignores(name.substr(name.rfind('.') + 1)); });
  for (const InitialFit::Pair& pair : fitted.taken) {
    std::vector<float> values = weights::read_values(*by_name.at(pair.from));
    if (layout) values = weights::moved(moves.at(pair.from), std::move(values));
    Array array = to.get(pair.to);
    array.data = values.data();
    to.set(pair.to, array);
  }
  return fitted;
}

InitialFit Initial::give_file(const Parameters& to, const Layers& outputs) const {
  if (!model_) return give_tensors(to, outputs);
  InitialFit fitted = fit(init_, json::parse(model_->parameters.describe()), json::parse(to.describe()));
  require_fit(init_, fitted);
  for (const InitialFit::Pair& pair : fitted.taken) to.set(pair.to, model_->parameters.get(pair.from));
  return fitted;
}

std::string Initial::give_vectors(const JobVectors& vectors, const Parameters& to, const Layers& outputs,
                                  const std::vector<Names>& words) const {
  const std::string key = "key \"vectors." + vectors.name + "\": ";
  std::vector<ParameterInfo> tables;
  std::vector<std::string> known;
  for (const ParameterInfo& each : entries(to)) {
    known.push_back(each.name);
    if (is_below(each.name, vectors.name) && each.shape.size() == 2) tables.push_back(each);
  }
  if (tables.size() != 1)
    fail(init_, key + "expected the name of one table of vectors in " + init_.target + ", got " +
                    std::to_string(tables.size()) + base::suggestion(vectors.name, known));
  const ParameterInfo& table = tables[0];
  std::vector<std::string> texts =
      vectors.words.empty() ? std::vector<std::string>() : weights::read_words(vectors.words);
  const std::vector<std::string> data = weights::ModelGraph(outputs).data_of(table.name);
  for (const Names& names : words) {
    if (names.count == 0 || std::find(data.begin(), data.end(), names.slot) == data.end()) continue;
    if (vectors.words.empty() && names.texts.empty())
      fail(init_, key + "the reader has " + std::to_string(names.count) + " words of \"" + names.slot +
                      "\", of which it states no more than 65536: give the file of them as vectors." + vectors.name +
                      ".words");
    if (!vectors.words.empty() && static_cast<int64_t>(texts.size()) != names.count)
      fail(init_, key + "\"" + vectors.words + "\" has " + std::to_string(texts.size()) + " words, the reader " +
                      std::to_string(names.count) + " of \"" + names.slot + "\"");
    if (texts.empty()) texts = names.texts;
  }
  if (texts.empty())
    fail(init_, key +
                    (data.empty() ? "\"" + table.name + "\" is not read with integers of data layers"
                                  : "the integers of " + base::listed(data) + ", with which \"" + table.name +
                                        "\" is read, have no names") +
                    ": give a file of words as vectors." + vectors.name + ".words");
  if (static_cast<int64_t>(texts.size()) > table.shape[0])
    fail(init_, key + "there are " + std::to_string(texts.size()) + " words, and \"" + table.name + "\" has " +
                    std::to_string(table.shape[0]) + " rows");
  Array array = to.get(table.name);
  const auto* const before = static_cast<const float*>(array.data);
  std::vector<float> values(before, before + array.count());
  const weights::Found known_words = weights::read_vectors(vectors.file, texts, table.shape[1], values.data());
  const auto count = std::count(known_words.begin(), known_words.end(), true);
  if (count == 0)
    fail(init_, key + "\"" + vectors.file + "\" has none of the " + std::to_string(texts.size()) + " words");
  array.data = values.data();
  to.set(table.name, array);
  return table.name + ": vectors of " + std::to_string(count) + " of " + std::to_string(texts.size()) + " words from " +
         vectors.file + (static_cast<size_t>(count) < texts.size() ? "; the others keep their initial values" : "");
}

std::vector<std::string> Initial::give(const Parameters& to, const Layers& outputs,
                                       const std::vector<Names>& words) const {
  std::vector<std::string> lines;
  if (!init_.file.empty()) lines.push_back(report_of(init_, give_file(to, outputs)));
  for (const JobVectors& vectors : init_.vectors) lines.push_back(give_vectors(vectors, to, outputs, words));
  return lines;
}

}  // namespace tenon::cli
