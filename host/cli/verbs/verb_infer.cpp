// tenon infer: prints the outputs of a saved model for each sample.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "base/text.h"
#include "host/cli/infer/interactive.h"
#include "host/cli/infer/output_file.h"
#include "host/cli/infer/predictions.h"
#include "host/cli/interrupt.h"
#include "host/cli/late_refusals.h"
#include "host/cli/saved_model.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

struct InferArguments : SavedModelArguments {
  std::string format = "json", output_file;
  std::vector<std::string> outputs, with;
  bool classes = false;
};

// Returns the layers of --output, else the outputs that are neither costs nor metrics, else what the costs read.
std::vector<std::string> chosen(const SavedModel& model, std::vector<std::string> names) {
  for (const std::string& name : names) {
    if (!model.has_layer(name)) throw Failure(kUsage, "--output: " + model.unknown(name));
    if (std::count(names.begin(), names.end(), name) > 1)
      throw Failure(kUsage, "--output: layer \"" + name + "\" is named twice");
    if (model.role(name) == Role::kMetric)
      throw Failure(kUsage, "--output: layer \"" + name + "\" is a metric and has no value per sample");
  }
  if (!names.empty()) return names;
  for (const std::string& name : model.outputs())
    if (model.role(name) == Role::kLayer) names.push_back(name);
  if (names.empty()) names = model.scored();
  if (!names.empty()) return names;
  std::string layers;
  for (const std::string& name : model.layers())
    if (model.role(name) == Role::kLayer) base::append(layers, name);
  throw Failure(kUsage,
                model.place() + ": none of the outputs is a prediction; name a layer with --output NAME: " + layers);
}

// Opens the data a second time for the columns of --with, because a thread may read the first one ahead.
Reader texts_of(const InferArguments& given, const SavedModel& model) {
  if (given.with.empty()) return {};
  Reader texts = model.open_again(model.source()).reader;
  try {
    for (const std::string& column : given.with) (void)texts.text(0, column);
  } catch (const Error& error) {
    if (error.code() == TN_NOT_FOUND) throw Failure(kUsage, std::string("--with: ") + error.what());
    if (error.code() != TN_INVALID) throw;  // there is no sample 0
  }
  return texts;
}

void check_columns(const InferArguments& given, const std::vector<std::string>& names) {
  for (const std::string& column : given.with)
    if (column == "sample" || std::count(names.begin(), names.end(), column) > 0 ||
        std::count(given.with.begin(), given.with.end(), column) > 1)
      throw Failure(kUsage, "--with: the output has \"" + column + "\" already");
}

// Says which records have no line in the output.
void note_left_out(const PredictionWriter& writer, const Reader& source, Console& console) {
  const int64_t records = source.left_out();
  if (records <= 0) return;
  std::vector<int64_t> numbers = writer.skipped();
  for (int64_t last = writer.samples() + records, next = writer.next_record();
       next < last && numbers.size() < PredictionWriter::kMostSkipped; ++next)
    numbers.push_back(next);
  const auto text = [](int64_t number) { return std::to_string(number); };
  const int64_t more = records - static_cast<int64_t>(numbers.size());
  console.note(std::to_string(records) + (records == 1 ? " record is" : " records are") +
               " left out, as the reader says: " + base::joined(numbers, text) +
               (more > 0 ? " and " + text(more) + " more" : "") + "; \"sample\" counts them");
}

std::unique_ptr<PredictionWriter> writer_of(const InferArguments& given, PredictionForm form, OutputFile* file) {
  if (given.format == "npy") return numpy_writer(std::move(form), given.output_file);
  if (file == nullptr) return text_writer(std::move(form), given.format == "csv", std::cout);
  return text_writer(std::move(form), given.format == "csv", file->stream(), given.output_file);
}

int infer_samples(const InferArguments& given, const SavedModel& model, const TrainOptions& run, PredictionForm form,
                  Console& console) {
  const Interrupt interrupt;
  std::optional<OutputFile> file;
  if (!given.output_file.empty() && given.format != "npy") file.emplace(given.output_file);
  const Reader& source = model.open().reader;
  form.record = [&](int64_t sample) { return source.record(sample); };
  form.text = [texts = texts_of(given, model)](int64_t sample, const std::string& column) {
    return texts.text(sample, column);
  };
  const std::unique_ptr<PredictionWriter> writer = writer_of(given, std::move(form), file ? &*file : nullptr);
  const auto receive = [&](const std::vector<Array>& outputs) {
    writer->write(outputs);
    const auto done = static_cast<double>(writer->samples());
    if (console.bar_is_due())
      console.bar("infer", model.open().samples > 0 ? done / static_cast<double>(model.open().samples) : -1,
                  std::to_string(writer->samples()) + " samples");
    return Interrupt::signal() == 0;
  };
  const LateRefusals refusals(model.host());
  model.placed([&] { infer(run, receive); });
  refusals.warn();
  if (Interrupt::signal() != 0) return kSignalled + Interrupt::signal();
  writer->finish();
  if (file) file->finish();
  note_left_out(*writer, source, console);
  return kDone;
}

int infer_with(const InferArguments& given, const Options& options) {
  Console console(LogFormat::kText, given.common.quiet);
  SavedModel model(given, options);
  const std::vector<std::string> names = chosen(model, given.outputs);
  const TrainOptions run = model.run(names, console);
  check_columns(given, names);
  PredictionForm form{names, class_names(run.outputs, model.saved(), model.names()), given.classes, given.with, {}, {}};
  const auto has_names = [](const ClassNames& classes) { return classes.texts != nullptr; };
  if (given.classes && std::none_of(form.classes.begin(), form.classes.end(), has_names))
    throw Failure(kUsage, "--classes: the model knows no names of classes that \"" + names.front() + "\" scores");
  return given.interactive ? answer_lines(model, run, form, given.format == "csv")
                           : infer_samples(given, model, run, std::move(form), console);
}

// Refuses options that do not go together.
void check(const InferArguments& given, const Options& options) {
  if (given.format == "parquet")
    options.fail(
        "--format parquet: write CSV and convert it with the package pyarrow of Python: python3 -c 'import "
        "pyarrow.csv as c, pyarrow.parquet as p; p.write_table(c.read_csv(\"p.csv\"), \"p.parquet\")'");
  if (given.format != "json" && given.format != "csv" && given.format != "npy")
    options.fail("--format: expected json, csv or npy, got \"" + given.format + "\"");
  if (given.format == "npy" && given.output_file.empty()) options.fail("--format npy: expected --output-file NAME.npy");
  if (given.format == "npy" && (given.classes || !given.with.empty()))
    options.fail("--format npy: arrays have no texts, as --classes and --with ask for");
  if (given.interactive &&
      (given.format == "npy" || !given.output_file.empty() || !given.data.empty() || !given.with.empty()))
    options.fail("--interactive: lines are read from standard input, and answers printed as json or csv");
}

}  // namespace

int run_infer(const Arguments& arguments) {
  InferArguments given;
  Options options(
      "infer", {"JOB.toml|MODEL", "[FILE]..."},
      "Prints the outputs of a saved model for each sample of the job's test data, or of the files of --data, in the\n"
      "order of the data: one JSON object, or one line of CSV, per sample. \"sample\" is the number of its record in\n"
      "the data, from 0. The data needs only what the outputs are computed from, such as no labels. A model file that\n"
      "`tenon train` saved needs no job, only --data.");
  namespace po = boost::program_options;
  const auto named = [&options](const std::string& file) {
    if (file.empty()) options.fail("--output-file: expected the name of a file, got an empty text");
  };
  options.list.add_options()("output", po::value(&given.outputs)->value_name("NAME"),
                             "the layer to print; may be repeated; default: the outputs that are neither costs nor "
                             "metrics, or what costs read")(
      "with", po::value(&given.with)->value_name("COLUMN"),
      "copy this column of the data into the output, such as an id; may be repeated")(
      "classes", po::bool_switch(&given.classes), "print the name of the class with the largest score, too")(
      "interactive,i", po::bool_switch(&given.interactive),
      "answer each line that is typed: a row, a text, a picture's path")(
      "format", po::value(&given.format)->value_name("FORMAT"), "json (default), csv or npy")(
      "output-file", po::value(&given.output_file)->value_name("FILE")->notifier(named),
      "write to this file, which appears when it is complete; default: standard output")(
      "quiet,q", po::bool_switch(&given.common.quiet), "no progress bar");
  given.add_to(options, "where the samples of a job come from");
  if (!options.parse(arguments)) return kDone;
  given.take_operands(options);
  check(given, options);
  return infer_with(given, options);
}

}  // namespace tenon::cli
