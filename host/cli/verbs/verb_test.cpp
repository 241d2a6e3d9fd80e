// tenon test: measures a saved model on the job's test data. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/cli/console.h"
#include "host/cli/job/topology.h"
#include "host/cli/late_refusals.h"
#include "host/cli/model.h"
#include "host/cli/options.h"
#include "host/cli/report.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

int run_test(const Arguments& arguments) {
  JobOptions common;
  std::string model, reader = "test";
  Options options("test", {"JOB.toml"},
                  "Measures a saved model: costs and metrics of the job over one pass of its test data.");
  namespace po = boost::program_options;
  options.list.add_options()("model", po::value(&model)->value_name("FILE"),
                             "the model file; default: where the job saves it")(
      "reader", po::value(&reader)->value_name("NAME"), "train or test (default): the reader to measure on");
  common.add_to(options);
  common.add_log_to(options);
  if (!options.parse(arguments)) return kDone;
  const LogFormat format = common.format(options);
  const Job job = common.load(options, options.operand(0));
  Console console(format, common.quiet);
  const Host host = common.host(job);
  const JobReader& source = reader_of(job, reader);
  OpenReader open;
  Topology topology(host, job, source, open);
  const std::vector<std::string> measured = topology.measured();
  if (measured.empty()) throw Failure(kBadConfig, job.path + ": there is no cost and no metric among the outputs");
  const std::string path = model_path(job, model);
  const TrainOptions run = run_of_model(host, job, source, path, measured, open, topology, console);
  const LateRefusals refusals(host);
  const TestResult result = with_model(path, [&] { return topology.placed([&] { return test(run); }); });
  refusals.warn();
  require_samples(source, result.samples);
  const bool has_cost = std::any_of(measured.begin(), measured.end(),
                                    [&](const std::string& name) { return topology.role(name) == Role::kCost; });
  Report(console, 0, open.samples).test(result, 0, "test", has_cost);
  return kDone;
}

}  // namespace tenon::cli
