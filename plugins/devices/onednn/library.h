// oneDNN's library, loaded at run time, so that the plugin itself loads on any system.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <tenon/base.hpp>

namespace tenon::onednn {

constexpr char kLibraryName[] = "libdnnl.so.2";
constexpr char kLibraryHint[] =
    "install libdnnl2, which brings libgomp1 and OpenCL's loader ocl-icd-libopencl1; without it the device cpu "
    "computes "
    "convolutions by itself";

// The functions of oneDNN and OpenMP that the provider calls, and an engine. Immutable; used by any thread.
class Library {
 public:
  // Throws tn::Failure TN_UNSUPPORTED if the library is absent or of another version.
  Library();
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

#define TENON_ONEDNN(name) decltype(&::dnnl_##name) name = nullptr  // NOLINT(bugprone-macro-parentheses)
  TENON_ONEDNN(dilated_convolution_backward_data_desc_init);
  TENON_ONEDNN(dilated_convolution_backward_weights_desc_init);
  TENON_ONEDNN(dilated_convolution_forward_desc_init);
  TENON_ONEDNN(engine_create);
  TENON_ONEDNN(engine_destroy);
  TENON_ONEDNN(memory_create);
  TENON_ONEDNN(memory_desc_equal);
  TENON_ONEDNN(memory_desc_get_size);
  TENON_ONEDNN(memory_desc_init_by_strides);
  TENON_ONEDNN(memory_destroy);
  TENON_ONEDNN(memory_set_data_handle);
  TENON_ONEDNN(primitive_attr_create);
  TENON_ONEDNN(primitive_attr_destroy);
  TENON_ONEDNN(primitive_attr_set_scratchpad_mode);
  TENON_ONEDNN(primitive_create);
  TENON_ONEDNN(primitive_desc_create);
  TENON_ONEDNN(primitive_desc_destroy);
  TENON_ONEDNN(primitive_desc_query);
  TENON_ONEDNN(primitive_desc_query_md);
  TENON_ONEDNN(primitive_destroy);
  TENON_ONEDNN(primitive_execute);
  TENON_ONEDNN(reorder_primitive_desc_create);
  TENON_ONEDNN(stream_create);
  TENON_ONEDNN(stream_destroy);
  TENON_ONEDNN(version);
#undef TENON_ONEDNN
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;

  [[nodiscard]] dnnl_engine_t engine() const { return engine_; }

 private:
  dnnl_engine_t engine_ = nullptr;
};

// Holds the calling thread at one thread of OpenMP, and restores the caller's setting. A primitive remembers the number
// of threads of the moment it is made; some ask again when they run.
class OneThread {
 public:
  explicit OneThread(const Library& library) : library_(library), before_(library.omp_get_max_threads()) {
    library_.omp_set_num_threads(1);
  }
  ~OneThread() { library_.omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const Library& library_;
  int before_;
};

}  // namespace tenon::onednn
