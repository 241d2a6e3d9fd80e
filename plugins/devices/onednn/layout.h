// How convolutions are handed to oneDNN: channels last, in bands of rows that follow from the shape of a sample.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_images.h>

#include <cstdint>
#include <vector>

#include "library.h"

namespace tenon::onednn {

// A convolution without pointers into the caller's memory.
struct Problem {
  int32_t op;  // TN_CONV_*
  tn_dim samples;
  int64_t channels, filters, groups;
  tn_window window;

  [[nodiscard]] int64_t image_elements() const;   // of a sample
  [[nodiscard]] int64_t result_elements() const;  // of a sample
  [[nodiscard]] int64_t weight_elements() const;
  [[nodiscard]] double work() const;  // multiplications of a sample
};

// Rows, along the first dimension in space, that one primitive handles.
struct Rows {
  int64_t images, results;  // numbers of rows
  int64_t before, after;    // rows of zeros around those of the images
  bool operator==(const Rows&) const = default;
};
struct Band {
  size_t rows;              // index in Bands::rows
  int64_t images, results;  // elements before the band in a sample
};
struct Bands {
  std::vector<Rows> rows;  // each once
  std::vector<Band> bands;
};

// Returns the bands of a sample: several for the results of large ones, else one.
[[nodiscard]] Bands bands_of(const Problem& problem);

// Describes the operation on `samples` samples to oneDNN; the weights in the order that oneDNN prefers. Throws
// tn::Failure.
[[nodiscard]] dnnl_convolution_desc_t describe(const Library& library, const Problem& problem, const Rows& rows,
                                               int64_t samples);
// Returns the form of the weights as the host stores them, [filters, kernel..., channels of a group].
[[nodiscard]] dnnl_memory_desc_t weights_form(const Library& library, const Problem& problem);

}  // namespace tenon::onednn
