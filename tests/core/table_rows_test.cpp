// Which process owns which rows of a table, and the first values of rows that one owns.
// SPDX-License-Identifier: Apache-2.0
#include "core/table_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/initializers/initializers.h"
#include "core/parameter_set.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using testing::HasSubstr;

TEST(TableRows, EachRowHasOneOwnerAndOnePlace) {
  for (const int64_t owners : {1, 2, 3, 4, 7, 100, 255, 256})
    for (const int64_t height : {0, 1, 255, 256, 257, 1000}) {
      std::vector<int64_t> next(static_cast<size_t>(owners), 0);  // place, by owner
      for (int64_t row = 0; row < height; ++row) {
        const int64_t owner = owner_of(owners, row);
        const TableBlocks blocks = blocks_of(owners, owner);
        ASSERT_TRUE(blocks.contains(row)) << owners << " owners, row " << row;
        ASSERT_EQ(blocks.place(row), next[static_cast<size_t>(owner)]++) << "in ascending order";
        ASSERT_EQ(blocks.row(blocks.place(row)), row);
      }
      for (int64_t owner = 0; owner < owners; ++owner)
        ASSERT_EQ(blocks_of(owners, owner).rows(height), next[static_cast<size_t>(owner)]);
    }
}

ParameterDeclaration declaration(const tn_initializer& initializer) {
  ParameterDeclaration declared;
  declared.name = "t.weight", declared.shape = {700, 3}, declared.initializer = initializer, declared.owner = "t";
  return declared;
}

std::shared_ptr<ParameterSet> created(const ParameterDeclaration& declared, const TablePlacement& tables = {}) {
  return ParameterSet::create({declared}, 5, std::make_shared<CountingAllocator>(), tables);
}

TEST(TableRows, FirstValuesDoNotDependOnTheOwners) {
  for (const tn_initializer& initializer : {tn_initializer{TN_INIT_CONSTANT, 0, 0.5, 0},
                                            {TN_INIT_UNIFORM, 0, -2, 3},
                                            {TN_INIT_NORMAL, 0, 0.5, 2},
                                            {kInitTruncatedNormal, 0, 1, 0.5},
                                            {kInitTruncatedNormal, 0, 1, 2}}) {
    const ParameterDeclaration declared = declaration(initializer);
    const auto whole = created(declared);
    const float* const expected = whole->values("t.weight");
    for (const int64_t owners : {1, 2, 3, 7})
      for (int64_t owner = 0; owner < owners; ++owner) {
        const TableBlocks blocks = blocks_of(owners, owner);
        const auto set = created(declared, {{"t.weight"}, blocks});
        const ParameterEntry& rows = set->owned()->find("t.weight");
        ASSERT_EQ(rows.shape, (std::vector<int64_t>{blocks.rows(700), 3}));
        const float* const values = set->owned()->values(rows);
        for (int64_t place = 0; place < rows.shape[0]; ++place)
          for (int64_t i = 0; i < 3; ++i)
            ASSERT_EQ(values[place * 3 + i], expected[blocks.row(place) * 3 + i]) << initializer.kind;
      }
  }
}

TEST(TableRows, SetValuesGoToTheirOwners) {
  const auto set = created(declaration({}), {{"t.weight"}, blocks_of(3, 1)});
  std::vector<float> all(2100);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  set->set("t.weight", {TN_F32, {700, 3}, all.data()});
  const float* const values = set->owned()->values("t.weight");
  for (int64_t place = 0; place < blocks_of(3, 1).rows(700); ++place)
    EXPECT_EQ(values[place * 3], static_cast<float>(blocks_of(3, 1).row(place) * 3));
}

// Returns the message with which a set is refused.
std::string refusal(const ParameterDeclaration& declared, const std::vector<std::string>& tables) {
  std::string messages;
  for (const TablePlacement& placement : {TablePlacement{tables, {}}, TablePlacement{tables, blocks_of(2, 0)}}) {
    try {
      created(declared, placement);
      return "nothing was refused";
    } catch (const Error& error) {
      if (!messages.empty()) {
        EXPECT_EQ(error.message(), messages) << "for any number of owners";
      }
      messages = error.message();
    }
  }
  return messages;
}

TEST(TableRows, WhatIsNoTableIsRefusedByName) {
  const ParameterDeclaration table = declaration({});
  EXPECT_THAT(refusal(table, {"t.wait"}), HasSubstr("table \"t.wait\": the model has no parameter of that name"));
  EXPECT_THAT(refusal(table, {"t.weight", "t.weight"}), HasSubstr("duplicate table \"t.weight\""));
  ParameterDeclaration other = table;
  other.buffer = true;
  EXPECT_THAT(refusal(other, {"t.weight"}), HasSubstr("table \"t.weight\" of layer \"t\" is a buffer"));
  other = table;
  other.shape = {};
  EXPECT_THAT(refusal(other, {"t.weight"}), HasSubstr("expected a parameter with rows"));
  EXPECT_THAT(refusal(declaration({kInitOrthogonal, 0, 1, 0}), {"t.weight"}),
              HasSubstr("table \"t.weight\": layer \"t\" gives it orthogonal first values"));
}

}  // namespace

}  // namespace tenon_tests
