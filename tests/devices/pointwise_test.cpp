// Pointwise programs: every opcode, the shapes of real layers, all sizes and requests, memory that inputs and outputs
// share. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/pointwise_case.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

std::vector<double> random_numbers(int64_t count, double low, double high, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> numbers(static_cast<size_t>(count));
  for (double& number : numbers) number = static_cast<float>(uniform(random));  // the same in f32 and f64
  return numbers;
}

std::vector<double> random_labels(int64_t count, int64_t classes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> labels(static_cast<size_t>(count));
  for (double& label : labels)
    label = static_cast<double>(random() % static_cast<uint64_t>(std::max<int64_t>(classes, 1)));
  return labels;
}

int32_t row_index(ProgramWriter& w) { return index(w, TN_OP_ROW); }
int32_t column_index(ProgramWriter& w) { return index(w, TN_OP_COLUMN); }

class Pointwise : public testing::Test {
 protected:
  // Checks with both compute types; `relative` and `absolute` are for f32.
  void check(PointwiseCase c, double relative = 2e-6, double absolute = 2e-6) {
    for (const tn_dtype compute : {TN_F32, TN_F64}) {
      c.compute = compute;
      SCOPED_TRACE(testing::Message() << (compute == TN_F32 ? "f32, " : "f64, ") << c.rows << " x " << c.columns);
      const double scale = compute == TN_F32 ? 1 : 1e-7;
      check_case(device_, c, relative * scale, absolute * scale);
      if (HasFatalFailure()) return;
    }
  }
  DeviceUnderTest device_;
};

// Sizes around every boundary: none, one, below and above a tile, odd, more than a chunk.
struct Size {
  int64_t rows, columns;
};
constexpr Size kSizes[] = {{0, 0},    {0, 5},    {5, 0},    {1, 1},     {1, 7},     {7, 1},    {3, 10},
                           {128, 10}, {25, 33},  {2, 255},  {3, 256},   {4, 257},   {9, 511},  {5, 513},
                           {2, 9001}, {700, 31}, {4000, 3}, {1, 70001}, {70001, 1}, {300, 300}};

constexpr uint16_t kUnary[] = {TN_OP_NEG, TN_OP_ABS,   TN_OP_SQRT,  TN_OP_EXP,  TN_OP_EXPM1,
                               TN_OP_LOG, TN_OP_LOG1P, TN_OP_TANH,  TN_OP_ERF,  TN_OP_SIN,
                               TN_OP_COS, TN_OP_FLOOR, TN_OP_ROUND, TN_OP_SIGN, TN_OP_STOP};

TEST_F(Pointwise, UnaryOperations) {
  for (const uint16_t op : kUnary) {
    SCOPED_TRACE(op);
    ProgramWriter w;
    w.output(w.apply(op, w.input(TN_FULL)));
    check({w.finish(), 3, 301, TN_F32, {random_numbers(903, 0.01, 4, op)}});
  }
}

TEST_F(Pointwise, BinaryOperationsOfEveryPairOfExtents) {
  constexpr uint16_t kBinary[] = {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_DIV, TN_OP_MIN, TN_OP_MAX, TN_OP_POW};
  for (const uint16_t op : kBinary)
    for (uint8_t a = 0; a < 4; ++a)
      for (uint8_t b = 0; b < 4; ++b)
        for (const Size& size : {Size{9, 10}, Size{5, 300}, Size{3, 1100}}) {
          SCOPED_TRACE(testing::Message() << "opcode " << op << " extents " << int{a} << " " << int{b});
          ProgramWriter w;
          const int32_t x = w.input(a), y = w.input(b);
          w.output(w.apply(op, x, y));
          check({w.finish(),
                 size.rows,
                 size.columns,
                 TN_F32,
                 {random_numbers(tenon::check::reference::elements(a, size.rows, size.columns), -3, 3, 1),
                  random_numbers(tenon::check::reference::elements(b, size.rows, size.columns), 0.5, 3, 2)}});
        }
}

TEST_F(Pointwise, ComparisonsLogicAndSelectOfFloatsAndInts) {
  for (const uint8_t kind : {TN_FLOAT, TN_INT})
    for (const uint8_t extent : {TN_FULL, TN_PER_ROW, TN_PER_COLUMN, TN_SCALAR})
      for (const Size& size : {Size{9, 10}, Size{5, 700}}) {
        ProgramWriter w;
        const int32_t x = w.input(TN_FULL, kind), y = w.input(extent, kind);
        const int32_t less = w.apply(TN_OP_LESS, x, y), most = w.apply(TN_OP_LESS_EQUAL, y, x);
        const int32_t equal = w.apply(TN_OP_EQUAL, x, y);
        w.output(less, TN_BOOL);
        w.output(w.apply(TN_OP_AND, most, w.apply(TN_OP_NOT, equal)), TN_BOOL);
        w.output(w.cast(w.apply(TN_OP_OR, less, equal), TN_FLOAT));
        w.output(w.cast(w.apply(TN_OP_SELECT, less, x, y), TN_FLOAT));
        w.output(w.cast(w.apply(TN_OP_SELECT, equal, y, w.constant(9, kind)), TN_FLOAT));
        check({w.finish(),
               size.rows,
               size.columns,
               TN_F32,
               {random_labels(size.rows * size.columns, 4, 3),
                random_labels(tenon::check::reference::elements(extent, size.rows, size.columns), 4, 4)}},
              0, 0);
      }
}

TEST_F(Pointwise, CastsTruncateAndIndicesCount) {
  ProgramWriter w;
  const int32_t x = w.input(TN_FULL);
  const int32_t whole = w.cast(x, TN_INT);
  w.output(w.cast(whole, TN_FLOAT));
  w.output(whole, TN_I8);
  w.output(w.cast(x, TN_LOGICAL), TN_BOOL);
  const int32_t sum = w.apply(TN_OP_ADD, w.input(TN_FULL, TN_INT), w.apply(TN_OP_MUL, row_index(w), column_index(w)));
  w.output(sum, TN_I32);
  for (const Size& size : {Size{4, 7}, Size{130, 5}, Size{3, 900}})
    check({w.finish(),
           size.rows,
           size.columns,
           TN_F32,
           {random_numbers(size.rows * size.columns, -9, 9, 5), random_labels(size.rows * size.columns, 9, 6)}},
          0, 0);
}

TEST_F(Pointwise, ReluAndItsGradientOfEverySize) {
  for (const Size& size : kSizes) {
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL), gradient = w.input(TN_FULL), zero = w.constant(0);
    w.output(w.apply(TN_OP_MAX, x, zero));
    const int32_t passed = w.apply(TN_OP_SELECT, w.apply(TN_OP_LESS, zero, x), gradient, zero);
    w.output(passed);
    w.output(w.reduce(TN_OP_REDUCE_SUM, passed, TN_PER_COLUMN));
    w.output(w.reduce(TN_OP_REDUCE_SUM, passed, TN_SCALAR));
    const int64_t n = size.rows * size.columns;
    check({w.finish(), size.rows, size.columns, TN_F32, {random_numbers(n, -1, 1, 7), random_numbers(n, -1, 1, 8)}},
          2e-6, 1e-4);
  }
}

// softmax(x + bias), its cross entropy with labels, the gradient, and the mean cost.
Program cross_entropy() {
  ProgramWriter w;
  const int32_t input = w.input(TN_FULL), bias = w.input(TN_PER_COLUMN);
  const int32_t x = w.apply(TN_OP_ADD, input, bias);
  const int32_t label = w.input(TN_PER_ROW, TN_INT), scale = w.input(TN_SCALAR);
  const int32_t shifted = w.apply(TN_OP_SUB, x, w.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW));
  const int32_t exps = w.apply(TN_OP_EXP, shifted);
  const int32_t sum = w.reduce(TN_OP_REDUCE_SUM, exps, TN_PER_ROW);
  const int32_t p = w.apply(TN_OP_DIV, exps, sum);
  const int32_t hit = w.apply(TN_OP_EQUAL, column_index(w), label);
  const int32_t chosen = w.reduce(TN_OP_REDUCE_SUM, w.apply(TN_OP_SELECT, hit, shifted, w.constant(0)), TN_PER_ROW);
  const int32_t cost = w.apply(TN_OP_SUB, w.apply(TN_OP_LOG, sum), chosen);
  w.output(p);
  w.output(cost);
  const int32_t gradient = w.apply(TN_OP_MUL, w.apply(TN_OP_SUB, p, w.cast(hit, TN_FLOAT)), scale);
  w.output(gradient);
  w.output(w.reduce(TN_OP_REDUCE_SUM, gradient, TN_PER_COLUMN));
  w.output(w.apply(TN_OP_MUL, w.reduce(TN_OP_REDUCE_SUM, cost, TN_SCALAR), scale));
  return w.finish();
}

TEST_F(Pointwise, SoftmaxWithCrossEntropy) {
  for (const Size& size : kSizes) {
    PointwiseCase c = {cross_entropy(),
                       size.rows,
                       size.columns,
                       TN_F32,
                       {random_numbers(size.rows * size.columns, -8, 8, 9),
                        random_numbers(size.columns, -1, 1, 10),
                        random_labels(size.rows, size.columns, 11),
                        {0.125}}};
    c.input_types = {TN_F32, TN_F32, TN_I64, TN_F32};
    check(c, 2e-5, 5e-6);
  }
}

// Reductions to columns (as in batch_norm), to rows (as in layer_norm) or to a scalar, and passes that read them.
TEST_F(Pointwise, Normalisations) {
  for (const Size& size : kSizes) {
    if (size.rows * size.columns == 0) continue;  // 0 / 0
    for (const uint8_t extent : {TN_PER_COLUMN, TN_PER_ROW, TN_SCALAR}) {
      ProgramWriter w;
      const int32_t x = w.input(TN_FULL), gamma = w.input(TN_PER_COLUMN);
      const int32_t share = w.constant(1 / static_cast<double>(extent == TN_PER_COLUMN ? size.rows
                                                               : extent == TN_PER_ROW  ? size.columns
                                                                                       : size.rows * size.columns));
      const int32_t mean = w.apply(TN_OP_MUL, w.reduce(TN_OP_REDUCE_SUM, x, extent), share);
      const int32_t off = w.apply(TN_OP_SUB, x, mean);
      const int32_t squares = w.reduce(TN_OP_REDUCE_SUM, w.apply(TN_OP_MUL, off, off), extent);
      const int32_t variance = w.apply(TN_OP_ADD, w.apply(TN_OP_MUL, squares, share), w.constant(1e-3));
      w.output(w.apply(TN_OP_MUL, w.apply(TN_OP_DIV, off, w.apply(TN_OP_SQRT, variance)), gamma));
      w.output(mean);
      w.output(variance);
      check({w.finish(),
             size.rows,
             size.columns,
             TN_F32,
             {random_numbers(size.rows * size.columns, -2, 3, 12), random_numbers(size.columns, 0.5, 2, 13)}},
            1e-4, 1e-5);
    }
  }
}

Program adam() {
  ProgramWriter w;
  const int32_t p = w.input(TN_FULL), g = w.input(TN_FULL), m = w.input(TN_FULL), v = w.input(TN_FULL);
  const int32_t rate = w.input(TN_SCALAR);
  const auto mix = [&](int32_t old, int32_t fresh, double beta) {
    return w.apply(TN_OP_ADD, w.apply(TN_OP_MUL, old, w.constant(beta)),
                   w.apply(TN_OP_MUL, fresh, w.constant(1 - beta)));
  };
  const int32_t m1 = mix(m, g, 0.9), v1 = mix(v, w.apply(TN_OP_MUL, g, g), 0.999);
  const int32_t step = w.apply(TN_OP_DIV, m1, w.apply(TN_OP_ADD, w.apply(TN_OP_SQRT, v1), w.constant(1e-8)));
  w.output(w.apply(TN_OP_SUB, p, w.apply(TN_OP_MUL, rate, step)));
  w.output(m1);
  w.output(v1);
  return w.finish();
}

TEST_F(Pointwise, AdamInPlaceEqualsAdamInNewMemory) {
  for (const int64_t n : {int64_t{1}, int64_t{255}, int64_t{10000}, int64_t{2000003}}) {
    PointwiseCase c = {adam(),
                       1,
                       n,
                       TN_F32,
                       {random_numbers(n, -1, 1, 14),
                        random_numbers(n, -1, 1, 15),
                        random_numbers(n, -1, 1, 16),
                        random_numbers(n, 0, 1, 17),
                        {0.01}}};
    c.rows_vary = false;
    c.columns_vary = true;
    const PointwiseOutcome fresh = run_case(device_, c, 3);
    c.aliases = {0, 2, 3};
    EXPECT_TRUE(run_case(device_, c, 2).bytes == fresh.bytes);
    c.aliases = {3, 0, 2};  // each output over an input that is still to be read
    EXPECT_TRUE(run_case(device_, c, 2).bytes == fresh.bytes);
    if (n < 1000000) check(c, 1e-6, 1e-6);
  }
}

// An output must not be written before the last pass that reads the input in the same memory.
TEST_F(Pointwise, SharedMemoryOutlivesLaterPasses) {
  constexpr int64_t kRows = 40, kColumns = 30;
  const auto numbers = [&](int64_t count, uint64_t seed) { return random_labels(count, 5, seed); };
  {  // FULL: the second reduction reads x again after the first one
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL), sum = w.reduce(TN_OP_REDUCE_SUM, x, TN_SCALAR);
    w.output(w.apply(TN_OP_ADD, x, w.constant(1)));
    w.output(w.reduce(TN_OP_REDUCE_MAX, w.apply(TN_OP_SUB, x, sum), TN_SCALAR));
    check({w.finish(), kRows, kColumns, TN_F32, {numbers(kRows * kColumns, 1)}, {}, {}, {0, -1}}, 0, 0);
  }
  {  // PER_COLUMN and PER_ROW, read by a later full pass
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL), column = w.input(TN_PER_COLUMN), row = w.input(TN_PER_ROW);
    const int32_t sum = w.reduce(TN_OP_REDUCE_SUM, x, TN_SCALAR);
    w.output(w.apply(TN_OP_MUL, column, w.constant(2)));
    w.output(w.apply(TN_OP_MUL, row, w.constant(3)));
    w.output(w.apply(TN_OP_ADD, w.apply(TN_OP_ADD, column, row), sum));
    check({w.finish(),
           kRows,
           kColumns,
           TN_F32,
           {numbers(kRows * kColumns, 1), numbers(kColumns, 2), numbers(kRows, 3)},
           {},
           {},
           {1, 2, -1}},
          0, 0);
  }
  {  // PER_ROW from FULL, read by a later pass over the rows
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL), row = w.input(TN_PER_ROW);
    const int32_t sum = w.reduce(TN_OP_REDUCE_SUM, row, TN_SCALAR);
    w.output(w.apply(TN_OP_ADD, row, w.reduce(TN_OP_REDUCE_MAX, x, TN_PER_ROW)));
    w.output(w.reduce(TN_OP_REDUCE_MIN, w.apply(TN_OP_SUB, row, sum), TN_SCALAR));
    check({w.finish(), kRows, kColumns, TN_F32, {numbers(kRows * kColumns, 1), numbers(kRows, 3)}, {}, {}, {1, -1}}, 0,
          0);
  }
  {  // two outputs, each in the memory of the other's input
    ProgramWriter w;
    w.output(w.input(TN_FULL));
    w.output(w.input(TN_FULL));
    PointwiseCase c = {
        w.finish(), kRows, kColumns, TN_F32, {numbers(kRows * kColumns, 1), numbers(kRows * kColumns, 2)}};
    std::swap(c.program.outputs[0], c.program.outputs[1]);
    c.aliases = {0, 1};
    check(c, 0, 0);
  }
}

TEST_F(Pointwise, ReductionsOfNothing) {
  for (const Size& size : {Size{0, 4}, Size{4, 0}, Size{0, 0}})
    for (const uint8_t to : {TN_SCALAR, TN_PER_COLUMN, TN_PER_ROW}) {
      ProgramWriter w;
      const int32_t x = w.input(TN_FULL);
      for (const uint16_t op : {TN_OP_REDUCE_SUM, TN_OP_REDUCE_MAX, TN_OP_REDUCE_MIN}) w.output(w.reduce(op, x, to));
      check({w.finish(), size.rows, size.columns, TN_F32, {{}}}, 0, 0);
    }
}

TEST_F(Pointwise, NanAndInfinityPass) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> special = {NAN, kInf, -kInf, 0, -1, 1, NAN, 2, kInf, -kInf, 0, 3};
  for (const uint16_t op : {TN_OP_MIN, TN_OP_MAX, TN_OP_ADD})
    for (const bool turned : {false, true}) {
      ProgramWriter w;
      const int32_t x = w.input(TN_FULL), zero = w.constant(0);
      w.output(turned ? w.apply(op, zero, x) : w.apply(op, x, zero));
      check({w.finish(), 2, 6, TN_F32, {special}}, 0, 0);
    }
  for (const uint16_t op : kUnary) {
    SCOPED_TRACE(op);
    ProgramWriter w;
    w.output(w.apply(op, w.input(TN_FULL)));
    check({w.finish(), 2, 6, TN_F32, {special}});
  }
  for (const uint16_t op : {TN_OP_REDUCE_MAX, TN_OP_REDUCE_MIN, TN_OP_REDUCE_SUM})
    for (const int64_t columns : {6, 60}) {
      std::vector<double> numbers = random_labels(2 * columns, 9, 1);
      numbers[4] = NAN;
      ProgramWriter w;
      const int32_t x = w.input(TN_FULL);
      w.output(w.reduce(op, x, TN_PER_ROW));
      w.output(w.reduce(op, x, TN_PER_COLUMN));
      w.output(w.reduce(op, x, TN_SCALAR));
      check({w.finish(), 2, columns, TN_F32, {numbers}}, 0, 0);
    }
}

TEST_F(Pointwise, RequestsWriteAddAndNone) {
  for (const Size& size : {Size{30, 10}, Size{6, 700}}) {
    PointwiseCase c = {cross_entropy(),
                       size.rows,
                       size.columns,
                       TN_F32,
                       {random_numbers(size.rows * size.columns, -8, 8, 9),
                        random_numbers(size.columns, -1, 1, 10),
                        random_labels(size.rows, size.columns, 11),
                        {0.5}}};
    c.input_types = {TN_F32, TN_F64, TN_U16, TN_F64};
    c.requests = {TN_REQUEST_ADD, TN_REQUEST_NONE, TN_REQUEST_WRITE, TN_REQUEST_ADD, TN_REQUEST_ADD};
    check(c, 2e-5, 5e-6);
    c.requests = {TN_REQUEST_NONE, TN_REQUEST_ADD, TN_REQUEST_NONE, TN_REQUEST_NONE, TN_REQUEST_NONE};
    check(c, 2e-5, 5e-6);
  }
}

TEST_F(Pointwise, ConvertsEveryElementType) {
  constexpr tn_dtype kTypes[] = {TN_I8,  TN_I16, TN_I32,  TN_I64, TN_U8,  TN_U16,
                                 TN_U32, TN_F16, TN_BF16, TN_F32, TN_F64, TN_BOOL};
  for (const tn_dtype type : kTypes)
    for (const uint8_t kind : {TN_FLOAT, TN_INT, TN_LOGICAL}) {
      SCOPED_TRACE(testing::Message() << "type " << std::hex << type << " kind " << int{kind});
      ProgramWriter w;
      w.output(w.input(TN_FULL, kind), type);
      PointwiseCase c = {
          w.finish(), 3, 37, TN_F32, {random_labels(111, kind == TN_LOGICAL || type == TN_BOOL ? 2 : 100, 18)}};
      c.input_types = {type};
      check(c, 0, 0);
      c.requests = {TN_REQUEST_ADD};
      if (kind != TN_LOGICAL && type != TN_BOOL) check(c, 0, 0);
    }
}

// A register is reused after its last reader: a long chain needs little more workspace than a short one.
TEST_F(Pointwise, ReusesRegisters) {
  const auto workspace = [&](int length) {
    ProgramWriter w;
    int32_t value = w.input(TN_FULL);
    for (int i = 0; i < length; ++i) value = w.apply(TN_OP_TANH, value);
    w.output(value);
    PreparedCall call(device_);
    EXPECT_EQ(prepare(device_, {w.finish(), 64, 512}, &call.prepared), TN_OK) << device_.message;
    return call.prepared.workspace_bytes;
  };
  EXPECT_LT(workspace(64), 2 * workspace(8));
}

// A number halfway between two neighbours is rounded to the one with an even significand.
TEST_F(Pointwise, RoundsTiesToEven) {
  ProgramWriter w;
  for (const tn_dtype type : {TN_BF16, TN_F16}) w.output(w.input(TN_FULL), type);
  const std::vector<double> ties = {1 + 0x1p-8,  1 + 0x3p-8,  1 + 0x5p-8,  1 + 0x7p-8,
                                    1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x5p-11, 1 + 0x7p-11};
  const PointwiseOutcome got = run_case(device_, {w.finish(), 1, 8, TN_F32, {ties, ties}}, 1);
  for (int i = 0; i < 4; ++i) {
    const double even = i + i % 2;
    EXPECT_EQ(got.numbers[0][static_cast<size_t>(i)], 1 + even * 0x1p-7) << i;
    EXPECT_EQ(got.numbers[1][static_cast<size_t>(i) + 4], 1 + even * 0x1p-10) << i;
  }
}

TEST_F(Pointwise, RoundsToHalfAndSaturatesInts) {
  ProgramWriter w;
  const int32_t x = w.input(TN_FULL);
  w.output(x, TN_F16);
  w.output(x, TN_BF16);
  w.output(x, TN_U8);
  w.output(x, TN_I32);
  PointwiseCase c = {
      w.finish(), 1, 8, TN_F32, {{1 + 0x1p-11, 1 + 3 * 0x1p-11, 1e9, 0x1p-24, 0x1.8p-25, -70000, NAN, -0x1p-14}}};
  const PointwiseOutcome got = run_case(device_, c, 1);
  const std::vector<double> half = {1, 1 + 0x1p-9, INFINITY, 0x1p-24, 0x1p-24, -INFINITY, NAN, -0x1p-14};
  const std::vector<double> brain = {1, 1, 0x1.dcp29, 0x1p-24, 0x1.8p-25, -70144, NAN, -0x1p-14};
  const std::vector<double> byte = {1, 1, 255, 0, 0, 0, 0, 0};
  const std::vector<double> whole = {1, 1, 1e9, 0, 0, -70000, 0, 0};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(got.numbers[2][i], byte[i]) << i;
    EXPECT_EQ(got.numbers[3][i], whole[i]) << i;
    if (i == 6) continue;
    EXPECT_EQ(got.numbers[0][i], half[i]) << i;
    EXPECT_EQ(got.numbers[1][i], brain[i]) << i;
  }
  EXPECT_TRUE(std::isnan(got.numbers[0][6]) && std::isnan(got.numbers[1][6]));
}

TEST_F(Pointwise, LongSumsKeepTheirDigits) {
  constexpr int64_t kCount = 3000000;
  ProgramWriter w;
  const int32_t x = w.input(TN_FULL);
  w.output(w.reduce(TN_OP_REDUCE_SUM, x, TN_SCALAR));
  check_case(device_, {w.finish(), 1, kCount, TN_F32, {random_numbers(kCount, 0, 1, 19)}}, 1e-6);
  check_case(device_, {w.finish(), kCount / 3, 3, TN_F32, {random_numbers(kCount, 0, 1, 19)}}, 1e-6);
}

TEST_F(Pointwise, ManyWorkersShareScratch) {
  const PointwiseCase c = {
      cross_entropy(),
      3000,
      40,
      TN_F32,
      {random_numbers(120000, -8, 8, 9), random_numbers(40, -1, 1, 10), random_labels(3000, 40, 11), {0.5}}};
  EXPECT_TRUE(run_case(device_, c, 100).bytes == run_case(device_, c, 1).bytes);
}

TEST_F(Pointwise, RefusesWhatItDoesNotOffer) {
  ProgramWriter w;
  w.output(w.input(TN_FULL));
  PointwiseCase c = {w.finish(), 2, 2, TN_F32, {{1, 2, 3, 4}}};
  tn_prepared prepared = {};
  c.input_types = {TN_DTYPE(5, 64)};
  EXPECT_EQ(prepare(device_, c, &prepared), TN_UNSUPPORTED);
  EXPECT_NE(device_.message.find("code 5 with 64 bits"), std::string::npos) << device_.message;
  c.input_types = {};
  c.compute = TN_F16;
  EXPECT_EQ(prepare(device_, c, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "compute");
  c.compute = TN_F32;
  c.columns_vary = true;
  EXPECT_EQ(prepare(device_, c, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "columns");
  c.columns_vary = false;
  c.columns = -1;
  EXPECT_EQ(prepare(device_, c, &prepared), TN_INVALID);
  EXPECT_EQ(device_.port, "columns");
  w.output(w.apply(TN_OP_NEG, 0));
  PointwiseCase later = {w.finish(), 2, 2, TN_F32, {{1, 2, 3, 4}}};
  later.program.instructions.back().op = 999;  // an operation of a later version
  EXPECT_EQ(prepare(device_, later, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.message, "the program has an operation that the cpu does not know");
  EXPECT_EQ(prepared.binding, nullptr);
  for (const uint8_t extent : {TN_SCALAR, TN_PER_COLUMN, TN_PER_ROW, TN_FULL})  // read by another operation
    for (const uint16_t reader : {uint16_t{TN_OP_EXP}, uint16_t{TN_OP_REDUCE_SUM}}) {
      if (extent == TN_SCALAR && reader == TN_OP_REDUCE_SUM) continue;
      ProgramWriter read;
      const int32_t unknown = read.apply(TN_OP_NEG, read.input(extent));
      read.output(reader == TN_OP_EXP ? read.apply(reader, unknown) : read.reduce(reader, unknown, TN_SCALAR));
      PointwiseCase of_unknown = {read.finish(), 2, 2, TN_F32, {{1, 2, 3, 4}}};
      of_unknown.program.instructions[1].op = TN_OP_REDUCE_MIN + 1;
      EXPECT_EQ(prepare(device_, of_unknown, &prepared), TN_UNSUPPORTED);
      EXPECT_EQ(device_.message, "the program has an operation that the cpu does not know");
      EXPECT_EQ(prepared.binding, nullptr);
    }
}

TEST_F(Pointwise, RefusesOtherCalls) {
  ProgramWriter w;
  w.output(w.input(TN_FULL));
  const PointwiseCase c = {w.finish(), 2, 2, TN_F32, {{1, 2, 3, 4}}};
  PreparedCall call(device_);
  ASSERT_EQ(prepare(device_, c, &call.prepared), TN_OK);
  Guarded in = write_all(TN_F32, {1, 2, 3, 4}), out = write_all(TN_F32, {9, 9, 9, 9});
  const auto run = [&](const std::vector<Guarded*>& inputs, int64_t rows) {
    return call.run(inputs, {&out}, {TN_REQUEST_WRITE}, {0, rows}, 2);
  };
  EXPECT_EQ(run({}, 2), TN_MISUSE);
  EXPECT_EQ(device_.message, "a pointwise call with another number of operands");
  EXPECT_EQ(run({nullptr}, 2), TN_MISUSE);
  EXPECT_EQ(device_.message, "a pointwise call without one of its inputs");
  for (const int64_t rows : {int64_t{-1}, INT64_MIN}) {
    EXPECT_EQ(run({&in}, rows), TN_MISUSE) << rows;
    EXPECT_EQ(device_.message, "a pointwise call over a negative number of rows or columns");
  }
  EXPECT_EQ(read_all(TN_F32, out), (std::vector<double>{9, 9, 9, 9}));
  EXPECT_EQ(run({&in}, 2), TN_OK);
}

}  // namespace
}  // namespace tenon_tests
