// Rows 15 and 16: a process from its start to the end of the main job's first step; benchmarks/run takes the time from
// outside, and the most memory that it held. SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer hidden =
        host.layer("fc", {bench::data(host, "image", TN_F32, {784})}, {{"size", 128}, {"act", "relu"}}, "hidden");
    const tenon::Layer logits = host.layer("fc", {hidden}, {{"size", 10}}, "logits");
    const tenon::Layer cost =
        host.layer("cross_entropy", {logits, bench::data(host, "label", TN_I64)}, {{"from_logits", true}}, "cost");
    const tenon::Machine machine = bench::machine(host, host.parameters({cost}, 1), {cost}, 128, true);
    const std::vector<float> images(128 * 784, 0.5F);
    const std::vector<int64_t> labels(128, 3);
    machine.forward({{"image", {TN_F32, {128, 784}, images.data()}}, {"label", {TN_I64, {128}, labels.data()}}});
    machine.backward();
    host.updater("adam").update(machine);
    return bench::Result{};
  });
}
