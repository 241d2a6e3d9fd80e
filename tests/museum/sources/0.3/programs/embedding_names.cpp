#include <cstdio>
#include <fstream>
#include <tenon/tenon.hpp>

int main() try {
  std::ofstream("train.csv") << "size,animal\n4,cat\n9,dog\n6,fox\n";
  std::ofstream("test.csv") << "size,animal\n6,fox\n9,dog\n";
  const tenon::Host host;
  const auto open = [&](const char* file, const std::vector<tenon::Names>& names) {
    const std::vector<std::string> files = {file}, columns = {"size: f32", "animal: category"};
    return host.reader("csv", {{"files", files}, {"columns", columns}}, "", 0, 1, names).batch(3);
  };
  tenon::DataOptions size, animal;
  size.name = "size";
  animal.name = "animal", animal.dtype = TN_I32;
  const tenon::Layer score = host.layer("fc", {host.data(size)}, {{"size", 3}});
  tenon::TrainOptions options;
  options.outputs = {host.layer("cross_entropy", {score, host.data(animal)}, {{"from_logits", true}})};
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("sgd", {{"learning_rate", 0.01}});
  options.reader = open("train.csv", {});
  tenon::train(options);
  const std::vector<tenon::Names> names = options.parameters.names();
  for (const std::string& name : names.at(0).texts) std::printf("%s\n", name.c_str());

  options.reader = open("test.csv", names);  // dog is 1, as in training
  std::printf("cost %.2f\n", tenon::test(options).cost);
  options.reader = open("test.csv", {});  // dog would be 0
  try {
    tenon::test(options);
  } catch (const tenon::Error& error) {
    std::printf("%s\n", error.what());
    return 0;
  }
  return 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
