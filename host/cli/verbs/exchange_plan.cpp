// SPDX-License-Identifier: Apache-2.0
#include "host/cli/verbs/exchange_plan.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "host/cli/console.h"
#include "host/cli/options.h"
#include "host/cli/table.h"
#include "host/cli/verbs/train_arguments.h"

namespace tenon::cli {

using nlohmann::json;

namespace {

constexpr uint64_t kBlocks = kMostServers;

// Returns how many rows of a minibatch an owner can send in a second over the line, which carries their ids the other
// way.
double rows_a_second(const json& tables, double bytes_a_second) {
  double rows = 0, bytes = 0;
  for (const json& table : tables) {
    const double read = table.at("minibatch_rows").get<double>();
    rows += read;
    bytes += read * sizeof(float) * table.at("width").get<double>();
  }
  return rows == 0 ? 0 : bytes_a_second * rows / bytes;
}

// Adds to each table "owner", what one process has of it at most, and returns the bytes of rows that a process sends
// in a step at most: ids and gradients of its shards to the owners, and values of rows from these.
double add_owners(json& tables, const NetworkOptions& options) {
  const auto owners = static_cast<uint64_t>(options.servers > 0 ? options.servers : options.processes);
  const auto share = [](int64_t processes) { return 1 / static_cast<double>(processes); };
  double of_trainers = 0, of_owners = 0;
  for (json& table : tables) {
    const uint64_t blocks = (kBlocks + owners - 1) / owners, rows = table.at("rows");
    const uint64_t owned = rows / kBlocks * blocks + std::min(rows % kBlocks, blocks);
    const auto of_owner = [&](const char* key) { return rows == 0 ? 0 : table.at(key).get<uint64_t>() / rows * owned; };
    table["owner"] = {{"rows", owned}, {"bytes", of_owner("bytes")}, {"state_bytes", of_owner("state_bytes")}};
    const auto row = static_cast<double>(sizeof(float) * table.at("width").get<uint64_t>());
    const double read = table.at("minibatch_rows").get<double>();
    of_trainers += read * share(options.processes) * (row + 2 * sizeof(int64_t));
    of_owners += read / static_cast<double>(owners) * row;
  }
  if (options.servers > 0) return std::max(of_trainers, of_owners);
  return (of_trainers + of_owners) * (1 - share(options.processes));  // the rest is their own
}

}  // namespace

void add_exchange(json& plan, uint32_t shards, const NetworkOptions& options) {
  constexpr double kShareOfLine = 0.8, kSecondsOfMessage = 30e-6;
  const auto trainers = static_cast<uint64_t>(options.processes);
  const uint64_t processes = trainers + static_cast<uint64_t>(options.servers);
  const bool is_bounded = options.staleness > 0;
  uint64_t parts = shards;
  if (shards == 0) parts = is_bounded ? 1 : trainers;
  if (is_bounded && options.servers == 0)
    throw Failure(kUsage, "--processes " + std::to_string(trainers) +
                              ": the job has staleness = " + std::to_string(options.staleness) +
                              ", with which servers have the parameters: state --servers, too");
  if (parts < trainers && !is_bounded)
    throw Failure(kUsage, "--processes " + std::to_string(trainers) + ": the job has " + std::to_string(parts) +
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
  const bool has_tables = plan.contains("tables");
  if (has_tables && options.servers == 0 && trainers > kBlocks)
    throw Failure(kUsage, "--processes " + std::to_string(trainers) + ": the rows of tables can have " +
                              std::to_string(kBlocks) + " owners");
  if (!has_tables && options.servers > 0 && !is_bounded)
    throw Failure(kUsage, "--servers " + std::to_string(options.servers) +
                              ": servers own the rows of tables, and the job has no tables");
  NetworkOptions of_minibatch = options;  // of which one trainer has all samples
  if (is_bounded) of_minibatch.processes = 1;
  const double of_tables = has_tables ? add_owners(plan["tables"], of_minibatch) : 0;
  const auto messages = static_cast<double>(is_bounded ? 2 * options.servers : 2 * static_cast<int64_t>(processes - 1));
  const double sent = is_bounded ? dense + rows + of_tables
                                 : 2 * others / static_cast<double>(processes) * dense + others * rows + of_tables;
  const double bytes_a_second = kShareOfLine * options.gigabits * 1e9 / 8;
  const double seconds = processes == 1 ? 0 : sent / bytes_a_second + messages * kSecondsOfMessage;
  plan["exchange"] = {{"processes", trainers},
                      {"servers", options.servers},
                      {"mode", is_bounded ? "bounded" : "exact"},
                      {"staleness", options.staleness},
                      {"shards", parts},
                      {"gigabits", options.gigabits},
                      {"bytes", sent},
                      {"most_rows", rows + of_tables > 0},
                      {"seconds", seconds},
                      {"owner_rows_a_second", has_tables ? rows_a_second(plan["tables"], bytes_a_second) : 0},
                      {"reading", reason.empty() ? "each process reads its own samples"
                                                 : "every process reads all samples: " + reason}};
}

namespace {

void print_tables(const json& plan) {
  const json &tables = plan.at("tables"), &exchange = plan.at("exchange");
  Table table({"table", ">rows", ">of an owner", ">bytes", ">of states", ">read in a step"});
  uint64_t values = 0, states = 0, read = 0;
  for (const json& each : tables) {
    const json& owner = each.at("owner");
    const auto of_minibatch = each.at("minibatch_rows").get<uint64_t>();
    const std::string rows = each.at("trained").get<bool>() ? std::to_string(of_minibatch) : "not trained";
    table.row({each.at("name").get<std::string>(), each.at("rows").dump(), owner.at("rows").dump(),
               owner.at("bytes").dump(), owner.at("state_bytes").dump(), rows});
    values += owner.at("bytes").get<uint64_t>(), states += owner.at("state_bytes").get<uint64_t>();
    read += of_minibatch;
  }
  std::cout << "\nTables, and what an owner has of them at most:\n";
  table.print(std::cout, output_width());
  std::cout << "Together " << shown_bytes(values) << " of values and " << shown_bytes(states)
            << " of states with an owner.";
  if (read > 0)
    std::cout << " In a step the owners serve about " << read
              << " rows, where 16 are taken for each sequence, and update as many; at " << exchange.at("gigabits")
              << " Gb/s an owner can send " << shown(exchange.at("owner_rows_a_second").get<double>() / 1e6)
              << " million rows a second at most.";
  std::cout << "\n";
}

// Prints what the bounded mode exchanges, and what it promises.
void print_bounded(const json& plan) {
  const json& exchange = plan.at("exchange");
  const auto bytes = static_cast<uint64_t>(exchange.at("bytes").get<double>());
  std::cout << "\nBounded mode, staleness " << exchange.at("staleness") << ": " << exchange.at("processes")
            << " processes train, " << exchange.at("servers") << " serve parameters. A trainer receives about "
            << shown_bytes(bytes) << " for a minibatch, in " << shown(exchange.at("seconds").get<double>() * 1000)
            << " ms at " << exchange.at("gigabits") << " Gb/s, and sends as much.\n"
            << "The first server has all parameters but tables, "
            << shown_bytes(plan.at("bytes").at("parameters").get<uint64_t>()) << " with "
            << shown_bytes(plan.at("bytes").at("state").get<uint64_t>()) << " of states; "
            << (plan.contains("tables") ? "the rows of tables lie with all of them.\n"
                                        : "without tables the others have nothing to do.\n")
            << "Results depend on time. Over zmq trainers other than process 0 may be lost, and return; over an MPI a "
               "lost process ends the job in every mode.\n";
}

}  // namespace

void print_exchange(const json& plan) {
  const json& exchange = plan.at("exchange");
  if (exchange.at("mode") == "bounded") {
    print_bounded(plan);
    if (plan.contains("tables")) print_tables(plan);
    return;
  }
  const auto seconds = exchange.at("seconds").get<double>();
  constexpr double kLittle = 0.1;  // share of a step
  std::cout << "\n"
            << exchange.at("processes") << " processes, "
            << (exchange.at("servers") > 0 ? exchange.at("servers").dump() + " servers, " : "") << exchange.at("shards")
            << " shards: in a step each sends " << (exchange.at("most_rows").get<bool>() ? "at most " : "")
            << shown_bytes(static_cast<uint64_t>(exchange.at("bytes").get<double>())) << " and receives as much, in "
            << shown(seconds * 1000) << " ms at " << exchange.at("gigabits") << " Gb/s.\n";
  if (seconds > 0)
    std::cout << "Unless a step of one process computes for " << shown(seconds / kLittle * (1 - kLittle) * 1000)
              << " ms or more (tenon bench), the exchange takes over 10 % of it: such a model does not scale there.\n";
  if (plan.contains("tables")) print_tables(plan);
  std::cout << "Reading: " << exchange.at("reading").get<std::string>() << ".\n";
}

}  // namespace tenon::cli
