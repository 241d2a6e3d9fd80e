// SPDX-License-Identifier: Apache-2.0
#include "primitive.h"

namespace tenon::onednn {

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  if (status == dnnl_out_of_memory) throw tn::Failure(TN_OUT_OF_MEMORY, "", "oneDNN is out of memory");
  throw tn::Failure(TN_UNSUPPORTED, "", what);
}

namespace {

// Attributes by which a primitive's scratchpad is an argument: oneDNN's own belongs to the thread that made it.
Owned<dnnl_primitive_attr> user_scratchpad(const Library& library) {
  dnnl_primitive_attr_t made = nullptr;
  check(library.primitive_attr_create(&made), "oneDNN makes no attributes");
  Owned<dnnl_primitive_attr> attributes(made, library.primitive_attr_destroy);
  check(library.primitive_attr_set_scratchpad_mode(made, dnnl_scratchpad_mode_user), "oneDNN keeps its scratchpad");
  return attributes;
}

}  // namespace

Stream make_stream(const Library& library) {
  dnnl_stream_t made = nullptr;
  check(library.stream_create(&made, library.engine(), dnnl_stream_default_flags), "oneDNN makes no stream");
  return {made, library.stream_destroy};
}

Memory make_memory(const Library& library, const dnnl_memory_desc_t& form) {
  dnnl_memory_t made = nullptr;
  check(library.memory_create(&made, &form, library.engine(), DNNL_MEMORY_NONE), "oneDNN makes no memory object");
  return {made, library.memory_destroy};
}

Primitive::Primitive(const Library& library, const dnnl_convolution_desc_t& operation)
    : library_(&library),
      description_(nullptr, library.primitive_desc_destroy),
      primitive_(nullptr, library.primitive_destroy) {
  const auto attributes = user_scratchpad(library);
  // The derivatives want the description of the convolution itself only as a hint for the formats that are `any`.
  dnnl_primitive_desc_t made = nullptr;
  check(library.primitive_desc_create(&made, &operation, attributes.get(), library.engine(), nullptr),
        "oneDNN does not offer this convolution");
  make(made);
}

Primitive::Primitive(const Library& library, const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to)
    : library_(&library),
      description_(nullptr, library.primitive_desc_destroy),
      primitive_(nullptr, library.primitive_destroy) {
  const auto attributes = user_scratchpad(library);
  dnnl_primitive_desc_t made = nullptr;
  check(library.reorder_primitive_desc_create(&made, &from, library.engine(), &to, library.engine(), attributes.get()),
        "oneDNN does not offer this order of the weights");
  make(made);
}

void Primitive::make(dnnl_primitive_desc_t description) {
  description_.reset(description);
  dnnl_primitive_t made = nullptr;
  check(library_->primitive_create(&made, description), "oneDNN does not make this primitive");
  primitive_.reset(made);
}

const dnnl_memory_desc_t& Primitive::form(int argument) const {
  return *library_->primitive_desc_query_md(description_.get(), dnnl_query_exec_arg_md, argument);
}

int64_t Primitive::bytes(int argument) const {
  return static_cast<int64_t>(library_->memory_desc_get_size(&form(argument)));
}

std::string Primitive::implementation() const {
  const char* name = nullptr;
  library_->primitive_desc_query(description_.get(), dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
  return name == nullptr ? "" : name;
}

dnnl_status_t Primitive::execute(dnnl_stream_t stream, std::initializer_list<dnnl_exec_arg_t> arguments) const {
  return library_->primitive_execute(primitive_.get(), stream, static_cast<int>(arguments.size()), arguments.begin());
}

}  // namespace tenon::onednn
