// A plugin's file, loaded by the kit itself: its symbols, its descriptor, and the functions that it imports.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <functional>
#include <string>
#include <vector>

namespace tenon::check {

// Stays loaded until the process ends.
class Loaded {
 public:
  // Throws Fault with the loader's reason.
  explicit Loaded(const std::string& file);

  // Calls tenon_plugin. Throws Fault if it is not exported or returns null.
  [[nodiscard]] const tn_plugin* descriptor() const;
  struct Symbols {
    std::vector<std::string> exported, imported;
  };
  // The dynamic symbols.
  [[nodiscard]] Symbols symbols() const;
  // Calls visit(name, place) for each place of the file that holds the address of an imported function; the place may
  // be written.
  void imports(const std::function<void(const char* name, void** place)>& visit) const;

 private:
  void* handle_;
};

}  // namespace tenon::check
