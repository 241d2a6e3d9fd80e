// tenon model print: the layers of a file as a program; loads their plugins. SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>
#include <system_error>
#include <tenon/tenon_topology.hpp>

#include "host/cli/options.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

int run_model_print(const Arguments& arguments) {
  PluginOptions plugins;
  std::string topology;
  Options options("model print", {"FILE"},
                  "Prints the layers of a model file, or of a file of a topology, as a program: operators in blocks,\n"
                  "with shapes and parameters. Loads the plugins of the layers, but no values.");
  namespace po = boost::program_options;
  options.list.add_options()("topology", po::value(&topology)->value_name("FILE.json"),
                             "also write the topology without values, as a file that `model print` and programs read");
  plugins.add_to(options);
  if (!options.parse(arguments)) return kDone;
  const std::string& file = options.operand(0);
  std::error_code none;
  if (!topology.empty() && std::filesystem::equivalent(topology, file, none))
    options.fail("--topology: \"" + topology + "\" is the file that is read, and would be replaced");
  const Layers outputs = load_topology(plugins.host(), file);
  if (!topology.empty()) save_topology(outputs, topology);
  std::cout << plain_lines(print(outputs));
  return kDone;
}

}  // namespace tenon::cli
