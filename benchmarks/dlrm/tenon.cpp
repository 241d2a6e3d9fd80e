// Row 8: a step of DLRM: 13 numbers through 512-256-64, 26 tables of 100,000 x 64 (here one of 2,600,000 rows), all
// products of the 27 vectors, top 512-256-1, batch 2048, SGD. The products are the whole 27 x 27, not one triangle of
// it, on every side. Naumov et al., arXiv:1906.00091. SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    constexpr int64_t kTables = 26, kSize = 64, kVectors = kTables + 1;
    const int64_t batch = arguments.size(2048, 64), rows_of_table = arguments.size(100'000, 200);
    const tenon::Host host = bench::host(arguments.threads);
    const auto fc = [&](const tenon::Layer& x, int64_t size, const std::string& name) {
      return host.layer("fc", {x}, {{"size", size}, {"act", "relu"}}, name);
    };
    const tenon::Layer bottom =
        fc(fc(fc(bench::data(host, "dense", TN_F32, {13}), 512, "bottom1"), 256, "bottom2"), kSize, "bottom3");
    const tenon::Layer rows =
        host.layer("embedding", {bench::data(host, "ids", TN_I64, {kTables})},
                   {{"vocabulary", kTables * rows_of_table}, {"size", kSize}, {"scale", 0.1}}, "table");
    const tenon::Layer one = host.layer("reshape", {bottom}, {{"shape", std::vector<int64_t>{1, kSize}}});
    const tenon::Layer vectors = host.layer("concat", {one, rows}, {{"axis", 1}});
    const tenon::Layer products = host.layer("matmul", {vectors, vectors}, {{"transpose_b", true}});
    const tenon::Layer flat = host.layer("reshape", {products}, {{"shape", std::vector<int64_t>{kVectors * kVectors}}});
    const tenon::Layer top = fc(fc(host.layer("concat", {bottom, flat}, {{"axis", 1}}), 512, "top1"), 256, "top2");
    const tenon::Layer score = host.layer("fc", {top}, {{"size", 1}}, "score");
    const tenon::Layers costs = {host.layer("should_be_true", {score}, {}, "cost")};
    const tenon::Parameters parameters = host.parameters(costs, 1);
    const tenon::Machine machine = bench::machine(host, parameters, costs, batch, true, arguments.device);
    const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 0.01}});
    const std::vector<float> dense = bench::numbers(static_cast<size_t>(batch * 13), 1);
    auto ids = bench::integers<int64_t>(static_cast<size_t>(batch * kTables), static_cast<uint32_t>(rows_of_table), 2);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] += static_cast<int64_t>(i) % kTables * rows_of_table;
    std::vector<std::string> names = {"table.weight"};
    for (const char* layer : {"bottom1", "bottom2", "bottom3", "top1", "top2", "score"})
      for (const char* suffix : {".weight", ".bias"}) names.push_back(std::string(layer) + suffix);
    bench::write(arguments.folder, parameters, names);
    bench::write(arguments.folder, "dense", dense);
    bench::write(arguments.folder, "ids", ids);
    const auto step = [&] {
      machine.forward(
          {{"dense", {TN_F32, {batch, 13}, dense.data()}}, {"ids", {TN_I64, {batch, kTables}, ids.data()}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 5, 5, 20, step);
    result.flops = 2.0 * static_cast<double>(batch) *
                   (2 * 13 * 512 + 3 * 512 * 256 + 3 * 256 * 64 + 3 * kVectors * kVectors * kSize +
                    3 * (kSize + kVectors * kVectors) * 512 + 3 * 512 * 256 + 3 * 256);
    return result;
  });
}
