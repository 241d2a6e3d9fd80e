// The ParameterSet: the one place where parameters and buffers live, shared by any number of machines.
//
// Layout: entries lie in slabs of host memory, parameters and buffers in different ones, each entry 64-byte aligned
// with zero padding behind it, so that an update or an all-reduce is a short list of ranges. `create` makes at most
// one slab of each kind; every `add` makes at most one more of each. Memory never moves and entries are never removed
// or renumbered while the set lives: pointers into slabs and entry numbers stay valid, references to entries do until
// the next `add`. Not thread-safe: the host serialises the calls. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/names.h"
#include "core/seams.h"

namespace tenon {

// Factors on the learning rate and the weight decay of an updater, for one parameter.
struct Multipliers {
  std::optional<double> stated_rate, stated_decay;  // none: no layer states it

  [[nodiscard]] double rate() const { return stated_rate.value_or(1); }
  [[nodiscard]] double decay() const { return stated_decay.value_or(1); }
  bool operator==(const Multipliers& other) const { return rate() == other.rate() && decay() == other.decay(); }
};

// What one layer asks for.
struct ParameterDeclaration {
  std::string name;            // full: "hidden.weight"
  std::vector<int64_t> shape;  // at most TN_MAX_RANK dimensions; none: one element
  tn_dtype dtype = TN_F32;     // TN_COMPUTE counts as TN_F32, the type in which values are kept
  tn_initializer initializer = {};
  bool buffer = false;  // kept but not trained
  std::string owner;    // name of the layer, for messages
  Multipliers multipliers;
};

struct ParameterEntry {
  std::string name;
  std::vector<int64_t> shape;
  tn_dtype dtype = TN_F32;
  bool buffer = false;
  std::string owner;  // the layer that declared it first
  Multipliers multipliers;
  std::string rate_owner, decay_owner;  // the layers that state the multipliers; empty: none does
  size_t slab = 0;                      // index into ParameterSet::slabs()
  uint64_t offset = 0;                  // elements from the start of the slab; a multiple of 16
  uint64_t count = 0;                   // elements, padding not included
};

struct ParameterSlab {
  float* data = nullptr;         // null where the slab is empty
  uint64_t padded_elements = 0;  // elements, padding included: a multiple of 16
  bool buffer = false;
};

class ParameterSet {
 public:
  // Derives the entries in the order of their first declaration and initialises them. The values of an entry depend
  // on `seed` and its name alone. One name declared several times with the same shape, type and kind is one entry; with
  // another shape, type or kind it is TN_INVALID naming both layers. The first declaration gives the initializer. Each
  // multiplier comes from the declarations that state it, which must agree: TN_INVALID naming both layers and values.
  // TN_UNSUPPORTED for a type other than fp32. On failure nothing is left behind.
  static std::shared_ptr<ParameterSet> create(const std::vector<ParameterDeclaration>& declarations, uint64_t seed,
                                              std::shared_ptr<Allocator> allocator);
  // The same entries without values, and without the memory for them: enough to plan with, and to be compared with a
  // file before anything large is asked for.
  static std::shared_ptr<ParameterSet> declare(const std::vector<ParameterDeclaration>& declarations,
                                               std::shared_ptr<Allocator> allocator);
  ParameterSet(const ParameterSet&) = delete;
  ParameterSet& operator=(const ParameterSet&) = delete;

  // Extends the set by the same rules. Entries that exist are shared and keep their values and multipliers: to state
  // another multiplier than theirs, which is 1 if none was stated, is TN_INVALID. All or nothing. TN_MISUSE where there
  // are no values.
  void add(const std::vector<ParameterDeclaration>& declarations, uint64_t seed);

  [[nodiscard]] bool has_values() const { return has_values_; }
  // Gives a set that was only declared its memory. It is zero between the entries alone: the caller writes these.
  void allocate();

  [[nodiscard]] const std::vector<ParameterEntry>& entries() const { return entries_; }
  [[nodiscard]] const std::vector<ParameterSlab>& slabs() const { return slabs_; }

  [[nodiscard]] bool contains(const std::string& name) const { return by_name_.contains(name); }
  // The entry's number; throws TN_NOT_FOUND with a suggestion.
  [[nodiscard]] size_t index(const std::string& name) const;
  [[nodiscard]] const ParameterEntry& find(const std::string& name) const { return entries_[index(name)]; }

  // The values of an entry, [count]; TN_MISUSE where there are none.
  [[nodiscard]] float* data(const ParameterEntry& entry) const;
  [[nodiscard]] float* data(const std::string& name) const { return data(find(name)); }
  // Copies values in. Shape and type must be those of the entry; TN_INVALID names both otherwise.
  void set(const std::string& name, tn_dtype dtype, const std::vector<int64_t>& shape, const void* values);

  // Updates that were made to the set, by which the draws of a training step are numbered.
  [[nodiscard]] uint64_t updates() const { return updates_; }
  void count_update() { ++updates_; }

  // What the integers of data layers stood for when these values were learned.
  [[nodiscard]] const DataNames& names() const { return names_; }
  void set_names(DataNames names) { names_ = std::move(names); }

  [[nodiscard]] const std::shared_ptr<Allocator>& allocator() const { return allocator_; }

 private:
  // Entries, slabs without memory, and the initializers of the entries that are new.
  struct Layout {
    std::vector<ParameterEntry> entries;
    std::map<std::string, size_t> by_name;
    std::vector<ParameterSlab> slabs;
    std::vector<tn_initializer> initializers;
  };

  explicit ParameterSet(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) {}

  [[nodiscard]] Layout extended(const std::vector<ParameterDeclaration>& declarations) const;
  [[nodiscard]] std::vector<Buffer> memory_for(Layout& layout) const;
  void take(Layout layout, std::vector<Buffer> memory);

  std::shared_ptr<Allocator> allocator_;
  std::vector<ParameterEntry> entries_;
  std::map<std::string, size_t> by_name_;
  std::vector<ParameterSlab> slabs_;
  std::vector<Buffer> memory_;  // of slabs_, in the same order
  bool has_values_ = true;
  uint64_t updates_ = 0;
  DataNames names_;
};

// "[784, 128]"
[[nodiscard]] std::string to_string(const std::vector<int64_t>& shape);

// Fails about the parameter or buffer of that name; the component is "parameters".
template <typename... Parts>
[[noreturn]] void fail_parameter(tn_status code, const std::string& name, const Parts&... parts) {
  throw Error(code, text(parts...), "parameters", name);
}

}  // namespace tenon
