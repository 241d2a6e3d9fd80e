// tenon test: measures a saved model on test data. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/cli/infer/confusion.h"
#include "host/cli/late_refusals.h"
#include "host/cli/report.h"
#include "host/cli/saved_model.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

// Infers scores and labels of all samples once more, and prints which classes are taken for which.
void print_confusion(const SavedModel& model, const TrainOptions& tested, const std::vector<LabelledScores>& pairs,
                     Console& console) {
  TrainOptions run = tested;
  run.outputs.clear();
  std::vector<Confusion> tables;
  for (const LabelledScores& pair : pairs) {
    tables.emplace_back(pair);
    run.outputs.insert(run.outputs.end(), {pair.scores, pair.label});
  }
  const auto receive = [&](const std::vector<Array>& outputs) {
    for (size_t i = 0; i < tables.size(); ++i) tables[i].add(outputs.at(2 * i), outputs.at(2 * i + 1));
    return true;
  };
  model.placed([&] { infer(run, receive); });
  for (const Confusion& table : tables) table.print(console);
}

}  // namespace

int run_test(const Arguments& arguments) {
  SavedModelArguments given;
  bool confusion = false;
  Options options(
      "test", {"JOB.toml|MODEL", "[FILE]..."},
      "Measures a saved model: its costs and metrics over one pass of the job's test data, or of the files\n"
      "of --data. A model file that `tenon train` saved needs no job, only --data.");
  options.list.add_options()("confusion", boost::program_options::bool_switch(&confusion),
                             "print which classes are taken for which, too");
  given.add_to(options, "the reader of a job to measure on");
  given.common.add_log_to(options);
  if (!options.parse(arguments)) return kDone;
  given.take_operands(options);
  const LogFormat format = given.common.format(options);
  Console console(format, given.common.quiet);
  SavedModel model(given, options);
  const std::vector<std::string> measured = model.measured();
  if (measured.empty()) throw Failure(kBadConfig, model.place() + ": there is no cost and no metric among the outputs");
  const TrainOptions run = model.run(measured, console);
  const std::vector<LabelledScores> pairs = labelled_scores(run.outputs, model.saved(), model.names());
  if (confusion && pairs.empty())
    throw Failure(kUsage,
                  "--confusion: no cost or metric among the outputs compares scores, one for each class, with "
                  "whole numbers of classes");
  const LateRefusals refusals(model.host());
  const TestResult result = model.placed([&] { return test(run); });
  refusals.warn();
  require_samples(model.source(), result.samples);
  const bool has_cost = std::any_of(measured.begin(), measured.end(),
                                    [&](const std::string& name) { return model.role(name) == Role::kCost; });
  Report(console, 0, model.open().samples).test(result, 0, "test", has_cost);
  if (confusion) print_confusion(model, run, pairs, console);
  return kDone;
}

}  // namespace tenon::cli
