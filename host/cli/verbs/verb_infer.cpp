// tenon infer: prints the outputs of a saved model for each sample.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_topology.hpp>
#include <vector>

#include "base/text.h"
#include "host/cli/console.h"
#include "host/cli/interrupt.h"
#include "host/cli/job/topology.h"
#include "host/cli/late_refusals.h"
#include "host/cli/model.h"
#include "host/cli/numbers.h"
#include "host/cli/options.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

// What an output is to the classes of a label. The texts belong to the list that was given.
struct ClassNames {
  const std::vector<std::string>* texts = nullptr;  // null: the output has nothing to do with named classes
  bool numbers = false;                             // its values are numbers of classes; else it has one per class
};

// A data layer with names that a cost or metric reads, and the names of the layers that it scores.
struct Label {
  const std::vector<std::string>* texts = nullptr;
  int64_t classes = 0;
  std::set<std::string> scores;
};

std::vector<Layer> inputs_of(const Layer& layer) {
  std::vector<Layer> result;
  for (uint32_t i = 0, count = inspect(layer).inputs; i < count; ++i)
    if (std::optional<Layer> read = input(layer, i)) result.push_back(std::move(*read));
  return result;
}

// Adds the layer, and those before it up to one that has parameters: probabilities and the scores that they are of.
void add_scores(const Layer& layer, std::set<std::string>& scores) {
  std::vector<Layer> waiting = {layer};
  while (!waiting.empty()) {
    const Layer next = std::move(waiting.back());
    waiting.pop_back();
    const LayerInfo info = inspect(next);
    if (info.type == "data" || !scores.insert(info.name).second || info.parameters != 0) continue;
    for (Layer& before : inputs_of(next)) waiting.push_back(std::move(before));
  }
}

std::vector<Label> labels_of(const Layers& saved, const std::vector<Names>& names) {
  std::vector<Label> labels;
  for (const Layer& layer : layers(saved)) {
    if (inspect(layer).role == "layer") continue;
    const std::vector<Layer> inputs = inputs_of(layer);
    for (const Layer& label : inputs) {
      const LayerInfo info = inspect(label);
      const auto names_of_label =
          std::find_if(names.begin(), names.end(), [&](const Names& list) { return list.slot == info.name; });
      if (info.type != "data" || names_of_label == names.end() || names_of_label->texts.empty()) continue;
      const int64_t limit = inspect_data(label).index_limit;
      labels.push_back({&names_of_label->texts, limit > 0 ? limit : names_of_label->count, {}});
      for (const Layer& each : inputs) add_scores(each, labels.back().scores);
    }
  }
  return labels;
}

// The names of a layer and of all layers that it depends on.
std::set<std::string> all_before(const Layer& layer) {
  std::set<std::string> result;
  for (const Layer& each : layers({layer})) result.insert(inspect(each).name);
  return result;
}

// The size of the last dimension, -1 if it is not fixed.
int64_t width_of(const OutputInfo& output) { return output.shape.empty() ? -1 : output.shape.back().extent; }

OutputInfo read_output(const Layer& layer) { return inspect_output(layer, inspect(layer).output); }

ClassNames names_of(const Layer& output, const std::vector<Label>& labels) {
  const OutputInfo shape = read_output(output);
  const bool numbers = shape.dtype != TN_COMPUTE && tn_dtype_code(shape.dtype) <= tn_dtype_code(TN_U8);
  const std::vector<Layer> inputs = inputs_of(output);
  if (numbers && inputs.empty()) return {};
  const int64_t classes = width_of(numbers ? read_output(inputs.front()) : shape);
  const std::set<std::string> before = all_before(output);
  const std::vector<std::string>* texts = nullptr;
  for (const Label& label : labels) {
    const auto scores = [&](const std::string& name) { return before.contains(name); };
    if (label.classes != classes || std::none_of(label.scores.begin(), label.scores.end(), scores)) continue;
    if (texts != nullptr && *texts != *label.texts) return {};  // of two labels
    texts = label.texts;
  }
  return {texts, numbers};
}

// Returns what each of `outputs` is. saved: the outputs of the model file. names: those of its data layers, which must
// outlive the result. The labels are the data layers with names that costs and metrics of the model read; the outputs
// are the scores that they read beside a label, and layers computed from these. Its class count says whose they are.
std::vector<ClassNames> class_names(const Layers& outputs, const Layers& saved, const std::vector<Names>& names) {
  const std::vector<Label> labels = saved.empty() ? std::vector<Label>() : labels_of(saved, names);
  std::vector<ClassNames> result;
  for (const Layer& output : outputs) result.push_back(labels.empty() ? ClassNames() : names_of(output, labels));
  return result;
}

class PredictionWriter {
 public:
  // classes: of each output. columns: of the source, copied from `texts`.
  PredictionWriter(std::vector<std::string> names, std::vector<ClassNames> classes, bool csv, const Reader& source,
                   std::vector<std::string> columns, Reader texts)
      : names_(std::move(names)),
        classes_(std::move(classes)),
        csv_(csv),
        source_(source),
        columns_(std::move(columns)),
        texts_(std::move(texts)) {
    const auto numbers = [](const ClassNames& it) { return it.texts != nullptr && it.numbers; };
    const bool alone = std::count_if(classes_.begin(), classes_.end(), numbers) == 1 &&
                       std::count(columns_.begin(), columns_.end(), "name") == 0;
    for (size_t i = 0; i < names_.size(); ++i)
      if (numbers(classes_[i])) keys_[i] = alone ? "name" : names_[i] + ".name";
  }

  void write(const std::vector<Array>& outputs) {
    if (csv_ && sample_ == 0) heading(outputs);
    text_.clear();
    for (int64_t i = 0; i < samples_of(outputs.at(0)); ++i, ++sample_) {
      const int64_t record = source_.record(sample_);
      csv_ ? csv(outputs, i, record) : json(outputs, i, record);
    }
    if (!(std::cout << text_)) throw Failure(kIo, "cannot write to standard output");
  }
  [[nodiscard]] int64_t samples() const { return sample_; }

 private:
  void heading(const std::vector<Array>& outputs) const {
    std::string line = "sample";  // printed when complete: a layer may be refused
    for (const std::string& column : columns_) line += "," + csv_field(column);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].storage == TN_RAGGED)
        throw Failure(
            kUsage, "--format csv: layer \"" + names_[i] + "\" has sequences, which do not fit into columns; use json");
      const bool one = outputs[i].shape.size() == 1;
      const bool each_class = outputs[i].shape.size() == 2 && !classes_[i].numbers;
      for (int64_t k = 0; k < per_row(outputs[i]); ++k) {
        const std::string* const name = each_class ? name_of(i, k) : nullptr;
        line += "," + csv_field(one ? names_[i] : names_[i] + "." + (name == nullptr ? std::to_string(k) : *name));
      }
    }
    std::cout << line << "\n";
  }
  // RFC 4180
  static std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string result = "\"";
    for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
    return result + "\"";
  }

  // Returns a text of the source as JSON: a number as it is written, if JSON has such numbers, any other text in
  // quotes.
  static std::string in_json(const std::string& text, const std::string& column, int64_t record) {
    constexpr size_t kExact = 15;  // digits that every reader of JSON keeps
    if (text.size() <= kExact && nlohmann::json::accept(text) && nlohmann::json::parse(text).is_number()) return text;
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
      throw Failure(kBadData, "--with: sample " + std::to_string(record) + ": the text of \"" + column +
                                  "\" is not UTF-8, as JSON needs it; the reader may have an attribute encoding, and "
                                  "--format csv copies any bytes");
    }
  }

  // The name of class `number`; null if output `i` has nothing to do with classes, or the class has no name.
  [[nodiscard]] const std::string* name_of(size_t i, int64_t number) const {
    const std::vector<std::string>* const texts = classes_[i].texts;
    const bool known = texts != nullptr && number >= 0 && number < static_cast<int64_t>(texts->size());
    return known ? &(*texts)[static_cast<size_t>(number)] : nullptr;
  }

  // Appends an element of output `i`: a class by its name, as `quote` writes it, if `by_name`.
  template <typename Quote>
  void element(size_t i, const Numbers& numbers, int64_t index, bool by_name, const Quote& quote) {
    const std::string* const name = by_name ? name_of(i, static_cast<int64_t>(numbers.value(index))) : nullptr;
    if (name == nullptr) return numbers.append(text_, index);
    text_ += quote(*name);
  }

  void csv(const std::vector<Array>& outputs, int64_t sample, int64_t record) {
    text_ += std::to_string(record);
    for (const std::string& column : columns_) text_ += "," + csv_field(texts_.text(sample_, column));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Numbers numbers(outputs[i], "nan");
      const int64_t count = per_row(outputs[i]);
      for (int64_t k = 0; k < count; ++k) {
        text_ += ',';
        element(i, numbers, sample * count + k, classes_[i].numbers, csv_field);
      }
    }
    text_ += '\n';
  }

  void json(const std::vector<Array>& outputs, int64_t sample, int64_t record) {
    text_ += "{\"sample\":" + std::to_string(record);
    for (const std::string& column : columns_)
      text_ += "," + nlohmann::json(column).dump() + ":" + in_json(texts_.text(sample_, column), column, record);
    for (size_t i = 0; i < outputs.size(); ++i) {
      json_member(names_[i], {i, outputs[i], false}, sample);
      if (keys_.contains(i)) json_member(keys_.at(i), {i, outputs[i], true}, sample);
    }
    text_ += "}\n";
  }
  struct Shown {
    size_t output;
    const Array& array;
    bool by_name;
    const Numbers numbers{array, "null"};
  };
  void json_member(const std::string& key, const Shown& it, int64_t sample) {
    text_ += "," + nlohmann::json(key).dump() + ":";
    int64_t index = sample * per_row(it.array);
    if (it.array.storage == TN_RAGGED)
      sequence(it, 0, sample);
    else
      nested(it, 1, index);
  }
  // Writes the rows of a sequence or, if there is a level below this one, its inner sequences.
  void sequence(const Shown& it, size_t level, int64_t number) {
    const int64_t* const offsets = it.array.offsets.at(level);
    text_ += '[';
    for (int64_t k = offsets[number]; k < offsets[number + 1]; ++k) {
      if (k > offsets[number]) text_ += ',';
      int64_t index = k * per_row(it.array);
      if (level + 1 < it.array.levels)
        sequence(it, level + 1, k);
      else
        nested(it, 1, index);
    }
    text_ += ']';
  }
  // Writes nested lists in the shape of one sample.
  void nested(const Shown& it, size_t dimension, int64_t& index) {
    if (dimension == it.array.shape.size())
      return element(it.output, it.numbers, index++, it.by_name,
                     [](const std::string& name) { return nlohmann::json(name).dump(); });
    text_ += '[';
    for (int64_t k = 0; k < it.array.shape[dimension]; ++k) {
      if (k > 0) text_ += ',';
      nested(it, dimension + 1, index);
    }
    text_ += ']';
  }

  std::vector<std::string> names_;
  std::vector<ClassNames> classes_;
  std::map<size_t, std::string> keys_;  // in JSON, of the names beside the numbers of an output
  bool csv_;
  const Reader& source_;
  std::vector<std::string> columns_;
  Reader texts_;
  int64_t sample_ = 0;
  std::string text_;
};

// Returns the layers of --output, else the outputs of the job that are neither costs nor metrics.
std::vector<std::string> chosen(const Topology& topology, const Job& job, std::vector<std::string> given) {
  for (const std::string& name : given) {
    if (!topology.has_layer(name)) throw Failure(kUsage, "--output: " + topology.unknown(name));
    if (std::count(given.begin(), given.end(), name) > 1)
      throw Failure(kUsage, "--output: layer \"" + name + "\" is named twice");
    if (topology.role(name) == Role::kMetric)
      throw Failure(kUsage, "--output: layer \"" + name + "\" is a metric and has no value per sample");
  }
  if (!given.empty()) return given;
  for (const std::string& name : topology.outputs())
    if (topology.role(name) == Role::kLayer) given.push_back(name);
  if (!given.empty()) return given;
  std::string layers;
  for (const std::string& name : topology.names())
    if (topology.role(name) == Role::kLayer) base::append(layers, name);
  throw Failure(kUsage, job.path + ": none of the outputs is a prediction; name a layer with --output NAME: " + layers);
}

struct InferArguments {
  JobOptions common;
  std::string model, reader = "test", format = "json";
  std::vector<std::string> outputs, data, with;
};

// The reader of the samples: that of the job, or it with the files of --data.
JobReader source_of(const InferArguments& given, const Host& host, const Job& job) {
  if (given.data.empty()) return reader_of(job, given.reader);
  return with_data(host, given.reader == "test" && !job.test ? reader_of(job, "train") : reader_of(job, given.reader),
                   given.data);
}

// Opens the data a second time for the columns of --with, because a thread may read the first one ahead.
Reader texts_of(const InferArguments& given, const Host& host, const Job& job, JobReader source,
                const TrainOptions& run, const std::vector<std::string>& needed) {
  if (given.with.empty()) return {};
  source.prefetch = 0;
  Reader texts = open_reader(host, job, source, true, run.parameters.names(), false, needed).reader;
  try {
    for (const std::string& column : given.with) (void)texts.text(0, column);
  } catch (const Error& error) {
    if (error.code() == TN_NOT_FOUND) throw Failure(kUsage, std::string("--with: ") + error.what());
    if (error.code() != TN_INVALID) throw;  // there is no sample 0
  }
  return texts;
}

// Says how many records have no line in the output.
void note_left_out(const Reader& source, Console& console) {
  if (const int64_t records = source.left_out(); records > 0)
    console.note(std::to_string(records) + (records == 1 ? " record is" : " records are") +
                 " left out, as the reader says; \"sample\" counts them");
}

int infer_job(const InferArguments& given, const Job& job, bool csv) {
  Console console(LogFormat::kText, given.common.quiet);
  const Host host = given.common.host(job);
  const JobReader source = source_of(given, host, job);
  OpenReader open;
  Topology topology(host, job, source, open);
  const std::vector<std::string> names = chosen(topology, job, given.outputs);
  const std::string path = model_path(job, given.model);
  const TrainOptions run = run_of_model(host, job, source, path, names, open, topology, console);
  for (const std::string& column : given.with)
    if (column == "sample" || std::count(names.begin(), names.end(), column) > 0 ||
        std::count(given.with.begin(), given.with.end(), column) > 1)
      throw Failure(kUsage, "--with: the output has \"" + column + "\" already");
  const Interrupt interrupt;
  const std::vector<Names> known = run.parameters.names();
  PredictionWriter writer(names, class_names(run.outputs, topology.saved(), known), csv, open.reader, given.with,
                          texts_of(given, host, job, source, run, data_layers_of(topology, names)));
  const auto receive = [&](const std::vector<Array>& outputs) {
    writer.write(outputs);
    const auto done = static_cast<double>(writer.samples());
    if (console.bar_is_due())
      console.bar("infer", open.samples > 0 ? done / static_cast<double>(open.samples) : -1,
                  std::to_string(writer.samples()) + " samples");
    return Interrupt::signal() == 0;
  };
  const LateRefusals refusals(host);
  with_model(path, [&] { topology.placed([&] { infer(run, receive); }); });
  refusals.warn();
  note_left_out(open.reader, console);
  return Interrupt::signal() == 0 ? kDone : kSignalled + Interrupt::signal();
}

}  // namespace

int run_infer(const Arguments& arguments) {
  InferArguments given;
  Options options(
      "infer", {"JOB.toml", "[FILE]..."},
      "Prints the outputs of a saved model for each sample of the job's test data, or of the files of --data, in the\n"
      "order of the data: one JSON object, or one line of CSV, per sample. \"sample\" is the number of its record in\n"
      "the data, from 0. The data needs only what the outputs are computed from, such as no labels.");
  namespace po = boost::program_options;
  options.list.add_options()("model", po::value(&given.model)->value_name("FILE"),
                             "the model file; default: where the job saves it")(
      "output", po::value(&given.outputs)->value_name("NAME"),
      "the layer to print; may be repeated; default: the job's outputs that are neither costs nor metrics")(
      "data", po::value(&given.data)->value_name("FILE..."),
      "read these files, or this folder, instead of those of the job's test data or, without it, training data")(
      "with", po::value(&given.with)->value_name("COLUMN"),
      "copy this column of the data into the output, such as an id; may be repeated")(
      "reader", po::value(&given.reader)->value_name("NAME"), "train or test (default): where the samples come from")(
      "format", po::value(&given.format)->value_name("FORMAT"), "json (default) or csv")(
      "quiet,q", po::bool_switch(&given.common.quiet), "no progress bar");
  given.common.add_to(options);
  if (!options.parse(arguments)) return kDone;
  if (given.format != "json" && given.format != "csv")
    options.fail("--format: expected json or csv, got \"" + given.format + "\"");
  const std::vector<std::string>& operands = options.given();
  if (operands.size() > 1 && given.data.empty()) options.fail("unexpected \"" + operands[1] + "\"");
  given.data.insert(given.data.end(), operands.begin() + 1, operands.end());
  return infer_job(given, given.common.load(options, options.operand(0)), given.format == "csv");
}

}  // namespace tenon::cli
