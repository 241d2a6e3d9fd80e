// tenon generate: continues texts with a saved model of sequences. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tenon/tenon_generate.hpp>
#include <tenon/tenon_topology.hpp>

#include "host/cli/console.h"
#include "host/cli/interrupt.h"
#include "host/cli/model.h"
#include "host/cli/options.h"
#include "host/cli/suggest.h"
#include "host/cli/verbs.h"

namespace tenon::cli {

namespace {

// The texts that ids stand for: names of a data layer, or numbers if it has none.
class Texts {
 public:
  // separator: between the names in a text.
  Texts(const Parameters& parameters, std::string layer, std::string separator)
      : layer_(std::move(layer)), separator_(std::move(separator)) {
    for (Names& names : parameters.names())
      if (names.slot == layer_) names_ = std::move(names.texts);
    if (names_.empty()) separator_ = " ";
    for (size_t i = 0; i < names_.size(); ++i) {
      ids_.emplace(names_[i], static_cast<int64_t>(i));
      longest_ = std::max(longest_, names_[i].size());
    }
  }

  // Returns the id of a name, -1 for "". option: for the message.
  [[nodiscard]] int64_t id(const std::string& option, const std::string& name) const {
    if (name.empty()) return -1;
    if (names_.empty()) return number(option, name);
    const auto found = ids_.find(name);
    if (found == ids_.end())
      throw Failure(kUsage, option + ": \"" + name + "\" is not among the names of \"" + layer_ + "\"" +
                                suggestion(name, names_));
    return found->second;
  }
  // Cuts a prompt at the separator or, without one, into the longest names.
  [[nodiscard]] std::vector<int64_t> ids(const std::string& prompt) const {
    std::vector<int64_t> result;
    for (size_t at = 0; at < prompt.size();) {
      const size_t end = separator_.empty() ? at + longest_at(prompt, at) : prompt.find(separator_, at);
      const std::string part = prompt.substr(at, end == std::string::npos ? end : end - at);
      if (!part.empty()) result.push_back(id("--prompt", part));
      at = end == std::string::npos ? prompt.size() : end + separator_.size();
    }
    return result;
  }
  // Returns the text of an id, which control characters do not leave. first: of the text.
  [[nodiscard]] std::string text(int64_t id, bool first) const {
    const auto at = static_cast<size_t>(id);
    return (first ? "" : separator_) + (names_.empty() ? std::to_string(id) : plain(names_.at(at)));
  }

 private:
  [[nodiscard]] size_t longest_at(const std::string& prompt, size_t at) const {
    for (size_t size = std::min(longest_, prompt.size() - at); size > 0; --size)
      if (ids_.count(prompt.substr(at, size)) > 0) return size;
    throw Failure(kUsage, "--prompt: \"" + prompt.substr(at, longest_) + "\", at byte " + std::to_string(at + 1) +
                              ", begins with none of the names of \"" + layer_ + "\"");
  }
  static int64_t number(const std::string& option, const std::string& name) {
    size_t used = 0;
    try {
      const int64_t result = std::stoll(name, &used);
      if (used == name.size()) return result;
    } catch (const std::logic_error&) {  // is not a number
    }
    throw Failure(kUsage, option + ": the ids of the model have no names; expected a number, got \"" + name + "\"");
  }

  std::string layer_, separator_;
  std::vector<std::string> names_;
  std::map<std::string, int64_t> ids_;
  size_t longest_ = 1;
};

struct GenerateArguments {
  JobOptions common;
  std::string model, format = "text";
  std::vector<std::string> prompts;
  JobGeneration generation;  // the job's, with the options that are given

  // Adds an option that takes the place of a key of [generate].
  template <typename Value>
  void add(Options& options, const char* name, Value JobGeneration::*member, const char* value, const char* help) {
    namespace po = boost::program_options;
    const auto notified = [this, member](const Value& given) {
      changes_.push_back([member, given](JobGeneration& to) { to.*member = given; });
    };
    options.list.add_options()(name, po::value<Value>()->value_name(value)->notifier(notified), help);
  }
  void apply(const JobGeneration& of_job) {
    generation = of_job;
    for (const auto& change : changes_) change(generation);
  }

 private:
  std::vector<std::function<void(JobGeneration&)>> changes_;
};

// Returns the layer of the scores among those that the outputs of a model depend on.
Layer scores_of(const Model& model, const std::string& path, const std::string& name) {
  std::vector<std::string> known;
  for (const Layer& output : model.outputs) {
    known.push_back(inspect(output).name);
    if (const std::optional<Layer> found = output.find(name)) return *found;
  }
  if (name.empty())
    throw Failure(kUsage,
                  "--scores: name the layer that has the scores of the next id, or [generate] in a job; outputs of " +
                      path + ": " + listed(known));
  throw Failure(kUsage,
                "--scores: no output of " + path + " depends on a layer \"" + name + "\"" + suggestion(name, known));
}

// Returns the name of the data layer of the ids.
std::string ids_of(const Layer& scores, const std::string& name) {
  std::vector<std::string> found, known;
  for (const Layer& layer : data_layers({scores})) {
    const DataOptions data = inspect_data(layer);
    known.push_back(data.name);
    if (data.name == name) return name;
    if (data.storage == TN_RAGGED && data.levels <= 1 && data.shape.empty()) found.push_back(data.name);
  }
  const std::string label = "layer \"" + inspect(scores).name + "\"";
  if (!name.empty())
    throw Failure(kUsage, "--ids: " + label + " depends on no data layer \"" + name + "\"" + suggestion(name, known));
  if (found.size() == 1) return found[0];
  throw Failure(kUsage,
                "--ids: name the data layer of the ids; " + label + " depends on these sequences: " + listed(found));
}

uint32_t method_of(const std::string& name) {
  if (name == "greedy") return TN_GENERATE_GREEDY;
  if (name == "sample") return TN_GENERATE_SAMPLE;
  if (name == "beam") return TN_GENERATE_BEAM;
  throw Failure(kUsage, "--method: expected greedy, sample or beam, got \"" + name + "\"");
}

void print(const std::string& text) {
  if (!(std::cout << text << std::flush)) throw Failure(kIo, "cannot write to standard output");
}

// Prompts as ids, concatenated.
struct Prompts {
  std::vector<int64_t> ids, ends{0};

  Prompts(const Texts& texts, const std::vector<std::string>& prompts) {
    for (const std::string& prompt : prompts) {
      const std::vector<int64_t> more = texts.ids(prompt);
      ids.insert(ids.end(), more.begin(), more.end());
      ends.push_back(static_cast<int64_t>(ids.size()));
    }
  }
  [[nodiscard]] Feed feed(const std::string& layer) const {
    return {layer, Array::sequences(TN_I64, {static_cast<int64_t>(ids.size())}, ids.data(),
                                    static_cast<int64_t>(ends.size()) - 1, ends.data())};
  }
  // The text of a prompt with the ids of a result after it, without end_id.
  [[nodiscard]] std::string text(const Texts& texts, size_t prompt, const std::vector<int64_t>& more,
                                 int64_t end_id) const {
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
};

// Refuses what stands for a default in the library.
void require_positive(const char* option, double value) {
  if (!(value > 0)) throw Failure(kUsage, std::string(option) + ": expected a number above 0, got " + shown(value));
}

GenerateOptions options_of(const JobGeneration& given, const Texts& texts, int64_t seed) {
  require_positive("--temperature", given.temperature);
  require_positive("--top-p", given.top_p);
  require_positive("--results", static_cast<double>(given.results));
  require_positive("--beam-size", static_cast<double>(given.beam_size));
  GenerateOptions options;
  options.method = method_of(given.method);
  options.begin_id = texts.id("--begin", given.begin);
  options.end_id = texts.id("--end", given.end);
  options.max_length = given.max_length;
  options.results = given.results;
  options.beam_size = given.beam_size;
  options.length_penalty = given.length_penalty;
  options.temperature = given.temperature;
  options.top_k = given.top_k;
  options.top_p = given.top_p;
  options.seed = static_cast<uint64_t>(seed);
  return options;
}

void print_results(const std::vector<std::vector<Generation>>& results, const Texts& texts, const Prompts& prompts,
                   const GenerateArguments& given, int64_t end_id) {
  for (size_t i = 0; i < results.size(); ++i) {
    nlohmann::json list = nlohmann::json::array();
    for (const Generation& each : results[i]) {
      const std::string text = prompts.text(texts, i, each.ids, end_id);
      if (given.format == "json")
        list.push_back({{"text", text}, {"ids", each.ids}, {"score", number(each.score)}});
      else
        print(shown(each.score) + "\t" + text + "\n");
    }
    if (given.format == "json") print(nlohmann::json{{"prompt", given.prompts[i]}, {"results", list}}.dump() + "\n");
  }
}

int generate(const GenerateArguments& given, const Host& host, const std::string& path, int64_t seed) {
  const JobGeneration& wanted = given.generation;
  const Model model = host.load(path);
  const Layer scores = scores_of(model, path, wanted.scores);
  const std::string ids = ids_of(scores, wanted.ids);
  const Texts texts(model.parameters, ids, wanted.spaces ? " " : "");
  GenerateOptions options = options_of(wanted, texts, seed);
  const Prompts prompts(texts, given.prompts);
  options.feeds = {prompts.feed(ids)};
  GeneratorOptions made;
  made.from_logits = wanted.from_logits;
  const Generator generator(model.parameters, scores, ids, made);
  const bool streams =
      given.prompts.size() == 1 && wanted.results == 1 && given.format == "text" && options.method != TN_GENERATE_BEAM;
  const Interrupt interrupt;
  bool first = given.prompts[0].empty();
  bool begun = false;  // the prompt is printed
  const auto begin = [&] {
    if (!begun) print(prompts.text(texts, 0, {}, -1));
    begun = true;
  };
  if (options.method != TN_GENERATE_BEAM)
    options.sink = [&](int64_t, int64_t, int64_t id) {
      if (streams) begin();
      if (streams && id != options.end_id) print(texts.text(id, std::exchange(first, false)));
      return Interrupt::signal() == 0;
    };
  const auto results = generator.generate(options);
  if (streams) begin();
  streams ? print("\n") : print_results(results, texts, prompts, given, options.end_id);
  return Interrupt::signal() == 0 ? kDone : kSignalled + Interrupt::signal();
}

void add_options(GenerateArguments& given, Options& options) {
  namespace po = boost::program_options;
  options.list.add_options()("prompt,p", po::value(&given.prompts)->value_name("TEXT"),
                             "the text to continue; may be repeated; default: an empty one")(
      "model", po::value(&given.model)->value_name("FILE"), "the model file; default: where the job saves it")(
      "format", po::value(&given.format)->value_name("FORMAT"), "text (default) or json");
  using G = JobGeneration;
  given.add(options, "scores", &G::scores, "LAYER", "the layer that has the scores of the next id in each row");
  given.add(options, "ids", &G::ids, "LAYER", "the data layer of the ids; default: the only sequences of the scores");
  given.add(options, "from-logits", &G::from_logits, "true|false", "whether scores are numbers before a softmax");
  given.add(options, "begin", &G::begin, "NAME", "the id that is fed before each prompt");
  given.add(options, "end", &G::end, "NAME", "the id that ends a text");
  given.add(options, "spaces", &G::spaces, "true|false",
            "whether spaces stand between the names of ids; default: true");
  given.add(options, "method", &G::method, "METHOD", "greedy (default), sample or beam");
  given.add(options, "max-length", &G::max_length, "N", "the most ids of prompt and text together (100)");
  given.add(options, "results", &G::results, "N", "texts for each prompt: draws, or the best of beam search (1)");
  given.add(options, "beam-size", &G::beam_size, "N", "beginnings that beam search keeps (1)");
  given.add(options, "length-penalty", &G::length_penalty, "X", "how much beam search favours long texts (0)");
  given.add(options, "temperature", &G::temperature, "X", "draws: above 1 more varied, below 1 less (1)");
  given.add(options, "top-k", &G::top_k, "N", "draws: only from the N most probable ids (0: from all)");
  given.add(options, "top-p", &G::top_p, "X", "draws: only from the most probable ids with this share (1)");
  given.common.add_to(options);
  given.common.add_seed_to(options);
}

}  // namespace

int run_generate(const Arguments& arguments) {
  GenerateArguments given;
  Options options("generate", {"JOB.toml|MODEL"},
                  "Continues texts with a saved model that scores the next id of a sequence, as [generate] of the job\n"
                  "says; of a model file without a job, as the options say. A single text appears as it is generated.");
  add_options(given, options);
  if (!options.parse(arguments)) return kDone;
  if (given.format != "text" && given.format != "json")
    options.fail("--format: expected text or json, got \"" + given.format + "\"");
  if (given.prompts.empty()) given.prompts = {""};
  const std::string& operand = options.operand(0);
  constexpr std::string_view kJob = ".toml";
  const bool is_job = operand.size() > kJob.size() && operand.substr(operand.size() - kJob.size()) == kJob;
  if (!is_job && !given.common.sets.empty()) options.fail("--set: a model file has no keys; expected a job");
  if (!is_job && !given.model.empty()) options.fail("--model: the operand is a model file already");
  const Job job = is_job ? given.common.load(options, operand) : given.common.without_job(options);
  given.apply(job.generation.value_or(JobGeneration()));
  return generate(given, given.common.host(job), is_job ? model_path(job, given.model) : operand, job.seed);
}

}  // namespace tenon::cli
