// What the programs that drive exhibits of each kind share. Each line that they write says what an exhibit computed, or
// why the host refuses it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

using namespace tenon;

extern "C" const struct tn_plugin* museum_first_version(void);  // of the exhibit of a migration

namespace drive {

inline std::string device;  // on which machines run

inline void print(const Array& array) {
  const int64_t elements = array.storage == TN_CSR ? array.offsets[0][array.samples] : array.count();
  for (int64_t i = 0; i < elements; ++i) {
    double value = 0;
    if (array.dtype == TN_F64)
      value = static_cast<const double*>(array.data)[i];
    else if (array.dtype == TN_I32)
      value = static_cast<const int32_t*>(array.data)[i];
    else if (array.dtype == TN_I64)
      value = static_cast<double>(static_cast<const int64_t*>(array.data)[i]);
    else
      value = static_cast<double>(static_cast<const float*>(array.data)[i]);
    std::printf(" %.9g", value);
  }
  for (size_t level = 0; level < 2 && array.offsets[level] != nullptr; ++level) {
    const int64_t count = level == 0 ? array.samples : array.offsets[0][array.samples];
    for (int64_t i = 0; i <= count; ++i) std::printf(" %lld", static_cast<long long>(array.offsets[level][i]));
  }
  if (array.storage == TN_CSR)
    for (int64_t i = 0; i < array.offsets[0][array.samples]; ++i)
      std::printf(" %lld", static_cast<long long>(array.ids[i]));
}

inline Layer data(const Host& host, const char* name, std::vector<int64_t> shape, int32_t storage = TN_DENSE) {
  DataOptions options;
  options.name = name;
  options.shape = std::move(shape);
  options.storage = storage;
  return host.data(options);
}

inline MachineOptions training(int64_t samples, tn_dtype compute = TN_F32) {
  MachineOptions options;
  options.max_samples = samples;
  options.training = true;
  options.compute = compute;
  options.device = device;
  return options;
}

constexpr float kX[] = {0.75F, -1.5F, 2.25F, -0.25F, 1.25F, 3.5F, -2.75F, 0.5F};
constexpr float kY[] = {1.25F, 0.5F, 2.25F, -1.75F, 0.25F, 2.0F, -0.5F, 3.0F};

// Of parameters that no update changes.
inline const Attributes kStill = {{"param.weight.rate_multiplier", 0.0}, {"param.weight.decay_multiplier", 0.0}};

inline void run_opcodes(const Host& host) {
  const Layer x = data(host, "x", {2}), y = data(host, "y", {2});
  const Layer opcodes = host.layer("museum.opcodes", {x, y}, {}, "o");
  Layers outputs, costs;
  for (uint32_t i = 0; i < 42; ++i) outputs.push_back(i == 0 ? opcodes : opcodes.output(i));
  for (size_t i = 0; i < 42; i += 7)
    costs.push_back(host.layer(
        "museum.total",
        Layers(outputs.begin() + static_cast<std::ptrdiff_t>(i), outputs.begin() + static_cast<std::ptrdiff_t>(i + 7)),
        {{"inputs", int64_t{7}}}));
  Layers all = outputs;
  all.insert(all.end(), costs.begin(), costs.end());
  const Machine machine = host.machine(host.parameters(all, 1), all, training(3, TN_F64));
  machine.forward({{"x", {TN_F32, {3, 2}, kX}}, {"y", {TN_F32, {3, 2}, kY}}});
  for (const Layer& output : outputs) print(machine.output(output));
  machine.backward();
  print(machine.gradient("o.weight"));
}

inline void run_shapes(const Host& host) {
  const Layer pair = host.layer("museum.pair", {data(host, "x", {4})}, {{"by", 2.0}}, "p");
  const Layer shapes = host.layer("museum.shapes", {pair}), other = pair.output(1);
  const Layer cost = host.layer("museum.total", {shapes, other}, {{"inputs", int64_t{2}}});
  const Machine machine = host.machine(host.parameters({cost}, 1), {shapes, other, cost}, training(2));
  machine.forward({{"x", {TN_F32, {2, 4}, kX}}});
  machine.backward();
  print(machine.output(shapes));
  print(machine.output(other));
  print(machine.gradient("p.weight"));
  std::printf(" %d", static_cast<int>(machine.plan().find("museum_gemm") != std::string::npos));
}

inline void run_twice(const Host& host) {
  const Layer twice = host.layer("museum.twice", {data(host, "x", {2})}, {}, "t");
  const Layer cost = host.layer("museum.total", {twice});
  const Parameters parameters = host.parameters({cost}, 1);
  const float weight[] = {3, 4};
  parameters.set("t.b.weight", {TN_F32, {2}, weight});
  const Machine machine = host.machine(parameters, {twice, cost}, training(2));
  machine.forward({{"x", {TN_F32, {2, 2}, kX}}});
  machine.backward();
  print(machine.output(twice));
  print(machine.gradient("t.b.weight"));
}

inline void run_mean(const Host& host) {
  const Layer x = data(host, "x", {2});
  const Layer equal = host.layer("museum.mean", {x}, {}, "equal");
  const Layer weighted = host.layer("museum.mean", {x, data(host, "w", {1})}, {}, "weighted");
  MachineOptions options;
  options.max_samples = 3;
  options.device = device;
  const Machine machine = host.machine(host.parameters({equal, weighted}, 1), {equal, weighted}, options);
  machine.forward({{"x", {TN_F32, {3, 2}, kX}}, {"w", {TN_F32, {3, 1}, kY}}});
  for (const Metric& metric : machine.metrics()) std::printf(" %.9g", metric.value);
}

inline void run_memory(const Host& host) {
  const Layer pair = host.layer("museum.pair", {data(host, "x", {2})}, kStill, "p");
  const Layer memory = host.layer("museum.memory", {pair}, {}, "m"), cost = host.layer("museum.total", {memory});
  const Parameters parameters = host.parameters({cost}, 1);
  const Machine machine = host.machine(parameters, {memory, cost}, training(2));
  const Updater updater = host.updater("museum.rowwise", {{"learning_rate", 0.0}});
  for (int step = 0; step < 3; ++step) {
    machine.forward({{"x", {TN_F32, {2, 2}, kX}}});
    print(machine.output(memory));
    machine.backward();
    updater.update(machine);
    if (step == 1) machine.reset_carried();
  }
  for (const char* name : {"m.sum", "m.max", "m.mean", "m.first"}) print(parameters.get(name));
}

// What a layer makes of sequences of 3, 0, 1 and 4 rows, and the gradient of a weight before it.
inline void run_sequence(const Host& host, const char* type) {
  const Layer pair = host.layer("museum.pair", {data(host, "x", {1}, TN_RAGGED)}, {}, "p");
  const Layer other = data(host, "y", {1}, TN_RAGGED);
  const bool joins = std::string(type) == "museum.joined";
  const Layer rows = host.layer(type, joins ? Layers{pair, other} : Layers{pair});
  const Layer cost = host.layer("museum.total", {host.layer("museum.segments", {rows})});
  const Machine machine = host.machine(host.parameters({cost}, 1), {rows, cost}, training(4));
  const int64_t offsets[] = {0, 3, 3, 4, 8}, others[] = {0, 1, 3, 3, 4};
  std::vector<Feed> feeds = {{"x", Array::sequences(TN_F32, {8, 1}, kX, 4, offsets)}};
  if (joins) feeds.push_back({"y", Array::sequences(TN_F32, {4, 1}, kY, 4, others)});
  machine.forward(feeds);
  machine.backward();
  print(machine.output(rows));
  print(machine.gradient("p.weight"));
}

inline void run_segments(const Host& host) {
  const Layer pair = host.layer("museum.pair", {data(host, "x", {1}, TN_RAGGED)}, {}, "p");
  const Layer segments = host.layer("museum.segments", {pair});
  Layers outputs = {segments};
  for (uint32_t i = 1; i < 5; ++i) outputs.push_back(segments.output(i));
  const Layer cost = host.layer("museum.total", {segments, segments.output(1)}, {{"inputs", int64_t{2}}});
  outputs.push_back(cost);
  const Machine machine = host.machine(host.parameters({cost}, 1), outputs, training(4));
  const int64_t offsets[] = {0, 3, 3, 4, 8};
  machine.forward({{"x", Array::sequences(TN_F32, {8, 1}, kX, 4, offsets)}});
  machine.backward();
  for (uint32_t i = 0; i < 5; ++i) print(machine.output(outputs[i]));
  print(machine.gradient("p.weight"));
}

inline void run_inner(const Host& host) {
  DataOptions options;
  options.name = "x";
  options.shape = {1};
  options.storage = TN_RAGGED;
  options.levels = 2;
  const Layer inner = host.layer("museum.inner", {host.data(options)});
  MachineOptions answering;
  answering.max_samples = 3;
  answering.device = device;
  const Machine machine = host.machine(host.parameters({inner}, 1), {inner}, answering);
  const int64_t offsets[] = {0, 2, 2, 3}, rows[] = {0, 3, 4, 8};
  machine.forward({{"x", Array::nested(TN_F32, {8, 1}, kX, 3, offsets, rows)}});
  print(machine.output(inner));
}

constexpr float kTable[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

// Three updates of a table by a row-sparse gradient.
inline void run_lookup(const Host& host) {
  DataOptions ids;
  ids.name = "ids";
  ids.dtype = TN_I32;
  ids.index_limit = 5;
  const Layer lookup = host.layer("museum.lookup", {host.data(ids)},
                                  {{"param.table.rate_multiplier", 0.5}, {"param.table.decay_multiplier", 2.0}}, "l");
  const Layer cost = host.layer("museum.total", {lookup});
  const Parameters parameters = host.parameters({cost}, 1);
  parameters.set("l.table", {TN_F32, {5, 2}, kTable});
  const Machine machine = host.machine(parameters, {lookup, cost}, training(4));
  const Updater updater = host.updater("museum.rowwise", {{"learning_rate", 0.5}});
  const int32_t numbers[] = {3, 1, 3, 0};
  for (int step = 0; step < 3; ++step) {
    machine.forward({{"ids", {TN_I32, {4}, numbers}}});
    machine.backward();
    if (step == 0) {
      print(machine.output(lookup));
      const Machine::Rows rows = machine.sparse_gradient("l.table");
      print(rows.ids);
      print(rows.values);
    }
    updater.update(machine);
  }
  print(parameters.get("l.table"));
  std::printf(" %d", static_cast<int>(machine.plan().find("museum_lookup") != std::string::npos));
}

inline void run_sparse(const Host& host) {
  const Layer sparse = host.layer("museum.sparse", {data(host, "x", {5}, TN_CSR)}, {}, "s");
  const Layer cost = host.layer("museum.total", {sparse});
  const Parameters parameters = host.parameters({cost}, 1);
  parameters.set("s.table", {TN_F32, {5, 2}, kTable});
  const Machine machine = host.machine(parameters, {sparse, cost}, training(3));
  const int64_t offsets[] = {0, 2, 2, 5}, ids[] = {1, 4, 0, 1, 3};
  machine.forward({{"x", Array::sparse(3, 5, offsets, ids, kX)}});
  machine.backward();
  print(machine.output(sparse));
  print(machine.gradient("s.table"));
}

inline void run_product(const Host& host) {
  const Layer product = host.layer("museum.product", {data(host, "x", {2})}, kStill, "k");
  const Layer cost = host.layer("museum.total", {product});
  const Parameters parameters = host.parameters({cost}, 1);
  const float weight[] = {1, 2, 3, -4};
  parameters.set("k.weight", {TN_F32, {2, 2}, weight});
  const Machine machine = host.machine(parameters, {product, cost}, training(3));
  const Updater updater = host.updater("museum.rowwise", {{"learning_rate", 0.0}});
  for (int step = 0; step < 2; ++step) {
    machine.forward({{"x", {TN_F32, {3, 2}, kX}}});
    machine.backward();
    if (step == 0) continue;
    print(machine.output(product));
    print(machine.gradient("k.weight"));
    updater.update(machine);
  }
  print(parameters.get("k.runs"));
}

// What a layer draws before and after an update; the gradient is of the draws that forward made.
inline void run_noise(const Host& host) {
  const Layer pair = host.layer("museum.pair", {data(host, "x", {2})}, kStill, "p");
  const Layer noise = host.layer("museum.noise", {pair}), cost = host.layer("museum.total", {noise});
  const Parameters parameters = host.parameters({cost}, 1);
  MachineOptions options = training(2);
  options.seed = 9;
  const Machine machine = host.machine(parameters, {noise, cost}, options);
  const Updater updater = host.updater("museum.rowwise");
  for (int step = 0; step < 2; ++step) {
    machine.forward({{"x", {TN_F32, {2, 2}, kX}}});
    machine.backward();
    print(machine.output(noise));
    print(machine.gradient("p.weight"));
    updater.update(machine);
  }
  options.training = false;
  const Machine answering = host.machine(parameters, {noise}, options);
  answering.forward({{"x", {TN_F32, {2, 2}, kX}}});
  print(answering.output(noise));
}

inline void run_fused(const Host& host) {
  const Layer pair = host.layer("museum.pair", {data(host, "x", {2})}, {}, "p");
  const Layer root = host.layer("museum.root", {host.layer("museum.square", {pair})});
  const Layer cost = host.layer("museum.total", {root});
  const Machine machine = host.machine(host.parameters({cost}, 1), {root, cost}, training(3));
  machine.forward({{"x", {TN_F32, {3, 2}, kX}}});
  machine.backward();
  print(machine.output(root));
  print(machine.gradient("p.weight"));
  std::printf(" %d", static_cast<int>(machine.plan().find("museum_root") != std::string::npos));
}

// A model is stored by a host with the first version of its layer, and loaded by this one.
inline void run_migrated(const Host& host, const std::string& devices) {
  const std::string path = "migrated-" + std::to_string(getpid()) + ".safetensors";
  {
    const Host first(HostOptions{1, {devices}, nullptr, {}});
    first.add_plugin(museum_first_version());
    const Layer layer = first.layer("museum.migrated", {data(first, "x", {2})}, {{"shift", 0.25}}, "m");
    first.parameters({layer}, 1).save({layer}, path);
  }
  const Model model = host.load(path);
  MachineOptions options;
  options.max_samples = 3;
  options.device = device;
  const Machine machine = host.machine(model.parameters, model.outputs, options);
  machine.forward({{"x", {TN_F32, {3, 2}, kX}}});
  print(machine.output(model.outputs[0]));
  unlink(path.c_str());
}

// Two passes in minibatches of 4, the end of the second again, every second sample, and one by its index.
inline void read_samples(const Host& host) {
  const Reader reader = host.reader("museum.samples", {{"samples", int64_t{6}}}).batch(4);
  for (int pass = 0; pass < 2; ++pass)
    for (std::vector<Array> arrays = reader.next(); !arrays.empty(); arrays = reader.next())
      for (const Array& array : arrays) print(array);
  reader.seek({1, 4});
  for (const Array& array : reader.next()) print(array);
  const Reader part = host.reader("museum.samples", {{"samples", int64_t{6}}}, {}, 1, 2).batch(3);
  for (const Array& array : part.next()) print(array);
  const Reader indexed = host.reader("museum.samples", {{"samples", int64_t{6}}}, {}, 5, 6).shuffle(7).batch(3);
  for (const Array& array : indexed.next()) print(array);
  for (const Names& names : reader.names()) std::printf(" %lld", static_cast<long long>(names.count));
}

inline void attempt(const char* name, const std::function<void()>& run) {
  std::printf("%s%s%s", name, device.empty() ? "" : " on ", device.c_str());
  try {
    run();
  } catch (const Error& error) {
    std::printf(" error %d %s", static_cast<int>(error.code()), error.what());
  }
  std::printf("\n");
}

// What layers with recorded bodies compute on a device.
inline void run_bodies(const Host& host, const std::string& devices) {
  attempt("opcodes", [&] { run_opcodes(host); });
  attempt("shapes", [&] { run_shapes(host); });
  attempt("expansion", [&] { run_twice(host); });
  attempt("metric", [&] { run_mean(host); });
  attempt("memory", [&] { run_memory(host); });
  attempt("first rows", [&] { run_sequence(host, "museum.first"); });
  attempt("strided rows", [&] { run_sequence(host, "museum.strided"); });
  attempt("joined rows", [&] { run_sequence(host, "museum.joined"); });
  attempt("segments", [&] { run_segments(host); });
  attempt("inner", [&] { run_inner(host); });
  attempt("lookup", [&] { run_lookup(host); });
  attempt("sparse", [&] { run_sparse(host); });
  attempt("noise", [&] { run_noise(host); });
  attempt("chain", [&] { run_fused(host); });
  attempt("migration", [&] { run_migrated(host, devices); });
}

}  // namespace drive
