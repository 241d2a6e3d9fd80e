#include <cstdio>
#include <tenon/tenon.hpp>
#include <vector>

// Queries with 1 to 5 documents of two features each, and the relevance of each document.
struct Queries {
  int64_t size() const { return 200; }
  void read(int64_t index, tenon::Sample& sample) const {
    std::vector<double> features;
    std::vector<int64_t> relevance;
    for (int64_t i = 0; i <= index % 5; ++i) {
      relevance.push_back((index / 5 + 2 * i) % 3);
      features.push_back(static_cast<double>(relevance.back() + index % 2));
      features.push_back(static_cast<double>((index + i) % 7));
    }
    sample.set("documents", features);  // concatenated rows of two numbers
    sample.set("relevance", relevance);
  }
};

int main() try {
  const tenon::Host host;
  tenon::DataOptions documents, relevance;
  documents.name = "documents", documents.shape = {2}, documents.storage = TN_RAGGED, documents.sequence = "query";
  relevance.name = "relevance", relevance.dtype = TN_I64, relevance.storage = TN_RAGGED, relevance.sequence = "query";
  const tenon::Layer truth = host.data(relevance);
  const tenon::Layer hidden = host.layer("fc", {host.data(documents)}, {{"size", 8}, {"act", "tanh"}});  // [rows, 8]
  const tenon::Layer score = host.layer("fc", {hidden}, {{"size", 1}});                                  // [rows, 1]
  const tenon::Layer cost = host.layer("lambda_cost", {score, truth}, {});
  const tenon::Layer quality = host.layer("ndcg", {score, truth}, {{"top", 3}}, "quality");

  tenon::TrainOptions options;
  options.outputs = {cost, quality};
  options.parameters = host.parameters({cost}, 1);
  options.updater = host.updater("adam", {{"learning_rate", 0.02}});
  const tenon::Schema schema = {{"documents", TN_F32, {2}, -1, TN_RAGGED}, {"relevance", TN_I64, {}, 3, TN_RAGGED}};
  options.reader = host.reader(schema, Queries{}).shuffle(1).batch(20);
  options.passes = 10;
  tenon::train(options);
  const tenon::TestResult result = tenon::test(options);
  std::printf("%s %.3f\n", result.metrics.at(0).name.c_str(), result.metrics.at(0).value);
  return result.metrics.at(0).value > 0.95 ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
