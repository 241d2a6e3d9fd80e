// SPDX-License-Identifier: Apache-2.0
#include "record/differences.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/text.h"

namespace tenon::record {

namespace {

using nlohmann::json;

std::string quoted(const json& text) { return "\"" + text.get<std::string>() + "\""; }

// The plugins of a record by id.
std::map<std::string, json> plugins_of(const json& record) {
  std::map<std::string, json> result;
  for (const json& plugin : record.at("plugins")) result[plugin.at("id").get<std::string>()] = plugin;
  return result;
}

std::set<std::string> words_of(const json& text) {
  std::istringstream in(text.get<std::string>());
  std::set<std::string> words;
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

std::vector<std::string> missing_from(const std::set<std::string>& these, const std::set<std::string>& others) {
  std::vector<std::string> result;
  std::set_difference(these.begin(), these.end(), others.begin(), others.end(), std::back_inserter(result));
  return result;
}

std::string processor_remark(const json& before, const json& now) {
  const std::set<std::string> then = words_of(before.at("processor")), here = words_of(now.at("processor"));
  if (then == here) return "";
  std::string text = "another processor";
  if (const auto lost = missing_from(then, here); !lost.empty()) text += ", without " + base::listed(lost);
  if (const auto more = missing_from(here, then); !more.empty()) text += ", with " + base::listed(more);
  return text;
}

// "the pass 3", "the test after pass 3"
std::string curve_name(const json& entry) {
  std::string place = "pass " + entry.at("pass").dump();
  if (entry.at("batch") != 0) place += " and " + entry.at("batch").dump() + " minibatches";
  return entry.at("kind") == "test" ? "the test after " + place : place;
}

}  // namespace

std::string file_difference(const json& before, const json& now) {
  if (before.at("sha256") == now.at("sha256")) return "";
  const json &then = before.at("blocks"), &here = now.at("blocks");
  const uint64_t block_bytes = before.at("block_bytes"), bytes = now.at("bytes");
  std::string text = "data file " + quoted(before.at("path"));
  if (before.at("bytes") != bytes)
    text += " has " + std::to_string(bytes) + " bytes, in the record " + before.at("bytes").dump();
  size_t block = 0;
  const size_t common = block_bytes == now.at("block_bytes") ? std::min(then.size(), here.size()) : 0;
  while (block < common && then[block] == here[block]) ++block;
  if (block == common && before.at("bytes") != bytes) return text + (common > 0 ? "; its first bytes are equal" : "");
  const uint64_t begin = block * block_bytes, end = std::min(begin + block_bytes, bytes);
  return text + ", block " + std::to_string(block + 1) + " of " + std::to_string(here.size()) + ": bytes " +
         std::to_string(begin) + " to " + std::to_string(end == 0 ? 0 : end - 1) + " differ";
}

std::string version_difference(const json& before, const json& now) {
  const auto differ = [](const std::string& what, const json& then, const json& here) {
    return what + " has the version " + here.get<std::string>() + ", in the record " + then.get<std::string>();
  };
  if (before.at("library").at("version") != now.at("library").at("version"))
    return differ("libtenon", before.at("library").at("version"), now.at("library").at("version"));
  const std::map<std::string, json> then = plugins_of(before), here = plugins_of(now);
  for (const auto& [id, plugin] : then) {
    const auto at = here.find(id);
    if (at != here.end() && at->second.at("version") != plugin.at("version"))
      return differ("the plugin " + id, plugin.at("version"), at->second.at("version"));
  }
  return "";
}

std::string arithmetic_difference(const json& before, const json& now) {
  for (const char* const member : {"device", "compute"})
    if (before.at(member) != now.at(member))
      return std::string(member) + " is " + quoted(now.at(member)) + ", in the record " + quoted(before.at(member));
  const json &then = before.at("arithmetic"), &here = now.at("arithmetic");
  if (then.at("asked") != here.at("asked"))
    return "arithmetic is " + quoted(here.at("asked")) + ", in the record " + quoted(then.at("asked"));
  if (then.at("portable") == here.at("portable")) return "";
  return std::string("arithmetic: ") +
         (here.at("portable") ? "only the training of the record" : "only this training") +
         " has calls whose bits depend on the processor ('tenon plan' shows them)";
}

std::string training_difference(const json& before, const json& now) {
  const json then = before.value("training", json()), here = now.value("training", json());
  if (then == here) return "";
  const json steps = json::diff(then, here);
  const std::string place = steps.at(0).at("path");
  const auto shown = [&](const json& training) {
    const json::json_pointer at(place);
    return training.contains(at) ? base::beginning(training.at(at).dump(), 120) : "absent";
  };
  return "the training: " + place + " is " + shown(here) + ", in the record " + shown(then);
}

std::string curve_difference(const json& before, const json& now) {
  const json &then = before.at("curves"), &here = now.at("curves");
  for (size_t i = 0; i < then.size(); ++i) {
    if (i == here.size()) return curve_name(then[i]) + " is in the record alone";
    for (const char* const member : {"kind", "pass", "batch", "samples", "cost", "metrics"})
      if (then[i].at(member) != here[i].at(member))
        return curve_name(then[i]) + ": " + member + " is " + here[i].at(member).dump() + ", in the record " +
               then[i].at(member).dump();
  }
  const json &last = before.at("end"), &end = now.at("end");
  for (const char* const member : {"reason", "test"})
    if (last.value(member, json()) != end.value(member, json()))
      return std::string("the end: ") + member + " is " + end.value(member, json()).dump() + ", in the record " +
             last.value(member, json()).dump();
  return here.size() == then.size() ? "" : curve_name(here[then.size()]) + " is not in the record";
}

std::string model_difference(const json& before, const json& now) {
  for (const json& model : before.at("models")) {
    const auto same = [&](const json& other) { return other.at("key") == model.at("key"); };
    const json& models = now.at("models");
    const auto at = std::find_if(models.begin(), models.end(), same);
    if (at == models.end()) return "the file of the key " + quoted(model.at("key")) + " was not saved";
    if (at->at("sha256") != model.at("sha256"))
      return "the file of the key " + quoted(model.at("key")) + ", " + quoted(model.at("file")) + ", has the SHA-256 " +
             at->at("sha256").get<std::string>() + ", in the record " + model.at("sha256").get<std::string>();
  }
  return "";
}

std::vector<std::string> remarks(const json& before, const json& now) {
  std::vector<std::string> result;
  if (before.at("library").at("sha256") != now.at("library").at("sha256"))
    result.emplace_back("libtenon is another build of its version");
  const std::map<std::string, json> then = plugins_of(before), here = plugins_of(now);
  std::vector<std::string> rebuilt, lost, added;
  for (const auto& [id, plugin] : then) {
    const auto at = here.find(id);
    if (at == here.end())
      lost.push_back(id);
    else if (at->second.at("version") == plugin.at("version") && at->second.at("sha256") != plugin.at("sha256"))
      rebuilt.push_back(id);
  }
  for (const auto& [id, plugin] : here)
    if (!then.contains(id)) added.push_back(id);
  if (!rebuilt.empty()) result.push_back("other builds of their versions: the plugins " + base::listed(rebuilt));
  if (!lost.empty()) result.push_back("loaded in the record alone: the plugins " + base::listed(lost));
  if (!added.empty()) result.push_back("not loaded in the record: the plugins " + base::listed(added));
  if (std::string text = processor_remark(before, now); !text.empty()) result.push_back(std::move(text));
  return result;
}

std::string first_parameter(const json& parameters, const std::string& before, const std::string& now) {
  constexpr size_t kShort = 8;  // digits of each
  for (size_t i = 0; i < parameters.size(); ++i)
    if (before.compare(i * kShort, kShort, now, i * kShort, kShort) != 0)
      return quoted(parameters[i].at("name")) + " " +
             base::to_string(parameters[i].at("shape").get<std::vector<int64_t>>());
  return "a parameter";  // whose first digits are equal
}

}  // namespace tenon::record
