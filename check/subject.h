// The component under check, and the hosts in which it runs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::check {

using nlohmann::json;

// Ends a check with a fault of the component, or leaves it out for a reason.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class Skip : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct HostChoice {
  int threads = 1;
  bool checking = false;  // TN_CHECK_ON
  const tn_allocator* allocator = nullptr;
};

// Everything that the checks of one component share. Lives in a child process.
struct Subject {
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

// Returns the attributes of a JSON object as a component of the schema declares them ("attributes" of a manifest).
// Throws Fault for one that is not declared or has another kind.
[[nodiscard]] Attributes attributes_of(const json& given, const json& schema);

// Numbers of the attribute kinds in a manifest are those of tenon/attribute.h. Returns a short text of a case's
// attributes: `size = 3, bias = true`; "" without.
[[nodiscard]] std::string text_of(const json& attributes);

}  // namespace tenon::check
