// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/owned_rows.h"

#include <algorithm>

namespace tenon::host {

OwnedRows::OwnedRows(const StepGradients& step, DeviceMachine& machine)
    : step_(step), machine_(machine), memory_id_(std::make_shared<const MemoryId>()) {
  if (device()->host_memory()) return;
  // A replica of the rows is copied once, so all of them need their first values.
  for (const ParameterEntry& entry : set()->entries()) static_cast<void>(set()->values(entry));
}

void OwnedRows::take(const MachineTable& table, const RowTerms& sums) {
  const ParameterEntry& entry = set()->entries()[table.owned];
  trained_.insert(table.owned);
  if (entry.shape[0] == 0) return;  // sums are empty, too
  std::unique_ptr<SparseGradient>& gradient = gradients_[table.owned];
  if (gradient == nullptr) {
    gradient = std::make_unique<SparseGradient>(kNoValue, table.owned, entry, TN_F32, access());
    gradient->resize(1);
    memory_id_ = std::make_shared<const MemoryId>();
  }
  gradient->clear();
  make_room(*gradient, static_cast<int64_t>(sums.ids.size()), memory_id_);
  const TableBlocks& blocks = *machine_.set()->tables().blocks;
  std::vector<int64_t> places;
  for (const int64_t id : sums.ids) places.push_back(blocks.place(id));
  gradient->write(places, sums.values.data());
  access().wait();
}

bool OwnedRows::has_tables(const UsedNames& used) const {
  return std::any_of(trained_.begin(), trained_.end(),
                     [&](size_t entry) { return used.contains(set()->entries()[entry].name); });
}

std::vector<const SparseGradient*> OwnedRows::row_sparse(const UsedNames& used) const {
  std::vector<const SparseGradient*> result;
  for (const auto& [entry, gradient] : gradients_)
    if (used.contains(set()->entries()[entry].name)) result.push_back(gradient.get());
  return result;
}

}  // namespace tenon::host
