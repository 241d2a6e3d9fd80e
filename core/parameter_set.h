// The ParameterSet: owns parameters and buffers, for any number of machines. SPDX-License-Identifier: Apache-2.0
//
// Layout: entries lie in slabs of host memory, parameters and buffers in separate slabs. Each entry is 64-byte aligned
// and followed by zero padding, so that an update or an all-reduce is a short list of ranges. `create` allocates at
// most one slab of each kind, each `add` at most one more of each. Slabs never move, and entries are never removed or
// renumbered. Pointers into slabs and numbers of entries are valid as long as the set; references to entries are valid
// until the next `add`. Not thread-safe: the host serialises the calls.
//
// A slab is the home of its values. Machines on a device whose memory the host cannot address work on a replica there,
// so whoever reads values asks for them by values() at that time, and whoever writes them asks by change().
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "core/array_view.h"
#include "core/error.h"
#include "core/home.h"
#include "core/initializers/first_rows.h"
#include "core/names.h"
#include "core/system.h"
#include "core/table_rows.h"

namespace tenon::core {

// Factors on the learning rate and the weight decay of an updater, for one parameter.
struct Multipliers {
  std::optional<double> stated_rate, stated_decay;  // empty if no layer states it

  [[nodiscard]] double rate() const { return stated_rate.value_or(1); }
  [[nodiscard]] double decay() const { return stated_decay.value_or(1); }
  bool operator==(const Multipliers& other) const { return rate() == other.rate() && decay() == other.decay(); }
};

// "mean", "sum", "max" or "first" for TN_MERGE_*; null for any other number.
[[nodiscard]] const char* merge_name(int32_t merge);

// A parameter or buffer that one layer declares.
struct ParameterDeclaration {
  std::string name;            // full: "hidden.weight"
  std::vector<int64_t> shape;  // at most TN_MAX_RANK dimensions; empty: one element
  tn_dtype dtype = TN_F32;     // TN_COMPUTE means TN_F32, the type of stored values
  tn_initializer initializer = {};
  bool initializer_stated = false;  // by the user of the layer, not by its type
  bool buffer = false;              // stored with the model, not trained
  std::string owner;                // name of the layer, for messages
  Multipliers multipliers;
  int32_t merge = TN_MERGE_MEAN;  // of a buffer
};

struct ParameterEntry {
  std::string name;
  std::vector<int64_t> shape;
  tn_dtype dtype = TN_F32;
  bool buffer = false;
  std::string owner;  // the layer that declared it first
  Multipliers multipliers;
  std::string rate_owner, decay_owner;  // the layers that state the multipliers; empty if none
  size_t slab = 0;                      // index into ParameterSet::slabs()
  uint64_t offset = 0;                  // elements from the start of the slab; a multiple of 16
  uint64_t count = 0;                   // elements, padding not included; of a table 0
  int32_t merge = TN_MERGE_MEAN;        // of a buffer
  bool table = false;                   // its rows lie in ParameterSet::owned() of their owners
};

// Tables: parameters whose rows processes own. blocks: those of this process; empty: it has all rows of them, as of
// other parameters.
struct TablePlacement {
  std::vector<std::string> names;
  std::optional<TableBlocks> blocks;
};

struct ParameterSlab {
  float* data = nullptr;         // null if the slab is empty or not allocated
  uint64_t padded_elements = 0;  // elements, padding included: a multiple of 16
  bool buffer = false;
};

class ParameterSet : base::NotCopied {
 public:
  // Creates and initialises entries in the order of their first declaration. The values of an entry depend on `seed`
  // and its name only. Declarations of one name share an entry. They must agree in shape, type, kind and merge, and in
  // every multiplier and initializer that several of them state; otherwise throws TN_INVALID naming both layers. The
  // first declaration that states an initializer determines it; if none does, the first declaration. Throws
  // TN_UNSUPPORTED for a type other than fp32.
  // Of tables with blocks it has no values: owned() has the rows of this process, with the first values that they have
  // in a set without tables, each row drawn when somebody first asks for it. TN_INVALID naming a table that is not a
  // parameter with rows, TN_UNSUPPORTED naming one whose first values cannot be drawn row by row.
  static std::shared_ptr<ParameterSet> create(const std::vector<ParameterDeclaration>& declarations, uint64_t seed,
                                              std::shared_ptr<Allocator> allocator, const TablePlacement& tables = {});
  // Creates the same entries without memory and values. A declared set is enough to plan a machine, and to check a
  // model file before large memory is allocated.
  static std::shared_ptr<ParameterSet> declare(const std::vector<ParameterDeclaration>& declarations,
                                               std::shared_ptr<Allocator> allocator);

  // Extends the set by the same rules. Existing entries are shared and keep their values and multipliers: throws
  // TN_INVALID if a declaration states another multiplier than the entry has (1 if unstated). Throws TN_MISUSE if the
  // set has no values. On failure the set is unchanged.
  void add(const std::vector<ParameterDeclaration>& declarations, uint64_t seed);

  [[nodiscard]] bool has_values() const { return has_values_; }

  [[nodiscard]] const TablePlacement& tables() const { return tables_; }
  // The rows of tables that this process owns, as parameters of the same names with as many rows; null if it has those
  // of others.
  [[nodiscard]] const std::shared_ptr<ParameterSet>& owned() const { return owned_; }

  // Memory for the values of all entries, apart from the memory of the set.
  class Values {
   public:
    // Returns the values of an entry of the set, [count]; null if its slab is empty.
    [[nodiscard]] float* data(const ParameterEntry& entry) const;

   private:
    friend ParameterSet;
    std::vector<ParameterSlab> slabs_;
    std::vector<std::unique_ptr<Home>> memory_;  // of slabs_, in the same order
  };
  // Allocates memory for values that are to replace those of the set. Zeroes the padding only.
  [[nodiscard]] Values allocate() const;
  // Replaces the values of all entries: gives `values` to a declared set, copies them into one that has values. They
  // come from `allocate`; no entry was added since. Does not fail.
  void replace(Values values) noexcept;

  [[nodiscard]] const std::vector<ParameterEntry>& entries() const { return entries_; }
  [[nodiscard]] const std::vector<ParameterSlab>& slabs() const { return slabs_; }

  [[nodiscard]] bool contains(const std::string& name) const { return by_name_.contains(name); }
  // Returns the number of an entry. Throws TN_NOT_FOUND with a suggestion.
  [[nodiscard]] size_t index(const std::string& name) const;
  [[nodiscard]] const ParameterEntry& find(const std::string& name) const { return entries_[index(name)]; }

  // Throws TN_MISUSE if the set has no values, TN_UNSUPPORTED for a table whose rows lie with their owners.
  void require_values(const ParameterEntry& entry) const;
  // Return the values of an entry, [count]; null if its slab is empty. Throw as require_values().
  // To read them now: brings them home.
  [[nodiscard]] const float* values(const ParameterEntry& entry) const;
  [[nodiscard]] const float* values(const std::string& name) const { return values(find(name)); }
  // To read and write them now.
  [[nodiscard]] float* change(const ParameterEntry& entry);
  [[nodiscard]] float* change(const std::string& name) { return change(find(name)); }
  // The same for who writes all values of an entry.
  [[nodiscard]] float* overwrite(const ParameterEntry& entry);
  // The values of one row of entry number `number`.
  [[nodiscard]] const float* row(size_t number, int64_t place) const;
  // Their address at home, where they may be older than in a replica.
  [[nodiscard]] float* address(const ParameterEntry& entry) const;
  // The same as values() and change() for all entries.
  void bring_home() const;
  void changed() noexcept;
  // The home of an entry, and its part of it. Throws as require_values().
  [[nodiscard]] Home& home(const ParameterEntry& entry);
  [[nodiscard]] static Home::Part part(const ParameterEntry& entry) {
    return {entry.offset * sizeof(float), entry.count * sizeof(float)};
  }
  // Throws unless `set` takes these values: TN_INVALID naming expected and actual shape and type if they differ,
  // TN_NOT_FOUND, TN_MISUSE for null values.
  void check(const std::string& name, const ArrayView& values) const;
  // Copies `values` into an entry, after that check; of a table the rows that this process owns.
  void set(const std::string& name, const ArrayView& values);

  // The number of updates of the set so far: the step in the counters of random draws.
  [[nodiscard]] uint64_t updates() const { return updates_; }
  void count_update() { ++updates_; }
  void set_updates(uint64_t updates) { updates_ = updates; }  // of a checkpoint

  // The names of the integers of data layers with which the values were trained.
  [[nodiscard]] const DataNames& names() const { return names_; }
  void set_names(DataNames names) { names_ = std::move(names); }

  // Texts by key that files of the set hold in their metadata (docs/model-file.md).
  using Metadata = std::map<std::string, std::string>;
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  void set_metadata(Metadata metadata) { metadata_ = std::move(metadata); }

  [[nodiscard]] const std::shared_ptr<Allocator>& allocator() const { return allocator_; }

 private:
  // The next state of the set: entries, slabs (new ones without memory), and the initializers of new entries.
  struct FirstValues {
    tn_initializer initializer = {};
    std::string owner;  // the layer that states it; empty if none
  };
  struct Layout {
    std::vector<ParameterEntry> entries;
    std::map<std::string, size_t> by_name;
    std::vector<ParameterSlab> slabs;
    std::vector<FirstValues> first_values;
  };

  explicit ParameterSet(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) {}

  static void share_first_values(FirstValues& first, const ParameterDeclaration& second);
  // Returns the set extended by `declarations`, with new slabs not allocated yet.
  [[nodiscard]] Layout extended(const std::vector<ParameterDeclaration>& declarations) const;
  [[nodiscard]] std::vector<std::unique_ptr<Home>> memory_for(std::vector<ParameterSlab>& slabs, size_t first,
                                                              const std::vector<ParameterEntry>& entries) const;
  void take(Layout layout, std::vector<std::unique_ptr<Home>> memory);
  void check_tables(const Layout& layout) const;
  void set_rows(const ParameterEntry& table, const ArrayView& values);
  void draw_first_rows(const ParameterEntry& entry) const;
  [[nodiscard]] std::shared_ptr<ParameterSet> owned_rows(const Layout& layout, uint64_t seed) const;

  std::shared_ptr<Allocator> allocator_;
  TablePlacement tables_;
  std::shared_ptr<ParameterSet> owned_;
  std::vector<ParameterEntry> entries_;
  std::map<std::string, size_t> by_name_;
  std::vector<ParameterSlab> slabs_;
  std::vector<std::unique_ptr<Home>> memory_;  // of slabs_, in the same order
  mutable std::vector<FirstRows> first_rows_;  // of an owned() set, by number of the entry; else empty
  bool has_values_ = true;
  uint64_t updates_ = 0;
  DataNames names_;
  Metadata metadata_;
};

using base::to_string;  // of a shape: "[784, 128]"
// Returns whether the name of a parameter or layer is `above` or lies below it: "D.weight" below "D".
[[nodiscard]] bool is_below(const std::string& name, const std::string& above);

// Throws an Error about parameter or buffer `name`, with the component "parameters".
template <typename... Parts>
[[noreturn]] void fail_parameter(tn_status code, const std::string& name, const Parts&... parts) {
  throw Error(code, text(parts...), "parameters", name);
}

}  // namespace tenon::core
