// Memory between guards, and elements of any type in it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

namespace tenon_tests {

// Bytes between two guards; intact() returns whether the guards are unchanged. data() is `shift` bytes after an address
// that is a multiple of 64.
class Guarded {
 public:
  explicit Guarded(size_t bytes, uint8_t value = 0xcd, size_t shift = 0)
      : bytes_(bytes), before_(kGuard + shift), lines_((bytes + shift + 2 * kGuard + 63) / 64) {
    std::memset(whole(), kMark, whole_size());
    std::fill_n(data(), bytes, value);
  }
  Guarded(Guarded&&) = default;  // moving keeps the memory where it is
  Guarded& operator=(Guarded&&) = default;
  uint8_t* data() { return whole() + before_; }
  [[nodiscard]] const uint8_t* data() const { return whole() + before_; }
  [[nodiscard]] size_t size() const { return bytes_; }
  // With the guards.
  uint8_t* whole() { return lines_[0].bytes; }
  [[nodiscard]] const uint8_t* whole() const { return lines_[0].bytes; }
  [[nodiscard]] size_t whole_size() const { return lines_.size() * sizeof(Line); }
  [[nodiscard]] bool intact() const {
    const auto marked = [](uint8_t byte) { return byte == kMark; };
    return std::all_of(whole(), data(), marked) && std::all_of(data() + bytes_, whole() + whole_size(), marked);
  }
  [[nodiscard]] std::vector<uint8_t> bytes() const { return {data(), data() + bytes_}; }

 private:
  static constexpr size_t kGuard = 128;  // the least bytes before data(), and after the end
  static constexpr uint8_t kMark = 0xa5;
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  size_t bytes_, before_;
  std::vector<Line> lines_;
};

inline float from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float fraction = static_cast<float>(bits & 1023);
  float size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) size = fraction == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -size : size;
}

// Convert an element of any type to a double and back. write_element needs a number that the type can hold.
inline double read_element(tn_dtype dtype, const uint8_t* at) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case TN_I8:
      return as(int8_t{});
    case TN_I16:
      return as(int16_t{});
    case TN_I32:
      return as(int32_t{});
    case TN_I64:
      return as(int64_t{});
    case TN_U8:
      return as(uint8_t{});
    case TN_U16:
      return as(uint16_t{});
    case TN_U32:
      return as(uint32_t{});
    case TN_F32:
      return as(float{});
    case TN_F64:
      return as(double{});
    case TN_BOOL:
      return *at;
    case TN_F16: {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      return from_half(bits);
    }
    case TN_BF16: {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      const uint32_t wide = static_cast<uint32_t>(bits) << 16;
      float value;
      std::memcpy(&value, &wide, 4);
      return value;
    }
    default:
      throw std::invalid_argument("no such element type");
  }
}

inline void write_element(tn_dtype dtype, uint8_t* at, double number) {
  const auto as = [&]<class T>(T value) {
    value = static_cast<T>(number);
    std::memcpy(at, &value, sizeof value);
  };
  switch (dtype) {
    case TN_I8:
      return as(int8_t{});
    case TN_I16:
      return as(int16_t{});
    case TN_I32:
      return as(int32_t{});
    case TN_I64:
      return as(int64_t{});
    case TN_U8:
      return as(uint8_t{});
    case TN_U16:
      return as(uint16_t{});
    case TN_U32:
      return as(uint32_t{});
    case TN_F32:
      return as(float{});
    case TN_F64:
      return as(double{});
    case TN_BOOL:
      *at = number != 0 ? 1 : 0;
      return;
    case TN_F16: {  // normal numbers that a half can hold
      int exponent = 0;
      const double fraction = std::frexp(std::fabs(number), &exponent);
      const int bits = number == 0 ? 0 : (exponent + 14) << 10 | static_cast<int>(fraction * 2048 - 1024);
      const auto half = static_cast<uint16_t>(bits | (number < 0 ? 0x8000 : 0));
      std::memcpy(at, &half, 2);
      return;
    }
    case TN_BF16: {
      const auto value = static_cast<float>(number);
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      const auto upper = static_cast<uint16_t>(bits >> 16);
      std::memcpy(at, &upper, 2);
      return;
    }
    default:
      throw std::invalid_argument("no such element type");
  }
}

inline std::vector<double> read_all(tn_dtype dtype, const Guarded& memory) {
  std::vector<double> numbers;
  for (size_t at = 0; at < memory.size(); at += tn_dtype_bytes(dtype))
    numbers.push_back(read_element(dtype, memory.data() + at));
  return numbers;
}

// Returns numbers of float32, uniform in [-1, 1).
inline std::vector<double> random_numbers(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<double> numbers(static_cast<size_t>(count));
  for (double& number : numbers) number = static_cast<double>(uniform(random));
  return numbers;
}

// shift: elements of which the memory begins after an address that is a multiple of 64.
inline Guarded write_all(tn_dtype dtype, const std::vector<double>& numbers, size_t shift = 0) {
  Guarded memory(numbers.size() * tn_dtype_bytes(dtype), 0xcd, shift * tn_dtype_bytes(dtype));
  for (size_t i = 0; i < numbers.size(); ++i)
    write_element(dtype, memory.data() + i * tn_dtype_bytes(dtype), numbers[i]);
  return memory;
}

}  // namespace tenon_tests
