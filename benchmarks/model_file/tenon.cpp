// A model of 201 MB, 12 layers of 2048 x 2048, as MODE says: saved, which includes that the disk has it, or loaded. The
// loss is the sum of the magnitudes of the first layer. SPDX-License-Identifier: Apache-2.0
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
    if (!saves && !std::filesystem::exists(path)) {
      const tenon::Model made = make_model(host);
      made.parameters.save(made.outputs, path);
    }
    tenon::Model model;
    if (saves) model = make_model(host);
    bench::Result result;
    const double began = bench::now();
    if (saves)
      model.parameters.save(model.outputs, path);
    else
      model = host.load(path);
    result.seconds = bench::now() - began;
    result.loss = magnitudes(model.parameters);
    return result;
  });
}
