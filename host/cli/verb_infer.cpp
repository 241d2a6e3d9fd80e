// tenon infer: prints the outputs of a saved model for each sample.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "host/cli/console.h"
#include "host/cli/interrupt.h"
#include "host/cli/job/topology.h"
#include "host/cli/model.h"
#include "host/cli/numbers.h"
#include "host/cli/options.h"
#include "host/cli/verbs.h"

namespace tenon::cli {

namespace {

class Writer {
 public:
  Writer(std::vector<std::string> names, bool csv) : names_(std::move(names)), csv_(csv) {}

  void write(const std::vector<Array>& outputs) {
    if (csv_ && sample_ == 0) heading(outputs);
    text_.clear();
    for (int64_t i = 0; i < samples_of(outputs.at(0)); ++i, ++sample_) csv_ ? csv(outputs, i) : json(outputs, i);
    if (!(std::cout << text_)) throw Failure(kIo, "cannot write to standard output");
  }
  [[nodiscard]] int64_t samples() const { return sample_; }

 private:
  void heading(const std::vector<Array>& outputs) const {
    std::string line = "sample";  // printed when complete: a layer may be refused
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].storage == TN_RAGGED)
        throw Failure(
            kUsage, "--format csv: layer \"" + names_[i] + "\" has sequences, which do not fit into columns; use json");
      const bool one = outputs[i].shape.size() == 1;
      for (int64_t k = 0; k < per_row(outputs[i]); ++k)
        line += "," + quoted(one ? names_[i] : names_[i] + "." + std::to_string(k));
    }
    std::cout << line << "\n";
  }
  // RFC 4180
  static std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string result = "\"";
    for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
    return result + "\"";
  }

  void csv(const std::vector<Array>& outputs, int64_t sample) {
    text_ += std::to_string(sample_);
    for (const Array& array : outputs) {
      const Numbers numbers(array, "nan");
      const int64_t count = per_row(array);
      for (int64_t k = 0; k < count; ++k) {
        text_ += ',';
        numbers.append(text_, sample * count + k);
      }
    }
    text_ += '\n';
  }

  void json(const std::vector<Array>& outputs, int64_t sample) {
    text_ += "{\"sample\":" + std::to_string(sample_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      text_ += "," + nlohmann::json(names_[i]).dump() + ":";
      const Array& array = outputs[i];
      const Numbers numbers(array, "null");
      int64_t index = sample * per_row(array);
      if (array.storage == TN_RAGGED)
        sequence(array, 0, sample, numbers);
      else
        nested(array, 1, index, numbers);
    }
    text_ += "}\n";
  }
  // Writes the rows of a sequence or, if there is a level below this one, its inner sequences.
  void sequence(const Array& array, size_t level, int64_t number, const Numbers& numbers) {
    text_ += '[';
    for (int64_t k = array.offsets.at(level)[number]; k < array.offsets.at(level)[number + 1]; ++k) {
      if (k > array.offsets.at(level)[number]) text_ += ',';
      int64_t index = k * per_row(array);
      if (level + 1 < array.levels)
        sequence(array, level + 1, k, numbers);
      else
        nested(array, 1, index, numbers);
    }
    text_ += ']';
  }
  // Writes nested lists in the shape of one sample.
  void nested(const Array& array, size_t dimension, int64_t& index, const Numbers& numbers) {
    if (dimension == array.shape.size()) return numbers.append(text_, index++);
    text_ += '[';
    for (int64_t k = 0; k < array.shape[dimension]; ++k) {
      if (k > 0) text_ += ',';
      nested(array, dimension + 1, index, numbers);
    }
    text_ += ']';
  }

  std::vector<std::string> names_;
  bool csv_;
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
    if (topology.role(name) == Role::kLayer) layers += (layers.empty() ? "" : ", ") + name;
  throw Failure(kUsage, job.path + ": none of the outputs is a prediction; name a layer with --output NAME: " + layers);
}

struct InferArguments {
  JobOptions common;
  std::string model, reader = "test", format = "json";
  std::vector<std::string> outputs;
};

int infer_job(const InferArguments& given, const Job& job, bool csv) {
  Console console(LogFormat::kText, given.common.quiet);
  const Host host = given.common.host(job);
  const JobReader& source = reader_of(job, given.reader);
  OpenReader open;
  Topology topology(host, job, source, open);
  const std::vector<std::string> names = chosen(topology, job, given.outputs);
  const std::string path = model_path(job, given.model);
  const TrainOptions run = run_of_model(host, job, source, path, names, open, topology, console);
  const Interrupt interrupt;
  Writer writer(names, csv);
  const auto receive = [&](const std::vector<Array>& outputs) {
    writer.write(outputs);
    const auto done = static_cast<double>(writer.samples());
    if (console.bar_is_due())
      console.bar("infer", open.samples > 0 ? done / static_cast<double>(open.samples) : -1,
                  std::to_string(writer.samples()) + " samples");
    return Interrupt::signal() == 0;
  };
  with_model(path, [&] { topology.placed([&] { infer(run, receive); }); });
  return Interrupt::signal() == 0 ? kDone : kSignalled + interrupt.signal();
}

}  // namespace

int run_infer(const Arguments& arguments) {
  InferArguments given;
  Options options(
      "infer", {"JOB.toml"},
      "Prints the outputs of a saved model for each sample of the job's test data, in the order of the data:\n"
      "one JSON object, or one line of CSV, per sample.");
  namespace po = boost::program_options;
  options.list.add_options()("model", po::value(&given.model)->value_name("FILE"),
                             "the model file; default: where the job saves it")(
      "output", po::value(&given.outputs)->value_name("NAME"),
      "the layer to print; may be repeated; default: the job's outputs that are neither costs nor metrics")(
      "reader", po::value(&given.reader)->value_name("NAME"), "train or test (default): where the samples come from")(
      "format", po::value(&given.format)->value_name("FORMAT"), "json (default) or csv")(
      "quiet,q", po::bool_switch(&given.common.quiet), "no progress bar");
  given.common.add_to(options);
  if (!options.parse(arguments)) return kDone;
  if (given.format != "json" && given.format != "csv")
    options.fail("--format: expected json or csv, got \"" + given.format + "\"");
  return infer_job(given, given.common.load(options, options.operand(0)), given.format == "csv");
}

}  // namespace tenon::cli
