// The library of an image format, loaded when a file needs it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <string>

#include "image.h"

namespace tenon::images {

// A shared library, which stays loaded: the reader works without it as long as no file has its format.
class Library {
 public:
  // package: of Debian. Throws NoDecoder.
  Library(const char* format, const char* file, const char* package)
      : file_(file), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
    if (handle_ != nullptr) return;
    const char* const words = dlerror();
    throw NoDecoder{std::string(format) + ": " + (words == nullptr ? file : words) + "; install " + package};
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

 protected:
  // A function of the library or of those that it needs; converts to a pointer to it.
  struct Function {
    void* address;
    template <typename F>
    operator F*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<F*>(address);
    }
  };
  [[nodiscard]] Function find(const char* name) const {
    if (void* const address = dlsym(handle_, name)) return {address};
    throw NoDecoder{std::string(file_) + " has no function " + name};
  }

 private:
  const char* file_;
  void* handle_;
};

}  // namespace tenon::images
