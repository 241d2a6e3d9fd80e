// Moves of boxes: concat, slice, pad, transpose. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

using Sizes = std::vector<int64_t>;

struct Box {
  Sizes from;  // shape of the input
  Sizes box, from_start, to_start;
  std::vector<int32_t> axes;
};

struct MoveCase {
  Sizes to;
  std::vector<Box> parts;  // one input each
  bool fill = false;
  tn_dtype dtype = TN_F32;
};

int64_t count_of(const Sizes& shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

// Calls visit(index) for every index of a box.
template <typename Visit>
void each_index(const Sizes& box, const Visit& visit) {
  if (count_of(box) == 0) return;
  Sizes index(box.size(), 0);
  while (true) {
    visit(index);
    size_t axis = box.size();
    while (axis > 0 && ++index[axis - 1] == box[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

size_t place(const Sizes& shape, const Sizes& index) {
  int64_t at = 0;
  for (size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + index[i];
  return static_cast<size_t>(at);
}

class Moves : public testing::Test {
 protected:
  // Returns the dimensions of a shape. If `varies`, the first one is the number of samples.
  static std::vector<tn_dim> dims(const Sizes& shape, bool varies) {
    std::vector<tn_dim> result;
    for (const int64_t size : shape) result.push_back(tn_dim_constant(size));
    if (varies) result[0] = bounded_symbol(TN_SYMBOL_SAMPLES, shape[0]);
    return result;
  }

  tn_status prepare(const MoveCase& c, bool varies, tn_prepared* prepared) {
    const std::vector<tn_dim> to = dims(c.to, varies);
    std::vector<std::vector<tn_dim>> shapes;
    for (const Box& part : c.parts) {
      shapes.push_back(dims(part.from, varies));
      shapes.push_back(dims(part.box, varies));
    }
    std::vector<tn_move_part> parts;
    std::vector<const tn_move_part*> pointers;
    for (size_t i = 0; i < c.parts.size(); ++i)
      parts.push_back({sizeof(tn_move_part), static_cast<uint32_t>(i), shapes[2 * i].data(), shapes[2 * i + 1].data(),
                       c.parts[i].from_start.data(), c.parts[i].to_start.data(), c.parts[i].axes.data()});
    for (const tn_move_part& part : parts) pointers.push_back(&part);
    const tn_move move = {sizeof(tn_move),
                          c.dtype,
                          static_cast<int32_t>(c.to.size()),
                          static_cast<uint32_t>(parts.size()),
                          to.data(),
                          pointers.data(),
                          c.fill ? 1U : 0U,
                          0};
    return device_.table<tn_move_table>(TN_MOVE)->prepare(device_.device(), device_.services(), device_.errors(), &move,
                                                          prepared);
  }

  void check(const MoveCase& c, bool varies = false) {
    std::vector<std::vector<double>> values;
    for (const Box& part : c.parts) {
      values.emplace_back(static_cast<size_t>(count_of(part.from)));
      for (size_t i = 0; i < values.back().size(); ++i)
        values.back()[i] = static_cast<double>((i * 7 + values.size()) % 101);
    }
    for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
      if (request == TN_REQUEST_ADD && c.dtype != TN_F32 && c.dtype != TN_F64) continue;
      const bool add = request == TN_REQUEST_ADD;
      std::vector<double> want(static_cast<size_t>(count_of(c.to)), add || !c.fill ? 5 : 0);
      for (size_t k = 0; k < c.parts.size(); ++k) {
        const Box& part = c.parts[k];
        each_index(part.box, [&](const Sizes& x) {
          Sizes from(x.size()), to(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            const auto axis = static_cast<size_t>(part.axes[i]);
            from[i] = part.from_start[i] + x[i];
            to[axis] = part.to_start[axis] + x[i];
          }
          want[place(c.to, to)] = (add ? 5 : 0) + values[k][place(part.from, from)];
        });
      }
      for (const int32_t workers : device_.workers({1, 3})) {
        PreparedCall call(device_);
        ASSERT_EQ(prepare(c, varies, &call.prepared), TN_OK) << device_.message;
        std::vector<Guarded> inputs;
        std::vector<Guarded*> in;
        for (const std::vector<double>& list : values) inputs.push_back(write_all(c.dtype, list));
        for (Guarded& input : inputs) in.push_back(&input);
        Guarded out = write_all(c.dtype, std::vector<double>(want.size(), 5));
        ASSERT_EQ(call.run(in, {&out}, {request}, {0, c.to.empty() ? 0 : c.to[0]}, workers), TN_OK);
        EXPECT_TRUE(out.intact());
        EXPECT_TRUE(read_all(c.dtype, out) == want) << "request " << int{request} << ", " << workers << " workers";
      }
    }
  }

  DeviceUnderTest device_;
};

TEST_F(Moves, Concat) {
  for (const tn_dtype dtype : {TN_F32, TN_F64, TN_I64, TN_U8}) {
    check({{4, 7}, {{{4, 3}, {4, 3}, {0, 0}, {0, 0}, {0, 1}}, {{4, 4}, {4, 4}, {0, 0}, {0, 3}, {0, 1}}}, false, dtype},
          true);
  }
  check({{0, 7}, {{{0, 3}, {0, 3}, {0, 0}, {0, 0}, {0, 1}}, {{0, 4}, {0, 4}, {0, 0}, {0, 3}, {0, 1}}}}, true);
  check(
      {{300, 513}, {{{300, 512}, {300, 512}, {0, 0}, {0, 0}, {0, 1}}, {{300, 1}, {300, 1}, {0, 0}, {0, 512}, {0, 1}}}},
      true);
}

TEST_F(Moves, SliceAndPad) {
  check({{5, 2, 3}, {{{5, 6, 3}, {5, 2, 3}, {0, 1, 0}, {0, 0, 0}, {0, 1, 2}}}}, true);
  check({{5, 6, 3}, {{{5, 2, 3}, {5, 2, 3}, {0, 0, 0}, {0, 3, 0}, {0, 1, 2}}}, true}, true);
  check({{5, 0}, {{{5, 6}, {5, 0}, {0, 6}, {0, 0}, {0, 1}}}}, true);
  check({{}, {{{}, {}, {}, {}, {}}}});
}

TEST_F(Moves, Transpose) {
  check({{65, 33}, {{{33, 65}, {33, 65}, {0, 0}, {0, 0}, {1, 0}}}});
  check({{700, 900}, {{{900, 700}, {900, 700}, {0, 0}, {0, 0}, {1, 0}}}});
  check({{3, 5, 4, 2}, {{{3, 4, 5, 2}, {3, 4, 5, 2}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 2, 1, 3}}}}, true);
  check({{4, 3, 2}, {{{2, 3, 4}, {2, 3, 4}, {0, 0, 0}, {0, 0, 0}, {2, 1, 0}}}});
}

TEST_F(Moves, TransposesSlicesIntoPlace) {
  check({{7, 9}, {{{6, 5}, {4, 3}, {1, 2}, {2, 3}, {1, 0}}}, true});
  check({{9, 5, 6}, {{{4, 6, 9}, {3, 2, 8}, {1, 3, 1}, {1, 2, 3}, {2, 1, 0}}}, true});
}

TEST_F(Moves, RefusesNegativeSizes) {
  for (const bool fill : {false, true}) {
    PreparedCall call(device_);
    const MoveCase c = {{2, 3}, {{{2, 3}, {2, 3}, {0, 0}, {0, 0}, {0, 1}}}, fill};
    ASSERT_EQ(prepare(c, true, &call.prepared), TN_OK);
    Guarded in(24), out(24);
    const std::vector<uint8_t> before = out.bytes();
    for (const int64_t samples : {int64_t{-1}, int64_t{-1000}, INT64_MIN / 8}) {
      EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_WRITE}, {0, samples}, 2), TN_MISUSE);
      EXPECT_EQ(device_.message, "a move of negative size");
    }
    EXPECT_TRUE(out.bytes() == before && out.intact());
  }
}

TEST_F(Moves, RefusesToAddWhatIsNoFloat) {
  PreparedCall call(device_);
  const MoveCase c = {{2}, {{{2}, {2}, {0}, {0}, {0}}}, false, TN_I64};
  ASSERT_EQ(prepare(c, false, &call.prepared), TN_OK);
  Guarded in(16), out(16);
  EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_ADD}, {0}, 1), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "dtype");
}

}  // namespace
}  // namespace tenon_tests
