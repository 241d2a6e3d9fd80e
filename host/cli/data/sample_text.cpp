// SPDX-License-Identifier: Apache-2.0
#include "host/cli/data/sample_text.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "host/cli/numbers.h"

namespace tenon::cli {

namespace {

constexpr int64_t kMostNumbers = 8;  // of a sample, on a line

std::string counted(int64_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

}  // namespace

ShownSlot::ShownSlot(Slot slot, bool channels_first, std::vector<std::string> texts)
    : slot_(std::move(slot)), channels_first_(channels_first), texts_(std::move(texts)) {}

bool ShownSlot::is_image() const {
  const std::vector<int64_t>& shape = slot_.shape;
  if (slot_.storage != TN_DENSE || std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 1; }))
    return false;
  if (shape.size() == 2) return !channels_first_;
  if (shape.size() != 3) return false;
  const int64_t channels = channels_first_ ? shape[0] : shape[2];
  return channels == 1 || channels == 3 || channels == 4;
}

Picture ShownSlot::picture(const Array& array, int64_t sample) const {
  const std::vector<int64_t>& shape = slot_.shape;
  const bool planes = channels_first_;
  const int64_t height = shape[planes ? 1 : 0], width = shape[planes ? 2 : 1];
  const int64_t channels = shape.size() == 2 ? 1 : shape[planes ? 0 : 2];
  const int64_t pixels = height * width, first = sample * pixels * channels;
  const Numbers values(array, "nan");
  double low = 0, high = slot_.dtype == "uint8" ? 255 : 1;
  for (int64_t i = 0; i < pixels * channels && slot_.dtype != "uint8"; ++i) {
    const double value = values.value(first + i);
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  }
  Picture result{height, width, std::vector<uint8_t>(static_cast<size_t>(3 * pixels))};
  for (int64_t pixel = 0; pixel < pixels; ++pixel)
    for (int64_t c = 0; c < 3; ++c) {
      const int64_t channel = channels < 3 ? 0 : c;
      const double value = values.value(first + (planes ? channel * pixels + pixel : pixel * channels + channel));
      const double shown = std::isfinite(value) ? 255 * (value - low) / (high - low) : 0;
      result.pixels[static_cast<size_t>(3 * pixel + c)] = static_cast<uint8_t>(std::lround(shown));
    }
  return result;
}

std::string ShownSlot::number(const Array& array, int64_t index) const {
  const Numbers values(array, "nan");
  std::string text;
  values.append(text, index);
  if (texts_.empty()) return text;
  const double value = values.value(index);
  return value >= 0 && value < static_cast<double>(texts_.size()) ? texts_[static_cast<size_t>(value)] : text;
}

// A row of a slot: "3", "[1, 2, 3, ...]".
std::string ShownSlot::numbers(const Array& array, int64_t begin, int64_t count) const {
  if (slot_.shape.empty()) return number(array, begin);
  std::string result;
  for (int64_t i = 0; i < std::min(count, kMostNumbers); ++i) base::append(result, number(array, begin + i));
  return "[" + result + (count > kMostNumbers ? ", ...]" : "]");
}

std::string ShownSlot::rows(const Array& array, int64_t sample) const {
  int64_t begin = array.offsets[0][sample], end = array.offsets[0][sample + 1];
  std::string result;
  if (array.levels == 2) {
    result = counted(end - begin, "sequence, ", "sequences, ");
    begin = array.offsets[1][begin];
    end = array.offsets[1][end];
  }
  result += counted(end - begin, "row", "rows");
  const int64_t most = slot_.shape.empty() ? kMostNumbers : 2;
  for (int64_t row = begin; row < std::min(end, begin + most); ++row)
    result += (row == begin ? ": " : " ") + numbers(array, row * per_row(array), per_row(array));
  return result + (end - begin > most ? " ..." : "");
}

std::string ShownSlot::entries(const Array& array, int64_t sample) const {
  const int64_t begin = array.offsets[0][sample], end = array.offsets[0][sample + 1];
  std::string result = counted(end - begin, "entry", "entries");
  for (int64_t i = begin; i < std::min(end, begin + kMostNumbers); ++i) {
    result += (i == begin ? ": " : " ") + std::to_string(array.ids[i]) + ":";
    array.data == nullptr ? result += "1" : result += number(array, i);
  }
  return result + (end - begin > kMostNumbers ? " ..." : "");
}

std::string ShownSlot::range(const Array& array, int64_t sample) const {
  const int64_t count = per_row(array);
  const Numbers values(array, "nan");
  double low = values.value(sample * count), high = low, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = values.value(sample * count + i);
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  constexpr int kDigits = 4;
  return base::brief(low, kDigits) + " to " + base::brief(high, kDigits) + ", mean " +
         base::brief(sum / static_cast<double>(count), kDigits);
}

std::string ShownSlot::text(const Array& array, int64_t sample) const {
  if (slot_.storage == TN_RAGGED) return rows(array, sample);
  if (slot_.storage == TN_CSR) return entries(array, sample);
  if (is_image()) return range(array, sample);
  return numbers(array, sample * per_row(array), per_row(array));
}

std::vector<ShownSlot> shown_slots(const JobReader& reader, const OpenReader& open) {
  std::vector<ShownSlot> result;
  const std::vector<Names> known = open.reader.names();
  for (const Slot& slot : open.slots) {
    std::vector<std::string> texts;
    for (const Names& names : known)
      if (names.slot == slot.name) texts = names.texts;
    result.emplace_back(slot, use_of(reader, slot.name).channels_first, std::move(texts));
  }
  return result;
}

}  // namespace tenon::cli
