// Row 10: a step of one block of GPT-2 (layer norm first, products without biases), 384 features, 6 heads, 8 sequences
// of 256, Adam. Vaswani et al., "Attention is all you need", 2017; Radford et al., "Language models are unsupervised
// multitask learners", 2019.
// SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

namespace {

constexpr int64_t kHeads = 6, kSize = 384;

struct Block {
  const tenon::Host& host;
  int64_t length;

  tenon::Layer product(const tenon::Layer& x, int64_t size, const std::string& name) const {
    return host.layer("fc", {x}, {{"size", size}, {"axis", -1}, {"bias", false}}, name);
  }
  tenon::Layer attention(const tenon::Layer& x) const {
    const tenon::Layers parts = {product(x, kSize, "query"), product(x, kSize, "key"), product(x, kSize, "value")};
    return product(host.layer("attention", parts, {{"heads", kHeads}, {"causal", true}}), kSize, "joined");
  }

  tenon::Layer cost() const {
    const tenon::Layer x = bench::data(host, "x", TN_F32, {length, kSize});
    const tenon::Layer attended = host.layer("add", {x, attention(host.layer("layer_norm", {x}, {}, "first"))});
    const tenon::Layer up = product(host.layer("layer_norm", {attended}, {}, "second"), 4 * kSize, "up");
    const tenon::Layer bent = host.layer("gelu", {up}, {{"approximation", "tanh"}});
    const tenon::Layer out = host.layer("add", {attended, product(bent, kSize, "down")});
    return host.layer("square_error", {out, bench::data(host, "target", TN_F32, {length, kSize})}, {}, "cost");
  }
};

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const int64_t batch = arguments.size(8, 1), length = arguments.size(256, 64), rows = batch * length;
    const tenon::Layer cost = Block{host, length}.cost();
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {cost}, batch, true, arguments.device);
    const tenon::Updater updater = host.updater("adam");
    const std::vector<float> x = bench::numbers(static_cast<size_t>(rows * kSize), 1),
                             target = bench::numbers(static_cast<size_t>(rows * kSize), 2);
    bench::write(arguments.folder, parameters,
                 {"first.scale", "first.shift", "query.weight", "key.weight", "value.weight", "joined.weight",
                  "second.scale", "second.shift", "up.weight", "down.weight"});
    bench::write(arguments.folder, "x", x);
    bench::write(arguments.folder, "target", target);
    const auto step = [&] {
      machine.forward({{"x", {TN_F32, {batch, length, kSize}, x.data()}},
                       {"target", {TN_F32, {batch, length, kSize}, target.data()}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 3, 2, 10, step);
    result.flops = 6.0 * static_cast<double>(rows * kSize * (12 * kSize + length));  // of attention the causal half
    return result;
  });
}
