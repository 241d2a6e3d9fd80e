#include <cstdio>
#include <fstream>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

int main() try {
  const tenon::Host host;
  const tenon::Attributes text = {{"files", std::vector<std::string>{"reviews.txt"}},
                                  {"labelled", true},
                                  {"labels", std::vector<std::string>{"bad", "good"}},
                                  {"split", "words"},
                                  {"lower_case", true},
                                  {"save_vocabulary", "words.txt"}};
  tenon::Reader reader = host.reader("text", text).shuffle(1).batch(16);
  std::vector<std::string> dictionary;  // word i has the number i
  std::ifstream file("words.txt");
  for (std::string word; std::getline(file, word);) dictionary.push_back(word);

  tenon::DataOptions words, label;
  words.name = "words", words.dtype = TN_I32, words.storage = TN_RAGGED;
  label.name = "label", label.dtype = TN_I32;
  const tenon::Layer vectors =
      host.layer("embedding", {host.data(words)}, {{"vocabulary", dictionary.size()}, {"size", 16}});
  const tenon::Layer pooled = host.layer("sequence_pool", {vectors}, {{"kind", "mean"}});
  const tenon::Layer score = host.layer("fc", {pooled}, {{"size", 2}});
  const tenon::Layer cost = host.layer("cross_entropy", {score, host.data(label)}, {{"from_logits", true}});
  const tenon::Layer prediction = host.layer("softmax", {score}, {});

  tenon::TrainOptions options;
  options.outputs = {cost};
  options.parameters = host.parameters({cost, prediction}, 1);
  options.updater = host.updater("adam", {{"learning_rate", 0.02}});
  options.reader = std::move(reader);
  options.passes = 5;
  tenon::train(options);

  // Arrays of the application: three texts, the second one empty, as concatenated words and the offset of each text.
  tenon::MachineOptions wanted;
  wanted.max_samples = 3;
  const tenon::Machine machine = host.machine(options.parameters, {prediction}, wanted);
  const auto number = [&](const char* word) {
    for (size_t i = 0; i < dictionary.size(); ++i)
      if (dictionary[i] == word) return static_cast<int32_t>(i);
    return 0;  // <unk>
  };
  const std::vector<int32_t> numbers = {number("a"), number("joy"), number("so"), number("very"), number("dull")};
  const std::vector<int64_t> offsets = {0, 2, 2, 5};  // samples + 1
  machine.forward({{"words", tenon::Array::sequences(TN_I32, {5}, numbers.data(), 3, offsets.data())}});
  const tenon::Array result = machine.output(prediction);  // [3, 2]
  const auto* good = static_cast<const float*>(result.data) + 1;
  std::printf("a joy: %.2f, nothing: %.2f, so very dull: %.2f\n", good[0], good[2], good[4]);
  return good[0] > 0.8F && good[4] < 0.2F ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
