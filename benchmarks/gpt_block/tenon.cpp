// Row 10: a step of one block of GPT-2 (layer norm first, products without biases), 384 features, 6 heads, 8 sequences
// of 256, Adam. All sequences together are one sample, [1, rows, features], and so is a weight, as all rows of an
// embedding: fc multiplies whole samples, matmul their last dimension. Vaswani et al., "Attention is all you need",
// 2017; Radford et al., "Language models are unsupervised multitask learners", 2019.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "../support/bench.h"

namespace {

constexpr int64_t kBatch = 8, kLength = 256, kHeads = 6, kSize = 384, kWide = 4 * kSize, kRows = kBatch * kLength;
using Shape = std::vector<int64_t>;

struct Block {
  const tenon::Host& host;
  tenon::Layer narrow = bench::data(host, "narrow", TN_I64, {kSize});  // 0, 1, 2 and so on: the rows of a weight
  tenon::Layer wide = bench::data(host, "wide", TN_I64, {kWide});

  // x [1, rows, inputs] times a weight [1, inputs, outputs].
  tenon::Layer product(const tenon::Layer& x, const tenon::Layer& ids, int64_t inputs, int64_t outputs,
                       const std::string& name) const {
    const tenon::Attributes table = {{"vocabulary", inputs}, {"size", outputs}, {"param.weight.sparse", false}};
    return host.layer("matmul", {x, host.layer("embedding", {ids}, table, name)});
  }

  // [1, rows, size] as [1, batch, heads, length, size / heads].
  tenon::Layer heads(const tenon::Layer& x, const std::string& name) const {
    const tenon::Layer split = host.layer("reshape", {product(x, narrow, kSize, kSize, name)},
                                          {{"shape", Shape{kBatch, kLength, kHeads, kSize / kHeads}}});
    return host.layer("transpose", {split}, {{"axes", Shape{0, 1, 3, 2, 4}}});
  }

  // The mask is 1 behind the diagonal, which becomes a score of -1e9.
  tenon::Layer attention(const tenon::Layer& x) const {
    tenon::DataOptions mask;
    mask.name = "mask", mask.dtype = TN_U8, mask.shape = {kBatch, kHeads, kLength, kLength}, mask.scale = -1e9;
    const double scale = 1 / std::sqrt(static_cast<double>(kSize / kHeads));
    const tenon::Layer score =
        host.layer("matmul", {heads(x, "query"), heads(x, "key")}, {{"transpose_b", true}, {"scale", scale}});
    const tenon::Layer share = host.layer("softmax", {host.layer("add", {score, host.data(mask)})});
    const tenon::Layer mixed = host.layer("matmul", {share, heads(x, "value")});
    const tenon::Layer rows = host.layer("transpose", {mixed}, {{"axes", Shape{0, 1, 3, 2, 4}}});
    const tenon::Layer flat = host.layer("reshape", {rows}, {{"shape", Shape{kRows, kSize}}});
    return product(flat, narrow, kSize, kSize, "joined");
  }

  tenon::Layer cost() const {
    const tenon::Layer x = bench::data(host, "x", TN_F32, {kRows, kSize});
    const tenon::Layer attended = host.layer("add", {x, attention(host.layer("layer_norm", {x}, {}, "first"))});
    const tenon::Layer up = product(host.layer("layer_norm", {attended}, {}, "second"), narrow, kSize, kWide, "up");
    const tenon::Layer bent = host.layer("gelu", {up}, {{"approximation", "tanh"}});
    const tenon::Layer out = host.layer("add", {attended, product(bent, wide, kWide, kSize, "down")});
    return host.layer("square_error", {out, bench::data(host, "target", TN_F32, {kRows, kSize})}, {}, "cost");
  }
};

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer cost = Block{host}.cost();
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {cost}, 1, true);
    const tenon::Updater updater = host.updater("adam");
    const std::vector<float> x = bench::numbers(kRows * kSize, 1), target = bench::numbers(kRows * kSize, 2);
    std::vector<int64_t> ids(kWide);
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<uint8_t> mask(kBatch * kHeads * kLength * kLength);
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % kLength > i / kLength % kLength ? 1 : 0;
    bench::write(arguments.folder, parameters,
                 {"first.scale", "first.shift", "query.weight", "key.weight", "value.weight", "joined.weight",
                  "second.scale", "second.shift", "up.weight", "down.weight"});
    bench::write(arguments.folder, "x", x);
    bench::write(arguments.folder, "target", target);
    const auto step = [&] {
      machine.forward({{"x", {TN_F32, {1, kRows, kSize}, x.data()}},
                       {"target", {TN_F32, {1, kRows, kSize}, target.data()}},
                       {"mask", {TN_U8, {1, kBatch, kHeads, kLength, kLength}, mask.data()}},
                       {"narrow", {TN_I64, {1, kSize}, ids.data()}},
                       {"wide", {TN_I64, {1, kWide}, ids.data()}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(machine, 3, 2, 10, step);
    result.flops = 6.0 * kRows * kSize * (12 * kSize + 2 * kLength);
    return result;
  });
}
