// tenon plan: prints the calls of a training and their bytes. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <tenon/tenon.hpp>
#include <tenon/tenon_topology.hpp>

#include "base/text.h"
#include "host/cli/child.h"
#include "host/cli/console.h"
#include "host/cli/job/topology.h"
#include "host/cli/late_refusals.h"
#include "host/cli/options.h"
#include "host/cli/planning.h"
#include "host/cli/table.h"
#include "host/cli/verbs/exchange_plan.h"
#include "host/cli/verbs/train_arguments.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

uint64_t count_of(const json& parameter) {
  uint64_t result = 1;
  for (const json& extent : parameter.at("shape")) result *= extent.get<uint64_t>();
  return result;
}

bool is_buffer(const json& parameter) { return parameter.at("kind") == "buffer"; }

// "weight [16, 8], mean [8] (buffer)"; a parameter that is named after another layer has its full name.
std::string shown_parameters(const json& layer) {
  const std::string own = layer.at("name").get<std::string>() + ".";
  std::string result;
  for (const json& parameter : layer.at("parameters")) {
    const auto name = parameter.at("name").get<std::string>();
    base::append(result, (name.rfind(own, 0) == 0 ? name.substr(own.size()) : name) + " " +
                             base::to_string(parameter.at("shape").get<std::vector<int64_t>>()) +
                             (is_buffer(parameter) ? " (buffer)" : ""));
  }
  return result;
}

// "1 layer", "12 layers"
std::string counted(uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Returns the object that docs/plan.md describes: the data layers, then the layers in the order of the job. `topology`
// has made its outputs, fed by the slots of `open`, and `parameters` are theirs.
json list_layers(const Job& job, const JobReader& reader, const OpenReader& open, const Topology& topology,
                 const Parameters& parameters) {
  const std::map<std::string, json> computed = topology.described();
  std::map<std::string, json> declared;
  json totals = {{"layers", job.layers.size()}, {"parameters", 0}, {"values", 0}, {"buffers", 0}, {"buffer_values", 0}};
  for (const json& parameter : json::parse(parameters.describe())) {
    const bool buffer = is_buffer(parameter);
    json& number = totals[buffer ? "buffers" : "parameters"];
    json& values = totals[buffer ? "buffer_values" : "values"];
    number = number.get<uint64_t>() + 1;
    values = values.get<uint64_t>() + count_of(parameter);
    declared.emplace(parameter.at("name").get<std::string>(), parameter);
  }
  json layers = json::array();
  for (const Slot& slot : open.slots) {
    const auto feeding = [&](const JobSlot& each) { return each.slot == slot.name; };
    const auto use = std::find_if(reader.slots.begin(), reader.slots.end(), feeding);
    const std::string name = use == reader.slots.end() ? slot.name : use->layer;
    if (!computed.contains(name) || topology.has_layer(name)) continue;  // not read, or another slot feeds it
    layers.push_back({{"name", name},
                      {"type", "data"},
                      {"inputs", json::array()},
                      {"outputs", {{{"name", name}, {"shape", to_string(slot)}, {"dtype", slot.dtype}}}},
                      {"parameters", json::array()},
                      {"computed", true},
                      {"place", use == reader.slots.end() ? reader.place : use->place}});
  }
  for (const JobLayer& layer : job.layers) {
    const auto entry_computed = computed.find(layer.name);
    json entry = {{"name", layer.name},          {"type", layer.type},
                  {"inputs", layer.inputs},      {"outputs", json::array()},
                  {"parameters", json::array()}, {"computed", entry_computed != computed.end()},
                  {"place", layer.place}};
    if (entry_computed != computed.end()) {
      entry["inputs"] = entry_computed->second.at("inputs");
      entry["outputs"] = entry_computed->second.at("outputs");
      for (const json& name : entry_computed->second.at("parameters"))
        entry["parameters"].push_back(declared.at(name.get<std::string>()));
    }
    layers.push_back(std::move(entry));
  }
  return {{"layers", std::move(layers)}, {"totals", std::move(totals)}};
}

void print_layers(const json& listing) {
  Table table({"layer", "type", "inputs", "output", "parameters", ">values", "from"});
  for (const json& layer : listing.at("layers")) {
    uint64_t values = 0;
    for (const json& parameter : layer.at("parameters"))
      if (!is_buffer(parameter)) values += count_of(parameter);
    const auto shape_of = [](const json& output) { return output.at("shape").get<std::string>(); };
    table.row({layer.at("name").get<std::string>(), layer.at("type").get<std::string>(), names_in(layer.at("inputs")),
               layer.at("computed").get<bool>() ? base::joined(layer.at("outputs"), shape_of) : "not computed",
               shown_parameters(layer), values == 0 ? "" : std::to_string(values),
               layer.at("place").get<std::string>()});
  }
  table.print(std::cout, output_width());
  const json& totals = listing.at("totals");
  const auto total = [&](const char* key) { return totals.at(key).get<uint64_t>(); };
  std::cout << "\n"
            << counted(total("layers"), "layer") << ", " << counted(total("parameters"), "parameter") << " of "
            << counted(total("values"), "value");
  if (total("buffers") > 0)
    std::cout << ", " << counted(total("buffers"), "buffer") << " of " << counted(total("buffer_values"), "value");
  std::cout << "\n";
}

// Returns the types of the layers of a call, as "fc + relu".
std::string types_of(const json& layers, const std::map<std::string, std::string>& types) {
  json of_layers = json::array();
  for (const json& layer : layers) {
    const auto type = types.find(layer.get<std::string>());
    of_layers.push_back(type == types.end() ? "" : type->second);
  }
  return joined(of_layers);
}

// "tenon.cpu", "fast of org.vendor" for a kernel or provider, or "host"; of a layer that no gradient passes through
// "MISSING".
std::string kernels_of(const json& kernels, bool missing) {
  std::string result = missing ? "MISSING" : "";
  for (const json& each : kernels) {
    const std::string kernel = each.at("kernel"), plugin = each.at("plugin");
    base::append(result, kernel == plugin || plugin.empty() ? kernel : kernel + " of " + plugin);
  }
  return result.empty() ? "-" : result;
}

// Prints what serves each layer, and why a layer cannot be trained through.
void print_layers_served(const json& plan) {
  const auto reason_of = [&](const json& layer) {
    for (const json& missing : plan.at("missing_backward"))
      if (missing.at("layer") == layer) return missing.at("reason").get<std::string>();
    return std::string();
  };
  const bool training = plan.at("training").get<bool>();
  std::vector<std::string> headings = {"layer", "type", "plugin", "forward"};
  if (training) headings.emplace_back("backward");
  Table table(headings);
  for (const json& layer : plan.at("layers")) {
    if (layer.at("plugin").get<std::string>().empty()) continue;  // of data
    std::vector<std::string> cells;
    for (const char* key : {"name", "type", "plugin"}) cells.push_back(layer.at(key).get<std::string>());
    cells.push_back(kernels_of(layer.at("forward"), false));
    if (training) cells.push_back(kernels_of(layer.at("backward"), !reason_of(layer.at("name")).empty()));
    table.row(cells);
  }
  table.print(std::cout, output_width());
  for (const json& missing : plan.at("missing_backward"))
    std::cout << plain("MISSING layer \"" + missing.at("layer").get<std::string>() +
                       "\": " + missing.at("reason").get<std::string>())
              << "\n";
  std::cout << "\n";
}

std::string outputs_of(const json& call) {
  return base::joined(call.at("outputs"), [](const json& output) { return output.get<std::string>(); });
}

std::string primitive_of(const json& call) {
  const auto loop = call.find("loop"), around = call.find("around");
  const std::string outer = around == call.end() ? "" : "loop " + around->dump() + ", ";
  return outer + (loop == call.end() ? "" : "loop " + loop->dump() + ": ") + call.at("call").get<std::string>();
}

// "device cpu", or "devices cuda:0, cuda:1, each with at most 64 of the samples", or "..., each with 4 shards of at
// most 16 of the samples, one after another"
std::string devices_of(const json& plan) {
  const auto devices = plan.find("devices");
  if (devices == plan.end()) return "device " + plain(plan.at("device").get<std::string>());
  const std::string names = base::joined(*devices, [](const json& name) { return plain(name.get<std::string>()); });
  const std::string samples = "at most " + plan.at("shard_samples").dump() + " of the samples";
  const std::string list = devices->size() == 1 ? "device " + names + ", with " : "devices " + names + ", each with ";
  const auto in_turn = plan.find("shards_in_turn");
  if (in_turn == plan.end()) return list + samples;
  return list + in_turn->dump() + " shards of " + samples + ", one after another";
}

void print_plan(const json& plan) {
  std::map<std::string, std::string> types;
  for (const json& layer : plan.at("layers"))
    types[layer.at("name").get<std::string>()] = layer.at("type").get<std::string>();
  std::cout << devices_of(plan) << ", compute " << plan.at("compute").get<std::string>() << ", minibatches of at most "
            << plan.at("max_samples") << " samples, " << (plan.at("training").get<bool>() ? "training" : "inference")
            << "\n";
  const json& threads = plan.at("threads");
  std::cout << counted(threads.at("count").get<uint64_t>(), "compute thread") << ": "
            << plain(threads.at("reason").get<std::string>()) << "\n\n";
  print_layers_served(plan);
  Table table({"phase", "layer", "type", "call", "kernel", ">group", ">reads", ">writes", ">workspace", "outputs"});
  for (const json& call : plan.at("calls"))
    table.row({call.at("phase").get<std::string>(), joined(call.at("layers")), types_of(call.at("layers"), types),
               primitive_of(call), call.at("kernel").get<std::string>(), std::to_string(call.at("layers").size()),
               std::to_string(call.at("reads").get<uint64_t>()), std::to_string(call.at("writes").get<uint64_t>()),
               std::to_string(call.at("workspace").get<uint64_t>()), outputs_of(call)});
  table.print(std::cout, output_width());
  std::cout << "\n";
  Table plugins({"plugin", "version", "interface", "needs", "file"});
  for (const json& plugin : plan.at("plugins"))
    plugins.row({plugin.at("id").get<std::string>(), plugin.at("version").get<std::string>(),
                 plugin.at("interface").get<std::string>(), plugin.at("requires").get<std::string>(),
                 plugin.at("file").get<std::string>()});
  plugins.print(std::cout, output_width());
  std::cout << "\n";
  Table bytes({"memory", ">bytes", ""});
  const json& parts = plan.at("bytes");
  for (const char* part :
       {"parameters", "state", "control", "feeds", "gradients", "arena", "workspace", "row_sparse", "sums", "machine"})
    if (parts.contains(part)) {
      const auto size = parts.at(part).get<uint64_t>();
      bytes.row({part, std::to_string(size), size < 1024 ? "" : shown_bytes(size)});
    }
  bytes.print(std::cout);
  uint64_t saved = 0;
  std::string values;
  for (const json& value : plan.at("saved")) {
    saved += value.at("bytes").get<uint64_t>();
    values += "\n" + plain("  " + value.at("layer").get<std::string>() + ": " + value.at("value").get<std::string>());
  }
  if (saved > 0)
    std::cout << "\nThe backward calls read " << saved << " bytes that the forward ones saved:" << values << "\n";
  const bool has_sums = parts.contains("sums");
  std::cout << "\n\"machine\" is the sum from \"control\" to \"" << (has_sums ? "sums" : "row_sparse")
            << "\": what a machine allocates, in one block except \"row_sparse\"" << (has_sums ? " and \"sums\"" : "")
            << ".\n";
}

struct PlanArguments {
  bool as_json = false, inference = false, list = false, program = false;
  std::string why;  // a layer, or "all"; empty: the plan
  NetworkOptions network;
};

// Prints one line for each kernel or provider that computes the layer, or was passed over.
void print_candidates(const json& plan, const json& layer) {
  Table table({"candidate", ">score", "for", ""});
  std::set<std::vector<std::string>> rows;
  const auto add = [&](const json& each, const std::string& call, const std::string& reason) {
    const std::vector<std::string> row = {kernels_of(json::array({each}), false),
                                          each.contains("score") ? each.at("score").dump() : "", call, reason};
    if (rows.insert(row).second) table.row(row);
  };
  for (const json& each : layer.value("passed_over", json::array())) add(each, "layer", each.at("reason"));
  for (const json& call : plan.at("calls")) {
    const json& layers = call.at("layers");
    if (std::find(layers.begin(), layers.end(), layer.at("name")) == layers.end()) continue;
    const std::string what = call.at("phase").get<std::string>() + " " + primitive_of(call);
    for (const json& each : call.value("passed_over", json::array())) add(each, what, each.at("reason"));
    add({{"kernel", call.at("kernel")}, {"plugin", call.at("plugin")}}, what, "computes it");
  }
  const auto plugin = layer.at("plugin").get<std::string>();
  std::cout << plain("layer \"" + layer.at("name").get<std::string>() + "\" (" + layer.at("type").get<std::string>() +
                     (plugin.empty() ? "" : " of " + plugin) + ")")
            << "\n";
  if (!rows.empty()) table.print(std::cout, output_width());
  if (rows.empty()) std::cout << "no call computes it\n";
}

// Prints the candidates of a layer, of those that it expands to, or of all layers.
void print_why(const json& plan, const std::string& why) {
  bool any = false;
  for (const json& layer : plan.at("layers")) {
    const std::string name = layer.at("name");
    if (layer.at("plugin").get<std::string>().empty() || (why != "all" && name != why && name.rfind(why + "/", 0) != 0))
      continue;
    if (any) std::cout << "\n";
    any = true;
    print_candidates(plan, layer);
  }
  if (!any) throw Failure(kNotFound, "--why: the plan has no layer \"" + why + "\"");
}

int list_here(const Host& host, const Job& job, const JobReader& reader, const PlanArguments& given) {
  const OpenReader open = open_reader(host, job, reader, given.inference, {}, true);
  Topology topology(host, job, reader, open);
  if (given.program) {
    std::cout << plain_lines(tenon::print(topology.layers(topology.outputs())));
    return kDone;
  }
  const json listing = list_layers(job, reader, open, topology, host.declare(topology.layers(topology.outputs())));
  if (given.as_json)
    std::cout << listing.dump(2) << "\n";
  else
    print_layers(listing);
  return kDone;
}

int plan_here(const Job& job, const JobOptions& common, const PlanArguments& given) {
  const Host host = common.host(job);
  const JobReader& reader = reader_of(job, given.inference && job.test ? "test" : "train");
  if (given.list || given.program) return list_here(host, job, reader, given);
  const LateRefusals refusals(host);
  json plan = plan_job(host, job, reader, !given.inference);
  NetworkOptions network = given.network;
  network.staleness = job.training.staleness;
  if (network.processes > 0) add_exchange(plan, job.shards, network);
  refusals.warn();
  if (given.as_json)
    std::cout << plan.dump(2) << "\n";
  else if (!given.why.empty())
    print_why(plan, given.why);
  else
    print_plan(plan);
  if (!given.as_json && given.why.empty() && given.network.processes > 0) print_exchange(plan);
  require_backward(plan);
  return kDone;
}

void check(const NetworkOptions& network, bool inference, const Options& options) {
  constexpr int64_t kMost = 65536;
  if (network.processes < 0 || network.processes > kMost)
    options.fail("--processes: expected 0 to " + std::to_string(kMost) + ", got " + std::to_string(network.processes));
  if (network.servers < 0 || network.servers > kMostServers)
    options.fail("--servers: expected 0 to " + std::to_string(kMostServers) + ", got " +
                 std::to_string(network.servers));
  if (network.servers > 0 && network.processes == 0) options.fail("--servers: it needs --processes");
  if (!(network.gigabits > 0)) options.fail("--network: expected more than 0, got " + std::to_string(network.gigabits));
  if (network.processes > 0 && inference) options.fail("--processes: it does not go with --inference");
}

}  // namespace

int run_plan(const Arguments& arguments) {
  JobOptions common;
  Deadline deadline;
  PlanArguments given;
  Options options(
      "plan", {"JOB.toml"},
      "Shows the calls that training the job would make, which layers were fused into one call, and the\n"
      "bytes it takes. Nothing is trained. The code of plugins runs in a process of its own: if it crashes or\n"
      "does not end, a message names layer, plugin and call, and the exit code is 70. If a layer has no backward\n"
      "that the training needs, the exit code is 78.");
  namespace po = boost::program_options;
  options.list.add_options()("json", po::bool_switch(&given.as_json), "print JSON, as docs/plan.md describes it")(
      "inference", po::bool_switch(&given.inference), "plan the computation of the outputs instead, without training")(
      "layers", po::bool_switch(&given.list),
      "show the layers instead: what includes and blocks expand to, shapes, parameters, and the place of each")(
      "program", po::bool_switch(&given.program), "print the layers instead, as a program: operators in blocks")(
      "why", po::value(&given.why)->value_name("LAYER"),
      "show what computes a layer instead, or all of them (all), and each kernel and provider that was passed over, "
      "with the reason");
  options.list.add_options()("processes", po::value(&given.network.processes)->value_name("N"),
                             "also show what so many processes of the training exchange in a step")(
      "servers", po::value(&given.network.servers)->value_name("N"),
      "with --processes: processes beside them that own the rows of tables")(
      "network", po::value(&given.network.gigabits)->value_name("GBITS"),
      "with --processes: the line between them, in Gb/s each way; 10 by default");
  common.add_to(options);
  deadline.add_to(options);
  if (!options.parse(arguments)) return kDone;
  if (given.program && (given.as_json || given.list || given.inference))
    options.fail("--program: it goes with none of --json, --layers and --inference");
  check(given.network, given.inference, options);
  if (!given.why.empty() && (given.as_json || given.list || given.program))
    options.fail("--why: it goes with none of --json, --layers and --program");
  return run_verb_in_child(deadline.seconds(options),
                           [&] { return plan_here(common.load(options, options.operand(0)), common, given); });
}

}  // namespace tenon::cli
