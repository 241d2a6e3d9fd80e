// tenon generate: continues texts with a saved model of sequences, or writes one for each sample.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tenon/tenon_generate.hpp>
#include <tenon/tenon_topology.hpp>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/console.h"
#include "host/cli/generate/texts.h"
#include "host/cli/interrupt.h"
#include "host/cli/job/reader.h"
#include "host/cli/late_refusals.h"
#include "host/cli/model.h"
#include "host/cli/numbers.h"
#include "host/cli/options.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

struct GenerateArguments {
  JobOptions common;
  std::string model, format = "text";
  std::vector<std::string> prompts;
  bool interactive = false;
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
                      path + ": " + base::listed(known));
  throw Failure(kUsage, "--scores: no output of " + path + " depends on a layer \"" + name + "\"" +
                            base::suggestion(name, known));
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
    throw Failure(kUsage,
                  "--ids: " + label + " depends on no data layer \"" + name + "\"" + base::suggestion(name, known));
  if (found.size() == 1) return found[0];
  if (found.empty()) throw Failure(kUsage, "--scores: " + label + " depends on no data layer with sequences of ids");
  throw Failure(kUsage, "--ids: name the data layer of the ids; " + label +
                            " depends on these sequences: " + base::listed(found));
}

uint32_t method_of(const std::string& name) {
  if (name == "greedy") return TN_GENERATE_GREEDY;
  if (name == "sample") return TN_GENERATE_SAMPLE;
  if (name == "beam") return TN_GENERATE_BEAM;
  throw Failure(kUsage, "--method: expected greedy, sample or beam, got \"" + name + "\"");
}

void print_text(const std::string& text) {
  if (!(std::cout << text << std::flush)) throw Failure(kIo, "cannot write to standard output");
}

// Refuses what stands for a default in the library.
void require_positive(const char* option, double value) {
  if (!(value > 0)) throw Failure(kUsage, std::string(option) + ": expected a number above 0, got " + shown(value));
}
void require_positive(const char* option, int64_t value) {
  if (value < 1)
    throw Failure(kUsage, std::string(option) + ": expected a whole number from 1 on, got " + std::to_string(value));
}

GenerateOptions options_of(const JobGeneration& given, const Texts& texts, int64_t seed) {
  require_positive("--temperature", given.temperature);
  require_positive("--top-p", given.top_p);
  require_positive("--results", given.results);
  require_positive("--beam-size", given.beam_size);
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

// Writes texts by one model.
class TextWriter {
 public:
  TextWriter(const GenerateArguments& given, const Model& model, const std::string& path, int64_t seed)
      : given_(given),
        scores_(scores_of(model, path, given.generation.scores)),
        ids_(ids_of(scores_, given.generation.ids)),
        texts_(model.parameters, ids_, given.generation.spaces ? " " : ""),
        options_(options_of(given.generation, texts_, seed)),
        generator_(generator(given, model)) {}

  [[nodiscard]] const Layer& scores() const { return scores_; }
  [[nodiscard]] const std::string& ids() const { return ids_; }

  // Continues prompts. stream: of the draws of the first. A text alone appears as it is generated. Ends early if a
  // signal is noted.
  void continue_prompts(const std::vector<std::string>& texts, int64_t stream) const {
    const Prompts prompts(texts_, texts);
    const bool alone = texts.size() == 1 && options_.results == 1 && given_.format == "text";
    const bool streams = alone && options_.method != TN_GENERATE_BEAM;
    bool first = texts[0].empty(), begun = false;  // begun: the prompt is printed
    const auto begin = [&] {
      if (!std::exchange(begun, true)) print_text(prompts.text(texts_, 0, {}, -1));
    };
    const auto results = [&] {
      try {
        return generate({prompts.feed(ids_)}, texts.size(), stream, [&](int64_t id) {
          if (streams) begin();
          if (streams && id != options_.end_id) print_text(texts_.text(id, std::exchange(first, false)));
        });
      } catch (...) {
        if (begun) print_text("\n");  // the message begins a line
        throw;
      }
    }();
    if (streams) begin();
    std::vector<nlohmann::json> heads;
    for (const std::string& text : texts) heads.push_back(nlohmann::json::object({{"prompt", text}}));
    streams ? print_text("\n") : print_results(results, prompts, heads);
  }

  // Writes a text for each of `count` samples, the first of which is number `first`. Prints nothing if a signal is
  // noted.
  void answer(std::vector<Feed> feeds, size_t count, int64_t first) const {
    const auto results = generate(std::move(feeds), count, first, [](int64_t) {});
    if (Interrupt::signal() != 0) return;
    std::vector<nlohmann::json> heads(count);
    for (size_t i = 0; i < count; ++i) heads[i] = nlohmann::json::object({{"sample", first + static_cast<int64_t>(i)}});
    print_results(results, Prompts(texts_, std::vector<std::string>(count)), heads);
  }

  // Whether an error is one of a prompt; others concern the model or the options.
  [[nodiscard]] bool is_of_prompt(const Error& error) const { return error.subject() == ids_; }

 private:
  [[nodiscard]] Generator generator(const GenerateArguments& given, const Model& model) const {
    GeneratorOptions made;
    made.from_logits = given.generation.from_logits;
    return {model.parameters, scores_, ids_, made};
  }
  // stream: of the draws of the first sample, so that draws do not depend on minibatches. each: takes an id, but of
  // beam search.
  template <typename Each>
  std::vector<std::vector<Generation>> generate(std::vector<Feed> feeds, size_t samples, int64_t stream,
                                                const Each& each) const {
    GenerateOptions options = options_;
    options.feeds = std::move(feeds);
    for (size_t i = 0; i < samples; ++i) options.streams.push_back(stream + static_cast<int64_t>(i));
    if (options.method != TN_GENERATE_BEAM)
      options.sink = [&each](int64_t, int64_t, int64_t id) {
        each(id);
        return Interrupt::signal() == 0;
      };
    else
      options.poll = [] { return Interrupt::signal() == 0; };
    try {
      return generator_.generate(options);
    } catch (const Error& error) {
      if (error.code() != TN_CANCELLED) throw;
      return {};
    }
  }
  // heads: of each sample, what its JSON object begins with.
  void print_results(const std::vector<std::vector<Generation>>& results, const Prompts& prompts,
                     const std::vector<nlohmann::json>& heads) const {
    for (size_t i = 0; i < results.size(); ++i) {
      nlohmann::json list = nlohmann::json::array();
      for (const Generation& each : results[i]) {
        const std::string text = prompts.text(texts_, i, each.ids, options_.end_id);
        if (given_.format == "json")
          list.push_back({{"text", text}, {"ids", each.ids}, {"score", number(each.score)}});
        else
          print_text(shown(each.score) + "\t" + text + "\n");
      }
      nlohmann::json object = heads[i];
      object["results"] = list;
      if (given_.format == "json") print_text(object.dump() + "\n");
    }
  }

  const GenerateArguments& given_;
  const Layer scores_;
  const std::string ids_;
  const Texts texts_;
  const GenerateOptions options_;
  const Generator generator_;
};

// Continues each line of standard input, up to its end. The n-th line has draws of its own. Ctrl-C ends a text; between
// two texts it ends the program.
int converse(const TextWriter& writer) {
  const bool terminal = isatty(STDIN_FILENO) == 1;
  std::string line;
  for (int64_t number = 0;; ++number) {
    if (terminal) std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line)) break;
    const Interrupt interrupt;
    try {
      writer.continue_prompts({line}, number);
    } catch (const Failure& failure) {  // the line has no ids; all other usage is checked before
      if (failure.exit() != kUsage) throw;
      std::cerr << "tenon: " << failure.what() << std::endl;
    } catch (const Error& error) {
      if (!writer.is_of_prompt(error)) throw;
      std::cerr << "tenon: " << error.what() << std::endl;
    }
    if (Interrupt::signal() != 0 && Interrupt::signal() != SIGINT) return kSignalled + Interrupt::signal();
  }
  if (std::ferror(stdin) != 0) throw Failure(kIo, "cannot read standard input");
  if (terminal) std::cerr << std::endl;
  return kDone;
}

// A reader of the job, for what the scores are computed from beside the ids.
class Samples {
 public:
  Samples(const Host& host, const Job& job, const std::string& name, const Model& model, const Layer& scores,
          const std::string& ids)
      : open_(open_reader(host, job, reader_of(job, name), true, model.parameters.names())) {
    const JobReader& reader = reader_of(job, name);
    for (const Layer& layer : data_layers({scores})) {
      const std::string data = inspect_data(layer).name;
      if (data == ids) continue;
      const auto feeds = [&](const Slot& slot) { return use_of(reader, slot.name).layer == data; };
      const auto slot = std::find_if(open_.slots.begin(), open_.slots.end(), feeds);
      if (slot == open_.slots.end())
        throw Failure(kBadConfig, reader.place + ": [reader." + name + "]: no slot feeds data layer \"" + data + "\"" +
                                      base::suggestion(data, names_of(open_.slots)));
      fed_.emplace_back(static_cast<size_t>(slot - open_.slots.begin()), data);
    }
    if (fed_.empty())
      throw Failure(kUsage, "--reader: layer \"" + inspect(scores).name + "\" reads nothing but the ids, \"" + ids +
                                "\"; expected prompts");
  }
  // Returns the next minibatch, borrowed until the next call; no feeds at the end of a pass.
  [[nodiscard]] std::vector<Feed> next() const {
    const std::vector<Array> arrays = open_.reader.next();
    std::vector<Feed> feeds;
    if (!arrays.empty())
      for (const auto& [slot, data] : fed_) feeds.push_back({data, arrays[slot]});
    return feeds;
  }

 private:
  OpenReader open_;
  std::vector<std::pair<size_t, std::string>> fed_;  // the number of a slot, and the data layer that it feeds
};

int answer_samples(const TextWriter& writer, const Samples& samples, const JobReader& reader) {
  const Interrupt interrupt;
  int64_t done = 0;
  while (Interrupt::signal() == 0) {
    std::vector<Feed> feeds = samples.next();
    if (feeds.empty()) break;
    const int64_t count = samples_of(feeds[0].values);
    writer.answer(std::move(feeds), static_cast<size_t>(count), done);
    done += count;
  }
  if (Interrupt::signal() == 0) require_samples(reader, done);
  return Interrupt::signal() == 0 ? kDone : kSignalled + Interrupt::signal();
}

int generate(const GenerateArguments& given, const Host& host, const std::string& path, const Job& job) {
  const Model model = host.load(path);
  const TextWriter writer(given, model, path, job.seed);
  const std::string& reader = given.generation.reader;
  if (!reader.empty())
    return answer_samples(writer, Samples(host, job, reader, model, writer.scores(), writer.ids()),
                          reader_of(job, reader));
  if (given.interactive) return converse(writer);
  const Interrupt interrupt;
  writer.continue_prompts(given.prompts, 0);
  return Interrupt::signal() == 0 ? kDone : kSignalled + Interrupt::signal();
}

void add_options(GenerateArguments& given, Options& options) {
  namespace po = boost::program_options;
  options.list.add_options()(
      "prompt,p", po::value(&given.prompts)->value_name("TEXT"),
      "the text to continue; may be repeated; default: an empty one, or the samples of --reader")(
      "interactive,i", po::bool_switch(&given.interactive),
      "continue each line of standard input; the default at a terminal without --prompt")(
      "model", po::value(&given.model)->value_name("FILE"), "the model file; default: where the job saves it")(
      "format", po::value(&given.format)->value_name("FORMAT"), "text (default) or json");
  using G = JobGeneration;
  given.add(options, "reader", &G::reader, "NAME", "train or test: writes a text for each sample of this reader");
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
  Options options(
      "generate", {"JOB.toml|MODEL"},
      "Continues texts with a saved model that scores the next id of a sequence, as [generate] of the job\n"
      "says; of a model file without a job, as the options say. A single text appears as it is generated.\n"
      "At a terminal, without --prompt, it asks for texts until the end of input (Ctrl-D). With --reader it\n"
      "writes a text for each sample of the job's data, such as a translation.");
  add_options(given, options);
  if (!options.parse(arguments)) return kDone;
  if (given.format != "text" && given.format != "json")
    options.fail("--format: expected text or json, got \"" + given.format + "\"");
  if (given.interactive && !given.prompts.empty()) options.fail("--interactive: prompts are read from standard input");
  if (given.interactive && given.format != "text") options.fail("--interactive: expected the format text");
  const std::string& operand = options.operand(0);
  constexpr std::string_view kJob = ".toml";
  const bool is_job = operand.size() > kJob.size() && operand.substr(operand.size() - kJob.size()) == kJob;
  if (!is_job && !given.common.sets.empty()) options.fail("--set: a model file has no keys; expected a job");
  if (!is_job && !given.model.empty()) options.fail("--model: the operand is a model file already");
  const Job job = is_job ? given.common.load(options, operand) : given.common.without_job(options);
  given.apply(job.generation.value_or(JobGeneration()));
  const std::string& reader = given.generation.reader;
  if (!is_job && !reader.empty()) options.fail("--reader: a model file has no readers; expected a job");
  if (!reader.empty() && !given.prompts.empty())
    options.fail("--prompt: texts are written for the samples of --reader");
  if (!reader.empty() && given.interactive)
    options.fail("--interactive: texts are written for the samples of --reader");
  const bool at_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  if (at_terminal && reader.empty() && given.prompts.empty() && given.format == "text") given.interactive = true;
  if (given.prompts.empty()) given.prompts = {""};
  const Host host = given.common.host(job);
  const LateRefusals refusals(host);
  const int exit = generate(given, host, is_job ? model_path(job, given.model) : operand, job);
  refusals.warn();
  return exit;
}

}  // namespace tenon::cli
