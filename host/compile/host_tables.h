// Tables of int64 that the host reads or writes: offsets, and the tables of steps. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>

#include "core/graph/graph.h"
#include "core/system.h"
#include "host/plugins/host_access.h"

namespace tenon::host {

using namespace core;

// In the memory of the device if the host addresses it, else in copies, which pull() and push() make equal to it.
class HostTables {
 public:
  // Forgets all tables. Borrows `access`.
  void bind(HostAccess& access) {
    access_ = &access;
    tables_.clear();
  }
  // memory: of the device, with room for `bytes` bytes.
  void add(ValueId value, void* memory, uint64_t bytes) {
    Table& made = tables_[value];
    made.memory = static_cast<int64_t*>(memory);
    if (!access_->is_direct()) made.copy = Buffer(access_->allocator(), bytes);
  }

  [[nodiscard]] int64_t* at(ValueId value) const {
    const Table& table = tables_.at(value);
    return access_->is_direct() ? table.memory : reinterpret_cast<int64_t*>(table.copy.data());
  }
  // Copy the first `count` numbers from the device and to it. Nothing happens for kNoValue.
  void pull(ValueId value, int64_t count) const {
    if (access_->is_direct() || value == kNoValue) return;
    access_->read(at(value), tables_.at(value).memory, static_cast<uint64_t>(count) * sizeof(int64_t));
  }
  void push(ValueId value, int64_t count) const {
    if (access_->is_direct() || value == kNoValue) return;
    access_->write(tables_.at(value).memory, at(value), static_cast<uint64_t>(count) * sizeof(int64_t));
  }

 private:
  struct Table {
    int64_t* memory = nullptr;
    Buffer copy;
  };
  HostAccess* access_ = nullptr;
  std::map<ValueId, Table> tables_;
};

}  // namespace tenon::host
