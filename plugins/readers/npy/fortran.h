// Samples of arrays in Fortran order, in which the values of one sample lie as far apart as there are samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "header.h"
#include "source.h"

namespace tenon::npy {

// Gathers the values of samples in C order: of all samples at once if they take no more than `most` bytes, of as many
// as `most` bytes hold when samples are read in order, and else of one.
class FortranSamples {
 public:
  // offset: of the first value in the file. memory, cancel: of the reader.
  FortranSamples(const Header& header, uint64_t offset, uint64_t sample_bytes, uint64_t most, const tn_memory* memory,
                 const volatile int32_t* cancel);

  // The bytes of a sample. Valid until the next call.
  const uint8_t* sample(files::Source& source, int64_t number);

 private:
  void gather(files::Source& source, int64_t count);
  template <typename T>
  void gather_column(files::Source& source, uint64_t from, uint64_t to, int64_t count);

  std::vector<int64_t> shape_;
  uint64_t offset_, sample_bytes_;
  uint32_t width_;  // bytes of a value
  uint64_t most_;   // samples that are gathered at once, at least 1
  const tn_memory* memory_;
  const volatile int32_t* cancel_;
  files::Block window_;  // the samples [first_, first_ + count_)
  int64_t first_ = 0, count_ = 0;
  int64_t last_ = -1, distance_ = 1;  // the sample that was read last, and its distance from the one before
};

}  // namespace tenon::npy
