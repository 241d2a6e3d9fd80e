// The wrapper that changes images at random. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#include "core/philox.h"
#include "core/shape.h"
#include "host/readers/wrapper.h"

namespace tenon::host {

namespace {

constexpr const char* kAugment = "augment";
constexpr int64_t kPartImages = 16;  // images that a thread changes at a time

// Separates the draws from those of shuffle, which are of the same seed and pass.
constexpr uint64_t kImageStream = uint64_t{0x696D6167} << 32;

// The form of an image in memory.
struct ImageForm {
  int64_t height = 0, width = 0, channels = 1;
  bool planes = false;  // [channels, height, width]; else [height, width, channels]
  tn_dtype dtype = TN_U8;
};

// The place of the part of an image that is kept; outside of the image are zeros.
struct ImagePlace {
  int64_t top = 0, left = 0;
  bool mirrored = false;  // left to right
};

// Factors of the colours; 1 leaves them.
struct ColourFactors {
  float brightness = 1, contrast = 1, saturation = 1;
};

// One row of a plane of an image; a pixel has `bytes` bytes.
struct Row {
  const std::byte* from = nullptr;
  int64_t pixels = 0;
  size_t bytes = 1;

  // Writes `count` pixels from `left` on, mirrored or not; pixels outside the row are zeros.
  void cut(int64_t left, int64_t count, bool mirrored, std::byte* to) const {
    const int64_t begin = std::clamp<int64_t>(-left, 0, count);
    const int64_t end = std::clamp<int64_t>(pixels - left, begin, count);
    const auto at = [&](int64_t pixel) { return static_cast<size_t>(pixel) * bytes; };
    if (begin > 0 || end < count) std::memset(to, 0, at(count));
    if (!mirrored) {
      if (end > begin) std::memcpy(to + at(begin), from + at(left + begin), at(end - begin));
      return;
    }
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + at(count - 1 - i), from + at(left + i), bytes);
  }
};

// The colours of an image of values of type T from 0 to kMost.
template <typename T>
class Colours {
 public:
  Colours(const ImageForm& form, const ColourFactors& factors, T* values)
      : pixels_(form.height * form.width),
        pixel_(form.planes ? 1 : form.channels),
        channel_(form.planes ? pixels_ : 1),
        grey_(form.channels == 1),
        factors_(factors),
        values_(values) {}

  void change() {
    const float mean = factors_.contrast == 1 ? 0 : mean_luminance();
    for (int64_t i = 0; i < pixels_; ++i) grey_ ? change_grey(i, mean) : change_pixel(i, mean);
  }

 private:
  static constexpr float kMost = std::is_same_v<T, uint8_t> ? 255 : 1;

  static float cut(float value) { return std::clamp(value, 0.0F, kMost); }
  static float luminance(float red, float green, float blue) { return 0.299F * red + 0.587F * green + 0.114F * blue; }
  [[nodiscard]] T& at(int64_t pixel, int64_t channel) const { return values_[pixel * pixel_ + channel * channel_]; }
  [[nodiscard]] float bright(int64_t pixel, int64_t channel) const {
    return cut(static_cast<float>(at(pixel, channel)) * factors_.brightness);
  }

  [[nodiscard]] float mean_luminance() const {
    double sum = 0;
    for (int64_t i = 0; i < pixels_; ++i)
      sum += grey_ ? bright(i, 0) : luminance(bright(i, 0), bright(i, 1), bright(i, 2));
    return static_cast<float>(sum / static_cast<double>(std::max<int64_t>(pixels_, 1)));
  }
  [[nodiscard]] float contrasted(float value, float mean) const {
    return factors_.contrast == 1 ? value : cut(mean + factors_.contrast * (value - mean));
  }
  static void put(T& to, float value) {
    if constexpr (std::is_same_v<T, uint8_t>)
      to = static_cast<uint8_t>(value + 0.5F);  // NOLINT(bugprone-incorrect-roundings): it is not negative
    else
      to = value;
  }

  void change_grey(int64_t pixel, float mean) const { put(at(pixel, 0), contrasted(bright(pixel, 0), mean)); }
  void change_pixel(int64_t pixel, float mean) const {
    float colours[3];
    for (int64_t c = 0; c < 3; ++c) colours[c] = contrasted(bright(pixel, c), mean);
    const float own = luminance(colours[0], colours[1], colours[2]);
    for (int64_t c = 0; c < 3; ++c)
      put(at(pixel, c), factors_.saturation == 1 ? colours[c] : cut(own + factors_.saturation * (colours[c] - own)));
  }

  int64_t pixels_, pixel_, channel_;  // the number of pixels; the distances of pixels and of channels
  bool grey_;
  ColourFactors factors_;
  T* values_;
};

// Copies the part of `from` at `place` that is as large as `to`, and of which all else agrees.
void cut_image(const ImageForm& from_form, const std::byte* from, const ImagePlace& place, const ImageForm& to_form,
               std::byte* to) {
  const int64_t planes = from_form.planes ? from_form.channels : 1;
  const size_t bytes = tn_dtype_bytes(from_form.dtype) * static_cast<size_t>(from_form.planes ? 1 : from_form.channels);
  const size_t from_row = bytes * static_cast<size_t>(from_form.width);
  const size_t to_row = bytes * static_cast<size_t>(to_form.width);
  for (int64_t plane = 0; plane < planes; ++plane) {
    const std::byte* const begin = from + static_cast<size_t>(plane * from_form.height) * from_row;
    for (int64_t y = 0; y < to_form.height; ++y, to += to_row) {
      const int64_t row = place.top + y;
      if (row < 0 || row >= from_form.height)
        std::memset(to, 0, to_row);
      else
        Row{begin + static_cast<size_t>(row) * from_row, from_form.width, bytes}.cut(place.left, to_form.width,
                                                                                     place.mirrored, to);
    }
  }
}

// Changes the colours of an image of 1 or 3 channels of bytes, or of float32 in [0, 1], in place: multiplies by
// `brightness`, then moves each value by `contrast` away from the mean luminance of the image, then by `saturation`
// away from the luminance of its pixel. Results are cut to the range of the values after each step, and rounded once.
void change_colours(const ImageForm& form, const ColourFactors& factors, std::byte* image) {
  if (form.dtype == TN_U8)
    Colours<uint8_t>(form, factors, reinterpret_cast<uint8_t*>(image)).change();
  else
    Colours<float>(form, factors, reinterpret_cast<float*>(image)).change();
}

// All changes of the images of one slot.
struct Changes {
  ImageForm from, to;
  AugmentOptions options;

  // Draws the changes of sample `number` in pass `pass`, and writes the changed image.
  void apply(int64_t pass, int64_t number, const std::byte* image, std::byte* changed) const {
    const Philox philox(options.seed, static_cast<uint64_t>(pass) ^ kImageStream);
    const Philox::Block place = philox.block(2 * static_cast<uint64_t>(number));
    const Philox::Block colours = philox.block(2 * static_cast<uint64_t>(number) + 1);
    const auto offset = [&](uint32_t word, int64_t whole, int64_t part) {  // of the part in the whole
      const int64_t room = whole + 2 * options.pad - part;
      const auto random = static_cast<int64_t>((static_cast<uint64_t>(room + 1) * word) >> 32);
      return (options.centre ? room / 2 : random) - options.pad;
    };
    cut_image(from, image,
              {offset(place[0], from.height, to.height), offset(place[1], from.width, to.width),
               options.flip && (place[2] & 1) != 0},
              to, changed);
    if (options.brightness == 0 && options.contrast == 0 && options.saturation == 0) return;
    change_colours(to,
                   {factor(options.brightness, colours[0]), factor(options.contrast, colours[1]),
                    factor(options.saturation, colours[2])},
                   changed);
  }

 private:
  // Uniform in [max(0, 1 - range), 1 + range).
  static float factor(double range, uint32_t word) {
    const double low = std::max(0.0, 1 - range);
    return static_cast<float>(low + (1 + range - low) * (word * 0x1p-32));
  }
};

class Augment final : public Wrapper {
 public:
  Augment(std::shared_ptr<Reader> of, const Changes& changes, size_t slot, const tn_parallel& threads,
          const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)),
        changes_(changes),
        slot_(slot),
        threads_(threads),
        slots_(of_->slots()),
        read_(of_->slots(), allocator),
        picked_(of_->slots(), allocator),
        indexed_pass_(pass()) {
    Slot& changed = slots_[slot_];
    const size_t first = changes_.to.planes ? 1 : 0;
    changed.shape[first] = changes_.to.height;
    changed.shape[first + 1] = changes_.to.width;
    changed.bytes = tn_dtype_bytes(changed.dtype);
    for (const int64_t extent : changed.shape) changed.bytes *= static_cast<uint64_t>(extent);
  }

  [[nodiscard]] const std::vector<Slot>& slots() const override { return slots_; }
  [[nodiscard]] bool indexed() const override { return of_->indexed(); }

  // If memory runs out, read_ keeps the samples for the next call.
  int64_t next(SampleBlock& to, int64_t most) override {
    require_room(kAugment, most);
    if (read_.samples() == 0 && followed([&] { return of_->next(read_, most); }) == 0) {
      follow(0);
      indexed_pass_ = pass();
      return 0;
    }
    const int64_t count = read_.samples(), first = of_->position() - count;
    change(
        read_, [&](int64_t i) { return first + i; }, pass(), to);
    read_.clear();
    follow(0);
    return count;
  }

  PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) override {
    drop_held();
    return part_or_stay([&] {
      picked_.clear();
      const PartRead read = of_->next_part(picked_, most, part);
      const int64_t first = position() + read.first;
      change(
          picked_, [&](int64_t i) { return first + i; }, pass(), to);
      if (read.samples == 0) indexed_pass_ = pass() + 1;
      return read;
    });
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    picked_.clear();
    of_->read_at(indices, count, picked_);
    change(
        picked_, [&](int64_t i) { return indices[i]; }, indexed_pass_, to);
  }

  void begin_pass(int64_t pass) override {
    of_->begin_pass(pass);
    indexed_pass_ = pass;
  }

  void seek(int64_t pass, int64_t position) override {
    of_->seek(pass, position);
    read_.clear();
    indexed_pass_ = pass;
    place(pass, position);
  }

 private:
  // number_of(i): the number of sample i of `from` in the data.
  void change(const SampleBlock& from, const std::function<int64_t(int64_t)>& number_of, int64_t pass,
              SampleBlock& to) {
    const int64_t count = from.samples();
    Mark mark(to);
    for (size_t i = 0; i < slots_.size(); ++i)
      if (i != slot_) to.columns()[i].append(from.columns()[i], 0, count);
    const auto* const images = static_cast<const std::byte*>(from.columns()[slot_].view().data);
    auto* const changed = static_cast<std::byte*>(to.columns()[slot_].offer(count));
    const auto part = [&](int64_t first) {
      for (int64_t i = first; i < std::min(first + kPartImages, count); ++i)
        changes_.apply(pass, number_of(i), images + static_cast<uint64_t>(i) * of_->slots()[slot_].bytes,
                       changed + static_cast<uint64_t>(i) * slots_[slot_].bytes);
    };
    threads_.for_each(
        threads_.self, (count + kPartImages - 1) / kPartImages,
        [](void* self, int64_t index, int32_t) { (*static_cast<decltype(part)*>(self))(index * kPartImages); },
        const_cast<void*>(static_cast<const void*>(&part)));
    to.columns()[slot_].accept(count);
    mark.keep();
  }

  Changes changes_;
  size_t slot_;
  const tn_parallel& threads_;
  std::vector<Slot> slots_;
  SampleBlock read_, picked_;  // used by next, by read_at and next_part
  int64_t indexed_pass_;       // the pass of the samples that read_at reads
};

ImageForm form_of(const Slot& slot, bool channels_first) {
  const std::vector<int64_t>& shape = slot.shape;
  const bool grey = shape.size() == 2 && !channels_first;
  const bool image = slot.storage == TN_DENSE && (grey || shape.size() == 3) && slot.bytes > 0;
  if (!image)
    fail(TN_INVALID, ComponentName{kAugment}, SubjectName{slot.name}, "slot \"", slot.name, "\" holds ",
         slot_text(slot), "; expected images ",
         channels_first ? "[channels, height, width]" : "[height, width, channels] or [height, width]");
  if (grey) return {shape[0], shape[1], 1, false, slot.dtype};
  if (channels_first) return {shape[1], shape[2], shape[0], true, slot.dtype};
  return {shape[0], shape[1], shape[2], false, slot.dtype};
}

void check_crop(const AugmentOptions& options, const ImageForm& from, const ImageForm& to) {
  const auto bad = [&](const auto&... parts) {
    fail(TN_INVALID, ComponentName{kAugment}, SubjectName{options.slot}, "slot \"", options.slot, "\": ", parts...);
  };
  constexpr int64_t kMostPad = 65535;
  if (options.pad < 0 || options.pad > kMostPad) bad("pad is ", options.pad, " pixels; expected 0 to ", kMostPad);
  if (to.height < 1 || to.width < 1) bad("a crop of ", to.height, " x ", to.width, " pixels; expected at least 1 x 1");
  const int64_t height = from.height + 2 * options.pad, width = from.width + 2 * options.pad;
  if (to.height > height || to.width > width)
    bad("a crop of ", to.height, " x ", to.width, " pixels (height x width) is larger than the images, ", from.height,
        " x ", from.width, " and ", options.pad, " pixels of padding on each side: ", height, " x ", width);
}

void check_colours(const AugmentOptions& options, const ImageForm& form) {
  const auto bad = [&](const auto&... parts) {
    fail(TN_INVALID, ComponentName{kAugment}, SubjectName{options.slot}, "slot \"", options.slot, "\": ", parts...);
  };
  const std::pair<const char*, double> ranges[] = {
      {"brightness", options.brightness}, {"contrast", options.contrast}, {"saturation", options.saturation}};
  for (const auto& [name, range] : ranges) {
    if (!(range >= 0 && range <= 10)) bad(name, " is ", range, "; expected a number from 0 to 10");
    if (range == 0) continue;
    if (form.dtype != TN_U8 && form.dtype != TN_F32)
      bad(name, " is for images of uint8 or float32; they are ", dtype_name(form.dtype));
    if (form.channels != 3 && (form.channels != 1 || name == ranges[2].first))
      bad(name, " is for images with ", name == ranges[2].first ? "" : "1 or ", "3 channels; they have ",
          form.channels);
  }
}

}  // namespace

std::unique_ptr<Reader> augment(std::shared_ptr<Reader> of, const AugmentOptions& options, const tn_parallel& threads,
                                const std::shared_ptr<Allocator>& allocator) {
  require_samples(kAugment, *of);
  const size_t slot = slot_number(kAugment, *of, options.slot, TN_NOT_FOUND);
  Changes changes;
  changes.options = options;
  changes.from = changes.to = form_of(of->slots()[slot], options.channels_first);
  if (options.height != 0) changes.to.height = options.height;
  if (options.width != 0) changes.to.width = options.width;
  check_crop(options, changes.from, changes.to);
  check_colours(options, changes.from);
  return std::make_unique<Augment>(std::move(of), changes, slot, threads, allocator);
}

}  // namespace tenon::host
