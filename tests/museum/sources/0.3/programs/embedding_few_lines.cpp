#include <cmath>
#include <cstdio>
#include <tenon/tenon.hpp>
#include <vector>

// Points x of [-1, 1), and whether each lies within 0.5 of 0.
struct Band {
  int64_t samples;
  int64_t size() const { return samples; }
  void read(int64_t index, tenon::Sample& sample) const {
    const double x = 2 * static_cast<double>(index) / static_cast<double>(samples) - 1;
    sample.set("x", x);
    sample.set("inside", std::fabs(x) < 0.5 ? 1 : 0);
  }
};

int main() try {
  const tenon::Host host;
  const tenon::Layer x = host.data({"x", TN_F32, {1}});
  const tenon::Layer inside = host.data({"inside", TN_I64, {}, 2});
  const tenon::Layer hidden = host.layer("fc", {x}, {{"size", 32}, {"act", "tanh"}});
  const tenon::Layer score = host.layer("fc", {hidden}, {{"size", 2}});
  const tenon::Layer cost = host.layer("cross_entropy", {score, inside}, {{"from_logits", true}});

  tenon::TrainOptions options;
  options.outputs = {cost};
  options.parameters = host.parameters({cost}, 1);
  options.updater = host.updater("adam", {{"learning_rate", 0.03}});
  options.reader = host.reader({{"x", TN_F32, {1}}, {"inside", TN_I64, {}, 2}}, Band{2000}).shuffle(1).batch(50);
  options.passes = 20;
  tenon::train(options);
  const double learned = tenon::test(options).cost;

  // A function makes one sample per call and returns false at the end of a pass. Here sample i is a text of i words.
  int next = 0;
  const auto sentence = [next](tenon::Sample& sample) mutable {
    if (next == 5) {
      next = 0;
      return false;
    }
    sample.set("words", std::vector<int>(static_cast<size_t>(next), 7));
    ++next;
    return true;
  };
  const tenon::Reader sentences = host.reader({{"words", TN_I32, {}, 100, TN_RAGGED}}, sentence).batch(5).buffered(1);
  const tenon::Array words = sentences.next().at(0);  // 0 + 1 + 2 + 3 + 4 words
  std::printf("cost %.3f, %d words\n", learned, static_cast<int>(words.shape[0]));
  return learned < 0.1 && words.shape[0] == 10 && words.offsets[0][5] == 10 ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
