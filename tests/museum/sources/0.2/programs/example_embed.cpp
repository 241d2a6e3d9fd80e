// An application that holds Tenon: trains a perceptron on Fashion-MNIST, saves it, and predicts with the saved file.
//   embed_cpp DATA MODEL [PASSES]
// DATA is the folder with the four gzipped IDX files of the data set, MODEL the file to write.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

namespace {

const std::vector<std::string> kClasses = {"t-shirt", "trouser", "pullover", "dress", "coat",
                                           "sandal",  "shirt",   "sneaker",  "bag",   "boot"};

// docs: topology
struct Perceptron {
  explicit Perceptron(const tenon::Host& host) {
    tenon::DataOptions image;
    image.name = "image";
    image.dtype = TN_U8;
    image.shape = {28, 28};  // of one sample
    image.scale = 1.0 / 255;
    tenon::DataOptions label;
    label.name = "label";
    label.dtype = TN_U8;
    const tenon::Layer pixel = host.data(image);
    const tenon::Layer truth = host.data(label);

    const tenon::Layer hidden = host.layer("fc", {pixel}, {{"size", 128}, {"act", "relu"}}, "hidden");
    const tenon::Layer score = host.layer("fc", {hidden}, {{"size", 10}}, "score");
    cost = host.layer("cross_entropy", {score, truth}, {{"from_logits", true}}, "cost");
    accuracy = host.layer("accuracy", {score, truth}, {}, "accuracy");
    prediction = host.layer("softmax", {score}, {}, "prediction");
  }

  tenon::Layer cost, accuracy, prediction;
};
// docs: end

// docs: reader
tenon::Reader open(const tenon::Host& host, const std::string& folder, const std::string& part) {
  const std::vector<std::string> files = {part + "-images-idx3-ubyte.gz", part + "-labels-idx1-ubyte.gz"};
  const std::vector<std::string> names = {"image", "label"};
  return host.reader("idx", {{"files", files}, {"names", names}, {"classes", std::vector<int64_t>{10}}}, folder);
}
// docs: end

double metric(const std::vector<tenon::Metric>& metrics, const std::string& name) {
  for (const tenon::Metric& known : metrics)
    if (known.name == name) return known.value;
  return 0;
}

// docs: train
void train(const tenon::Host& host, const std::string& folder, const std::string& file, int64_t passes) {
  const Perceptron model(host);
  const tenon::Layers outputs = {model.cost, model.accuracy, model.prediction};

  tenon::TrainOptions options;
  options.outputs = {model.cost, model.accuracy};
  options.parameters = host.parameters(outputs, 1);  // of all outputs; the seed of the first values
  options.updater = host.updater("adam", {{"learning_rate", 1e-3}});
  options.reader = open(host, folder, "train").shuffle(1).batch(128);
  options.passes = passes;
  options.handler = [](tenon::Event& event) {
    if (event.kind() != TN_END_PASS) return;
    std::printf("pass %d  cost %.4f  accuracy %.4f  %.1f s\n", static_cast<int>(event.pass()) + 1, event.cost(),
                metric(event.metrics(), "accuracy"), event.seconds());
    event.set_learning_rate(event.learning_rate() * 0.9);
  };
  tenon::train(options);

  options.reader = open(host, folder, "t10k").batch(1000);
  options.handler = nullptr;
  const tenon::TestResult result = tenon::test(options);
  std::printf("test  cost %.4f  accuracy %.4f  (%d samples)\n", result.cost, metric(result.metrics, "accuracy"),
              static_cast<int>(result.samples));
  options.parameters.save(outputs, file);
}
// docs: end

// docs: predict
void predict(const tenon::Host& host, const std::string& folder, const std::string& file) {
  const tenon::Model model = host.load(file);
  const tenon::Layer& prediction = model.outputs.at(2);  // in the order of save
  tenon::MachineOptions options;
  options.max_samples = 5;
  const tenon::Machine machine = host.machine(model.parameters, {prediction}, options);

  const tenon::Reader reader = open(host, folder, "t10k").batch(5);
  const std::vector<tenon::Array> slots = reader.next();  // 5 images and their labels
  machine.forward({{"image", slots.at(0)}});
  const tenon::Array result = machine.output(prediction);  // [5, 10], borrowed until the next call on the machine
  const auto* probability = static_cast<const float*>(result.data);
  const auto* label = static_cast<const unsigned char*>(slots.at(1).data);
  for (int64_t i = 0; i < result.shape[0]; ++i, probability += 10) {
    size_t best = 0;
    for (size_t k = 1; k < 10; ++k)
      if (probability[k] > probability[best]) best = k;
    std::printf("image %d  %-8s  %.2f  (is: %s)\n", static_cast<int>(i), kClasses.at(best).c_str(),
                static_cast<double>(probability[best]), kClasses.at(label[i]).c_str());
  }
}
// docs: end

}  // namespace

// docs: main
int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: embed_cpp DATA MODEL [PASSES]\n");
    return 64;
  }
  try {
    const tenon::Host host;  // all cores; the plugins that were installed with libtenon.so
    train(host, argv[1], argv[2], argc == 4 ? std::atoi(argv[3]) : 3);
    predict(host, argv[1], argv[2]);
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "embed_cpp: %s (%s)\n", error.what(), tn_status_text(error.code()));
    return 1;
  }
  return 0;
}
// docs: end
