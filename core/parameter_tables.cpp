// The tables of a ParameterSet whose rows lie with several owners. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/fnv.h"
#include "base/nearest.h"
#include "core/initializers/first_rows.h"
#include "core/initializers/initializers.h"
#include "core/parameter_set.h"
#include "core/philox.h"

namespace tenon::core {

// Throws unless all tables are parameters of rows with first values that can be drawn row by row.
void ParameterSet::check_tables(const Layout& layout) const {
  for (const std::string& name : tables_.names) {
    if (std::count(tables_.names.begin(), tables_.names.end(), name) > 1)
      fail_parameter(TN_INVALID, name, "duplicate table \"", name, "\"");
    const auto place = layout.by_name.find(name);
    if (place == layout.by_name.end()) {
      std::vector<std::string> names;
      for (const ParameterEntry& entry : layout.entries) names.push_back(entry.name);
      fail_parameter(TN_INVALID, name, "table \"", name, "\": the model has no parameter of that name",
                     base::suggestion(name, names));
    }
    const ParameterEntry& entry = layout.entries[place->second];
    if (entry.buffer || entry.shape.empty())
      fail_parameter(TN_INVALID, name, "table \"", name, "\" of layer \"", entry.owner, "\" is ",
                     entry.buffer ? "a buffer" : to_string(entry.shape), "; expected a parameter with rows");
    if (place->second >= entries_.size() &&
        layout.first_values[place->second - entries_.size()].initializer.kind == kInitOrthogonal)
      fail_parameter(
          TN_UNSUPPORTED, name, "table \"", name, "\": layer \"", entry.owner,
          "\" gives it orthogonal first values, which cannot be drawn row by row; choose another initializer, "
          "or remove it from the tables");
  }
}

// Returns the rows of new tables that this process owns.
std::shared_ptr<ParameterSet> ParameterSet::owned_rows(const Layout& layout, uint64_t seed) const {
  std::vector<ParameterDeclaration> declarations;
  for (const ParameterEntry& entry : layout.entries) {
    if (!entry.table) continue;
    ParameterDeclaration rows;
    rows.name = entry.name;
    rows.shape = entry.shape;
    rows.shape[0] = tables_.blocks->rows(entry.shape[0]);
    rows.owner = entry.owner;
    rows.multipliers = entry.multipliers;
    declarations.push_back(std::move(rows));
  }
  std::shared_ptr<ParameterSet> owned = declare(declarations, allocator_);
  owned->replace(owned->allocate());
  for (const ParameterEntry& rows : owned->entries()) {
    const size_t number = layout.by_name.at(rows.name);
    const Philox philox(seed, base::fnv1a<uint64_t>(rows.name));
    owned->first_rows_.emplace_back(layout.first_values[number].initializer, philox, layout.entries[number].shape,
                                    *tables_.blocks, owned->address(rows));
  }
  return owned;
}

const float* ParameterSet::row(size_t number, int64_t place) const {
  const ParameterEntry& entry = entries_[number];
  memory_[entry.slab]->bring_home(part(entry));
  if (!first_rows_.empty()) first_rows_[number].draw(place);
  return address(entry) + static_cast<uint64_t>(place) * (entry.count / static_cast<uint64_t>(entry.shape[0]));
}

void ParameterSet::draw_first_rows(const ParameterEntry& entry) const {
  if (!first_rows_.empty()) first_rows_[index(entry.name)].draw_all();
}

float* ParameterSet::overwrite(const ParameterEntry& entry) {
  if (!first_rows_.empty()) first_rows_[index(entry.name)].drop();
  return change(entry);
}

// values: of all rows.
void ParameterSet::set_rows(const ParameterEntry& table, const ArrayView& values) {
  const ParameterEntry& owned = owned_->find(table.name);
  if (owned.count == 0) return;
  std::vector<float> all(element_bytes(values) / sizeof(float));
  copy_elements(values, reinterpret_cast<std::byte*>(all.data()));
  const uint64_t width = owned.count / static_cast<uint64_t>(owned.shape[0]);
  float* to = owned_->overwrite(owned);
  for (int64_t place = 0; place < owned.shape[0]; ++place)
    to = std::copy_n(all.data() + static_cast<uint64_t>(tables_.blocks->row(place)) * width, width, to);
}

}  // namespace tenon::core
