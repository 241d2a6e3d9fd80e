// Gradients of rows: where they lie, how they grow, and how they are read. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/alignment.h"
#include "core/checked.h"
#include "core/error.h"
#include "host/machine/machine.h"

namespace tenon {

namespace {

int64_t& count_of(const RowsGradient& gradient) { return *reinterpret_cast<int64_t*>(gradient.memory.data()); }

}  // namespace

// Room for as many rows as one backward can touch.
void Machine::place_rows(const ParameterUse& use) {
  auto gradient = std::make_unique<RowsGradient>();
  const ParameterEntry& entry = set_->find(use.name);
  gradient->value = use.gradient;
  gradient->entry = set_->index(use.name);
  gradient->height = entry.shape[0];
  gradient->width = gradient->height == 0 ? 0 : static_cast<int64_t>(entry.count) / gradient->height;
  gradient->dtype = calls_->graph().spec(use.gradient).dtype;
  resize_rows(*gradient, std::min(gradient->height, calls_->contributions(use.gradient, bounds_)));
  rows_gradients_.push_back(std::move(gradient));
}

// Makes room for `capacity` rows; those that are there stay.
void Machine::resize_rows(RowsGradient& gradient, int64_t capacity) {
  const auto rows = static_cast<uint64_t>(std::max<int64_t>(capacity, 1));
  const uint64_t row_bytes =
      checked_multiply(static_cast<uint64_t>(gradient.width), uint64_t{tn_dtype_bytes(gradient.dtype)}, "row bytes");
  const uint64_t ids_at = kCacheLine;
  const uint64_t values_at =
      checked_add(ids_at, whole_lines(checked_multiply(rows, uint64_t{sizeof(int64_t)}, "ids")), "gradient");
  const uint64_t bytes = checked_add(values_at, checked_multiply(rows, row_bytes, "gradient"), "gradient");
  if (!set_->has_values()) {  // to be planned alone
    gradient.bytes = bytes;
    gradient.rows = {sizeof gradient.rows, 0, capacity, nullptr, nullptr};
    calls_->bind_rows(gradient.value, nullptr, &gradient.rows);
    return;
  }
  DeviceMemory memory(device_, bytes);
  std::memset(memory.data(), 0, kCacheLine);
  auto* ids = reinterpret_cast<int64_t*>(memory.data() + ids_at);
  std::byte* values = memory.data() + values_at;
  if (gradient.memory.data() != nullptr) {
    const auto count = static_cast<uint64_t>(count_of(gradient));
    std::memcpy(memory.data(), gradient.memory.data(), sizeof(int64_t));
    std::memcpy(ids, gradient.rows.ids, count * sizeof(int64_t));
    std::memcpy(values, gradient.values, count * row_bytes);
  }
  gradient.bytes = bytes;
  gradient.memory = std::move(memory);
  gradient.rows = {sizeof gradient.rows, 0, capacity, &count_of(gradient), ids};
  gradient.values = values;
  calls_->bind_rows(gradient.value, values, &gradient.rows);
}

// Before a backward that adds: its rows may all be new ones.
void Machine::reserve_rows(RowsGradient& gradient) {
  if (!accumulated_) return;
  const int64_t most = std::min(
      gradient.height, checked_add(count_of(gradient), calls_->contributions(gradient.value, symbols_), "rows"));
  if (most <= gradient.rows.capacity) return;
  resize_rows(gradient, std::min(gradient.height, std::max(most, gradient.rows.capacity * 2)));
}

std::vector<const RowsGradient*> Machine::rows_gradients(const Topology* model) const {
  const Used used(model);
  std::vector<const RowsGradient*> result;
  for (const auto& gradient : rows_gradients_)
    if (used.contains(set_->entries()[gradient->entry].name)) result.push_back(gradient.get());
  return result;
}

Machine::RowsView Machine::gradient_rows(const std::string& parameter) const {
  const ParameterUse& use = differentiated(parameter);
  for (const auto& gradient : rows_gradients_) {
    if (gradient->value != use.gradient) continue;
    const int64_t count = count_of(*gradient);
    RowsView rows;
    rows.ids = {TN_I64, {count}, gradient->rows.ids};
    rows.values = {gradient->dtype, set_->entries()[gradient->entry].shape, gradient->values};
    rows.values.shape[0] = count;
    return rows;
  }
  fail(TN_INVALID, "parameter \"", parameter, "\" has a dense gradient, not one of rows");
}

ArrayView Machine::dense_copy(const RowsGradient& gradient) {
  const ParameterEntry& entry = set_->entries()[gradient.entry];
  const uint64_t row_bytes = static_cast<uint64_t>(gradient.width) * tn_dtype_bytes(gradient.dtype);
  const uint64_t bytes = checked_multiply(static_cast<uint64_t>(gradient.height), row_bytes, "gradient");
  if (dense_gradient_.size() < bytes) dense_gradient_ = DeviceMemory(device_, bytes);
  std::memset(dense_gradient_.data(), 0, bytes);
  for (int64_t i = 0; i < count_of(gradient); ++i)
    std::memcpy(dense_gradient_.data() + static_cast<uint64_t>(gradient.rows.ids[i]) * row_bytes,
                static_cast<const std::byte*>(gradient.values) + static_cast<uint64_t>(i) * row_bytes, row_bytes);
  return {gradient.dtype, entry.shape, dense_gradient_.data()};
}

// Takes over what `larger` was planned to be; of this machine the gradients go on.
void Machine::adopt(Machine& larger) {
  if (accumulated_) {
    std::memcpy(larger.memory_.data() + larger.sections_.gradients, memory_.data() + sections_.gradients,
                sections_.arena - sections_.gradients);
    for (size_t i = 0; i < rows_gradients_.size(); ++i) {
      RowsGradient& to = *larger.rows_gradients_[i];
      const RowsGradient& from = *rows_gradients_[i];
      const int64_t count = count_of(from);
      if (to.rows.capacity < count) larger.resize_rows(to, count);
      count_of(to) = count;
      std::memcpy(const_cast<int64_t*>(to.rows.ids), from.rows.ids, static_cast<size_t>(count) * sizeof(int64_t));
      std::memcpy(to.values, from.values, static_cast<size_t>(count * from.width) * tn_dtype_bytes(from.dtype));
    }
  }
  row_bounds_ = std::move(larger.row_bounds_);
  bounds_ = std::move(larger.bounds_);
  lowered_ = std::move(larger.lowered_);
  inverses_ = std::move(larger.inverses_);
  costs_ = std::move(larger.costs_);
  kept_ = std::move(larger.kept_);
  gradients_ = std::move(larger.gradients_);
  rows_gradients_ = std::move(larger.rows_gradients_);
  calls_ = std::move(larger.calls_);
  fed_memory_ = std::move(larger.fed_memory_);
  sections_ = larger.sections_;
  memory_plan_ = std::move(larger.memory_plan_);
  memory_ = std::move(larger.memory_);
  device_symbols_ = larger.device_symbols_;
  device_inverses_ = larger.device_inverses_;
  random_ = larger.random_;
  symbols_ = std::move(larger.symbols_);
  execution_.symbols = device_symbols_;
  execution_.random = random_;
}

}  // namespace tenon
