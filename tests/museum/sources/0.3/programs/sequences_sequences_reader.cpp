#include <cstdio>
#include <tenon/tenon.hpp>
#include <vector>

// Visitors of a shop: the items of each visit, the bought items with their prices, some traits, and whether the visitor
// came back.
struct Visitors {
  int64_t size() const { return 300; }
  void read(int64_t index, tenon::Sample& sample) const {
    const bool back = index % 3 == 0;
    for (int64_t visit = 0; visit < index % 4; ++visit)  // an empty sequence if index % 4 is 0
      sample.add_sequence("visits", std::vector<int64_t>{index % 10, back ? 10 : 11});
    if (index % 2 == 0) {  // else two empty sequences
      sample.set("items", {index % 7, index % 5});
      sample.set("price", {1.5, back ? 4.0 : 0.5});
    }
    sample.add_entry("traits", back ? 2 : 99);
    sample.add_entry("traits", index % 100 == 99 ? 0 : 1, 0.5F);
    sample.set("back", back);
  }
};

int main() try {
  const tenon::Host host;
  const tenon::Schema schema = {{"visits", TN_I64, {}, 12, TN_RAGGED, 2},
                                {"items", TN_I64, {}, 12, TN_RAGGED},
                                {"price", TN_F32, {1}, -1, TN_RAGGED},
                                {"traits", TN_F32, {100}, -1, TN_CSR},
                                {"back", TN_I64, {}, 2}};
  tenon::DataOptions visits, items, price, traits, back;
  visits.name = "visits", visits.dtype = TN_I64, visits.storage = TN_RAGGED, visits.levels = 2;
  items.name = "items", items.dtype = TN_I64, items.storage = TN_RAGGED, items.sequence = "bought";
  price.name = "price", price.shape = {1}, price.storage = TN_RAGGED, price.sequence = "bought";
  traits.name = "traits", traits.shape = {100}, traits.storage = TN_CSR;
  back.name = "back", back.dtype = TN_I64;

  const tenon::Attributes table = {{"vocabulary", 12}, {"size", 8}, {"parameter_name", "items"}};
  const tenon::Layer item = host.layer("embedding", {host.data(items)}, table);  // [rows, 8]
  const tenon::Layer both = host.layer("concat", {item, host.data(price)}, {});  // [rows, 9]: the same rows
  const tenon::Layer bought = host.layer("sequence_pool", {both}, {{"kind", "sum"}});
  const tenon::Layer each = host.layer("embedding", {host.data(visits)}, table);         // two levels
  const tenon::Layer visit = host.layer("sequence_pool", {each}, {{"kind", "mean"}});    // one: a row for each visit
  const tenon::Layer visited = host.layer("sequence_pool", {visit}, {{"kind", "max"}});  // a row for each sample
  const tenon::Layer of_traits = host.layer("fc", {host.data(traits)}, {{"size", 8}});   // sparse
  const tenon::Layer score = host.layer("fc", {bought, visited, of_traits}, {{"size", 2}});
  const tenon::Layer cost = host.layer("cross_entropy", {score, host.data(back)}, {{"from_logits", true}});

  tenon::TrainOptions options;
  options.outputs = {cost};
  options.parameters = host.parameters({cost}, 1);
  options.updater = host.updater("adam", {{"learning_rate", 0.02}});
  tenon::BucketOptions bucket;
  bucket.slot = "visits", bucket.window = 100, bucket.samples = 20, bucket.rows = 60;
  options.reader = host.reader(schema, Visitors{}).shuffle(1).bucket(bucket);
  options.passes = 5;
  tenon::train(options);
  const double learned = tenon::test(options).cost;
  std::printf("cost %.3f\n", learned);
  return learned < 0.1 ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
