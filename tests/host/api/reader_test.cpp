// Readers through the public API: those of the application itself, wrappers, positions.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>
#include <thread>

namespace tenon_tests {

using namespace tenon;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int64_t>;

const Schema kSchema = {{"id", TN_I64},
                        {"pixels", TN_U8, {2, 2}},
                        {"words", TN_I32, {}, 1000, TN_RAGGED},
                        {"text", TN_F32, {2}, -1, TN_RAGGED, 2},
                        {"bag", TN_F32, {50}, -1, TN_CSR}};

void fill(int64_t id, Sample& sample) {
  sample.set("id", id);
  sample.set("pixels", {id, id + 1, id + 2, id + 3});
  sample.set("words", Ids(static_cast<size_t>(id % 3), id));
  for (int64_t j = 0; j < id % 2; ++j) sample.add_sequence("text", std::vector<double>{1.5, 2.5, 3.5, 4.5});
  if (id % 2 == 0) sample.add_sequence("text", std::vector<float>{});
  for (int64_t k = id % 4; k > 0; --k) sample.add_entry("bag", k, static_cast<float>(id));  // descending; Sample sorts
}

// A class of the application that fills the sample of any number.
struct Numbers {
  int64_t samples = 0;
  [[nodiscard]] int64_t size() const { return samples; }
  void read(int64_t index, Sample& sample) { fill(index, sample); }
};

// Returns a function that yields passes of `samples` samples.
auto counting(int64_t samples) {
  return [samples, next = int64_t{0}](Sample& sample) mutable {
    if (next == samples) {
      next = 0;
      return false;
    }
    fill(next++, sample);
    return true;
  };
}

Ids check(const std::vector<Array>& slots) {
  const Array &id = slots[0], &pixels = slots[1], &words = slots[2], &text = slots[3], &bag = slots[4];
  const auto* const ids = static_cast<const int64_t*>(id.data);
  EXPECT_THAT(pixels.shape, ElementsAre(id.shape[0], 2, 2));
  EXPECT_EQ(words.levels, 1u);
  EXPECT_EQ(text.levels, 2u);
  EXPECT_THAT(bag.shape, ElementsAre(id.shape[0], 50));
  for (int64_t i = 0; i < id.shape[0]; ++i) {
    EXPECT_EQ(static_cast<const uint8_t*>(pixels.data)[4 * i + 3], ids[i] + 3);
    EXPECT_EQ(words.offsets[0][i + 1] - words.offsets[0][i], ids[i] % 3);
    for (int64_t k = words.offsets[0][i]; k < words.offsets[0][i + 1]; ++k)
      EXPECT_EQ(static_cast<const int32_t*>(words.data)[k], ids[i]);
    const int64_t j = text.offsets[0][i];
    EXPECT_EQ(text.offsets[0][i + 1] - j, 1);
    EXPECT_EQ(text.offsets[1][j + 1] - text.offsets[1][j], ids[i] % 2 == 1 ? 2 : 0);
    EXPECT_EQ(bag.offsets[0][i + 1] - bag.offsets[0][i], ids[i] % 4);
    for (int64_t k = bag.offsets[0][i]; k < bag.offsets[0][i + 1]; ++k) {
      EXPECT_EQ(bag.ids[k], k - bag.offsets[0][i] + 1);
      EXPECT_EQ(static_cast<const float*>(bag.data)[k], static_cast<float>(ids[i]));
    }
  }
  return {ids, ids + id.shape[0]};
}

Ids pass(const Reader& reader) {
  Ids all;
  for (auto arrays = reader.next(); !arrays.empty(); arrays = reader.next()) {
    const auto* const ids = static_cast<const int64_t*>(arrays[0].data);
    const Ids part = arrays.size() == 5 ? check(arrays) : Ids(ids, ids + arrays[0].shape[0]);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Ids counted(int64_t samples, int64_t from = 0) {
  Ids ids;
  for (int64_t i = 0; i < samples; ++i) ids.push_back(from + i);
  return ids;
}
Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

class ReaderApi : public testing::Test {
 protected:
  template <typename Action>
  std::string message_of(Action action, tn_status code = TN_INVALID) {
    try {
      action();
    } catch (const tenon::Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }
  Host host_;
};

TEST_F(ReaderApi, AFunctionGivesPasses) {
  const Reader reader = host_.reader(kSchema, counting(10)).batch(4);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pass(reader), counted(10));
  EXPECT_THAT(reader.describe(), HasSubstr("\"samples\":-1"));
  EXPECT_THAT(reader.describe(), HasSubstr("\"batch\":4"));
  EXPECT_THAT(reader.describe(),
              HasSubstr(R"({"dtype":"float32","index_limit":-1,"levels":2,"name":"text","shape":[2],)"
                        R"("storage":"ragged"})"));
  EXPECT_THAT(reader.describe(), HasSubstr("\"storage\":\"csr\""));
  EXPECT_THAT(reader.describe(),
              HasSubstr(R"("whole_reason":"the application's reader cannot read samples by index")"));
  EXPECT_EQ(pass(host_.reader(kSchema, counting(3), 3)), counted(3));
  EXPECT_THAT(message_of([&] { pass(host_.reader(kSchema, counting(3), 4)); }),
              HasSubstr("a pass ended after 3 samples; expected 4"));
  EXPECT_THAT(message_of([&] { pass(host_.reader(kSchema, counting(5), 4)); }), HasSubstr("expected 4 samples"));
  message_of([&] { reader.seek({0, 2}); }, TN_UNSUPPORTED);
}

TEST_F(ReaderApi, AClassIsReadInAnyOrder) {
  const Reader reader = host_.reader(kSchema, Numbers{30}).shuffle(7).batch(8);
  const Ids first = pass(reader), second = pass(reader);
  EXPECT_EQ(sorted(first), counted(30));
  EXPECT_NE(first, second);
  reader.seek({1, 11});
  EXPECT_EQ(reader.position().pass, 1);
  EXPECT_EQ(reader.position().samples, 11);
  EXPECT_EQ(pass(reader), Ids(second.begin() + 11, second.end()));
}

TEST_F(ReaderApi, WrappersTakeOneAnother) {
  const auto numbers = [&](int64_t samples) { return host_.reader(kSchema, Numbers{samples}); };
  EXPECT_EQ(pass(numbers(9).first_n(4).batch(3)), counted(4));
  EXPECT_THAT(pass(numbers(9).shard(1, 4)), ElementsAre(1, 5));
  EXPECT_THAT(pass(chain({numbers(2), numbers(3)})), ElementsAre(0, 1, 0, 1, 2));
  EXPECT_THAT(pass(interleave({numbers(2), numbers(3)})), ElementsAre(0, 0, 1, 1, 2));
  EXPECT_EQ(pass(compose({numbers(6).choose({{"id", "number"}, {"bag", "features"}}), numbers(6)})), counted(6));
  BucketOptions lengths;
  lengths.slot = "words";
  lengths.window = 10;
  lengths.rows = 6;
  EXPECT_EQ(sorted(pass(numbers(20).bucket(lengths).buffered(3))), counted(20));
  const Schema doubled = {{"twice", TN_I64}};
  const Reader mapped = numbers(5).batch(2).map(doubled, [](const std::vector<Array>& from, int64_t i, Sample& to) {
    to.set("twice", 2 * static_cast<const int64_t*>(from[0].data)[i]);
  });
  EXPECT_THAT(pass(mapped), ElementsAre(0, 2, 4, 6, 8));
}

// A plugin's reader of the numbers seed, seed + 1, ...
class Seeded {
 public:
  static void describe(tn::ReaderDescription& d) { d.type("test_seeded", "numbers from the seed on"); }
  explicit Seeded(const tn::ReaderOpen& open) : seed_(open.seed()) {}
  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return 2; }
  void read(int64_t index, tn::Samples& to) const {
    *to.dense<int64_t>(0) = static_cast<int64_t>(seed_ + static_cast<uint64_t>(index));
  }

 private:
  uint64_t seed_;
  std::vector<tn::ReaderSlot> slots_ = {{"id", TN_I64}};
};
void describe_seeded(tn::Plugin& plugin) {
  plugin.about("tenon.test.seeded", "1.0.0", "a reader of the tests", "Apache-2.0");
  plugin.reader<Seeded>();
}

TEST_F(ReaderApi, OfAPluginIsOpenedWithTheSeed) {
  host_.add_plugin(tn::entry<describe_seeded>());
  const auto numbers = [&](uint64_t seed) {
    return pass(host_.reader("test_seeded", {}, "", 0, 1, {}, seed).batch(2));
  };
  EXPECT_THAT(pass(host_.reader("test_seeded", {})), ElementsAre(0, 1));
  EXPECT_THAT(numbers(7), ElementsAre(7, 8));
  EXPECT_EQ(numbers(7), numbers(7));
  EXPECT_THAT(numbers((uint64_t{1} << 40) + 5), ElementsAre((int64_t{1} << 40) + 5, (int64_t{1} << 40) + 6));
}

TEST_F(ReaderApi, AFailedWrapperLeavesItsReader) {
  Reader a = host_.reader(kSchema, Numbers{5}), b = host_.reader({{"id", TN_I64}}, [](Sample&) { return false; });
  EXPECT_THAT(message_of([&] { (void)std::move(a).buffered(2); }, TN_MISUSE), HasSubstr("put buffered after batch"));
  message_of([&] { (void)std::move(a).bucket({}); });
  message_of([&] { (void)std::move(a).shard(3, 2); });
  message_of([&] { (void)std::move(a).choose({{"no", "x"}}); });
  message_of([&] { (void)std::move(a).map({}, [](const std::vector<Array>&, int64_t, Sample&) {}); });
  EXPECT_THAT(message_of([&] { (void)chain({a, b}); }), HasSubstr("chain: "));
  EXPECT_THAT(message_of([&] { (void)compose({a, a}); }, TN_MISUSE), HasSubstr("of[0] and of[1] are the same"));
  message_of([&] { (void)interleave({}); });
  EXPECT_EQ(pass(a), counted(5));
  const Reader both = compose({std::move(a).choose({{"words", "w"}}).first_n(0), b});
  EXPECT_TRUE(pass(both).empty());
  message_of([&] { (void)b.next(); }, TN_MISUSE);  // compose consumed it
}

// ---- mistakes of an application

TEST_F(ReaderApi, ExceptionsComeOutOfTheCallThatReads) {
  struct Broken : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (const bool ahead : {false, true}) {
    int calls = 0;
    Reader reader = host_.reader(kSchema, [&calls](Sample& sample) {
      if (++calls == 6) throw Broken("disk on fire");
      fill(calls, sample);
      return true;
    });
    reader = std::move(reader).batch(2);
    if (ahead) reader = std::move(reader).buffered(2);
    EXPECT_THAT(check(reader.next()), ElementsAre(1, 2));
    EXPECT_THAT(check(reader.next()), ElementsAre(3, 4));
    try {
      (void)reader.next();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Broken& broken) {
      EXPECT_STREQ(broken.what(), "disk on fire");
    }
    EXPECT_THAT(check(reader.next()), ElementsAre(5, 7));  // sample 6 was never made
  }
  struct Odd {};
  const Reader odd = host_.reader(kSchema, [](Sample&) -> bool { throw Odd{}; });
  EXPECT_THROW((void)odd.next(), Odd);
  const Reader mapped = host_.reader(kSchema, Numbers{3}).map({{"id", TN_I64}}, [](const auto&, int64_t, Sample&) {
    throw Broken("in a map");
  });
  EXPECT_THROW((void)mapped.next(), Broken);
}

TEST_F(ReaderApi, SamplesAreChecked) {
  const auto message = [&](const std::function<void(Sample&)>& spoil) {
    return message_of([&] {
      const Reader reader = host_.reader(kSchema, [&](Sample& sample) {
        fill(3, sample);
        spoil(sample);
        return true;
      });
      (void)reader.next();
    });
  };
  EXPECT_EQ(message([](Sample& s) { s.set("it", 1); }), "the samples have no slot \"it\"");
  EXPECT_EQ(message([](Sample& s) { s.set("pixels", {1, 2, 3}); }), "slot \"pixels\" got 3 numbers; expected 4");
  EXPECT_EQ(message([](Sample& s) { s.set("pixels", {1, 2, 3, 256}); }), "slot \"pixels\" cannot hold 256");
  EXPECT_EQ(message([](Sample& s) { s.set("pixels", {1, 2, 3, -1}); }), "slot \"pixels\" cannot hold -1");
  EXPECT_THAT(message([](Sample& s) { s.set("id", 2.5); }), HasSubstr("slot \"id\" cannot hold 2.5"));
  EXPECT_THAT(message([](Sample& s) { s.set("id", 1e30); }), HasSubstr("cannot hold"));
  EXPECT_THAT(message([](Sample& s) { s.set("id", std::numeric_limits<double>::quiet_NaN()); }),
              HasSubstr("cannot hold"));
  EXPECT_THAT(message([](Sample& s) { s.set("bag", 1); }), HasSubstr("is sparse"));
  EXPECT_THAT(message([](Sample& s) { s.set("text", 1); }), HasSubstr("sequences of sequences"));
  EXPECT_THAT(message([](Sample& s) { s.add_sequence("words", {1, 2}); }), HasSubstr("no inner sequences"));
  EXPECT_THAT(message([](Sample& s) { s.add_sequence("text", {1, 2, 3}); }), HasSubstr("a row has 2"));
  EXPECT_THAT(message([](Sample& s) { s.add_entry("id", 2); }), HasSubstr("is not sparse"));
  EXPECT_THAT(message([](Sample& s) { s.add_entry("bag", 50); }),
              HasSubstr("the application's reader: slot \"bag\": sample 0 of those just read has column 50 of 50"));
  EXPECT_THAT(message([](Sample& s) { s.add_entry("bag", 1); }), HasSubstr("expected rising"));  // a duplicate
  EXPECT_EQ(message_of([&] {
              const Reader reader = host_.reader(kSchema, [](Sample&) { return true; });
              (void)reader.next();
            }),
            "slot \"id\" was not set");
  message_of([&] { (void)host_.reader({}, [](Sample&) { return true; }); });
  message_of([&] { (void)host_.reader({{"", TN_F32}}, [](Sample&) { return true; }); });
  message_of([&] { (void)host_.reader({{"x", TN_F32, {0}}}, [](Sample&) { return true; }); });
  message_of([&] { (void)host_.reader(kSchema, Numbers{-1}); });
}

TEST_F(ReaderApi, SourcesGoWithTheirReaders) {
  const auto alive = std::make_shared<int>();
  {
    const Reader reader = host_.reader(kSchema, [alive](Sample&) { return false; });
    EXPECT_EQ(alive.use_count(), 2);
    message_of([&] { (void)host_.reader({}, [alive](Sample&) { return false; }); });
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
  {
    const Host other;
    const Reader reader =
        other.reader(kSchema, [alive, next = counting(9)](Sample& sample) mutable { return next(sample); })
            .batch(2)
            .buffered(2);
    (void)reader.next();
  }
  EXPECT_EQ(alive.use_count(), 1);
}

// ---- in C

// Each function gets its numbers in the order that the header states.
TEST_F(ReaderApi, NumbersOfFunctionsInC) {
  tn_slot slot = {sizeof slot, TN_F32, "x", TN_DENSE, 0, nullptr, -1, 0, 0, nullptr};
  const tn_slot* const slots[] = {&slot};
  struct Seen {
    float values[5] = {0, 1, 2, 3, 4};
    int64_t position = 0, pass = -1;
    std::vector<int64_t> mapped;  // numbers of inputs and samples of the last call
  } seen;
  tn_source_options source = {};
  source.size = sizeof source;
  source.slots_count = 1;
  source.slots = slots;
  source.samples = 5;
  source.user = &seen;
  source.next = [](void* user, int64_t most, tn_array* to, int64_t* count, tn_error*) -> tn_status {
    auto& of = *static_cast<Seen*>(user);
    *count = std::min<int64_t>(most, 5 - of.position);
    to->data = of.values + of.position;
    to->shape[0] = *count;
    of.position = *count == 0 ? 0 : of.position + *count;
    return TN_OK;
  };
  source.seek = [](void* user, int64_t pass, int64_t position, tn_error*) -> tn_status {
    auto& of = *static_cast<Seen*>(user);
    of.pass = pass, of.position = position;
    return TN_OK;
  };
  tn_map_options map = {};
  map.size = sizeof map;
  map.slots_count = 1;
  map.slots = slots;
  map.user = &seen;
  map.map = [](void* user, const tn_array* inputs, uint32_t count, int64_t samples, tn_array* outputs, uint32_t,
               tn_error*) -> tn_status {
    static_cast<Seen*>(user)->mapped = {count, samples};
    outputs[0].data = inputs[0].data;
    outputs[0].shape[0] = samples;
    return TN_OK;
  };
  tn_error error = {};
  error.size = sizeof error;
  tn_reader inner = {}, mapped = {}, batched = {};
  ASSERT_EQ(tn_reader_create_from(host_.get(), &source, &inner, &error), TN_OK) << error.message;
  ASSERT_EQ(tn_reader_map(host_.get(), inner, &map, &mapped, &error), TN_OK) << error.message;
  ASSERT_EQ(tn_reader_batch(host_.get(), mapped, 3, 0, &batched, &error), TN_OK) << error.message;
  ASSERT_EQ(tn_reader_seek(host_.get(), batched, 4, 3, &error), TN_OK) << error.message;
  tn_array values = {};
  ASSERT_EQ(tn_reader_next(host_.get(), batched, &values, 1, &error), TN_OK) << error.message;
  EXPECT_EQ(seen.pass, 4);
  EXPECT_EQ(static_cast<const float*>(values.data)[0], 3);
  EXPECT_EQ(values.shape[0], 2);
  EXPECT_THAT(seen.mapped, ElementsAre(1, 2));
  tn_reader_release(host_.get(), batched, nullptr);
}

TEST_F(ReaderApi, StatusAndMessageOfAFunctionInC) {
  tn_slot slot = {sizeof slot, TN_F32, "x", TN_DENSE, 0, nullptr, -1, 0, 0, nullptr};
  const tn_slot* const slots[] = {&slot};
  tn_source_options options = {};
  options.size = sizeof options;
  options.slots_count = 1;
  options.slots = slots;
  options.samples = -1;
  static int released;
  released = 0;
  options.release = [](void*) { ++released; };
  tn_error error = {};
  error.size = sizeof error;
  tn_reader reader = {};
  EXPECT_EQ(tn_reader_create_from(host_.get(), &options, &reader, &error), TN_INVALID);
  EXPECT_STREQ(error.message, "the application's reader: it offers neither next nor read_at");
  EXPECT_EQ(released, 0);
  static int32_t status;
  options.next = [](void*, int64_t, tn_array*, int64_t* count, tn_error* why) -> tn_status {
    *count = 99;
    if (status == TN_IO) std::strcpy(why->message, "no network"), std::strcpy(why->subject, "eth0");
    return status;
  };
  ASSERT_EQ(tn_reader_create_from(host_.get(), &options, &reader, &error), TN_OK);
  tn_array values = {};
  status = TN_IO;
  EXPECT_EQ(tn_reader_next(host_.get(), reader, &values, 1, &error), TN_IO);
  EXPECT_STREQ(error.message, "the application's reader: no network");
  EXPECT_STREQ(error.component, "the application's reader");
  EXPECT_STREQ(error.subject, "eth0");
  status = 77;
  EXPECT_EQ(tn_reader_next(host_.get(), reader, &values, 1, &error), TN_INVALID);
  status = TN_OK;
  EXPECT_EQ(tn_reader_next(host_.get(), reader, &values, 1, &error), TN_INVALID);
  EXPECT_STREQ(error.message, "the application's reader: it gave 99 samples; expected 0 to 1");
  EXPECT_EQ(tn_reader_position(host_.get(), reader, nullptr, nullptr, &error), TN_MISUSE);
  EXPECT_EQ(tn_reader_map(host_.get(), reader, nullptr, &reader, &error), TN_MISUSE);
  EXPECT_EQ(tn_reader_bucket(host_.get(), reader, nullptr, &reader, &error), TN_MISUSE);
  EXPECT_EQ(tn_reader_chain(host_.get(), nullptr, 2, &reader, &error), TN_MISUSE);
  EXPECT_EQ(tn_reader_chain(host_.get(), nullptr, 0, &reader, &error), TN_INVALID);
  EXPECT_EQ(tn_reader_choose(host_.get(), reader, nullptr, nullptr, 1, &reader, &error), TN_MISUSE);
  EXPECT_EQ(tn_reader_release(host_.get(), reader, &error), TN_OK);
  EXPECT_EQ(released, 1);
}

// The schema of a reader is the description of the data layers that it feeds.
TEST(Slots, DescribeDataLayers) {
  const Host host;
  const Reader reader = host.reader(kSchema, Numbers{6}).batch(4);
  const std::vector<DataOptions> described = slots(reader);
  ASSERT_EQ(described.size(), kSchema.size());
  for (size_t i = 0; i < described.size(); ++i) {
    EXPECT_EQ(described[i].name, kSchema[i].name);
    EXPECT_EQ(described[i].dtype, kSchema[i].dtype);
    EXPECT_EQ(described[i].shape, kSchema[i].shape);
    EXPECT_EQ(described[i].index_limit, kSchema[i].index_limit);
    EXPECT_EQ(described[i].storage, kSchema[i].storage);
    (void)host.data(described[i]);
  }
  const std::vector<Feed> feeds = next_feeds(reader);
  ASSERT_EQ(feeds.size(), kSchema.size());
  EXPECT_EQ(feeds[1].name, "pixels");
  EXPECT_THAT(feeds[1].values.shape, ElementsAre(4, 2, 2));
  (void)next_feeds(reader);
  EXPECT_TRUE(next_feeds(reader).empty());
  tn_data_options slot = {};
  slot.size = sizeof slot;
  EXPECT_EQ(tn_reader_slot(host.get(), reader.handle(), 5, &slot, nullptr), TN_NOT_FOUND);
  EXPECT_EQ(tn_reader_slot(host.get(), reader.handle(), 0, nullptr, nullptr), TN_MISUSE);
}

}  // namespace
}  // namespace tenon_tests
