// SPDX-License-Identifier: Apache-2.0
#include "core/topology.h"

#include <gtest/gtest.h>

namespace tenon_tests {

using namespace tenon::core;

namespace {

TEST(ExpressionName, NamesOutputsOtherThanTheFirst) {
  Layer layer;
  layer.name = "mine";
  const auto made = std::make_shared<const Layer>(std::move(layer));
  EXPECT_EQ(output_name({made, 0}), "mine");
  EXPECT_EQ(output_name({made, 2}), "mine:2");
  EXPECT_EQ(output_name({nullptr, 0}), "");  // an absent input
}

}  // namespace
}  // namespace tenon_tests
