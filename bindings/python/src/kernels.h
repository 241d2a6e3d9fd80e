// Layer types and metrics written in Python, as plugins that are made at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core.h"

namespace tenon_python {

class KernelType;

// The types written in Python that a host has. They must outlive it: the host's log holds them, since that is all of
// the application's that a host keeps until it has ended.
class KernelTypes {
 public:
  KernelTypes();
  KernelTypes(const KernelTypes&) = delete;
  KernelTypes& operator=(const KernelTypes&) = delete;
  ~KernelTypes();
  // Registers a type with the host. description, handler: as Definition.description and Kernel of tenon._model.kernels.
  void add(const tenon::Host& host, const nb::dict& description, nb::object handler);

  // Makes the log of a host.
  static std::function<void(int, const char*)> new_log();
  // Returns the types of a host that has such a log.
  static KernelTypes& of(const tenon::Host& host);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<KernelType>> types_;
};

}  // namespace tenon_python
