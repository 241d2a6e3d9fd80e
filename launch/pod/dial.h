// How a pod finds the launcher of its training. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "launch/pod/address.h"
#include "launch/pod/tunnel.h"

namespace tenon::launch {

// Connects once. Throws std::runtime_error whose text says why not: the name is unknown so far, nobody listens.
[[nodiscard]] std::unique_ptr<Tunnel> dial(const Address& address, const std::string& secret, const std::string& node);

}  // namespace tenon::launch
