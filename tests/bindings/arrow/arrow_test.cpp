// Tables of Arrow as feeds and readers. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "tests/bindings/arrow/arrow_case.h"

namespace tenon_tests {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Arrow, ColumnsOfTheTypeOfTheirDataLayerLieWhereTheyAre) {
  const Layer x = data("x", TN_F32, {2});
  const Node column = vectors(2, floats({0, 1, 2, 3, 4, 5}));
  {
    const arrow::Feeds all = feeds({x}, structs({column.called("x"), texts({"a", "b", "c"}).called("ignored")}));
    ASSERT_EQ(all.list().size(), 1U);
    EXPECT_EQ(all.list()[0].name, "x");
    EXPECT_EQ(all.samples(), 3);
    EXPECT_EQ(all.list()[0].values.data, column.children[0].buffers[1]->data());
    EXPECT_EQ(all.list()[0].values.shape, (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(count_.arrays, 0);
  }
  EXPECT_EQ(count_.arrays, 1);
  // Cut by the column's own offset, and by that of the table.
  const arrow::Feeds part = feeds({x}, structs({column.cut(1, 3).called("x")}).cut(1, 2));
  EXPECT_THAT(numbers_of<float>(part.list()[0].values), ElementsAre(4, 5));
  const Parameters parameters = host_.parameters({host_.layer("softmax", {x})}, 1);
  const arrow::Feeds none = feeds({x}, structs({column.cut(1, 1).called("x")}));
  EXPECT_EQ(none.samples(), 0);
  EXPECT_EQ(none.list()[0].values.shape, (std::vector<int64_t>{0, 2}));
}

TEST_F(Arrow, NumbersBecomeTheTypeOfTheDataLayerIfNoneIsLost) {
  const auto fed = [&](tn_dtype to, const Node& column) {
    return feeds({data("x", to)}, structs({column.called("x")}));
  };
  EXPECT_THAT(numbers_of<uint8_t>(fed(TN_U8, numbers<int64_t>("l", {0, 255})).list()[0].values), ElementsAre(0, 255));
  EXPECT_THAT(numbers_of<float>(fed(TN_F32, numbers<double>("g", {0.5, 1e-300})).list()[0].values),
              ElementsAre(0.5F, 0));
  EXPECT_THAT(numbers_of<float>(fed(TN_F32, numbers<uint16_t>("e", {0x3E00, 0xC000, 1})).list()[0].values),
              ElementsAre(1.5F, -2, 5.9604645e-8F));
  EXPECT_THAT(numbers_of<float>(fed(TN_F32, numbers<int8_t>("c", {127, -128})).list()[0].values),
              ElementsAre(127, -128));
  Node bits = numbers<uint8_t>("b", {0b10110});
  bits.length = 5;
  EXPECT_THAT(numbers_of<int32_t>(fed(TN_I32, bits.cut(1, 5)).list()[0].values), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(numbers_of<uint8_t>(fed(TN_BOOL, numbers<int32_t>("i", {1, 0})).list()[0].values), ElementsAre(1, 0));
  const auto refused = [&](tn_dtype to, const Node& column, const char* why) {
    const Error error = error_of([&] { (void)fed(to, column); });
    EXPECT_THAT(error.what(), HasSubstr(why));
    EXPECT_EQ(error.subject(), "x");
  };
  refused(TN_U8, numbers<int64_t>("l", {7, 256}), "sample 1: column \"x\" has the number 256, which uint8 cannot hold");
  refused(TN_I64, numbers<uint64_t>("L", {UINT64_MAX}), "18446744073709551615, which int64 cannot hold");
  refused(TN_F32, numbers<int64_t>("l", {16777217}), "16777217, which float32 cannot hold");
  refused(TN_F32, numbers<double>("g", {1, 1e300}), "sample 1: column \"x\" has the number 1e+300");
  refused(TN_I32, numbers<float>("f", {1}), "has float32; expected int32");
  refused(TN_BOOL, numbers<int32_t>("i", {2}), "has the number 2, which bool cannot hold");
  refused(TN_F32, vectors(2, floats({1, 2})), "has float32 [2]; expected float32 []");
  refused(TN_F32, texts({"1"}), "has texts; expected float32 []");
  refused(TN_F32, Node{"tsu:UTC", "", 1, {nullptr, bytes_of<int64_t>({1})}}, "has times");
  refused(TN_F32, floats({1, 2, 3}).with_null(2), "sample 2: column \"x\" has a missing value");
}

TEST_F(Arrow, ListsAreSequencesVectorsOrSparse) {
  const Node rows = numbers<int32_t>("i", {1, 2, 3, 4, 5, 6});
  const Layer words = data("x", TN_I64, {}, TN_RAGGED, 1, 9);
  const arrow::Feeds sequences = feeds({words}, structs({lists({0, 2, 2, 5}, rows).cut(1, 3).called("x")}));
  EXPECT_EQ(offsets_of(sequences.list()[0].values), (std::vector<int64_t>{0, 0, 3}));
  EXPECT_THAT(numbers_of<int64_t>(sequences.list()[0].values), ElementsAre(3, 4, 5));
  const Layer texts = data("x", TN_I32, {}, TN_RAGGED, 2, 9);
  const arrow::Feeds nested = feeds({texts}, structs({lists({0, 1, 3}, lists({0, 2, 2, 6}, rows)).called("x")}));
  EXPECT_EQ(offsets_of(nested.list()[0].values), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(offsets_of(nested.list()[0].values, 1), (std::vector<int64_t>{0, 2, 2, 6}));
  EXPECT_EQ(nested.list()[0].values.data, rows.buffers[1]->data());
  const Layer vector = data("x", TN_I32, {3});
  const arrow::Feeds even = feeds({vector}, structs({lists({0, 3, 6}, rows).called("x")}));
  EXPECT_EQ(even.list()[0].values.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(error_of([&] {
                (void)feeds({vector}, structs({lists({0, 3, 5}, rows).called("x")}));
              }).what(),
              HasSubstr("sample 1: column \"x\" has a list of 2 numbers; expected 3, as in those before"));
  const Layer sparse = data("x", TN_F32, {9}, TN_CSR);
  const arrow::Feeds pairs =
      feeds({sparse}, structs({maps({0, 2, 3}, rows, numbers<double>("g", {.5, 1, 2, 0, 0, 0})).called("x")}));
  const Array& entries = pairs.list()[0].values;
  EXPECT_EQ(offsets_of(entries), (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(std::vector<int64_t>(entries.ids, entries.ids + 3), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_THAT(numbers_of<float>(entries, 3), ElementsAre(0.5F, 1, 2));
  EXPECT_THAT(error_of([&] {
                (void)feeds({words}, structs({maps({0, 1}, rows, rows).called("x")}));
              }).what(),
              HasSubstr("has maps; expected sequences of int64 []"));
  const Node holed = maps({0, 2, 3}, rows, floats({1, 2, 3, 4, 5, 6}).with_null(2));
  EXPECT_THAT(error_of([&] { (void)feeds({sparse}, structs({holed.called("x")})); }).what(),
              HasSubstr("sample 1: column \"x\" has a missing value"));
}

TEST_F(Arrow, CategoriesHaveTheNumbersOfTheModel) {
  const Layer kind = data("kind", TN_I64, {}, TN_DENSE, 1, 3);
  const Layer table = host_.layer("embedding", {kind}, {{"vocabulary", 3}, {"size", 2}});
  const Parameters parameters = host_.parameters({table}, 1);
  parameters.set_names({{"kind", {"new", "old", "used"}}});
  const auto fed = [&](const Node& column, const Parameters* names) {
    return numbers_of<int64_t>(feeds({table}, structs({column.called("kind")}), names).list()[0].values);
  };
  EXPECT_THAT(fed(categories({0, 1, 0}, {"used", "new"}), &parameters), ElementsAre(2, 0, 2));
  EXPECT_THAT(fed(texts({"old", "used"}), &parameters), ElementsAre(1, 2));
  EXPECT_THAT(fed(categories({1, 0}, {"used", "new"}), nullptr), ElementsAre(1, 0));
  EXPECT_THAT(fed(numbers<int16_t>("s", {2, 0}), &parameters), ElementsAre(2, 0));
  const Error unknown = error_of([&] { (void)fed(categories({0, 1}, {"old", "olt"}), &parameters); });
  EXPECT_THAT(unknown.what(),
              HasSubstr("sample 1: column \"kind\" has the category \"olt\", which its names lack; did you "
                        "mean \"old\"?"));
  EXPECT_EQ(unknown.code(), TN_BAD_DATA);
  EXPECT_THAT(error_of([&] { (void)fed(categories({0}, {"\xff"}), nullptr); }).what(),
              HasSubstr("\"?\", which is not UTF-8"));
  EXPECT_THAT(error_of([&] { (void)fed(categories({2}, {"old"}), nullptr); }).what(),
              HasSubstr("its dictionary lacks"));
  const Error absent = error_of([&] { (void)feeds({table}, structs({texts({"old"}).called("kinds")})); });
  EXPECT_EQ(absent.code(), TN_NOT_FOUND);
  EXPECT_THAT(absent.what(), HasSubstr("no column \"kind\"; did you mean \"kinds\"?"));
}

TEST_F(Arrow, DamagedStructsAreRefusedAndStayTheCallers) {
  const Layer x = data("x", TN_F32);
  const Node good = structs({floats({1, 2, 3}).called("x"), lists({0, 1, 2, 3}, floats({1, 2, 3})).called("y"),
                             categories({0, 0, 0}, {"a"}).called("z")});
  const auto damaged = [&](const char* why, const std::function<void(ArrowSchema&, ArrowArray&)>& damage) {
    ArrowSchema schema = schema_of(good, &count_);
    ArrowArray batch = array_of(good, &count_);
    const ArrowSchema whole_schema = schema;
    const ArrowArray whole_batch = batch;
    const ArrowArray child = *batch.children[0];
    const ArrowSchema type = *schema.children[0], list = *schema.children[1];
    damage(schema, batch);
    const Error error = error_of([&] { arrow::Feeds({x}, nullptr, schema, batch); });
    EXPECT_EQ(error.code(), TN_BAD_DATA) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(why));
    schema = whole_schema, batch = whole_batch;
    *batch.children[0] = child, *schema.children[0] = type, *schema.children[1] = list;
    EXPECT_EQ(count_.arrays, 0);
    schema.release(&schema), batch.release(&batch);
    count_.arrays = 0;
  };
  const char* const foreign = "has a chunk that is not of its schema";
  damaged("was taken before", [](ArrowSchema& schema, ArrowArray&) { schema.release = nullptr; });
  damaged("has a damaged schema", [](ArrowSchema& schema, ArrowArray&) { schema.format = nullptr; });
  damaged("has a damaged schema", [](ArrowSchema& schema, ArrowArray&) { schema.children[0]->format = "\xff"; });
  damaged("has a damaged schema", [](ArrowSchema& schema, ArrowArray&) { schema.n_children = -1; });
  damaged("has a damaged schema", [](ArrowSchema& schema, ArrowArray&) { schema.children = nullptr; });
  damaged("more than 1048576 columns", [](ArrowSchema& schema, ArrowArray&) { schema.n_children = INT64_MAX; });
  damaged("levels of columns",
          [](ArrowSchema& schema, ArrowArray&) { schema.children[1]->children = &schema.children[1]; });
  damaged("has lists with 0 columns", [](ArrowSchema& schema, ArrowArray&) { schema.children[1]->n_children = 0; });
  damaged("is one column",
          [](ArrowSchema& schema, ArrowArray& batch) { schema = *schema.children[0], batch = *batch.children[0]; });
  damaged(foreign, [](ArrowSchema&, ArrowArray& batch) { batch.length = -1; });
  damaged(foreign, [](ArrowSchema&, ArrowArray& batch) { batch.offset = -1; });
  damaged(foreign, [](ArrowSchema&, ArrowArray& batch) { batch.offset = INT64_MAX, batch.length = INT64_MAX; });
  damaged(foreign, [](ArrowSchema&, ArrowArray& batch) { batch.n_buffers = -1; });
  damaged(foreign, [](ArrowSchema&, ArrowArray& batch) { batch.n_children = 2; });
  damaged(foreign, [](ArrowSchema&, ArrowArray& batch) { batch.children = nullptr; });
  damaged(foreign, [](ArrowSchema&, ArrowArray& batch) { batch.children[0]->buffers = nullptr; });
  damaged("column of 1 buffers; expected 2", [](ArrowSchema&, ArrowArray& batch) { batch.children[0]->n_buffers = 1; });
  damaged("column of 0 buffers; expected 2", [](ArrowSchema&, ArrowArray& batch) { batch.children[0]->n_buffers = 0; });
  damaged("shorter than the table", [](ArrowSchema&, ArrowArray& batch) { batch.length = 4; });
  damaged("lists of the format", [](ArrowSchema& schema, ArrowArray&) { schema.children[1]->format = "+w:x"; });
  static const void* absent[] = {nullptr, nullptr};
  damaged("lacks a buffer", [](ArrowSchema&, ArrowArray& batch) { batch.children[0]->buffers = absent; });
  EXPECT_EQ(error_of([&] {
              (void)feeds({x}, structs({floats({1}).called("x"), floats({1}).called("x")}));
            }).code(),
            TN_INVALID);
  EXPECT_EQ(tn_arrow_feeds_create(host_.get(), nullptr, 0, {}, nullptr, nullptr, nullptr, nullptr), TN_MISUSE);
  tn_arrow_feeds_release(nullptr);
}

TEST_F(Arrow, AStreamIsReadOnce) {
  const std::vector<Node> chunks = {structs({floats({1, 2, 3}).called("x")}),
                                    structs({floats({9}).cut(0, 0).called("x")}),
                                    structs({floats({0, 4, 5}).cut(1, 3).called("x")})};
  const Reader once = reader(chunks, {});
  EXPECT_EQ(count_.arrays, 0);  // one chunk at a time
  EXPECT_EQ(passes_of(once, 1), "1 2 3 4 5 |");
  const Error over = error_of([&] { (void)once.next(); });
  EXPECT_EQ(over.code(), TN_UNSUPPORTED);
  EXPECT_THAT(over.what(), HasSubstr("one pass, which is over"));
  EXPECT_EQ(error_of([&] { once.seek({0, 0}); }).code(), TN_UNSUPPORTED);
  EXPECT_THAT(passes_of(reader(chunks, {}).batch(2), 1), "1 2 3 4 5 |");
}

TEST_F(Arrow, AStreamThatIsKeptHasPassesAndAnOrder) {
  const std::vector<Node> chunks = {structs({floats({1, 2, 3}).called("x")}), structs({floats({4, 5}).called("x")})};
  arrow::ReaderOptions options;
  options.keep = true;
  const Reader kept = reader(chunks, options);
  EXPECT_EQ(count_.streams, 1);
  EXPECT_EQ(passes_of(kept, 2), "1 2 3 4 5 |1 2 3 4 5 |");
  kept.seek({3, 4});
  EXPECT_EQ(passes_of(kept, 1), "5 |");
  const Reader shuffled = reader(chunks, options).shuffle(1).batch(5);
  std::vector<float> values = numbers_of<float>(shuffled.next()[0]);
  EXPECT_THAT(values, testing::UnorderedElementsAre(1, 2, 3, 4, 5));
}

TEST_F(Arrow, AStreamThatIsOpenedAgainHasPassesAndPlaces) {
  int opened = 0;
  const auto open = [&](ArrowArrayStream& stream) {
    ++opened;
    if (opened == 5) throw std::runtime_error("the query failed");
    stream = stream_of({structs({floats({1, 2, 3}).called("x")}), structs({floats({4, 5}).called("x")})}, &count_);
  };
  const Reader again = arrow::reader(host_, open);
  EXPECT_EQ(passes_of(again, 2), "1 2 3 4 5 |1 2 3 4 5 |");
  again.seek({1, 3});
  EXPECT_EQ(passes_of(again, 1), "4 5 |");
  again.seek({2, 4});
  EXPECT_EQ(passes_of(again, 1), "5 |");
  EXPECT_THROW((void)again.next(), std::runtime_error);
  EXPECT_EQ(passes_of(again, 1), "1 2 3 4 5 |");
  EXPECT_EQ(error_of([&] { again.seek({0, 6}); }).code(), TN_BAD_DATA);
  const Error other = error_of([&] {
    int pass = 0;
    const Reader changed = arrow::reader(host_, [&](ArrowArrayStream& stream) {
      stream = stream_of({structs({(++pass == 1 ? floats({1}) : numbers<double>("g", {1})).called("x")})}, &count_);
    });
    (void)passes_of(changed, 2);
  });
  EXPECT_THAT(other.what(), HasSubstr("columns of other types, than in the pass before"));
}

TEST_F(Arrow, SlotsAreThoseOfDataLayersOrColumns) {
  const Node first =
      structs({categories({0, 1}, {"b", "a"}).called("kind"), numbers<double>("g", {1, 2}).called("x"),
               texts({"p", "q"}).called("note"), lists({0, 1, 3}, numbers<int32_t>("i", {7, 8, 9})).called("words"),
               maps({0, 1, 1}, numbers<int8_t>("c", {3}), floats({.5})).called("sparse")});
  const Node second =
      structs({categories({0, 1}, {"a", "b"}).called("kind"), numbers<double>("g", {3, 4}).called("x"),
               texts({"r", "s"}).called("note"), lists({0, 0, 1}, numbers<int32_t>("i", {5})).called("words"),
               maps({0, 0, 1}, numbers<int8_t>("c", {1}), floats({2})).called("sparse")});
  const Reader own = reader({first, second}, {}).batch(4);
  const std::vector<DataOptions> slots = tenon::slots(own);
  ASSERT_EQ(slots.size(), 3U);  // no texts, no maps
  EXPECT_EQ(slots[0].index_limit, 2);
  EXPECT_EQ(own.names()[0].texts, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(slots[1].dtype, TN_F32);
  EXPECT_EQ(slots[2].storage, TN_RAGGED);
  const std::vector<Array> values = own.next();
  EXPECT_THAT(numbers_of<int64_t>(values[0]), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(numbers_of<float>(values[1]), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(offsets_of(values[2]), (std::vector<int64_t>{0, 1, 3, 3, 4}));
  EXPECT_THAT(numbers_of<int32_t>(values[2]), ElementsAre(7, 8, 9, 5));

  const Layer sparse = data("sparse", TN_F32, {4}, TN_CSR);
  arrow::ReaderOptions options;
  options.outputs = {host_.layer("fc", {sparse}, {{"size", 1}})};
  const Reader typed = reader({first, second}, options).batch(4);
  const std::vector<Array> entries = typed.next();
  EXPECT_EQ(offsets_of(entries[0]), (std::vector<int64_t>{0, 1, 1, 1, 2}));
  EXPECT_EQ(std::vector<int64_t>(entries[0].ids, entries[0].ids + 2), (std::vector<int64_t>{3, 1}));
  EXPECT_THAT(numbers_of<float>(entries[0], 2), ElementsAre(0.5F, 2));

  const auto refused = [&](std::vector<std::string> columns) {
    arrow::ReaderOptions of;
    of.columns = std::move(columns);
    return error_of([&] { (void)reader({first}, of); });
  };
  EXPECT_THAT(refused({"x", "note"}).what(),
              HasSubstr("column \"note\" has texts; expected numbers, categories or lists"));
  EXPECT_EQ(refused({"y"}).code(), TN_NOT_FOUND);
  const Error strange = error_of([&] {
    Node other = second;
    other.children[0] = categories({0, 1}, {"a", "c"}).called("kind");
    const Reader batches = reader({first, other}, {}).batch(4);
    (void)batches.next();
  });
  EXPECT_THAT(strange.what(), HasSubstr("sample 3: column \"kind\" has the category \"c\""));
}

TEST_F(Arrow, AStreamThatFailsSaysWhy) {
  const std::vector<Node> chunks = {structs({floats({1, 2}).called("x")}),
                                    structs({floats({3}).with_null(0).called("x")})};
  for (const size_t fails : {size_t{0}, size_t{1}}) {
    ArrowArrayStream stream = stream_of(chunks, &count_, fails);
    const Error error = error_of([&] {
      const Reader of = arrow::reader(host_, stream);
      for (int i = 0; i < 3; ++i) (void)of.next();
    });
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(error.what(), HasSubstr("cannot be read: the disk is gone"));
    EXPECT_EQ(stream.release != nullptr, fails == 0);
    if (stream.release != nullptr) stream.release(&stream);
  }
  const Reader of = reader(chunks, {});
  EXPECT_EQ(numbers_of<float>(of.next()[0]).size(), 1U);
  EXPECT_EQ(numbers_of<float>(of.next()[0]).size(), 1U);
  for (int i = 0; i < 2; ++i)  // nothing is skipped
    EXPECT_THAT(error_of([&] { (void)of.next(); }).what(), HasSubstr("sample 2: column \"x\" has a missing value"));
  EXPECT_EQ(error_of([&] { (void)arrow::reader(host_, [](ArrowArrayStream&) {}); }).code(), TN_BAD_DATA);
  tn_arrow_reader_options both = {};
  EXPECT_EQ(tn_arrow_reader_create(host_.get(), &both, nullptr, nullptr), TN_MISUSE);
  both.size = sizeof both;
  EXPECT_EQ(tn_arrow_reader_create(host_.get(), &both, nullptr, nullptr), TN_INVALID);
}

}  // namespace

}  // namespace tenon_tests
