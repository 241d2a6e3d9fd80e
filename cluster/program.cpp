// SPDX-License-Identifier: Apache-2.0
#include "cluster/program.h"

#include <filesystem>

#include "cluster/access.h"
#include "cluster/cluster_training.h"
#include "host/cli/options.h"

namespace tenon::cluster {

namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr int64_t kMemory = int64_t{2} << 30;  // bytes of a process

}  // namespace

int run_program(const cli::Arguments& arguments) {
  cli::Options options("dist program", {"FILE"},
                       "Runs a program in Python in the pods of a cluster, as tenon.dist_train asks for.");
  cli::ClusterArguments cluster;
  std::string name, save, credentials;
  std::vector<std::string> modules, words;
  Training training;
  Plan& plan = training.plan;
  options.list.add_options()("name", po::value(&name)->value_name("NAME"), "of the training (that of the file)")(
      "processes", po::value(&plan.processes)->value_name("N"), "processes that train (1)")(
      "servers", po::value(&plan.servers)->value_name("N"), "processes that have the parameters (0)")(
      "threads", po::value(&plan.threads)->value_name("N"), "compute threads of a process (1)")(
      "save", po::value(&save)->value_name("FILE"), "where the result goes")(
      "module", po::value(&modules)->value_name("FILE"), "a file that the program imports; may be repeated")(
      "arg", po::value(&words)->value_name("WORD"), "of the program; may be repeated")(
      "credentials", po::value(&credentials)->value_name("FILE"),
      "a certificate and its key in PEM, or a token, instead of those of the kubeconfig");
  cluster.add_to(options);
  if (!options.parse(arguments)) return cli::kDone;
  cluster.is_wanted = true;
  cluster.check(options);
  const fs::path file = options.operand(0), folder = file.parent_path();
  set_pods(cluster, name.empty() ? file.string() : name, kMemory, options, plan);
  plan.is_program = true;
  plan.restarts = 0;  // what fails would fail again
  plan.files.push_back({file.filename().string(), read_file(file)});
  for (const std::string& module : modules)
    plan.files.push_back({fs::path(module).lexically_relative(folder).string(), read_file(module)});
  check_files(plan.files, file.string());
  plan.words = {"python3", std::string(kFolder) + "/" + plan.files.front().path};
  plan.words.insert(plan.words.end(), words.begin(), words.end());
  if (!save.empty()) training.save = save;
  training.credentials = credentials;
  return ClusterTraining(cluster, Audience{}, std::move(training)).run();
}

}  // namespace tenon::cluster
