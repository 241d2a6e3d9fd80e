// A plugin as a newer host, or the oldest one on which it says that it runs, would call it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <cstddef>
#include <string>

namespace tenon::check {

// The host that the kit's host pretends to be.
struct OtherHost {
  uint16_t minor = TN_ABI_MINOR + 1;  // structs of an older one end where those of this version end
  unsigned char behind = 0;           // of a newer one: the value of the bytes by which its structs are longer

  [[nodiscard]] bool is_newer() const { return minor > TN_ABI_MINOR; }
  [[nodiscard]] std::string name() const;
};

// A copy of the descriptor whose component of this kind, as in Result, and name (of a kernel: all) gets what the host
// lends as the host of the present, or last, Lending would lend it. One component in a process; valid until the process
// ends.
[[nodiscard]] const tn_plugin* plugin_in_other_host(const tn_plugin& plugin, const std::string& kind,
                                                    const std::string& name);

// While one lives, structs are lent as this host would lend them; what outlives it stays as it is.
class Lending {
 public:
  explicit Lending(const OtherHost& host);
  ~Lending();
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;
  [[nodiscard]] static bool is_on();
};

// What the plugin did since the last call that such a host does not know, or does not allow, without crashing; "" if
// nothing.
[[nodiscard]] std::string other_host_fault();

// Of a crash: whether the address lies behind a struct that was lent. Appends what that is to the text. Signal-safe.
[[nodiscard]] bool is_behind_lent(const void* address);
void tell_lent(const void* address, char* text, size_t capacity);

}  // namespace tenon::check
