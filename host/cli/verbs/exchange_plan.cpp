// SPDX-License-Identifier: Apache-2.0
#include "host/cli/verbs/exchange_plan.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "host/cli/console.h"
#include "host/cli/options.h"
#include "host/cli/table.h"

namespace tenon::cli {

using nlohmann::json;

namespace {

constexpr uint64_t kBlocks = 256;  // of the rows of a table: docs/scale-out.md

// Adds to each table "owner", what one process has of it at most, and returns the bytes of rows that a process sends
// in a step: ids and gradients of its shards to the owners, and values of the rows that it owns to the others.
double add_owners(json& tables, uint64_t processes) {
  double sent = 0;
  const auto share = 1 / static_cast<double>(processes);
  for (json& table : tables) {
    const uint64_t blocks = (kBlocks + processes - 1) / processes, rows = table.at("rows");
    const uint64_t owned = rows / kBlocks * blocks + std::min(rows % kBlocks, blocks);
    const auto of_owner = [&](const char* key) { return rows == 0 ? 0 : table.at(key).get<uint64_t>() / rows * owned; };
    table["owner"] = {{"rows", owned}, {"bytes", of_owner("bytes")}, {"state_bytes", of_owner("state_bytes")}};
    const auto row = static_cast<double>(sizeof(float) * table.at("width").get<uint64_t>());
    const double read = table.at("minibatch_rows").get<double>() * share;
    sent += read * (1 - share) * (2 * row + 2 * sizeof(int64_t));
  }
  return sent;
}

}  // namespace

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
  const auto others = static_cast<double>(processes - 1);
  double rows = 0;  // bytes of the gradients that each process sends to all
  json& tables = plan["tables"];
  for (const json& gradient : plan.at("row_gradients")) {
    const bool is_table = std::any_of(tables.begin(), tables.end(),
                                      [&](const json& table) { return table.at("name") == gradient.at("parameter"); });
    const double row = sizeof(int64_t) + sizeof(float) * gradient.at("width").get<double>();
    if (!is_table) rows += gradient.at("rows").get<double>() * row;
  }
  if (tables.empty()) plan.erase("tables");
  if (plan.contains("tables") && processes > kBlocks)
    throw Failure(kUsage, "--processes " + std::to_string(processes) + ": the rows of tables can have " +
                              std::to_string(kBlocks) + " owners");
  const double of_tables = plan.contains("tables") ? add_owners(plan["tables"], processes) : 0;
  const double sent = 2 * others / static_cast<double>(processes) * dense + others * rows + of_tables;
  const double seconds =
      processes == 1 ? 0 : sent / (kShareOfLine * options.gigabits * 1e9 / 8) + 2 * others * kSecondsOfMessage;
  plan["exchange"] = {{"processes", processes},
                      {"shards", parts},
                      {"gigabits", options.gigabits},
                      {"bytes", sent},
                      {"most_rows", rows + of_tables > 0},
                      {"seconds", seconds},
                      {"reading", reason.empty() ? "each process reads its own samples"
                                                 : "every process reads all samples: " + reason}};
}

namespace {

void print_tables(const json& tables) {
  Table table({"table", ">rows", ">of an owner", ">bytes", ">of states", ">read in a step"});
  uint64_t values = 0, states = 0, read = 0;
  for (const json& each : tables) {
    const json& owner = each.at("owner");
    const auto of_minibatch = each.at("minibatch_rows").get<uint64_t>();
    table.row({each.at("name").get<std::string>(), each.at("rows").dump(), owner.at("rows").dump(),
               owner.at("bytes").dump(), owner.at("state_bytes").dump(),
               of_minibatch == 0 ? "as sequences have" : std::to_string(of_minibatch)});
    values += owner.at("bytes").get<uint64_t>(), states += owner.at("state_bytes").get<uint64_t>();
    read += of_minibatch;
  }
  std::cout << "\nTables, and what a process owns of them at most:\n";
  table.print(std::cout, output_width());
  std::cout << "Together " << shown_bytes(values) << " of values and " << shown_bytes(states)
            << " of states in a process.";
  if (read > 0) std::cout << " In a step the owners serve at most " << read << " rows, and update as many.";
  std::cout << "\n";
}

}  // namespace

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
  if (plan.contains("tables")) print_tables(plan.at("tables"));
  std::cout << "Reading: " << exchange.at("reading").get<std::string>() << ".\n";
}

}  // namespace tenon::cli
