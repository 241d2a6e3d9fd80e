// SPDX-License-Identifier: Apache-2.0
#include "core/parameter_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fnv.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "core/alignment.h"
#include "core/attribute.h"
#include "core/checked.h"
#include "core/initializers/initializers.h"
#include "core/philox.h"
#include "core/shape.h"

namespace tenon::core {

namespace {

// "parameter \"hidden.weight\" of layer \"hidden\""
std::string described(const char* kind, const std::string& name, const std::string& owner) {
  return text(kind, " \"", name, "\"", owner.empty() ? "" : " of layer \"" + owner + "\"");
}

const char* kind_of(bool buffer) { return buffer ? "buffer" : "parameter"; }

std::string described(const ParameterDeclaration& declaration) {
  return described(kind_of(declaration.buffer), declaration.name, declaration.owner);
}

// Prints make(), which is called for messages alone.
template <typename Make>
struct InMessage {
  const Make& make;
  friend std::ostream& operator<<(std::ostream& out, const InMessage& late) { return out << late.make(); }
};
template <typename Make>
InMessage(const Make&) -> InMessage<Make>;  // clang 14 deduces no aggregates

// Names become keys of model files, so they must be valid UTF-8.
void check_name(const ParameterDeclaration& declaration) {
  if (declaration.name.empty())
    fail_parameter(TN_INVALID, declaration.name, described(declaration), " has an empty name");
  if (!base::is_utf8(declaration.name))
    fail_parameter(TN_INVALID, declaration.name, "the name of a ", kind_of(declaration.buffer), " of layer \"",
                   declaration.owner, "\" is not valid UTF-8");
  if (declaration.name == "__metadata__" || declaration.name.find('\0') != std::string::npos)
    fail_parameter(TN_INVALID, declaration.name, described(declaration), " has a name that model files cannot hold");
}

void check_initializer(const ParameterDeclaration& declaration) {
  const tn_initializer& initializer = declaration.initializer;
  const auto fits = [](double x) { return std::abs(x) <= std::numeric_limits<float>::max(); };  // false for NaN
  const bool two = initializer.kind != TN_INIT_CONSTANT;
  const bool of_host = initializer.kind == kInitTruncatedNormal || initializer.kind == kInitOrthogonal;
  if (!of_host && (initializer.kind < TN_INIT_CONSTANT || initializer.kind > TN_INIT_NORMAL))
    fail_parameter(TN_INVALID, declaration.name, described(declaration), " has an unknown initializer kind ",
                   initializer.kind);
  // Box and Muller's method reaches less than 9 standard deviations.
  const double reach = initializer.kind == TN_INIT_NORMAL ? std::abs(initializer.a) + 9 * std::abs(initializer.b)
                       : initializer.kind == kInitTruncatedNormal ? 9 * std::abs(initializer.a)
                                                                  : 0;
  if (!fits(initializer.a) || (two && !fits(initializer.b)) || !fits(reach))
    fail_parameter(TN_INVALID, declaration.name, described(declaration), " has an initializer that no ",
                   dtype_name(TN_F32), " can hold: ", initializer.a, ", ", initializer.b);
  if (initializer.kind == TN_INIT_UNIFORM && initializer.a > initializer.b)
    fail_parameter(TN_INVALID, declaration.name, described(declaration),
                   " is to be uniform in [a, b) with a = ", initializer.a, " above b = ", initializer.b);
  if (initializer.kind == TN_INIT_NORMAL && initializer.b < 0)
    fail_parameter(TN_INVALID, declaration.name, described(declaration),
                   " is to be normal with a negative standard deviation ", initializer.b);
}

// Checks a declaration and returns its entry, with slab and offset not set yet.
ParameterEntry entry_of(const ParameterDeclaration& declaration) {
  check_name(declaration);
  const tn_dtype dtype = declaration.dtype == TN_COMPUTE ? TN_F32 : declaration.dtype;
  if (dtype != TN_F32)
    fail_parameter(TN_UNSUPPORTED, declaration.name, described(declaration), " has type ", dtype_name(dtype),
                   "; values are kept as ", dtype_name(TN_F32));
  if (declaration.shape.size() > TN_MAX_RANK)
    fail_parameter(TN_INVALID, declaration.name, described(declaration), " has ", declaration.shape.size(),
                   " dimensions; at most ", TN_MAX_RANK, " are possible");
  const auto size = [&] { return "size of " + described(declaration) + " " + to_string(declaration.shape); };
  int64_t count = 1;
  for (const int64_t dimension : declaration.shape) {
    if (dimension < 0)
      fail_parameter(TN_INVALID, declaration.name, described(declaration),
                     " has a negative dimension: ", to_string(declaration.shape));
    count = checked_multiply(count, dimension, InMessage{size});
  }
  check_initializer(declaration);
  if (merge_name(declaration.merge) == nullptr)
    fail_parameter(TN_INVALID, declaration.name, described(declaration), " has an unknown merge ", declaration.merge);
  ParameterEntry entry;
  entry.name = declaration.name;
  entry.shape = declaration.shape;
  entry.dtype = dtype;
  entry.buffer = declaration.buffer;
  entry.merge = declaration.merge;
  entry.owner = declaration.owner;
  entry.multipliers = declaration.multipliers;
  if (entry.multipliers.stated_rate) entry.rate_owner = entry.owner;
  if (entry.multipliers.stated_decay) entry.decay_owner = entry.owner;
  entry.count = static_cast<uint64_t>(count);
  return entry;
}

void check_shared(const ParameterEntry& first, const ParameterEntry& second) {
  const bool merged_alike = !first.buffer || first.merge == second.merge;
  if (first.shape == second.shape && first.dtype == second.dtype && first.buffer == second.buffer && merged_alike)
    return;
  const auto said = [&](const ParameterEntry& entry) {
    return text("layer \"", entry.owner, "\" declares a ", kind_of(entry.buffer), " ", dtype_name(entry.dtype), " ",
                to_string(entry.shape), merged_alike ? "" : text(" merged by ", merge_name(entry.merge)));
  };
  fail_parameter(TN_INVALID, first.name, "\"", first.name, "\" cannot be shared: ", said(first), ", ", said(second));
}

// A multiplier of a shared entry, and the layer that states it.
struct SharedMultiplier {
  const char* key;
  std::optional<double>& value;
  std::string& owner;
};

// Merges the multiplier of a second declaration of an entry. in_use: the entry existed before this `add`, so machines
// may already train with its multiplier.
void share_multiplier(const ParameterEntry& entry, const SharedMultiplier& first, const std::optional<double>& second,
                      const std::string& second_owner, bool in_use) {
  if (!second) return;
  if (first.value && *first.value != *second)
    fail_parameter(TN_INVALID, entry.name, "parameter \"", entry.name, "\" cannot be shared: layer \"", first.owner,
                   "\" sets its ", first.key, " multiplier to ", shown(*first.value), ", layer \"", second_owner,
                   "\" to ", shown(*second));
  if (!first.value && in_use && *second != 1)
    fail_parameter(TN_INVALID, entry.name, "parameter \"", entry.name, "\" cannot be shared: layer \"", entry.owner,
                   "\" leaves its ", first.key, " multiplier at 1, layer \"", second_owner, "\" sets it to ",
                   shown(*second));
  if (first.value) return;
  first.value = second;
  first.owner = second_owner;
}

void share(ParameterEntry& first, const ParameterEntry& second, bool in_use) {
  check_shared(first, second);
  share_multiplier(first, {"rate", first.multipliers.stated_rate, first.rate_owner}, second.multipliers.stated_rate,
                   second.owner, in_use);
  share_multiplier(first, {"decay", first.multipliers.stated_decay, first.decay_owner}, second.multipliers.stated_decay,
                   second.owner, in_use);
}

// The slab for the new entries of one kind.
struct NewSlab {
  bool buffer = false;
  bool used = false;      // by at least one entry, perhaps without elements
  uint64_t elements = 0;  // padding included
  size_t number = 0;      // index among the slabs of the set
};

}  // namespace

const char* merge_name(int32_t merge) {
  static constexpr const char* kNames[] = {"mean", "sum", "max", "first"};  // by TN_MERGE_*
  return merge >= TN_MERGE_MEAN && merge <= TN_MERGE_FIRST ? kNames[merge] : nullptr;
}

bool is_below(const std::string& name, const std::string& above) {
  return name == above || name.starts_with(above + ".");
}

std::shared_ptr<ParameterSet> ParameterSet::create(const std::vector<ParameterDeclaration>& declarations, uint64_t seed,
                                                   std::shared_ptr<Allocator> allocator, const TablePlacement& tables) {
  std::shared_ptr<ParameterSet> set(new ParameterSet(std::move(allocator)));
  set->tables_ = tables;
  set->add(declarations, seed);
  return set;
}

std::shared_ptr<ParameterSet> ParameterSet::declare(const std::vector<ParameterDeclaration>& declarations,
                                                    std::shared_ptr<Allocator> allocator) {
  std::shared_ptr<ParameterSet> set(new ParameterSet(std::move(allocator)));
  set->take(set->extended(declarations), {});
  set->has_values_ = false;
  return set;
}

// Merges the initializer of a second declaration of a new entry.
void ParameterSet::share_first_values(FirstValues& first, const ParameterDeclaration& second) {
  if (!second.initializer_stated) return;
  const tn_initializer &a = first.initializer, &b = second.initializer;
  const bool equal = a.kind == b.kind && a.a == b.a && a.b == b.b;
  if (!first.owner.empty() && !equal)
    fail_parameter(TN_INVALID, second.name, "\"", second.name, "\" cannot be shared: layers \"", first.owner,
                   "\" and \"", second.owner, "\" set different initializers");
  first = {second.initializer, second.owner};
}

ParameterSet::Layout ParameterSet::extended(const std::vector<ParameterDeclaration>& declarations) const {
  Layout layout{entries_, by_name_, slabs_, {}};
  NewSlab parameters, buffers;
  buffers.buffer = true;
  const auto slab_of = [&](const ParameterEntry& entry) -> NewSlab& { return entry.buffer ? buffers : parameters; };
  for (const ParameterDeclaration& declaration : declarations) {
    ParameterEntry entry = entry_of(declaration);
    const auto [known, fresh] = layout.by_name.emplace(entry.name, layout.entries.size());
    if (!fresh) {
      share(layout.entries[known->second], entry, known->second < entries_.size());
      if (known->second >= entries_.size())
        share_first_values(layout.first_values[known->second - entries_.size()], declaration);
      continue;
    }
    const auto size = [&] { return "size of the set at " + described(declaration); };
    NewSlab& slab = slab_of(entry);
    entry.table =
        tables_.blocks && std::find(tables_.names.begin(), tables_.names.end(), entry.name) != tables_.names.end();
    if (entry.table) entry.count = 0;
    entry.offset = slab.elements;
    slab.elements = checked_add(entry.offset, padded_elements(entry.count, InMessage{size}), InMessage{size});
    (void)checked_multiply(slab.elements, uint64_t{sizeof(float)}, InMessage{size});
    slab.used = true;
    layout.entries.push_back(std::move(entry));
    layout.first_values.push_back({declaration.initializer, declaration.initializer_stated ? declaration.owner : ""});
  }
  for (NewSlab* slab : {&parameters, &buffers}) {
    slab->number = layout.slabs.size();
    if (slab->used) layout.slabs.push_back({nullptr, slab->elements, slab->buffer});
  }
  for (size_t i = entries_.size(); i < layout.entries.size(); ++i)
    layout.entries[i].slab = slab_of(layout.entries[i]).number;
  return layout;
}

// Allocates the slabs from number `first` on and zeroes the padding after each of their entries.
std::vector<std::unique_ptr<Home>> ParameterSet::memory_for(std::vector<ParameterSlab>& slabs, size_t first,
                                                            const std::vector<ParameterEntry>& entries) const {
  std::vector<std::unique_ptr<Home>> memory;
  for (size_t i = first; i < slabs.size(); ++i) {
    try {
      memory.push_back(std::make_unique<Home>(allocator_, slabs[i].padded_elements * sizeof(float)));
    } catch (const Error& error) {
      if (error.code() != TN_OUT_OF_MEMORY) throw;
      const auto size = [i](const ParameterEntry& entry) { return entry.slab == i ? entry.count : 0; };
      const ParameterEntry& largest = *std::max_element(
          entries.begin(), entries.end(), [&](const auto& a, const auto& b) { return size(a) < size(b); });
      fail_parameter(TN_OUT_OF_MEMORY, largest.name, "the largest parameter, \"", largest.name, "\", has ",
                     largest.count, " values: ", error.what());
    }
    slabs[i].data = reinterpret_cast<float*>(memory.back()->data());
  }
  for (const ParameterEntry& entry : entries)
    if (entry.slab >= first && entry.count > 0)
      std::fill_n(slabs[entry.slab].data + entry.offset + entry.count,
                  padded_elements(entry.count, "size") - entry.count, 0.0F);
  return memory;
}

// Replaces the members. Can only fail in `reserve`, before any member has changed.
void ParameterSet::take(Layout layout, std::vector<std::unique_ptr<Home>> memory) {
  memory_.reserve(memory_.size() + memory.size());
  for (std::unique_ptr<Home>& block : memory) memory_.push_back(std::move(block));
  entries_.swap(layout.entries);
  by_name_.swap(layout.by_name);
  slabs_.swap(layout.slabs);
}

void ParameterSet::add(const std::vector<ParameterDeclaration>& declarations, uint64_t seed) {
  if (!has_values_) fail(TN_MISUSE, "a set of parameters that was only declared cannot be extended");
  // Prepares the next state in copies, so that a failure leaves the set unchanged.
  Layout layout = extended(declarations);
  if (layout.first_values.empty()) return;
  check_tables(layout);
  std::shared_ptr<ParameterSet> owned = owned_;
  if (tables_.blocks && owned == nullptr) owned = owned_rows(layout, seed);
  std::vector<std::unique_ptr<Home>> memory = memory_for(layout.slabs, memory_.size(), layout.entries);
  for (size_t i = entries_.size(); i < layout.entries.size(); ++i) {
    const ParameterEntry& entry = layout.entries[i];
    if (entry.count == 0) continue;
    draw_first_values(layout.first_values[i - entries_.size()].initializer,
                      Philox(seed, base::fnv1a<uint64_t>(entry.name)), entry.shape, {0, entry.count, entry.count},
                      layout.slabs[entry.slab].data + entry.offset);
  }
  take(std::move(layout), std::move(memory));
  owned_ = std::move(owned);
}

namespace {

float* values_of(const std::vector<ParameterSlab>& slabs, const ParameterEntry& entry) {
  float* const slab = slabs[entry.slab].data;
  return slab == nullptr ? nullptr : slab + entry.offset;
}

}  // namespace

float* ParameterSet::Values::data(const ParameterEntry& entry) const { return values_of(slabs_, entry); }

ParameterSet::Values ParameterSet::allocate() const {
  Values values;
  values.slabs_ = slabs_;
  values.memory_ = memory_for(values.slabs_, 0, entries_);
  return values;
}

void ParameterSet::replace(Values values) noexcept {
  if (!has_values_) {
    slabs_.swap(values.slabs_);
    memory_.swap(values.memory_);
    has_values_ = true;
    return;
  }
  for (const ParameterEntry& entry : entries_)
    if (entry.count > 0) std::copy_n(values.data(entry), entry.count, address(entry));
  changed();
}

size_t ParameterSet::index(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  std::vector<std::string> known;
  for (const ParameterEntry& entry : entries_) known.push_back(entry.name);
  fail_parameter(TN_NOT_FOUND, name, "unknown parameter or buffer \"", name, "\"", base::suggestion(name, known));
}

void ParameterSet::require_values(const ParameterEntry& entry) const {
  if (!has_values_) fail(TN_MISUSE, "the parameters have no values: they were only declared, to plan with");
  if (entry.table)
    fail_parameter(
        TN_UNSUPPORTED, entry.name, "parameter \"", entry.name,
        "\" is a table, whose rows lie with the processes of a team: save the model, in all of them, and load "
        "the file into parameters without tables");
}

float* ParameterSet::address(const ParameterEntry& entry) const {
  require_values(entry);
  return values_of(slabs_, entry);
}

Home& ParameterSet::home(const ParameterEntry& entry) {
  require_values(entry);
  return *memory_[entry.slab];
}

const float* ParameterSet::values(const ParameterEntry& entry) const {
  const float* const values = address(entry);
  draw_first_rows(entry);
  memory_[entry.slab]->bring_home(part(entry));
  return values;
}

float* ParameterSet::change(const ParameterEntry& entry) {
  Home& of = home(entry);
  draw_first_rows(entry);
  of.bring_home(part(entry));
  of.changed(part(entry));
  return address(entry);
}

void ParameterSet::bring_home() const {
  if (!has_values_) return;
  for (const ParameterEntry& entry : entries_)
    if (!entry.table) memory_[entry.slab]->bring_home(part(entry));
}

void ParameterSet::changed() noexcept {
  if (!has_values_) return;
  for (const ParameterEntry& entry : entries_)
    if (!entry.table) memory_[entry.slab]->changed(part(entry));
}

void ParameterSet::check(const std::string& name, const ArrayView& values) const {
  const ParameterEntry& entry = find(name);
  if (values.dtype != entry.dtype || values.shape != entry.shape)
    fail_parameter(TN_INVALID, name, described(kind_of(entry.buffer), name, entry.owner), " is ",
                   dtype_name(entry.dtype), " ", to_string(entry.shape), "; given ", dtype_name(values.dtype), " ",
                   to_string(values.shape));
  if ((entry.count > 0 || entry.table) && values.data == nullptr)
    fail_parameter(TN_MISUSE, name, "null values for ", described(kind_of(entry.buffer), name, entry.owner));
}

void ParameterSet::set(const std::string& name, const ArrayView& values) {
  check(name, values);
  const ParameterEntry& entry = find(name);
  if (entry.table) return set_rows(entry, values);
  if (entry.count > 0) copy_elements(values, reinterpret_cast<std::byte*>(change(entry)));
}

}  // namespace tenon::core
