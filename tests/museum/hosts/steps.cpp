// Drives exhibits of what came with 0.3, on whatever host the loader finds, from 0.3 on: steps EXHIBITS DEVICES
// SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_generate.hpp>
#include <tenon/tenon_machine.hpp>

#include "drive.h"

using namespace drive;

namespace {

// Ids, their rows of a table, what a layer recalls of them, and scores of the next id.
struct Words {
  explicit Words(const Host& host) {
    DataOptions ids;
    ids.name = "ids", ids.dtype = TN_I64, ids.storage = TN_RAGGED, ids.index_limit = 5;
    recall = host.layer("museum.recall", {host.layer("museum.lookup", {host.data(ids)}, {}, "l")}, {}, "r");
    scores = host.layer("museum.scores", {recall}, {}, "s");
    parameters = host.parameters({scores}, 1);
    const float table[] = {0.5F, -1, 1, 0.25F, -0.75F, 0.5F, 0.25F, 1, -1, -0.5F};
    const float weight[] = {1, -2, 0.5F, 3, -1, 0.25F, 1, -1.5F, -2, 2};
    parameters.set("l.table", {TN_F32, {5, 2}, table});
    parameters.set("s.weight", {TN_F32, {2, 5}, weight});
  }
  Layer recall, scores;
  Parameters parameters;
};

void run_whole(const Host& host) {
  const Words words(host);
  MachineOptions options;
  options.max_samples = 2;
  const Machine machine = host.machine(words.parameters, {words.recall}, options);
  const int64_t ids[] = {3, 1, 4, 0}, offsets[] = {0, 3, 4};
  machine.forward({{"ids", Array::sequences(TN_I64, {4}, ids, 2, offsets)}});
  print(machine.output(words.recall));
}

void run_generation(const Host& host) {
  const Words words(host);
  GeneratorOptions options;
  options.from_logits = true;
  const Generator generator(words.parameters, words.scores, "ids", options);
  const int64_t ids[] = {3, 1, 4, 0}, offsets[] = {0, 3, 4};
  GenerateOptions greedy;
  greedy.feeds = {{"ids", Array::sequences(TN_I64, {4}, ids, 2, offsets)}};
  greedy.max_length = 9;
  for (const auto& sample : generator.generate(greedy))
    for (const int64_t id : sample.at(0).ids) std::printf(" %lld", static_cast<long long>(id));
}

void run_exempt(const Host& host) {
  DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I32;
  const Layer exempt = host.layer("museum.exempt", {host.data(ids)});
  MachineOptions options;
  options.max_samples = 3;
  const Machine machine = host.machine(host.parameters({exempt}, 1), {exempt}, options);
  const int32_t good[] = {0, -1, 4}, bad[] = {0, -2, 4};
  machine.forward({{"ids", {TN_I32, {3}, good}}});
  print(machine.output(exempt));
  try {
    machine.forward({{"ids", {TN_I32, {3}, bad}}});
  } catch (const Error& error) {
    std::printf(" %d", static_cast<int>(error.code()));
  }
}

// The buffers of a layer after a step of 3 and 2 samples on two replicas.
void run_shards(const Host& host) {
  const Layer memory =
      host.layer("museum.memory", {host.layer("museum.pair", {data(host, "x", {1})}, kStill)}, {}, "m");
  const Layer cost = host.layer("museum.total", {memory});
  const Parameters parameters = host.parameters({cost}, 1);
  MachineOptions options = training(5);
  options.devices = {"cpu", "cpu"};
  const Machine machine = host.machine(parameters, {cost}, options);
  machine.forward({{"x", {TN_F32, {5, 1}, kX}}});
  machine.backward();
  host.updater("museum.rowwise").update(machine);
  for (const char* name : {"m.sum", "m.max", "m.mean", "m.first"}) print(parameters.get(name));
}

// Several steps of one machine, which a device may record.
void run_repeated(const Host& host) {
  const Layer pair = host.layer("museum.pair", {data(host, "x", {4})}, {{"by", 2.0}}, "p");
  const Layer shapes = host.layer("museum.shapes", {pair});
  const Layer cost = host.layer("museum.total", {shapes, pair.output(1)}, {{"inputs", int64_t{2}}});
  const Machine machine = host.machine(host.parameters({cost}, 1), {shapes, cost}, training(1));
  for (int step = 0; step < 4; ++step) {
    machine.forward({{"x", {TN_F32, {1, 4}, step % 2 == 0 ? kY : kX}}});
    machine.backward();
    print(machine.output(shapes));
    print(machine.gradient("p.weight"));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const Host host(HostOptions{2, {arguments[1], arguments[2]}, nullptr, [](int, const char*) {}, TN_CHECK_ON});
  attempt("whole", [&] { run_whole(host); });
  attempt("generation", [&] { run_generation(host); });
  attempt("exempt", [&] { run_exempt(host); });
  attempt("shards", [&] { run_shards(host); });
  device = "museum.wide";
  run_bodies(host, arguments[2]);
  attempt("repeated", [&] { run_repeated(host); });
}
