// What the shards of a minibatch add up, and where it lies. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/not_copied.h"
#include "host/machine/sparse_gradient.h"

namespace tenon::host {

using namespace core;

class DeviceMachine;

// Identifies a state of memory: pointers into it and calls prepared for it are valid while memory_id() returns the same
// object. Compared by address, which cannot be reused while a holder keeps the object.
struct MemoryId {};

// The gradients, and the next values of buffers, of a node of the tree of shards: those that the backward of one shard
// has left, or the sum over several.
class ShardValues : base::NotCopied {
 public:
  virtual ~ShardValues() = default;

  // The machine on whose device, and in whose stream, they are computed. All shards have the same model.
  [[nodiscard]] virtual DeviceMachine& machine() = 0;
  // All dense gradients, of the compute type, one behind the other with their padding.
  [[nodiscard]] virtual std::span<std::byte> dense_gradients() const = 0;
  // number: in CompiledModel::sparse_gradients.
  [[nodiscard]] virtual SparseGradient& sparse_gradient(size_t number) const = 0;
  // Makes room for rows that are to be added to a row-sparse gradient: all may be new ones.
  virtual void reserve_rows(size_t number, int64_t added) = 0;
  // The next value of a buffer that is merged. number: in Lowered::buffers.
  [[nodiscard]] virtual void* next_value(size_t number) const = 0;
  // For the pointers of the functions above.
  [[nodiscard]] virtual const std::shared_ptr<const MemoryId>& memory_id() const = 0;
};

// Makes room for rows that are to be added to a row-sparse gradient, all of which may be new ones. Returns whether its
// memory is another one now: then memory_id is another object, too.
bool make_room(SparseGradient& gradient, int64_t added, std::shared_ptr<const MemoryId>& memory_id);

// A buffer of which a machine computes next values.
struct MergedBuffer {
  size_t number;   // in Lowered::buffers
  uint64_t count;  // elements
  uint64_t bytes;  // in the compute type
  int32_t merge;   // TN_MERGE_*: how those of two shards become one
};

// Copies the values of one node over those of another, of the same machine.
void copy_values(ShardValues& to, ShardValues& from);

}  // namespace tenon::host
