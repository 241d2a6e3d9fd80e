// Trains with the exhibits of the museum, on whatever host the loader finds: trainer EXHIBITS DEVICES
// Each line says what an exhibit computed, or why the host refuses it. SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <functional>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

using namespace tenon;

namespace {

constexpr int kSamples = 8, kPasses = 40;

void print(const Array& array, size_t count) {
  for (size_t i = 0; i < count; ++i)
    std::printf(" %.9g", static_cast<double>(static_cast<const float*>(array.data)[i]));
}

void train_scale(const Host& host, bool native, bool momentum) {
  DataOptions x, y;
  x.name = "x", y.name = "y";
  x.shape = y.shape = {2};
  const Layer scale = host.layer("museum.scale", {host.data(x)}, {{"native", native}}, "scale");
  const Layer cost = host.layer("museum.distance", {scale, host.data(y)}, {}, "cost");
  TrainOptions options;
  options.outputs = {cost};
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = momentum ? host.updater("museum.momentum", {{"learning_rate", 0.1}, {"keep", 0.5}})
                             : host.updater("museum.descent", {{"learning_rate", 0.1}});
  options.reader = host.reader("museum.line", {{"samples", int64_t{kSamples}}}).batch(kSamples);
  options.passes = kPasses;
  train(options);
  print(options.parameters.get("scale.weight"), 2);
}

void pool_images(const Host& host) {
  DataOptions x;
  x.name = "x";
  x.shape = {4, 4, 1};
  const Layer images = host.layer("museum.images", {host.data(x)}, {}, "images");
  const Machine machine = host.machine(host.parameters({images}, 1), {images}, {});
  float squares[16];
  for (int i = 0; i < 16; ++i) squares[i] = static_cast<float>(i * i);
  machine.forward({{"x", {TN_F32, {1, 4, 4, 1}, squares}}});
  print(machine.output(images), 4);
}

void sum_sequences(const Host& host) {
  DataOptions x;
  x.name = "x";
  x.shape = {1};
  x.storage = TN_RAGGED;
  const Layer sums = host.layer("museum.sums", {host.data(x)}, {}, "sums");
  MachineOptions options;
  options.max_samples = 3;
  const Machine machine = host.machine(host.parameters({sums}, 1), {sums}, options);
  const float rows[] = {1, 2, 3, 4};
  const int64_t offsets[] = {0, 3, 3, 4};
  machine.forward({{"x", Array::sequences(TN_F32, {4, 1}, rows, 3, offsets)}});
  print(machine.output(sums), 4);
}

void attempt(const char* name, const std::function<void()>& run) {
  std::printf("%s", name);
  try {
    run();
  } catch (const Error& error) {
    std::printf(" error %d %s", static_cast<int>(error.code()), error.what());
  }
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const Host host(HostOptions{2, {arguments[1], arguments[2]}, nullptr, {}, TN_CHECK_ON});
  attempt("body descent", [&] { train_scale(host, false, false); });
  attempt("body momentum", [&] { train_scale(host, false, true); });
  attempt("native descent", [&] { train_scale(host, true, false); });
  attempt("native momentum", [&] { train_scale(host, true, true); });
  attempt("images", [&] { pool_images(host); });
  attempt("sums", [&] { sum_sequences(host); });
}
