/* Tenon SDK for C++17, a draft: the numbers that a layer takes. SPDX-License-Identifier: MIT
 *
 *   struct MyCost : tn::DeclaresNumbers<MyCost> {
 *     static void numbers(tn::NumberDeclarer& d) { d.input(1, tn::Numbers::probabilities()); }
 *     ...
 *   };
 */
#ifndef TENON_DRAFT_NUMBERS_HPP
#define TENON_DRAFT_NUMBERS_HPP

#include <tenon/draft/numbers.h>

#include <cstring>
#include <limits>
#include <tenon/attribute.hpp>

namespace tn {

// tn_numbers.
class Numbers {
 public:
  // All numbers from low to high, either of which may be infinite.
  static Numbers between(double low, double high) { return Numbers(low, high, 0); }
  static Numbers at_least(double low) { return Numbers(low, std::numeric_limits<double>::infinity(), 0); }
  static Numbers probabilities() { return between(0, 1); }
  // low, low + step, ... up to high.
  static Numbers steps(double low, double high, double step) { return Numbers(low, high, step); }
  static Numbers zero_or_one() { return steps(0, 1, 1); }

  Numbers not_zero() const {
    Numbers result = *this;
    result.numbers_.flags |= TN_NUMBERS_NOT_ZERO;
    return result;
  }
  Numbers exempt(double number) const {
    Numbers result = *this;
    result.numbers_.flags |= TN_NUMBERS_EXEMPT;
    result.numbers_.exempt = number;
    return result;
  }
  // Elements where the input with that number is 0 may hold any number.
  Numbers unless_weightless(uint32_t input) const {
    Numbers result = *this;
    result.numbers_.flags |= TN_NUMBERS_WEIGHTED;
    result.numbers_.weight = input;
    return result;
  }
  // The same where that input is `ignored`.
  Numbers unless_ignored(uint32_t input, double ignored) const {
    Numbers result = *this;
    result.numbers_.flags |= TN_NUMBERS_LABELLED;
    result.numbers_.label = input;
    result.numbers_.ignored = ignored;
    return result;
  }
  // The end of the message about another number; lives until the declaration returns.
  Numbers advice(const char* sentence) const {
    Numbers result = *this;
    result.numbers_.advice = sentence;
    return result;
  }
  const tn_numbers& get() const { return numbers_; }

 private:
  Numbers(double low, double high, double step) {
    numbers_.size = sizeof numbers_;
    numbers_.low = low;
    numbers_.high = high;
    numbers_.step = step;
  }
  tn_numbers numbers_ = {};
};

// Inputs are numbered in port order.
class NumberDeclarer {
 public:
  explicit NumberDeclarer(const tn_number_declarer& declarer) : declarer_(declarer) {}

  Attributes attributes() const { return Attributes(declarer_.attributes); }
  bool has_input(uint32_t i) const { return i < declarer_.inputs_count && declarer_.inputs[i] != nullptr; }
  bool is_integer(uint32_t i) const { return has_input(i) && Spec(*declarer_.inputs[i]).is_integer(); }
  void input(uint32_t i, const Numbers& numbers) { check(declarer_.input(declarer_.self, i, &numbers.get())); }
  void output(uint32_t i, const Numbers& numbers) { check(declarer_.output(declarer_.self, i, &numbers.get())); }

 private:
  const tn_number_declarer& declarer_;
};

// The base of a layer type T that has the function numbers. A type with extensions of its own calls `extension` in its
// own function for other ids.
template <typename T>
struct DeclaresNumbers {
  static const void* extension(const char* id) noexcept {
    static constexpr tn_layer_numbers table = {sizeof(tn_layer_numbers), TN_NUMBERS_DRAFT,
                                               [](const tn_number_declarer* declarer) {
                                                 return guarded(declarer->errors, [&] {
                                                   NumberDeclarer wrapped(*declarer);
                                                   T::numbers(wrapped);
                                                 });
                                               }};
    return std::strcmp(id, TN_LAYER_NUMBERS) == 0 ? &table : nullptr;
  }
};

}  // namespace tn
#endif
