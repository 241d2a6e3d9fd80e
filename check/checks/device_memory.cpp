// SPDX-License-Identifier: Apache-2.0
#include "check/checks/device_memory.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "check/watch/open_device.h"

namespace tenon::check {

namespace {

Bytes drawn(std::mt19937_64& random, uint64_t bytes) {
  Bytes result(bytes);
  for (unsigned char& byte : result) byte = static_cast<unsigned char>(1 + random() % 255);
  return result;
}

// Throws Fault unless the bytes are equal.
void expect_bytes(Context& context, const Bytes& got, const Bytes& expected, const std::string& what) {
  const auto [one, other] = std::mismatch(got.begin(), got.end(), expected.begin());
  context.expect(one == got.end(), "byte " + std::to_string(one - got.begin()) + " of " + std::to_string(got.size()) +
                                       " differs after " + what);
}

// Copies to the device, on it, and back; then a copy and a fill in the middle, which leave the bytes beside them.
void check_size(Context& context, OpenDevice& device, uint64_t bytes, std::mt19937_64& random) {
  const OpenDevice::Memory one(device, bytes), other(device, bytes);
  for (const OpenDevice::Memory* memory : {&one, &other})
    context.expect(reinterpret_cast<uintptr_t>(memory->data()) % 64 == 0,
                   "allocate gives memory that is not aligned to 64 bytes");
  Bytes expected = drawn(random, bytes);
  const auto read = [&](const unsigned char* from) {
    Bytes result(bytes);
    device.copy(TN_COPY_TO_HOST, nullptr, result.data(), from, bytes);
    device.wait(nullptr);
    return result;
  };
  device.copy(TN_COPY_TO_DEVICE, nullptr, one.data(), expected.data(), bytes);
  device.copy(TN_COPY_ON_DEVICE, nullptr, other.data(), one.data(), bytes);
  expect_bytes(context, read(one.data()), expected, "a copy to the device and back");
  expect_bytes(context, read(other.data()), expected, "a copy on the device");
  const uint64_t begin = bytes / 3, count = bytes - bytes / 3 - bytes / 4;
  const Bytes part = drawn(random, count);
  std::copy(part.begin(), part.end(), expected.begin() + static_cast<ptrdiff_t>(begin));
  device.copy(TN_COPY_TO_DEVICE, nullptr, one.data() + begin, part.data(), count);
  expect_bytes(context, read(one.data()), expected, "a copy into the middle");
  std::fill_n(expected.begin() + static_cast<ptrdiff_t>(begin), count, static_cast<unsigned char>(0xA5));
  device.fill(nullptr, one.data() + begin, 0xA5, count);
  device.fill(nullptr, one.data(), 0x11, 0);
  expect_bytes(context, read(one.data()), expected, "a fill of the middle");
}

}  // namespace

void check_copies(Context& context) {
  OpenDevice device(context.subject().file, context.subject().device);
  const tn_device_properties properties = device.properties();
  const size_t length = strnlen(properties.name, sizeof properties.name);
  context.expect(length > 0 && length < sizeof properties.name, "properties give no name, or one without an end");
  std::mt19937_64 random(context.subject().seed);
  for (const uint64_t bytes : std::initializer_list<uint64_t>{1, 7, 64, 65, 1000, 4096, 100'003})
    check_size(context, device, bytes, random);
}

void check_streams(Context& context) {
  using Object = OpenDevice::Object;
  constexpr uint64_t kBytes = 5001;
  OpenDevice device(context.subject().file, context.subject().device);
  std::mt19937_64 random(context.subject().seed);
  const OpenDevice::Memory one(device, kBytes), other(device, kBytes);
  const Object first(device, Object::kStream), second(device, Object::kStream), event(device, Object::kEvent);
  for (int times = 0; times < 3; ++times) {
    // On one stream: in the order of the calls.
    Bytes expected = drawn(random, kBytes), got(kBytes);
    device.fill(first.get(), one.data(), 0, kBytes);
    device.copy(TN_COPY_TO_DEVICE, first.get(), one.data(), expected.data(), kBytes);
    device.copy(TN_COPY_ON_DEVICE, first.get(), other.data(), one.data(), kBytes);
    device.copy(TN_COPY_TO_HOST, first.get(), got.data(), other.data(), kBytes);
    device.wait(first.get());
    expect_bytes(context, got, expected, "four calls of one stream");
    // On two: the second after the event of the first.
    expected = drawn(random, kBytes);
    device.copy(TN_COPY_TO_DEVICE, first.get(), one.data(), expected.data(), kBytes);
    device.copy(TN_COPY_ON_DEVICE, first.get(), other.data(), one.data(), kBytes);
    device.record(event.get(), first.get());
    device.wait_for(event.get(), second.get());
    device.copy(TN_COPY_TO_HOST, second.get(), got.data(), other.data(), kBytes);
    device.wait(second.get());
    expect_bytes(context, got, expected, "a stream has waited for the event of another");
    device.wait(first.get());
  }
}

}  // namespace tenon::check
