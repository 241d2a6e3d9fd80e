// tenon model join, tenon model split: models whose tables lie in parts; load no plugin.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon.hpp>

#include "host/cli/options.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

int run_model_join(const Arguments& arguments) {
  Options options(
      "model join", {"FILE", "TO"},
      "Writes a model or a checkpoint whose tables lie in parts, as several processes write it, as one file:\n"
      "with the bytes that one process would have written. Verifies all checksums.");
  if (!options.parse(arguments)) return kDone;
  PluginOptions().host().join_model(options.operand(0), options.operand(1));
  return kDone;
}

int run_model_split(const Arguments& arguments) {
  std::vector<std::string> tables;
  int64_t parts = 0;
  Options options(
      "model split", {"FILE", "TO"},
      "Writes a model or a checkpoint with the rows of some of its tensors in parts, files in a new folder\n"
      "beside TO. Any number of processes reads them.");
  namespace po = boost::program_options;
  options.list.add_options()("table", po::value(&tables)->value_name("NAME"),
                             "a tensor whose rows are divided, required; may be repeated")(
      "parts", po::value(&parts)->value_name("N"), "the number of parts, 1 to 256, required");
  if (!options.parse(arguments)) return kDone;
  constexpr int64_t kMost = 256;
  if (tables.empty()) options.fail("--table: expected the name of a tensor");
  if (parts < 1 || parts > kMost)
    options.fail("--parts: expected 1 to " + std::to_string(kMost) + ", got " + std::to_string(parts));
  PluginOptions().host().split_model(options.operand(0), options.operand(1), tables, static_cast<uint32_t>(parts));
  return kDone;
}

}  // namespace tenon::cli
