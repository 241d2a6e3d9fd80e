// The component under check, and the hosts in which it runs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <cstdint>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "check/cases/attributes.h"

namespace tenon::check {

struct HostChoice {
  int threads = 1;
  bool checking = false;  // TN_CHECK_ON
  const tn_allocator* allocator = nullptr;
};

// Everything that the checks of one component share. Lives in a child process.
struct Subject {                     // NOLINT(bugprone-exception-escape): JSON moves without one
  std::string file;                  // canonical
  std::vector<std::string> folders;  // of hosts: the file's own first
  std::string others;                // a folder with all other plugins that the hosts find
  std::string scratch;               // the folder for temporary files of children, which may die
  json manifest;                     // of the plugin
  std::string kind;                  // as in Result
  std::string type;
  std::string shown;               // the name in results, if it is not `type`: of a kernel, provider or device
  std::string device;              // the device under check, or that of a provider; `type` is then "check.primitive"
  std::vector<std::string> chain;  // of a kernel with a fusion pattern: the types, the last of which is `type`
  json described;                  // the component's entry of the manifest
  uint64_t seed = 1;
  json cases;          // those of the author for this type, a list
  std::string folder;  // of files of cases

  // Makes a host that finds the plugin as a file and has the layers of parts.h.
  [[nodiscard]] Host host(const HostChoice& choice = {}) const;
  // Whether the device under check lists the table. A provider's device has all of them.
  [[nodiscard]] bool offers(const std::string& table) const;
  // Whether the provider under check is one of row-sparse gradients, which cases do not have.
  [[nodiscard]] bool serves_rows() const;
};

}  // namespace tenon::check
