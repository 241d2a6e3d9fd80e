// Loads oneDNN. SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>

#include <string>

namespace tenon::onednn {

namespace {

// The library is never unmapped: OpenMP leaves data in the threads that used it.
void* open_library() {
  if (void* const handle = dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return handle;
  const char* const words = dlerror();
  throw tn::Failure(TN_UNSUPPORTED, "", std::string(words == nullptr ? kLibraryName : words) + "; " + kLibraryHint);
}

template <class Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr)
    throw tn::Failure(TN_UNSUPPORTED, "", std::string(kLibraryName) + " has no function " + name);
}

}  // namespace

Library::Library() {
  void* const handle = open_library();
#define TENON_ONEDNN(name) find(handle, "dnnl_" #name, name)
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
  // A oneDNN with threads of another kind does not bring them.
  find(handle, "omp_get_max_threads", omp_get_max_threads);
  find(handle, "omp_set_num_threads", omp_set_num_threads);
  const dnnl_version_t* const found = version();
  if (found->major != DNNL_VERSION_MAJOR || found->minor < DNNL_VERSION_MINOR)
    throw tn::Failure(TN_UNSUPPORTED, "",
                      std::string(kLibraryName) + " is oneDNN " + std::to_string(found->major) + "." +
                          std::to_string(found->minor) + "; expected " + std::to_string(DNNL_VERSION_MAJOR) + "." +
                          std::to_string(DNNL_VERSION_MINOR) + " or a later version " +
                          std::to_string(DNNL_VERSION_MAJOR));
  if (engine_create(&engine_, dnnl_cpu, 0) != dnnl_success)
    throw tn::Failure(TN_UNSUPPORTED, "", "oneDNN offers no engine for the processor");
}

Library::~Library() { engine_destroy(engine_); }

}  // namespace tenon::onednn
