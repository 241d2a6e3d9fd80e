// SPDX-License-Identifier: Apache-2.0
#include "core/parameter_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "core/philox.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

ParameterDeclaration declare(const std::string& name, std::vector<int64_t> shape, tn_initializer initializer = {},
                             bool buffer = false, const std::string& owner = "layer") {
  ParameterDeclaration declaration;
  declaration.name = name;
  declaration.shape = std::move(shape);
  declaration.initializer = initializer;
  declaration.buffer = buffer;
  declaration.owner = owner;
  return declaration;
}

constexpr tn_initializer kUniform = {TN_INIT_UNIFORM, 0, -2, 3};
constexpr tn_initializer kNormal = {TN_INIT_NORMAL, 0, 0.5, 2};

std::shared_ptr<ParameterSet> make(const std::vector<ParameterDeclaration>& declarations, uint64_t seed = 1) {
  return ParameterSet::create(declarations, seed, std::make_shared<CountingAllocator>());
}

std::vector<float> values(const ParameterSet& set, const std::string& name) {
  const ParameterEntry& entry = set.find(name);
  return {set.values(entry), set.values(entry) + entry.count};
}

TEST(ParameterSet, LaysEntriesOutInAlignedSlabs) {
  const auto set =
      make({declare("b", {17}, {TN_INIT_CONSTANT, 0, 5, 0}), declare("mean", {3}, {}, true),
            declare("a", {}, {TN_INIT_CONSTANT, 0, 7, 0}), declare("empty", {0, 4}), declare("c", {2, 8}, kUniform)});
  ASSERT_EQ(set->slabs().size(), 2u);
  EXPECT_FALSE(set->slabs()[0].buffer);
  EXPECT_TRUE(set->slabs()[1].buffer);
  EXPECT_EQ(set->slabs()[0].padded_elements, 32u + 16u + 16u);
  EXPECT_EQ(set->slabs()[1].padded_elements, 16u);
  std::vector<std::string> order;
  for (const ParameterEntry& entry : set->entries()) {
    order.push_back(entry.name);
    EXPECT_EQ(entry.slab, entry.buffer ? 1u : 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(set->values(entry)) % 64, 0u);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"b", "mean", "a", "empty", "c"}));
  EXPECT_EQ(set->find("a").offset, 32u);
  EXPECT_EQ(set->find("c").offset, 48u);
  EXPECT_THAT(values(*set, "b"), Each(5.0f));
  EXPECT_EQ(values(*set, "a"), std::vector<float>{7});
  const float* slab = set->slabs()[0].data;
  EXPECT_THAT(std::vector<float>(slab + 17, slab + 32), Each(0.0f));
}

TEST(ParameterSet, CountsItsUpdates) {
  const auto set = make({declare("a", {2})});
  EXPECT_EQ(set->updates(), 0u);
  set->count_update();
  set->count_update();
  EXPECT_EQ(set->updates(), 2u);
  set->set_updates(uint64_t{1} << 40);
  set->count_update();
  EXPECT_EQ(set->updates(), (uint64_t{1} << 40) + 1);
}

TEST(ParameterSet, SharesByName) {
  const auto set = make({declare("w", {2, 2}, {TN_INIT_CONSTANT, 0, 1, 0}), declare("v", {1}),
                         declare("w", {2, 2}, {TN_INIT_CONSTANT, 0, 9, 0})});
  EXPECT_EQ(set->entries().size(), 2u);
  EXPECT_THAT(values(*set, "w"), Each(1.0f));
}

TEST(ParameterSet, RefusesToShareWhatDiffers) {
  const auto conflict = [](ParameterDeclaration second) {
    return error_of([&] { make({declare("D.weight", {784, 128}, {}, false, "first"), std::move(second)}); });
  };
  const Error shape = conflict(declare("D.weight", {784, 10}, {}, false, "second"));
  EXPECT_EQ(shape.code(), TN_INVALID);
  EXPECT_THAT(shape.message(), AllOf(HasSubstr("\"D.weight\""), HasSubstr("\"first\""), HasSubstr("[784, 128]"),
                                     HasSubstr("\"second\""), HasSubstr("[784, 10]")));
  const Error kind = conflict(declare("D.weight", {784, 128}, {}, true, "second"));
  EXPECT_EQ(kind.code(), TN_INVALID);
  EXPECT_THAT(kind.message(), AllOf(HasSubstr("a parameter"), HasSubstr("a buffer")));
}

TEST(ParameterSet, SharersOfABufferMergeItAlike) {
  ParameterDeclaration mean = declare("D.mean", {2}, {}, true, "first"),
                       most = declare("D.mean", {2}, {}, true, "second");
  EXPECT_EQ(make({mean})->find("D.mean").merge, TN_MERGE_MEAN);
  most.merge = TN_MERGE_MAX;
  EXPECT_EQ(make({most, most})->find("D.mean").merge, TN_MERGE_MAX);
  const Error differing = error_of([&] { make({mean, most}); });
  EXPECT_EQ(differing.code(), TN_INVALID);
  EXPECT_EQ(differing.message(),
            "\"D.mean\" cannot be shared: layer \"first\" declares a buffer float32 [2] merged by mean, layer "
            "\"second\" declares a buffer float32 [2] merged by max");
  most.merge = TN_MERGE_FIRST + 1;
  EXPECT_THAT(error_of([&] { make({most}); }).message(), HasSubstr("has an unknown merge 4"));
}

ParameterDeclaration stating(const std::string& owner, std::optional<double> rate, std::optional<double> decay) {
  ParameterDeclaration declaration = declare("D.weight", {2}, {}, false, owner);
  declaration.multipliers = {rate, decay};
  return declaration;
}

TEST(ParameterSet, SharersStateMultipliersOnce) {
  const ParameterDeclaration none = stating("none", {}, {});
  const ParameterDeclaration rate = stating("rate", 0.5, {}), decay = stating("decay", {}, 0.25);
  for (const auto& declarations : {std::vector{none, rate, decay}, {decay, rate, none}, {rate, none, decay, rate}}) {
    const auto set = make(declarations);
    EXPECT_EQ(set->find("D.weight").multipliers.rate(), 0.5);
    EXPECT_EQ(set->find("D.weight").multipliers.decay(), 0.25);
  }
  EXPECT_EQ(make({none})->find("D.weight").multipliers, (Multipliers{1, 1}));
}

TEST(ParameterSet, RefusesMultipliersThatDiffer) {
  const auto conflict = [](const std::vector<ParameterDeclaration>& declarations) {
    const Error error = error_of([&] { make(declarations); });
    EXPECT_EQ(error.code(), TN_INVALID);
    return std::string(error.message());
  };
  EXPECT_EQ(conflict({stating("none", {}, {}), stating("a", 0.5, 1), stating("b", 0.25, 1)}),
            "parameter \"D.weight\" cannot be shared: layer \"a\" sets its rate multiplier to 0.5, layer "
            "\"b\" to 0.25");
  EXPECT_EQ(
      conflict({stating("a", {}, 0), stating("none", {}, {}), stating("b", 0.5, 1)}),
      "parameter \"D.weight\" cannot be shared: layer \"a\" sets its decay multiplier to 0.0, layer \"b\" to 1.0");
}

TEST(ParameterSet, KeepsItsMultipliersWhereItGrows) {
  const auto set = make({stating("a", {}, 0.5)});
  const auto refusal = [&](const ParameterDeclaration& declaration) {
    return std::string(error_of([&] { set->add({declare("new", {1}), declaration}, 1); }).message());
  };
  EXPECT_EQ(refusal(stating("b", 2, {})),
            "parameter \"D.weight\" cannot be shared: layer \"a\" leaves its rate multiplier at 1, layer "
            "\"b\" sets it to 2.0");
  EXPECT_THAT(refusal(stating("b", {}, 2)), HasSubstr("layer \"a\" sets its decay multiplier to 0.5"));
  EXPECT_FALSE(set->contains("new"));
  set->add({stating("b", 1, 0.5), stating("c", {}, {})}, 1);
  EXPECT_EQ(set->find("D.weight").multipliers, (Multipliers{1, 0.5}));
}

TEST(ParameterSet, ValuesDependOnSeedAndNameAlone) {
  const auto one = make({declare("a", {33}, kNormal), declare("b", {33}, kNormal)});
  const auto two = make({declare("b", {33}, kNormal), declare("c", {5}, kUniform), declare("a", {33}, kNormal)});
  const auto other = make({declare("a", {33}, kNormal)}, 2);
  EXPECT_EQ(values(*one, "a"), values(*two, "a"));
  EXPECT_EQ(values(*one, "b"), values(*two, "b"));
  EXPECT_NE(values(*one, "a"), values(*one, "b"));
  EXPECT_NE(values(*one, "a"), values(*other, "a"));
}

// The rule for initial values, which must not change between versions.
TEST(ParameterSet, DrawsFromTheStreamOfTheName) {
  const auto set = make({declare("foobar", {3}, kUniform)}, 42);
  const Philox philox(42, 0x85944171f73967e8u);  // FNV-1a of "foobar", from its authors' test vectors
  const Philox::Block first = philox.block(0);
  const Philox::Block second = philox.block(1);
  const auto scaled = [](double u) { return static_cast<float>(-2 + 5 * u); };
  EXPECT_EQ(values(*set, "foobar"),
            (std::vector<float>{scaled(unit_interval(first[0], first[1])), scaled(unit_interval(first[2], first[3])),
                                scaled(unit_interval(second[0], second[1]))}));
}

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0, neighbours = 0;  // neighbours: correlation of pairs
};
Moments moments(const std::vector<float>& x) {
  Moments m;
  const auto n = static_cast<double>(x.size());
  for (const float v : x) m.mean += v / n;
  for (const float v : x) m.variance += std::pow(v - m.mean, 2) / n;
  for (const float v : x) m.kurtosis += std::pow(v - m.mean, 4) / n / (m.variance * m.variance);
  for (size_t i = 0; i + 1 < x.size(); i += 2)
    m.neighbours += (x[i] - m.mean) * (x[i + 1] - m.mean) / m.variance / n * 2;
  return m;
}

// Tolerances: five standard errors for 200,000 draws.
TEST(ParameterSet, UniformIsUniform) {
  const std::vector<float> x = values(*make({declare("w", {200, 1000}, kUniform)}), "w");
  const Moments m = moments(x);
  EXPECT_NEAR(m.mean, 0.5, 0.017);
  EXPECT_NEAR(m.variance, 25.0 / 12, 0.022);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.02);
  EXPECT_NEAR(m.neighbours, 0, 0.016);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -2.0f);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 3.0f);
}

TEST(ParameterSet, NormalIsNormal) {
  const std::vector<float> x = values(*make({declare("w", {200, 1000}, kNormal)}), "w");
  const Moments m = moments(x);
  EXPECT_NEAR(m.mean, 0.5, 0.023);
  EXPECT_NEAR(m.variance, 4, 0.064);
  EXPECT_NEAR(m.kurtosis, 3, 0.055);
  EXPECT_NEAR(m.neighbours, 0, 0.016);
  const auto inside = std::count_if(x.begin(), x.end(), [](float v) { return std::abs(v - 0.5f) < 2; });
  EXPECT_NEAR(static_cast<double>(inside) / static_cast<double>(x.size()), std::erf(1 / std::numbers::sqrt2), 0.0053);
}

TEST(ParameterSet, UniformNeverReachesItsEnd) {
  const float end = std::nextafter(1.0f, 2.0f);
  EXPECT_THAT(values(*make({declare("w", {1000}, {TN_INIT_UNIFORM, 0, 1, end})}), "w"), Each(1.0f));
  EXPECT_THAT(values(*make({declare("w", {10}, {TN_INIT_UNIFORM, 0, 1, 1})}), "w"), Each(1.0f));
}

TEST(ParameterSet, RefusesBadDeclarations) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  ParameterDeclaration integer = declare("w", {2});
  integer.dtype = TN_I32;
  const struct {
    ParameterDeclaration declaration;
    tn_status code;
    const char* says;
  } cases[] = {
      {declare("", {2}), TN_INVALID, "empty name"},
      {declare("\xff", {2}), TN_INVALID, "UTF-8"},
      {declare("__metadata__", {2}), TN_INVALID, "__metadata__"},
      {declare("w", {2, -1}), TN_INVALID, "[2, -1]"},
      {declare("w", {1, 1, 1, 1, 1, 1, 1, 1, 1}), TN_INVALID, "9 dimensions"},
      {declare("w", {int64_t{1} << 32, int64_t{1} << 32}), TN_INVALID, "too large"},
      {declare("w", {std::numeric_limits<int64_t>::max()}), TN_INVALID, "too large"},
      {declare("w", {int64_t{1} << 40}), TN_OUT_OF_MEMORY, "no memory"},
      {integer, TN_UNSUPPORTED, "int32"},
      {declare("w", {2}, {7, 0, 0, 0}), TN_INVALID, "kind 7"},
      {declare("w", {2}, {TN_INIT_CONSTANT, 0, kNaN, 0}), TN_INVALID, "float32"},
      {declare("w", {2}, {TN_INIT_CONSTANT, 0, 1e39, 0}), TN_INVALID, "float32"},
      {declare("w", {2}, {TN_INIT_UNIFORM, 0, 2, 1}), TN_INVALID, "above"},
      {declare("w", {2}, {TN_INIT_NORMAL, 0, 0, -1}), TN_INVALID, "negative"},
      {declare("w", {2}, {TN_INIT_NORMAL, 0, 0, 1e38}), TN_INVALID, "float32"},
  };
  for (const auto& bad : cases) {
    const auto allocator = std::make_shared<CountingAllocator>();
    const Error error = error_of([&] {
      (void)ParameterSet::create({declare("good", {4}), bad.declaration}, 1, allocator);
    });
    EXPECT_EQ(error.code(), bad.code) << bad.says;
    EXPECT_THAT(error.message(), HasSubstr(bad.says));
    EXPECT_EQ(allocator->held, 0u) << bad.says;
  }
}

TEST(ParameterSet, MissesWithASuggestion) {
  const auto set = make({declare("hidden.weight", {2})});
  const Error error = error_of([&] { (void)set->find("hidden.wieght"); });
  EXPECT_EQ(error.code(), TN_NOT_FOUND);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("hidden.wieght"), HasSubstr("\"hidden.weight\"")));
}

TEST(ParameterSet, SetChecksWhatItIsGiven) {
  const auto set = make({declare("w", {2, 2})});
  const float given[] = {1, 2, 3, 4};
  const Error shape = error_of([&] { set->set("w", {TN_F32, {4}, given}); });
  EXPECT_EQ(shape.code(), TN_INVALID);
  EXPECT_THAT(shape.message(), AllOf(HasSubstr("\"w\""), HasSubstr("[2, 2]"), HasSubstr("[4]")));
  EXPECT_EQ(error_of([&] { set->set("w", {TN_F64, {2, 2}, given}); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { set->set("v", {TN_F32, {2, 2}, given}); }).code(), TN_NOT_FOUND);
  EXPECT_EQ(error_of([&] { set->set("w", {TN_F32, {2, 2}, nullptr}); }).code(), TN_MISUSE);
  EXPECT_THAT(values(*set, "w"), Each(0.0f));
  set->set("w", {TN_F32, {2, 2}, given});
  EXPECT_EQ(values(*set, "w"), (std::vector<float>{1, 2, 3, 4}));
}

TEST(ParameterSet, GrowsWithoutMoving) {
  const auto set = make({declare("a", {20}, kNormal)}, 1);
  const float* const data = set->values("a");
  const std::vector<float> old = values(*set, "a");
  set->add({declare("b", {20}, kNormal), declare("a", {20}, kUniform), declare("m", {3}, {}, true)}, 1);
  EXPECT_EQ(set->values("a"), data);
  EXPECT_EQ(values(*set, "a"), old);
  EXPECT_EQ(set->slabs().size(), 3u);
  EXPECT_EQ(set->find("b").slab, 1u);
  EXPECT_EQ(set->find("m").slab, 2u);
  EXPECT_EQ(values(*set, "b"), values(*make({declare("b", {20}, kNormal)}, 1), "b"));
  set->add({declare("b", {20})}, 1);  // "b" exists already
  EXPECT_EQ(set->slabs().size(), 3u);
}

TEST(ParameterSet, GrowsWhollyOrNotAtAll) {
  const auto allocator = std::make_shared<CountingAllocator>();
  const auto set = ParameterSet::create({declare("a", {20}, kNormal)}, 1, allocator);
  const std::vector<float> old = values(*set, "a");
  const uint64_t held = allocator->held;
  const std::vector<ParameterDeclaration> more = {declare("b", {20}), declare("m", {3}, {}, true)};
  for (int k = 0; k < 2; ++k) {
    allocator->fail_at = allocator->calls + k;
    EXPECT_EQ(error_of([&] { set->add(more, 1); }).code(), TN_OUT_OF_MEMORY);
    EXPECT_EQ(allocator->held, held);
  }
  EXPECT_EQ(error_of([&] { set->add({declare("b", {20}), declare("a", {21})}, 1); }).code(), TN_INVALID);
  EXPECT_EQ(set->entries().size(), 1u);
  EXPECT_EQ(set->slabs().size(), 1u);
  EXPECT_FALSE(set->contains("b"));
  EXPECT_EQ(values(*set, "a"), old);
  set->add(more, 1);
  EXPECT_EQ(set->entries().size(), 3u);
}

// A declared set does not allocate memory, whatever its size, and has the layout of a set with values.
TEST(ParameterSet, DeclaredHasEntriesWithoutMemory) {
  const auto allocator = std::make_shared<CountingAllocator>();
  const std::vector<ParameterDeclaration> declarations = {declare("w", {1 << 20, 1 << 20}, kNormal), declare("b", {17}),
                                                          declare("m", {3}, {}, true), declare("empty", {0, 4})};
  const auto set = ParameterSet::declare(declarations, allocator);
  EXPECT_EQ(allocator->calls, 0);
  EXPECT_FALSE(set->has_values());
  ASSERT_EQ(set->entries().size(), 4u);
  EXPECT_EQ(set->find("w").count, uint64_t{1} << 40);
  EXPECT_EQ(set->find("b").offset, uint64_t{1} << 40);
  ASSERT_EQ(set->slabs().size(), 2u);
  EXPECT_EQ(set->slabs()[0].padded_elements, (uint64_t{1} << 40) + 32);
  EXPECT_EQ(set->slabs()[0].data, nullptr);
  EXPECT_TRUE(set->slabs()[1].buffer);
  const float value[17] = {};
  const auto refused = [&](const auto& action) {
    const Error error = error_of(action);
    EXPECT_EQ(error.code(), TN_MISUSE) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("only declared"));
  };
  refused([&] { (void)set->values("b"); });
  refused([&] { set->set("b", {TN_F32, {17}, value}); });
  refused([&] { set->add({declare("more", {2})}, 1); });
  EXPECT_EQ(allocator->calls, 0);
  EXPECT_EQ(error_of([&] { (void)set->allocate(); }).code(), TN_OUT_OF_MEMORY);
  EXPECT_FALSE(set->has_values());
  EXPECT_EQ(allocator->held, 0u);
  EXPECT_EQ(error_of([&] { (void)ParameterSet::declare({declare("w", {-1})}, allocator); }).code(), TN_INVALID);
}

TEST(ParameterSet, DeclaredGetsItsMemoryLater) {
  const auto allocator = std::make_shared<CountingAllocator>();  // returns memory that is not zero
  const auto set = ParameterSet::declare({declare("w", {17}, kNormal), declare("m", {3}, {}, true)}, allocator);
  allocator->fail_at = 1;  // the second slab
  EXPECT_EQ(error_of([&] { (void)set->allocate(); }).code(), TN_OUT_OF_MEMORY);
  EXPECT_FALSE(set->has_values());
  EXPECT_EQ(allocator->held, 0u);
  allocator->fail_at = -1;
  ParameterSet::Values fresh = set->allocate();
  std::fill_n(fresh.data(set->find("w")), 17, 3.0F);
  std::fill_n(fresh.data(set->find("m")), 3, 4.0F);
  EXPECT_FALSE(set->has_values());
  set->replace(std::move(fresh));
  EXPECT_TRUE(set->has_values());
  EXPECT_THAT(values(*set, "w"), Each(3.0F));
  EXPECT_THAT(values(*set, "m"), Each(4.0F));
  const auto like = make({declare("w", {17}, kNormal), declare("m", {3}, {}, true)});
  EXPECT_EQ(allocator->held, (32u + 16u) * sizeof(float));
  for (const ParameterEntry& entry : set->entries()) {
    EXPECT_EQ(entry.offset, like->find(entry.name).offset);
    EXPECT_EQ(entry.slab, like->find(entry.name).slab);
    for (uint64_t i = entry.count; i % 16 != 0; ++i) EXPECT_EQ(set->values(entry)[i], 0) << "padding " << i;
  }
  const float* const place = set->values("w");  // machines are bound to it
  fresh = set->allocate();
  std::fill_n(fresh.data(set->find("w")), 17, 5.0F);
  std::fill_n(fresh.data(set->find("m")), 3, 6.0F);
  EXPECT_THAT(values(*set, "w"), Each(3.0F));
  set->replace(std::move(fresh));
  EXPECT_EQ(set->values("w"), place);
  EXPECT_THAT(values(*set, "w"), Each(5.0F));
  EXPECT_THAT(values(*set, "m"), Each(6.0F));
  set->add({declare("more", {2}, {TN_INIT_CONSTANT, 0, 5, 0})}, 1);
  EXPECT_THAT(values(*set, "more"), Each(5.0f));
}

TEST(ParameterSet, CreateLeavesNothingBehindWithoutMemory) {
  for (int k = 0; k < 2; ++k) {
    const auto allocator = std::make_shared<CountingAllocator>();
    allocator->fail_at = k;
    const Error error = error_of([&] {
      (void)ParameterSet::create({declare("a", {20}), declare("m", {3}, {}, true)}, 1, allocator);
    });
    EXPECT_EQ(error.code(), TN_OUT_OF_MEMORY);
    EXPECT_EQ(allocator->held, 0u);
  }
}

}  // namespace
}  // namespace tenon_tests
