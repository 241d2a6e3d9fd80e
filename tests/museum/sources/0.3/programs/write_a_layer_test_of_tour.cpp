#include <cmath>
#include <cstdio>
#include <tenon/tenon.hpp>

int main() {
  const tenon::Host host;
  tenon::DataOptions words, score, tags;
  words.name = "words", words.dtype = TN_I64, words.storage = TN_RAGGED, words.sequence = "text";
  score.name = "score", score.storage = TN_RAGGED, score.sequence = "text";  // one number per word
  tags.name = "tags", tags.storage = TN_CSR, tags.shape = {5};
  const tenon::Layer vectors = host.layer("embedding", {host.data(words)}, {{"vocabulary", 4}, {"size", 1}}, "vectors");
  const tenon::Layer attended = host.layer("example.attention", {vectors, host.data(score)});
  const tenon::Layer product = host.layer("example.sparse_product", {host.data(tags)}, {{"size", 1}}, "product");
  const tenon::Layer sum = host.layer("add", {attended, product});
  const tenon::Parameters parameters = host.parameters({sum}, 1);
  const float table[] = {1, 2, 4, 8}, weight[] = {10, 20, 30, 40, 50};
  parameters.set("vectors.weight", {TN_F32, {4, 1}, table});
  parameters.set("product.weight", {TN_F32, {5, 1}, weight});
  tenon::MachineOptions options;
  options.max_samples = 3;
  const tenon::Machine machine = host.machine(parameters, {sum}, options);

  // Three texts of two, zero and one words; the first has the tags 0 and 4, the last has tag 3.
  const std::vector<int64_t> ids = {0, 2, 3}, ends = {0, 2, 2, 3}, columns = {0, 4, 3}, entries = {0, 2, 2, 3};
  const std::vector<float> scores = {0, std::log(2.0F), 7}, values = {0.5F, 1, -1};
  machine.forward({{"words", tenon::Array::sequences(TN_I64, {3}, ids.data(), 3, ends.data())},
                   {"score", tenon::Array::sequences(TN_F32, {3}, scores.data(), 3, ends.data())},
                   {"tags", tenon::Array::sparse(3, 5, entries.data(), columns.data(), values.data())}});
  const auto* y = static_cast<const float*>(machine.output(sum).data);
  std::printf("%g %g %g\n", y[0], y[1], y[2]);
  const float expected[] = {(1 + 2 * 4) / 3.0F + 5 + 50, 0, 8 - 40};
  for (int i = 0; i < 3; ++i)
    if (std::fabs(y[i] - expected[i]) > 1e-5F) return 1;
  return 0;
}
