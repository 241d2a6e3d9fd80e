// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::base {

// The base of classes whose objects are neither copied nor moved.
class NotCopied {
 public:
  NotCopied(const NotCopied&) = delete;
  NotCopied& operator=(const NotCopied&) = delete;

 protected:
  NotCopied() = default;
  ~NotCopied() = default;
};

}  // namespace tenon::base
