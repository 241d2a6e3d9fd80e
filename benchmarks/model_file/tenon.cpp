// A model of 201 MB, 12 layers of 2048 x 2048, as MODE says: saved, which includes that the disk has it, or loaded into
// memory. The loss is the sum of the magnitudes of the first layer. SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "../support/bench.h"

namespace {

tenon::Model make_model(const tenon::Host& host) {
  constexpr int64_t kSize = 2048;
  tenon::Layer last = bench::data(host, "x", TN_F32, {kSize});
  for (int i = 0; i < 12; ++i)
    last = host.layer("fc", {last}, {{"size", kSize}, {"bias", false}}, "layer" + std::to_string(i));
  return {{last}, host.parameters({last}, 1)};
}

double magnitudes(const tenon::Parameters& parameters) {
  const tenon::Array weight = parameters.get("layer0.weight");
  double sum = 0;
  for (int64_t i = 0; i < weight.count(); ++i)
    sum += std::fabs(static_cast<double>(static_cast<const float*>(weight.data)[i]));
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const std::string path = arguments.folder + "/model.safetensors";
    const bool saves = arguments.mode == "save";
    bench::Result result;
    result.seconds = 1e30;
    for (int round = 0; round < 3; ++round) {
      tenon::Model model;
      const auto timed = [&](const auto& work) {
        const double began = bench::now();
        work();
        result.seconds = std::min(result.seconds, bench::now() - began);
      };
      if (saves || !std::filesystem::exists(path)) model = make_model(host);
      if (saves) timed([&] { model.parameters.save(model.outputs, path); });
      if (!saves && !model.outputs.empty()) model.parameters.save(model.outputs, path);
      if (!saves) timed([&] { model = host.load(path); });
      result.loss = magnitudes(model.parameters);
    }
    return result;
  });
}
