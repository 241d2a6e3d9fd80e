// Samples as pictures and as short texts. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "host/cli/data/sheet.h"
#include "host/cli/job/reader.h"

namespace tenon::cli {

// A slot of a job's reader, and how samples of it are shown.
class ShownSlot {
 public:
  // texts: what its integers stand for; empty if unknown.
  ShownSlot(Slot slot, bool channels_first, std::vector<std::string> texts);

  [[nodiscard]] const Slot& slot() const { return slot_; }
  // Whether samples are pictures: dense, [height, width], or with 1, 3 or 4 channels.
  [[nodiscard]] bool is_image() const;
  // Whether a sample is one number.
  [[nodiscard]] bool is_number() const { return slot_.storage == TN_DENSE && slot_.shape.empty(); }

  // Returns sample number `sample` of the slot's array. Bytes are shown as they are, floats of [0, 1] as 0 to 255,
  // other values from the smallest to the largest of the sample; of four channels the first three. Call it for an
  // image.
  [[nodiscard]] Picture picture(const Array& array, int64_t sample) const;
  // Returns a sample on one line, shortened: "cat", "[1, 0.5, 3, ...]", "12 rows: the cat sat on ...", "3:1 17:0.5".
  // Images are described by their range and mean.
  [[nodiscard]] std::string text(const Array& array, int64_t sample) const;

 private:
  [[nodiscard]] std::string number(const Array& array, int64_t index) const;
  [[nodiscard]] std::string numbers(const Array& array, int64_t begin, int64_t count) const;
  [[nodiscard]] std::string rows(const Array& array, int64_t sample) const;
  [[nodiscard]] std::string entries(const Array& array, int64_t sample) const;
  [[nodiscard]] std::string range(const Array& array, int64_t sample) const;

  Slot slot_;
  bool channels_first_;
  std::vector<std::string> texts_;
};

// Returns the slots of an open reader of the job.
[[nodiscard]] std::vector<ShownSlot> shown_slots(const JobReader& reader, const OpenReader& open);

}  // namespace tenon::cli
