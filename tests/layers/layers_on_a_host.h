// A host with Tenon's own plugins, for tests that make layers themselves. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

class LayersOnAHost : public testing::Test {
 protected:
  [[nodiscard]] tenon::Layer data(const std::string& name, std::vector<int64_t> shape, tn_dtype dtype = TN_F32) const {
    tenon::DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = std::move(shape);
    return host_.data(options);
  }
  // Sequences of one level, of rows of `shape`.
  [[nodiscard]] tenon::Layer sequences(const std::string& name, std::vector<int64_t> shape) const {
    tenon::DataOptions options;
    options.name = name, options.shape = std::move(shape);
    options.storage = TN_RAGGED, options.levels = 1;
    return host_.data(options);
  }
  // The message of the error, of this code, with which the host refuses to make a layer.
  [[nodiscard]] std::string mistake(const std::string& type, const tenon::Layers& inputs,
                                    const tenon::Attributes& attributes = {}, tn_status code = TN_INVALID) const {
    try {
      (void)host_.layer(type, inputs, attributes, "bad");
    } catch (const tenon::Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no error";
  }

  tenon::Host host_{tenon::HostOptions{1, {plugin_folder()}, nullptr, {}}};
};

}  // namespace tenon_tests
