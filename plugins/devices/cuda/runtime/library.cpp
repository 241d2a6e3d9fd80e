// Loads shared libraries. SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>

#include <tenon/base.hpp>

namespace tenon::cuda {

Library::Library(const std::vector<const char*>& names) {
  for (const char* const each : names) {
    void* const opened = dlopen(each, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (opened != nullptr) {
      handle_ = std::shared_ptr<void>(opened, [](void* handle) { dlclose(handle); });
      name_ = each;
      return;
    }
    const char* const words = dlerror();
    why_ += (why_.empty() ? "" : "; ") + std::string(words == nullptr ? each : words);
  }
}

void* Library::address(const char* name) const {
  void* const found = dlsym(handle_.get(), name);
  if (found == nullptr) throw tn::Failure(TN_UNSUPPORTED, "", name_ + " is too old: it has no " + name);
  return found;
}

}  // namespace tenon::cuda
