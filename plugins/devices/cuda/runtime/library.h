// A shared library that is loaded at run time, so that the plugin itself loads on any system.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tenon::cuda {

class Library {
 public:
  Library() = default;
  // Loads the first of the names that exists. A library is never unmapped: drivers leave threads and exit handlers
  // behind.
  explicit Library(const std::vector<const char*>& names);

  [[nodiscard]] bool is_open() const { return handle_ != nullptr; }
  // The loader's message for each name that could not be loaded.
  [[nodiscard]] const std::string& why() const { return why_; }
  // Sets `function`; throws tn::Failure if the library lacks it.
  template <typename Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address(name));
  }

 private:
  [[nodiscard]] void* address(const char* name) const;

  std::shared_ptr<void> handle_;
  std::string name_;
  std::string why_;
};

}  // namespace tenon::cuda
