// SPDX-License-Identifier: Apache-2.0
#include "host/cli/verbs/exchange_plan.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "host/cli/console.h"
#include "host/cli/options.h"

namespace tenon::cli {

using nlohmann::json;

void add_exchange(json& plan, uint32_t shards, const NetworkOptions& options) {
  constexpr double kShareOfLine = 0.8, kSecondsOfMessage = 30e-6;
  const auto processes = static_cast<uint64_t>(options.processes);
  const uint64_t parts = shards == 0 ? processes : shards;
  if (parts < processes)
    throw Failure(kUsage, "--processes " + std::to_string(processes) + ": the job has " + std::to_string(parts) +
                              " shards; a process needs one at least");
  const json& bytes = plan.at("bytes");
  const auto reason = plan.at("whole_reason").get<std::string>();
  const auto dense = static_cast<double>(bytes.value("gradients", uint64_t{0}));
  const auto rows = static_cast<double>(bytes.value("row_sparse", uint64_t{0}));
  const auto others = static_cast<double>(processes - 1);
  const double sent = 2 * others / static_cast<double>(processes) * dense + others * rows;
  const double seconds =
      processes == 1 ? 0 : sent / (kShareOfLine * options.gigabits * 1e9 / 8) + 2 * others * kSecondsOfMessage;
  plan["exchange"] = {{"processes", processes},
                      {"shards", parts},
                      {"gigabits", options.gigabits},
                      {"bytes", sent},
                      {"most_rows", rows > 0},
                      {"seconds", seconds},
                      {"reading", reason.empty() ? "each process reads its own samples"
                                                 : "every process reads all samples: " + reason}};
}

void print_exchange(const json& plan) {
  const json& exchange = plan.at("exchange");
  const auto seconds = exchange.at("seconds").get<double>();
  constexpr double kLittle = 0.1;  // share of a step
  std::cout << "\n"
            << exchange.at("processes") << " processes, " << exchange.at("shards") << " shards: in a step each sends "
            << (exchange.at("most_rows").get<bool>() ? "at most " : "")
            << shown_bytes(static_cast<uint64_t>(exchange.at("bytes").get<double>())) << " and receives as much, in "
            << shown(seconds * 1000) << " ms at " << exchange.at("gigabits") << " Gb/s.\n";
  if (seconds > 0)
    std::cout << "Unless a step of one process computes for " << shown(seconds / kLittle * (1 - kLittle) * 1000)
              << " ms or more (tenon bench), the exchange takes over 10 % of it: such a model does not scale there.\n";
  std::cout << "Reading: " << exchange.at("reading").get<std::string>() << ".\n";
}

}  // namespace tenon::cli
