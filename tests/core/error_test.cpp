// The fields of errors: code, component and subject, also after contexts are added.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <gtest/gtest.h>

#include "core/attribute.h"
#include "core/shape.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

TEST(Error, FieldsAreFilledByFail) {
  const Error plain = error_of([] { fail(TN_INVALID, "size is ", 3); });
  EXPECT_EQ(plain.message(), "size is 3");
  EXPECT_EQ(plain.component(), "");
  EXPECT_EQ(plain.subject(), "");
  const Error about = error_of([] { fail(TN_INVALID, SubjectName{"size"}, "size is ", 3); });
  EXPECT_EQ(about.message(), "size is 3");
  EXPECT_EQ(about.subject(), "size");
  const Error by = error_of([] { fail(TN_IO, ComponentName{"reader \"r\""}, "no network"); });
  EXPECT_EQ(by.message(), "reader \"r\": no network");
  EXPECT_EQ(by.component(), "reader \"r\"");
  EXPECT_EQ(by.subject(), "");
  const Error both = error_of([] { fail(TN_IO, ComponentName{"c"}, SubjectName{"s"}, "s is ", 1); });
  EXPECT_EQ(both.code(), TN_IO);
  EXPECT_EQ(both.message(), "c: s is 1");
  EXPECT_EQ(both.component(), "c");
  EXPECT_EQ(both.subject(), "s");
}

TEST(Error, ContextKeepsTheFields) {
  const Error error = Error(TN_INVALID, "wrong", "inner", "size").with_context("in a job");
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_EQ(error.message(), "in a job: wrong");
  EXPECT_EQ(error.component(), "inner");
  EXPECT_EQ(error.subject(), "size");
  const Error outer = error.with_component("outer");
  EXPECT_EQ(outer.message(), "outer: in a job: wrong");
  EXPECT_EQ(outer.component(), "outer");
  EXPECT_EQ(outer.subject(), "size");
}

TEST(Error, AttributesAreSubjects) {
  Attribute size;
  size.name = "size";
  size.kind = TN_ATTR_INT;
  size.required = true;
  EXPECT_EQ(error_of([&] { (void)resolve({size}, {{"sise", int64_t{1}}}); }).subject(), "sise");
  EXPECT_EQ(error_of([&] { (void)resolve({size}, {}); }).subject(), "size");
  EXPECT_EQ(error_of([&] { (void)resolve({size}, {{"size", 1.5}}); }).subject(), "size");
}

TEST(Error, FilesAreSubjects) {
  EXPECT_EQ(error_of([] { (void)system_files()->open("/nowhere/at/all"); }).subject(), "/nowhere/at/all");
}

TEST(SymbolNames, NameDimensions) {
  struct Named : SymbolNames {
    [[nodiscard]] std::string name_of(int32_t symbol) const override {
      return symbol == TN_SYMBOL_FIRST_RAGGED ? "rows of \"words\"" : SymbolNames::name_of(symbol);
    }
  } const named;
  const Shape shape = {tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED), tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED + 10),
                       tn_dim_symbol(TN_SYMBOL_SAMPLES), tn_dim_constant(3)};
  EXPECT_EQ(to_string(shape, named), "[rows of \"words\", rows26, samples, 3]");
  EXPECT_EQ(to_string(shape), "[rows16, rows26, samples, 3]");
  EXPECT_EQ(to_string(Spec{TN_F32, shape, TN_DENSE, 0, {}}, named), "float32 " + to_string(shape, named));
}

}  // namespace
}  // namespace tenon_tests
