// Row 13 for LeNet-5: the answer to one image. SPDX-License-Identifier: Apache-2.0
#include "../support/lenet.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer logits = bench::lenet(host, bench::data(host, "image", TN_F32, {28, 28, 1}));
    const tenon::Parameters parameters = host.parameters({logits}, 1);
    const std::vector<float> image = bench::numbers(784, 1);
    bench::write(arguments.folder, parameters, bench::lenet_parameters());
    bench::write(arguments.folder, "images", image);
    const tenon::Machine machine = bench::machine(host, parameters, {logits}, 1, false);
    const std::vector<tenon::Feed> feeds = {{"image", {TN_F32, {1, 28, 28, 1}, image.data()}}};
    const auto step = [&] { machine.forward(feeds); };
    bench::mean_seconds(1000, step);
    bench::Result result = bench::single_calls(20000, step);
    const auto* const answer = static_cast<const float*>(machine.output(logits).data);
    result.loss = static_cast<double>(answer[0]) - static_cast<double>(answer[1]);
    result.flops = 2.0 * (bench::kLenetFirst + bench::kLenetRest);
    return result;
  });
}
