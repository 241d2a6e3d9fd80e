// The tables of a ParameterSet whose rows lie with several owners. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/fnv.h"
#include "base/nearest.h"
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

// Returns the rows of new tables that this process owns, with their first values.
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
  std::shared_ptr<ParameterSet> owned = create(declarations, seed, allocator_);
  for (const ParameterEntry& rows : owned->entries()) {
    if (rows.count == 0) continue;
    const size_t number = layout.by_name.at(rows.name);
    const ParameterEntry& table = layout.entries[number];
    const uint64_t width = rows.count / static_cast<uint64_t>(rows.shape[0]);
    const uint64_t elements = width * static_cast<uint64_t>(table.shape[0]);
    const Philox philox(seed, base::fnv1a<uint64_t>(rows.name));
    float* const values = owned->change(rows);
    for (int64_t place = 0; place < rows.shape[0]; ++place)
      draw_first_values(layout.first_values[number].initializer, philox, table.shape,
                        {static_cast<uint64_t>(tables_.blocks->row(place)) * width, width, elements},
                        values + static_cast<uint64_t>(place) * width);
  }
  return owned;
}

// values: of all rows.
void ParameterSet::set_rows(const ParameterEntry& table, const ArrayView& values) {
  const ParameterEntry& owned = owned_->find(table.name);
  if (owned.count == 0) return;
  std::vector<float> all(element_bytes(values) / sizeof(float));
  copy_elements(values, reinterpret_cast<std::byte*>(all.data()));
  const uint64_t width = owned.count / static_cast<uint64_t>(owned.shape[0]);
  float* to = owned_->change(owned);
  for (int64_t place = 0; place < owned.shape[0]; ++place)
    to = std::copy_n(all.data() + static_cast<uint64_t>(tables_.blocks->row(place)) * width, width, to);
}

}  // namespace tenon::core
