// The reader that changes images at random. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "host/readers/reader.h"
#include "host/threads/thread_pool.h"
#include "tests/support/faults.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Shape = std::vector<int64_t>;
using Pixels = std::vector<uint8_t>;

constexpr int64_t kSamples = 40;

std::shared_ptr<Allocator> memory() { return system_allocator(); }

// Samples with an image of bytes from 1 to 250, of this shape, and their number.
class Pictures {
 public:
  explicit Pictures(Shape shape, tn_dtype dtype = TN_U8, bool indexed = true) {
    int64_t values = 1;
    for (const int64_t extent : shape) values *= extent;
    const auto bytes = static_cast<uint64_t>(values) * tn_dtype_bytes(dtype);
    source.slots = {{"image", dtype, shape, -1, bytes}, {"number", TN_I64, {}, -1, 8}};
    source.size = kSamples;
    const auto fill = [this, values, dtype](const int64_t* indices, int64_t count, std::vector<ArrayView>& to) {
      images.clear();
      floats.clear();
      numbers.assign(indices, indices + count);
      for (const int64_t index : numbers)
        for (int64_t i = 0; i < values; ++i) images.push_back(value_of(index, i));
      for (const uint8_t value : images) floats.push_back(static_cast<float>(value) / 255);
      to[0].data = dtype == TN_F32 ? static_cast<const void*>(floats.data()) : images.data();
      to[1].data = numbers.data();
    };
    if (indexed)
      source.read_at = fill;
    else
      source.next = [this, fill](int64_t most, std::vector<ArrayView>& to) {
        std::vector<int64_t> indices;
        while (next < kSamples && static_cast<int64_t>(indices.size()) < most) indices.push_back(next++);
        if (indices.empty()) next = 0;
        fill(indices.data(), static_cast<int64_t>(indices.size()), to);
        return static_cast<int64_t>(indices.size());
      };
  }
  static uint8_t value_of(int64_t sample, int64_t place) {
    return static_cast<uint8_t>(1 + (37 * sample + 11 * place + place * place) % 250);
  }
  std::shared_ptr<Reader> open() { return open_source(source); }

  Source source;
  Pixels images;
  std::vector<float> floats;
  std::vector<int64_t> numbers;
  int64_t next = 0;
};

AugmentOptions options(const char* slot = "image") {
  AugmentOptions result;
  result.slot = slot;
  return result;
}

struct Changed {
  Pixels image;  // the bytes of the values
  int64_t number = 0;
  bool operator==(const Changed&) const = default;
};
using All = std::vector<Changed>;

All samples_of(const SampleBlock& block) {
  All result;
  const auto* const bytes = static_cast<const uint8_t*>(block.columns()[0].view().data);
  const auto* const numbers = static_cast<const int64_t*>(block.columns()[1].view().data);
  const size_t size = block.columns()[0].slot().bytes;
  for (size_t i = 0; i < static_cast<size_t>(block.samples()); ++i)
    result.push_back({Pixels(bytes + i * size, bytes + (i + 1) * size), numbers[i]});
  return result;
}

// The rest of a pass, `most` samples at a time.
All pass_of(Reader& reader, int64_t most = 7) {
  All result;
  while (true) {
    SampleBlock block(reader.slots(), memory());
    if (reader.next(block, reader.batch() > 0 ? reader.batch() : most) == 0) return result;
    const All more = samples_of(block);
    result.insert(result.end(), more.begin(), more.end());
  }
}

All changed(Pictures& pictures, const AugmentOptions& wanted, int64_t pass = 0) {
  const auto reader = augment(pictures.open(), wanted, calling_thread(), memory());
  if (pass > 0) reader->seek(pass, 0);
  return pass_of(*reader);
}

// The part of sample `number`, [4, 5, 3], at a place, by the definition.
Pixels part(int64_t number, int64_t top, int64_t left, int64_t height, int64_t width, bool mirrored) {
  Pixels result;
  for (int64_t y = top; y < top + height; ++y)
    for (int64_t i = 0; i < width; ++i)
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t x = mirrored ? left + width - 1 - i : left + i;
        const bool inside = y >= 0 && y < 4 && x >= 0 && x < 5;
        result.push_back(inside ? Pictures::value_of(number, (y * 5 + x) * 3 + c) : uint8_t{0});
      }
  return result;
}

TEST(Augment, CropsAndFlipsAnywhere) {
  Pictures pictures({4, 5, 3});
  AugmentOptions wanted = options();
  wanted.pad = 1;
  wanted.height = 3;
  wanted.width = 6;
  wanted.flip = true;
  const auto reader = augment(pictures.open(), wanted, calling_thread(), memory());
  EXPECT_EQ(reader->slots()[0].shape, (Shape{3, 6, 3}));
  EXPECT_EQ(reader->slots()[0].bytes, 54u);
  std::map<std::tuple<int64_t, int64_t, bool>, int> found;
  for (int pass = 0; pass < 60; ++pass)
    for (const Changed& each : pass_of(*reader)) {
      bool one = false;
      for (int64_t top = -1; top <= 2; ++top)
        for (int64_t left = -1; left <= 0; ++left)
          for (const bool mirrored : {false, true})
            if (each.image == part(each.number, top, left, 3, 6, mirrored)) {
              one = true;
              ++found[{top, left, mirrored}];
            }
      ASSERT_TRUE(one) << "sample " << each.number;
    }
  EXPECT_EQ(found.size(), 4u * 2 * 2);
  for (const auto& [place, times] : found) EXPECT_NEAR(times, 60 * 40 / 16, 48);  // 4 deviations
}

TEST(Augment, CentreIsNotRandom) {
  Pictures pictures({4, 5, 3});
  AugmentOptions wanted = options();
  wanted.centre = true;
  wanted.height = 2;
  wanted.width = 2;
  for (const Changed& each : changed(pictures, wanted)) EXPECT_EQ(each.image, part(each.number, 1, 1, 2, 2, false));
  wanted.height = wanted.width = 0;
  for (const Changed& each : changed(pictures, wanted)) EXPECT_EQ(each.image, part(each.number, 0, 0, 4, 5, false));
}

AugmentOptions everything() {
  AugmentOptions wanted = options();
  wanted.pad = 2;
  wanted.flip = true;
  wanted.brightness = wanted.contrast = wanted.saturation = 0.5;
  wanted.seed = 9;
  return wanted;
}

// The samples depend on seed, pass and number alone.
TEST(Augment, GivesTheSameHoweverItIsRead) {
  Pictures pictures({4, 5, 3}), stream({4, 5, 3}, TN_U8, false);
  const All first = changed(pictures, everything()), second = changed(pictures, everything(), 1);
  EXPECT_FALSE(first == second);
  AugmentOptions other = everything();
  other.seed = 10;
  EXPECT_FALSE(changed(pictures, other) == first);
  EXPECT_TRUE(changed(stream, everything()) == first);
  for (const int32_t threads : {1, 3}) {
    const ThreadPool pool(threads);
    const std::shared_ptr<Reader> reader = augment(pictures.open(), everything(), *pool.parallel(), memory());
    for (const int64_t most : {1, 17, 100}) {
      reader->seek(0, 0);
      EXPECT_TRUE(pass_of(*reader, most) == first);
      EXPECT_TRUE(pass_of(*reader, most) == second);
    }
    reader->seek(1, 33);
    EXPECT_TRUE(pass_of(*reader) == All(second.begin() + 33, second.end()));
    reader->seek(0, 0);
    const auto mixed = batch(shuffle(reader, 0, 3, memory()), 6, false, memory());
    for (const All* const all : {&first, &second})
      for (const Changed& each : pass_of(*mixed)) EXPECT_TRUE(each == (*all)[static_cast<size_t>(each.number)]);
  }
  for (const int64_t number : {0, 1, 2}) {
    const auto one = shard(augment(pictures.open(), everything(), calling_thread(), memory()), number, 3, memory());
    for (const All* const all : {&first, &second})
      for (const Changed& each : pass_of(*one)) {
        EXPECT_EQ(each.number % 3, number);
        EXPECT_TRUE(each == (*all)[static_cast<size_t>(each.number)]);
      }
  }
}

// A call that fails for lack of memory loses no sample and changes none.
TEST(Augment, NoMemoryLosesNothing) {
  Pictures pictures({4, 5, 3});
  const All expected = changed(pictures, everything());
  const auto allocator = std::make_shared<FaultyAllocator>();
  for (int64_t call = 0; call < 12; ++call) {
    allocator->fail_at = -1;
    const auto reader = augment(pictures.open(), everything(), calling_thread(), allocator);
    allocator->calls = 0;
    allocator->fail_at = call;
    All all;
    for (bool more = true; more;) {
      SampleBlock block(reader->slots(), allocator);
      try {
        more = reader->next(block, 9) != 0;
        const All part = samples_of(block);
        if (more) all.insert(all.end(), part.begin(), part.end());
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), TN_OUT_OF_MEMORY) << error.message();
        ASSERT_EQ(block.samples(), 0);
      }
    }
    ASSERT_TRUE(all == expected) << call;
  }
}

// Channels first, and images without a dimension of channels, are changed like channels last.
TEST(Augment, LayoutsAgree) {
  Pictures grey({6, 7}), one({6, 7, 1}), planes({1, 6, 7});
  AugmentOptions wanted = everything();
  wanted.saturation = 0;
  wanted.height = 4;
  const All expected = changed(one, wanted);
  EXPECT_TRUE(changed(grey, wanted) == expected);
  wanted.channels_first = true;
  EXPECT_TRUE(changed(planes, wanted) == expected);
  Pictures colours({3, 4, 4});
  AugmentOptions crop = options();
  crop.channels_first = true;
  crop.centre = true;
  crop.height = crop.width = 2;
  EXPECT_EQ(augment(colours.open(), crop, calling_thread(), memory())->slots()[0].shape, (Shape{3, 2, 2}));
  for (const Changed& each : changed(colours, crop)) {
    Pixels middle;
    for (int64_t c = 0; c < 3; ++c)
      for (const int64_t place : {5, 6, 9, 10}) middle.push_back(Pictures::value_of(each.number, 16 * c + place));
    EXPECT_EQ(each.image, middle);
  }
}

double luminance(const double* colours) { return 0.299 * colours[0] + 0.587 * colours[1] + 0.114 * colours[2]; }

// The factor by which values moved away from `from`, where it shows best; and whether all moved by it.
void expect_moved(const Changed& each, const std::vector<double>& before, const std::vector<double>& from, double low,
                  double high) {
  double factor = 1, reach = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const double away = before[i] - from[i];
    if (each.image[i] == 0 || each.image[i] == 255 || std::abs(away) <= reach) continue;
    reach = std::abs(away);
    factor = (each.image[i] - from[i]) / away;
  }
  ASSERT_GT(reach, 20);
  EXPECT_GE(factor, low - 0.02);
  EXPECT_LE(factor, high + 0.02);
  for (size_t i = 0; i < before.size(); ++i) {
    const double expected = std::clamp(from[i] + factor * (before[i] - from[i]), 0.0, 255.0);
    EXPECT_NEAR(each.image[i], expected, 0.5 + 0.5 * std::abs(before[i] - from[i]) / reach + 0.01);
  }
}

TEST(Augment, ColoursFollowTheirFormulas) {
  Pictures pictures({4, 5, 3});
  for (const int which : {0, 1, 2}) {
    AugmentOptions wanted = options();
    (which == 0 ? wanted.brightness : which == 1 ? wanted.contrast : wanted.saturation) = 0.4;
    std::set<Pixels> different;
    for (const Changed& each : changed(pictures, wanted)) {
      const std::vector<double> before = [&] {
        const Pixels pixels = part(each.number, 0, 0, 4, 5, false);
        return std::vector<double>(pixels.begin(), pixels.end());
      }();
      double mean = 0;
      for (size_t pixel = 0; pixel < 20; ++pixel) mean += luminance(&before[3 * pixel]) / 20;
      std::vector<double> from;
      for (size_t i = 0; i < before.size(); ++i)
        from.push_back(which == 0 ? 0 : which == 1 ? mean : luminance(&before[i / 3 * 3]));
      expect_moved(each, before, from, 0.6, 1.4);
      different.insert(each.image);
    }
    EXPECT_EQ(different.size(), static_cast<size_t>(kSamples));
  }
}

TEST(Augment, FloatsAreBytesOf255) {
  Pictures bytes({4, 5, 3}), floats({4, 5, 3}, TN_F32);
  const All expected = changed(bytes, everything()), found = changed(floats, everything());
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t k = 0; k < expected[i].image.size(); ++k) {
      float value = 0;
      std::memcpy(&value, found[i].image.data() + 4 * k, sizeof value);
      ASSERT_NEAR(255 * value, expected[i].image[k], 0.51);
    }
}

std::string refusal(const AugmentOptions& wanted, const Shape& shape = {4, 5, 3}, tn_dtype dtype = TN_U8) {
  Pictures pictures(shape, dtype);
  return error_of([&] { augment(pictures.open(), wanted, calling_thread(), memory()); }).message();
}

TEST(Augment, RefusesWhatDoesNotFit) {
  EXPECT_THAT(refusal(options("imag")), AllOf(HasSubstr("no slot \"imag\""), HasSubstr("did you mean \"image\"?")));
  EXPECT_THAT(refusal(options("number")), HasSubstr("slot \"number\" holds int64 []; expected images"));
  EXPECT_THAT(refusal(options(), {12}), HasSubstr("expected images [height, width, channels] or [height, width]"));
  AugmentOptions wanted = options();
  wanted.channels_first = true;
  EXPECT_THAT(refusal(wanted, {4, 5}), HasSubstr("expected images [channels, height, width]"));
  wanted = options();
  wanted.height = 7;
  wanted.pad = 1;
  EXPECT_THAT(refusal(wanted), HasSubstr("a crop of 7 x 5 pixels (height x width) is larger than the images, 4 x 5 "
                                         "and 1 pixels of padding on each side: 6 x 7"));
  wanted = options();
  wanted.width = -1;
  EXPECT_THAT(refusal(wanted), HasSubstr("a crop of 4 x -1 pixels; expected at least 1 x 1"));
  wanted = options();
  wanted.pad = -1;
  EXPECT_THAT(refusal(wanted), HasSubstr("pad is -1 pixels; expected 0 to"));
  wanted = options();
  wanted.saturation = 0.5;
  EXPECT_THAT(refusal(wanted, {4, 5}), HasSubstr("saturation is for images with 3 channels; they have 1"));
  wanted.brightness = 0.5;
  EXPECT_THAT(refusal(wanted, {4, 5, 2}), HasSubstr("brightness is for images with 1 or 3 channels; they have 2"));
  EXPECT_THAT(refusal(wanted, {4, 5, 3}, TN_I16), HasSubstr("brightness is for images of uint8 or float32; they are"));
  wanted.brightness = -0.5;
  EXPECT_THAT(refusal(wanted), HasSubstr("brightness is -0.5; expected a number from 0 to 10"));
  wanted.brightness = std::nan("");
  EXPECT_THAT(refusal(wanted), HasSubstr("brightness is nan"));
  Pictures pictures({4, 5, 3});
  const std::shared_ptr<Reader> minibatches = batch(pictures.open(), 4, false, memory());
  EXPECT_EQ(error_of([&] { augment(minibatches, options(), calling_thread(), memory()); }).code(), TN_MISUSE);
}

}  // namespace
}  // namespace tenon_tests
