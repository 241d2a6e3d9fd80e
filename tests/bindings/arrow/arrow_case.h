// The harness of the tests of tables of Arrow: a host, data layers, and a count of what is released.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <tenon/tenon_arrow.hpp>

#include "tests/bindings/arrow/tables.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

template <typename Number>
std::vector<Number> numbers_of(const Array& array, int64_t count = -1) {
  const auto* const from = static_cast<const Number*>(array.data);
  return {from, from + (count < 0 ? array.count() : count)};
}
inline std::vector<int64_t> offsets_of(const Array& array, size_t level = 0) {
  const int64_t lists = level == 0 ? array.samples : array.offsets[0][array.samples];
  return {array.offsets[level], array.offsets[level] + lists + 1};
}

template <typename Work>
Error error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return {TN_OK, "nothing was refused"};
}

class Arrow : public testing::Test {
 protected:
  ~Arrow() override { EXPECT_EQ(count_.alive, 0); }

  [[nodiscard]] arrow::Feeds feeds(const Layers& outputs, const Node& table, const Parameters* names = nullptr) {
    ArrowSchema schema = schema_of(table, &count_);
    ArrowArray batch = array_of(table, &count_);
    const std::unique_ptr<ArrowSchema, void (*)(ArrowSchema*)> after(&schema,
                                                                     [](ArrowSchema* each) { each->release(each); });
    try {
      arrow::Feeds result(outputs, names, schema, batch);
      EXPECT_EQ(batch.release, nullptr);
      return result;
    } catch (...) {
      EXPECT_NE(batch.release, nullptr) << "a call that failed took the batch";
      if (batch.release != nullptr) batch.release(&batch);
      throw;
    }
  }
  // A layer that reads the data layers.
  [[nodiscard]] Layer data(const std::string& name, tn_dtype dtype, std::vector<int64_t> shape = {},
                           int32_t storage = TN_DENSE, uint32_t levels = 1, int64_t limit = -1) const {
    DataOptions options;
    options.name = name;
    options.dtype = dtype;
    options.shape = std::move(shape);
    options.storage = storage;
    options.levels = levels;
    options.index_limit = limit;
    return host_.data(options);
  }
  [[nodiscard]] Reader reader(const std::vector<Node>& chunks, const arrow::ReaderOptions& options) {
    ArrowArrayStream stream = stream_of(chunks, &count_);
    try {
      return arrow::reader(host_, stream, options);
    } catch (...) {
      EXPECT_NE(stream.release, nullptr);
      if (stream.release != nullptr) stream.release(&stream);
      throw;
    }
  }
  // The numbers of the first slot, pass by pass, and "|" after each pass.
  [[nodiscard]] static std::string passes_of(const Reader& reader, int passes) {
    std::string result;
    while (passes > 0) {
      const std::vector<Array> values = reader.next();
      if (values.empty()) {
        result += "|";
        --passes;
        continue;
      }
      for (const float number : numbers_of<float>(values[0])) result += std::to_string(static_cast<int>(number)) + " ";
    }
    return result;
  }

  const Host host_{HostOptions{1, {plugin_folder()}, nullptr, {}}};
  Count count_;
};

inline Node floats(const std::vector<float>& values) { return numbers("f", values); }

}  // namespace tenon_tests
