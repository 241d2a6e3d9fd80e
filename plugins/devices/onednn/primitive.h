// Objects of oneDNN with an owner. Made at [setup]; a primitive is executed by any number of threads, a Memory used by
// one at a time. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "library.h"

namespace tenon::onednn {

template <class T>
using Owned = std::unique_ptr<T, dnnl_status_t (*)(T*)>;
using Stream = Owned<dnnl_stream>;
using Memory = Owned<dnnl_memory>;

// Throws tn::Failure if oneDNN refused: TN_OUT_OF_MEMORY, or TN_UNSUPPORTED with `what`.
void check(dnnl_status_t status, const char* what);

[[nodiscard]] Stream make_stream(const Library& library);
// A description that stands for memory which `point` names later.
[[nodiscard]] Memory make_memory(const Library& library, const dnnl_memory_desc_t& form);

// A primitive that is executed with memory of the caller alone.
class Primitive {
 public:
  // operation: a description by one of the desc_init functions.
  Primitive(const Library& library, const dnnl_convolution_desc_t& operation);
  // A copy between two forms of a tensor.
  Primitive(const Library& library, const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to);

  // The form of an argument, DNNL_ARG_*.
  [[nodiscard]] const dnnl_memory_desc_t& form(int argument) const;
  [[nodiscard]] int64_t bytes(int argument) const;
  // The name of the implementation that oneDNN chose.
  [[nodiscard]] std::string implementation() const;

  // Returns what oneDNN returns. The caller holds a OneThread.
  [[nodiscard]] dnnl_status_t execute(dnnl_stream_t stream, std::initializer_list<dnnl_exec_arg_t> arguments) const;

 private:
  void make(dnnl_primitive_desc_t description);

  const Library* library_;
  Owned<dnnl_primitive_desc> description_;
  Owned<dnnl_primitive> primitive_;
};

}  // namespace tenon::onednn
