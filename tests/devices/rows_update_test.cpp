// Updates in "tenon.row_sparse/1": programs over the rows of a TN_ROW_SPARSE tensor, against the
// reference interpreter in fp64 over gathered rows; and refused calls. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/pointwise_case.h"
#include "tests/devices/rows_case.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using Numbers = std::vector<double>;

struct Site {
  Program program;
  std::vector<uint8_t> indexed_inputs, indexed_outputs;
  std::vector<int32_t> in_place;  // per output: the input with the same memory, or -1
  int32_t rows_input = 0;
  int64_t width = 3;
  tn_dtype dtype = TN_F32;
  tn_dim columns = tn_dim_constant(0);  // 0: width
  int64_t most = 1000;                  // rows
};

// Outputs: w - rate (g + decay m) and g + decay m, in place; sums + the sum of squares of each row of g, in another
// table; 2 g, dense. Inputs: g, w, m, rate, decay of each column, sums.
Site momentum(tn_dtype dtype, int64_t width) {
  ProgramWriter w;
  const int32_t g = w.input(TN_FULL), weight = w.input(TN_FULL), m = w.input(TN_FULL), rate = w.input(TN_SCALAR),
                decay = w.input(TN_PER_COLUMN), sums = w.input(TN_PER_ROW);
  const int32_t next = w.apply(TN_OP_ADD, g, w.apply(TN_OP_MUL, decay, m));
  w.output(w.apply(TN_OP_SUB, weight, w.apply(TN_OP_MUL, rate, next)));
  w.output(next);
  w.output(w.apply(TN_OP_ADD, sums, w.reduce(TN_OP_REDUCE_SUM, w.apply(TN_OP_MUL, g, g), TN_PER_ROW)));
  w.output(w.apply(TN_OP_ADD, g, g));
  return {Program::from(w.finish().view()), {0, 1, 1, 0, 0, 1}, {1, 1, 1, 0}, {1, 2, -1, -1}, 0, width, dtype};
}

// Returns the rows `ids` of a table with `step` numbers per row, concatenated.
Numbers gathered(const Numbers& table, const std::vector<int64_t>& ids, int64_t step) {
  Numbers result;
  for (const int64_t id : ids) result.insert(result.end(), table.begin() + id * step, table.begin() + (id + 1) * step);
  return result;
}

class RowsUpdate : public testing::Test {
 protected:
  tn_status prepare(const Site& s, tn_prepared* prepared) {
    const tn_program program = s.program.view();
    const std::vector<tn_dtype> inputs(s.program.inputs.size(), s.dtype), outputs(s.program.outputs.size(), s.dtype);
    tn_pointwise_site site = {};
    site.size = sizeof site;
    site.compute = s.dtype;
    site.program = &program;
    site.extents = s.program.extents.data();
    site.inputs = inputs.data();
    site.outputs = outputs.data();
    site.rows = bounded_symbol(TN_SYMBOL_FIRST_RAGGED, s.most);
    site.columns = s.columns.offset == 0 && s.columns.symbol == TN_SYMBOL_NONE ? tn_dim_constant(s.width) : s.columns;
    tn_row_sparse_update update = {};
    update.size = sizeof update;
    update.rows = s.rows_input;
    update.site = &site;
    update.indexed_inputs = s.indexed_inputs.data();
    update.indexed_outputs = s.indexed_outputs.data();
    return device_.table<tn_row_sparse_table>(TN_ROW_SPARSE_TABLE)
        ->prepare_update(device_.device(), device_.services(), device_.errors(), &update, prepared);
  }

  // Returns the count of numbers per row of an operand; 0 if all rows share them.
  static int64_t step(uint8_t extent, int64_t width) {
    return extent == TN_FULL ? width : extent == TN_PER_ROW ? 1 : 0;
  }

  // Returns an operand before the call: a table of `height` rows if it is indexed, else `count` rows of the grid.
  static Numbers before(uint8_t extent, bool indexed, const Site& s, int64_t height, int64_t count, uint64_t seed) {
    return random_numbers(
        indexed ? height * step(extent, s.width) : tenon::check::reference::elements(extent, count, s.width), seed);
  }

  // Returns the expected outputs.
  static std::vector<Numbers> wanted(const Site& s, const std::vector<Numbers>& inputs,
                                     const std::vector<Numbers>& held, const std::vector<int64_t>& ids) {
    std::vector<Numbers> dense;
    for (size_t i = 0; i < inputs.size(); ++i)
      dense.push_back(s.indexed_inputs[i] != 0 ? gathered(inputs[i], ids, step(s.program.inputs[i].extent, s.width))
                                               : inputs[i]);
    const auto results =
        tenon::check::reference::evaluate(s.program.view(), static_cast<int64_t>(ids.size()), s.width, dense);
    std::vector<Numbers> all = held;
    for (size_t k = 0; k < results.size(); ++k) {
      const int64_t of_row = step(s.program.output_extent(k), s.width);
      if (s.indexed_outputs[k] == 0) {
        all[k] = results[k];
        continue;
      }
      for (size_t r = 0; r < ids.size(); ++r)
        std::copy_n(results[k].begin() + static_cast<int64_t>(r) * of_row, of_row, all[k].begin() + ids[r] * of_row);
    }
    return all;
  }

  void check(const Site& s, int64_t height, const std::vector<int64_t>& ids) {
    SCOPED_TRACE(testing::Message() << ids.size() << " of " << height << " rows, " << s.width << " wide");
    const auto count = static_cast<int64_t>(ids.size());
    std::vector<Numbers> inputs, held;
    for (size_t i = 0; i < s.program.inputs.size(); ++i)
      inputs.push_back(before(s.program.inputs[i].extent, s.indexed_inputs[i] != 0, s, height, count, i));
    for (size_t k = 0; k < s.program.outputs.size(); ++k)
      held.push_back(s.in_place[k] >= 0
                         ? inputs[static_cast<size_t>(s.in_place[k])]
                         : before(s.program.output_extent(k), s.indexed_outputs[k] != 0, s, height, count, 50 + k));
    const std::vector<Numbers> want = wanted(s, inputs, held, ids);
    std::vector<std::vector<uint8_t>> first;
    for (const int32_t workers : device_.workers({1, 2, 3, 8})) {
      PreparedCall call(device_);
      ASSERT_EQ(prepare(s, &call.prepared), TN_OK) << device_.message;
      Rows rows(s.dtype, count + 2, s.width);
      rows.put(inputs[0], ids);
      call.rows[&rows.values] = rows.part;
      std::vector<Guarded> memory, results;
      std::vector<Guarded*> in{&rows.values}, out;
      for (size_t i = 1; i < inputs.size(); ++i) memory.push_back(write_all(s.dtype, inputs[i]));
      for (Guarded& operand : memory) in.push_back(&operand);
      for (const Numbers& output : held) results.push_back(write_all(s.dtype, output));
      for (size_t k = 0; k < held.size(); ++k)
        out.push_back(s.in_place[k] >= 0 ? in[static_cast<size_t>(s.in_place[k])] : &results[k]);
      ASSERT_EQ(call.run(in, out, std::vector<uint8_t>(out.size(), TN_REQUEST_WRITE), {0, 0, count}, workers), TN_OK)
          << device_.message;
      std::vector<std::vector<uint8_t>> bytes;
      for (size_t k = 0; k < held.size(); ++k) {
        const Guarded& got = s.in_place[k] >= 0 ? memory[static_cast<size_t>(s.in_place[k]) - 1] : results[k];
        ASSERT_TRUE(got.intact());
        bytes.push_back(got.bytes());
        const Numbers found = read_all(s.dtype, got);
        for (size_t i = 0; i < found.size(); ++i)
          ASSERT_NEAR(found[i], want[k][i], (s.dtype == TN_F32 ? 1e-6 : 1e-14) * static_cast<double>(s.width + 1))
              << "output " << k << " element " << i;
      }
      if (first.empty()) first = bytes;
      ASSERT_TRUE(first == bytes) << workers << " workers give other bits";
      ASSERT_TRUE(rows.intact());
    }
  }

  // The operands of descent().
  struct Small {
    Rows rows{TN_F32, 2, 3};
    Guarded table = write_all(TN_F32, Numbers(15, 1));
  };
  static Site descent() {
    ProgramWriter w;
    const int32_t g = w.input(TN_FULL), weight = w.input(TN_FULL);
    w.output(w.apply(TN_OP_SUB, weight, g));
    return {Program::from(w.finish().view()), {0, 1}, {1}, {1}};
  }
  // Returns a site whose program computes `output` from the gradient and the weights.
  template <typename Output>
  static Site with(Output output) {
    ProgramWriter w;
    const int32_t g = w.input(TN_FULL), weight = w.input(TN_FULL);
    w.output(output(w, g, weight));
    return {Program::from(w.finish().view()), {0, 1}, {1}, {1}};
  }
  void refused(const Site& s, const std::string& why) {
    tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
    EXPECT_EQ(prepare(s, &prepared), TN_UNSUPPORTED) << why;
    EXPECT_EQ(device_.message, why);
    EXPECT_EQ(device_.port, "program");
    EXPECT_EQ(prepared.binding, nullptr);
  }

  DeviceUnderTest device_;
};

std::vector<int64_t> some_ids(int64_t count, int64_t height) {
  std::vector<int64_t> ids(static_cast<size_t>(height));
  std::iota(ids.begin(), ids.end(), 0);
  std::mt19937_64 random(8);
  std::shuffle(ids.begin(), ids.end(), random);
  ids.resize(static_cast<size_t>(count));
  return ids;
}

TEST_F(RowsUpdate, RowsThatAreNamedChangeAndNoOthers) {
  for (const tn_dtype dtype : {TN_F32, TN_F64})
    for (const int64_t width : {1, 3, 64, 700}) {
      check(momentum(dtype, width), 6, {4, 0, 5});
      check(momentum(dtype, width), 1, {0});
      check(momentum(dtype, width), 400, some_ids(width < 700 ? 300 : 100, 400));  // tasks of several blocks
      check(momentum(dtype, width), 7, {});
    }
  check(momentum(TN_F32, 9000), 5, {3, 1, 4});  // one row is more than a block
  check(momentum(TN_F32, 5), 900, some_ids(700, 900));
}

// An output in a table of its own keeps its other rows.
TEST_F(RowsUpdate, ToAnotherTable) {
  Site site = descent();
  site.in_place = {-1};
  check(site, 50, some_ids(20, 50));
}

TEST_F(RowsUpdate, MoreRowsThanFit) {
  PreparedCall call(device_);
  ASSERT_EQ(prepare(descent(), &call.prepared), TN_OK) << device_.message;
  Small s;
  call.rows[&s.rows.values] = s.rows.part;
  const auto run = [&] { return call.run({&s.rows.values, &s.table}, {&s.table}, {TN_REQUEST_WRITE}, {0, 0, 2}, 1); };
  s.rows.put({1, 2, 3, 4, 5, 6}, {4, 0});
  EXPECT_EQ(run(), TN_OK);
  for (const int64_t count : {int64_t{3}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const std::vector<uint8_t> before = s.table.bytes();
    s.rows.count = count;
    EXPECT_EQ(run(), TN_MISUSE) << count;
    EXPECT_EQ(device_.message, "an update of more rows than fit");
    EXPECT_TRUE(s.table.bytes() == before);
  }
}

TEST_F(RowsUpdate, RefusesOtherOperands) {
  PreparedCall call(device_);
  ASSERT_EQ(prepare(descent(), &call.prepared), TN_OK) << device_.message;
  Small s;
  s.rows.put({1, 2, 3}, {4});
  Guarded *const g = &s.rows.values, *const w = &s.table;
  const auto run = [&](const std::vector<Guarded*>& in, uint8_t request) {
    return call.run(in, {w}, {request}, {0, 0, 1}, 1);
  };
  EXPECT_EQ(run({g, w}, TN_REQUEST_WRITE), TN_MISUSE) << "a dense gradient";
  EXPECT_EQ(device_.message, "an update of rows without its rows");
  call.rows[g] = s.rows.part;
  EXPECT_EQ(run({nullptr, w}, TN_REQUEST_WRITE), TN_MISUSE);
  EXPECT_EQ(run({g}, TN_REQUEST_WRITE), TN_MISUSE);
  EXPECT_EQ(device_.message, "an update of rows with another number of operands");
  EXPECT_EQ(run({g, w}, TN_REQUEST_ADD), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "outputs");
  EXPECT_EQ(read_all(TN_F32, s.table), Numbers(15, 1)) << "nothing was changed";
  EXPECT_EQ(run({g, w}, TN_REQUEST_WRITE), TN_OK);
}

// Rows are updated in blocks, without access to other rows.
TEST_F(RowsUpdate, RefusesWhatNeedsAllRows) {
  for (const uint8_t to : {TN_SCALAR, TN_PER_COLUMN})
    for (const uint16_t op : {TN_OP_REDUCE_SUM, TN_OP_REDUCE_MAX, TN_OP_REDUCE_MIN})
      refused(with([&](ProgramWriter& w, int32_t g, int32_t weight) {
                return w.apply(TN_OP_ADD, weight, w.reduce(op, g, to));
              }),
              "an update of rows can reduce along a row alone");
  const Site along = with([](ProgramWriter& w, int32_t g, int32_t weight) {
    return w.apply(TN_OP_ADD, weight, w.reduce(TN_OP_REDUCE_MAX, g, TN_PER_ROW));
  });
  check(along, 9, {8, 2});
}

TEST_F(RowsUpdate, RefusesOtherPrograms) {
  refused(with([](ProgramWriter& w, int32_t g, int32_t) { return w.apply(TN_OP_MUL, g, w.uniform(0, TN_FULL)); }),
          "an update of rows cannot tell the number of a row");
  refused(with([](ProgramWriter& w, int32_t g, int32_t) {
            return w.apply(TN_OP_MUL, g, w.cast(index(w, TN_OP_ROW), TN_FLOAT));
          }),
          "an update of rows cannot tell the number of a row");
  refused(with([](ProgramWriter& w, int32_t, int32_t) { return w.constant(1); }),
          "an update of rows writes rows alone");
  Site site = descent();
  site.rows_input = 2;
  refused(site, "an update of rows without rows");
  site.rows_input = -1;
  refused(site, "an update of rows without rows");
  site = descent();
  site.columns = tn_dim_symbol(TN_SYMBOL_SAMPLES);
  refused(site, "an update of rows needs rows of constant length");
}

}  // namespace
}  // namespace tenon_tests
