// Functions of C++ as callbacks of C: what they take, and their exceptions. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace {

// Calls the sink for 1, 2 and 3, until it returns that it wants no more.
tn_status give_numbers(int32_t (*sink)(void* user, int64_t number), void* user, tn_error* /*error*/) {
  for (int64_t number = 1; number <= 3; ++number)
    if (sink(user, number) != 0) break;
  return TN_OK;
}

// Calls the sink for 1, 2 and 3, then fails.
tn_status give_numbers_and_fail(void (*sink)(void* user, int64_t number), void* user, tn_error* error) {
  for (int64_t number = 1; number <= 3; ++number) sink(user, number);
  tenon::detail::ExceptionStore store;
  try {
    throw std::runtime_error("the call fails");
  } catch (...) {
    return store.keep(error);
  }
}

TEST(Callbacks, EndWhereTheFunctionReturnsFalse) {
  std::vector<int64_t> numbers;
  const auto take = [&](int64_t number) {
    numbers.push_back(number);
    return number < 2;
  };
  tenon::detail::collect<int32_t, int64_t>(
      take, [](auto sink, void* user, tn_error* error) { return give_numbers(sink, user, error); });
  EXPECT_EQ(numbers, (std::vector<int64_t>{1, 2}));
}

TEST(Callbacks, EndWithAnException) {
  int calls = 0;
  const auto take = [&](int64_t number) -> bool {
    ++calls;
    throw number;
  };
  EXPECT_THROW((tenon::detail::collect<int32_t, int64_t>(
                   take, [](auto sink, void* user, tn_error* error) { return give_numbers(sink, user, error); })),
               int64_t);
  EXPECT_EQ(calls, 1);
}

TEST(Callbacks, PassOnTheFirstExceptionWhateverTheCallReturns) {
  int calls = 0;
  const auto take = [&](int64_t number) {
    ++calls;
    throw std::out_of_range(std::to_string(number));
  };
  const auto call = [](auto sink, void* user, tn_error* error) { return give_numbers_and_fail(sink, user, error); };
  try {
    tenon::detail::collect<void, int64_t>(take, call);
    ADD_FAILURE() << "expected an exception";
  } catch (const std::out_of_range& first) {
    EXPECT_STREQ(first.what(), "1");
  }
  EXPECT_EQ(calls, 1);
}

TEST(Callbacks, LeaveTheErrorOfTheCall) {
  int64_t sum = 0;
  const auto call = [](auto sink, void* user, tn_error* error) { return give_numbers_and_fail(sink, user, error); };
  EXPECT_THROW((tenon::detail::collect<void, int64_t>([&](int64_t number) { sum += number; }, call)), tenon::Error);
  EXPECT_EQ(sum, 6);
}

}  // namespace
