#include <cstdio>
#include <string>
#include <tenon/tenon_topology.hpp>

int main() try {
  const tenon::Host host;
  tenon::DataOptions image;
  image.name = "image", image.dtype = TN_U8, image.shape = {28, 28};
  const tenon::Layer hidden = host.layer("fc", {host.data(image)}, {{"size", 32}, {"act", "relu"}}, "hidden");
  const tenon::Layer score = host.layer("fc", {hidden}, {{"size", 10}}, "score");

  // From a layer to what it reads, as handles: a model can be cut anywhere.
  const tenon::Layer read = tenon::input(score, 0).value();
  std::printf("%s reads %s\n", tenon::inspect(score).name.c_str(), tenon::inspect(read).name.c_str());
  for (const tn_dimension& dimension : tenon::inspect_output(score, 0).shape)
    if (dimension.symbol == TN_DIMENSION_SAMPLES)
      std::printf("samples\n");
    else
      std::printf("%s\n", std::to_string(dimension.extent).c_str());
  for (const tenon::Layer& layer : tenon::data_layers({score}))
    std::printf("fed: %s\n", tenon::inspect_data(layer).name.c_str());

  const tenon::Parameters parameters = host.parameters({score}, 1);
  for (const tenon::ParameterInfo& each : tenon::entries(parameters)) std::printf("%s\n", each.name.c_str());

  // The topology alone, without values, and values alone.
  const tenon::Layers again = tenon::read_topology(host, tenon::topology({score}));
  const tenon::Parameters others = host.parameters(again, 2);
  tenon::CopyOptions options;
  options.skip = {"score"};  // keeps its own values
  std::printf("%s\n", tenon::copy(others, parameters, options).c_str());
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
