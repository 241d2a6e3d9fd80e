// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/step_values.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace tenon::host {

StepValues::StepValues(Machine& machine) : machine_(machine), tables_(machine.trained_tables()) {
  const auto refuse = [](const std::string& name, const auto&... parts) {
    fail(TN_UNSUPPORTED, SubjectName{name}, "staleness: ", parts..., "; train in the exact mode, without staleness");
  };
  if (machine.compute_name() != "float32") refuse("compute", "the bounded mode computes in float32 alone");
  if (!machine.carried().values.empty())
    refuse("carried", "the model carries states from one minibatch to the next, and several compute them at once");
  const std::set<std::string> trained = machine.step().trained();
  const std::vector<ParameterEntry>& entries = set().entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const ParameterEntry& entry = entries[i];
    if (entry.table) continue;
    const bool is_trained = trained.contains(entry.name);
    all_.push_back(i);
    if (is_trained) (machine.step().is_row_sparse(entry.name) ? row_sparse_ : dense_).push_back(i);
    if (entry.buffer) buffers_.push_back(i);
    if (is_trained || entry.buffer) changing_.push_back(i);
  }
  for (const MetricUse& use : machine.metrics()) metric_sizes_.push_back(use.state.size());
  const size_t costs = machine.cost_names().size();
  costs_ = costs < 2 ? 0 : costs;
  results_ = 2 + costs_;
  for (const size_t size : metric_sizes_) results_ += size;
}

uint64_t StepValues::bytes_of(const Entries& entries) const {
  uint64_t bytes = 0;
  for (const size_t entry : entries) bytes += set().entries()[entry].count * sizeof(float);
  return bytes;
}

std::byte* StepValues::write_entries(const Entries& entries, std::byte* to) const {
  for (const size_t number : entries) {
    const ParameterEntry& entry = set().entries()[number];
    const uint64_t bytes = entry.count * sizeof(float);
    if (bytes > 0) std::memcpy(to, set().values(entry), bytes);
    to += bytes;
  }
  return to;
}

const std::byte* StepValues::read_entries(const Entries& entries, const std::byte* from) {
  for (const size_t number : entries) {
    const ParameterEntry& entry = set().entries()[number];
    const uint64_t bytes = entry.count * sizeof(float);
    if (bytes > 0) std::memcpy(set().overwrite(entry), from, bytes);
    from += bytes;
  }
  return from;
}

void StepValues::write_values(bool all, std::byte* to) const {
  static_cast<void>(write_entries(all ? all_ : changing_, to));
}

void StepValues::read_values(bool all, const std::byte* from) { read_entries(all ? all_ : changing_, from); }

uint64_t StepValues::step_bytes() const {
  uint64_t bytes = bytes_of(dense_) + bytes_of(buffers_) + results_ * sizeof(double);
  for (const size_t number : row_sparse_) {
    const SparseGradientView view = machine_.step().sparse_gradient(set().entries()[number].name);
    bytes += sizeof(int64_t) + element_bytes(view.ids) + element_bytes(view.values);
  }
  return bytes;
}

// First row-sparse gradients: of each the number of rows, their ids, their values.
void StepValues::write_step(const PassSums& results, std::byte* to) {
  for (const size_t number : row_sparse_) {
    const SparseGradientView view = machine_.step().sparse_gradient(set().entries()[number].name);
    std::memcpy(to, view.ids.shape.data(), sizeof(int64_t));
    to += sizeof(int64_t);
    for (const ArrayView* const part : {&view.ids, &view.values}) {
      copy_elements(*part, to);
      to += element_bytes(*part);
    }
  }
  for (const size_t number : dense_) {
    const ParameterEntry& entry = set().entries()[number];
    copy_elements(machine_.step().gradient(entry.name), to);
    to += entry.count * sizeof(float);
  }
  to = write_entries(buffers_, to);
  std::vector<double> numbers(results_);
  write_results(results, numbers.data());
  std::memcpy(to, numbers.data(), results_ * sizeof(double));
}

void StepValues::read_gradients(MessageReader& from) {
  for (const size_t number : row_sparse_) {
    const ParameterEntry& entry = set().entries()[number];
    RowTerms rows;
    from.read(rows.ids, from.length(entry.shape[0]));
    for (const int64_t id : rows.ids)
      if (id < 0 || id >= entry.shape[0])
        fail(TN_BAD_DATA, "a gradient of row ", id, " of parameter \"", entry.name, "\", which has ", entry.shape[0]);
    const uint64_t bytes = rows.ids.size() * (entry.count / static_cast<uint64_t>(entry.shape[0])) * sizeof(float);
    rows.values = {from.bytes(bytes), bytes};
    machine_.step().set_rows(entry.name, rows);
  }
  for (const size_t number : dense_) {
    const ParameterEntry& entry = set().entries()[number];
    ArrayView gradient;
    gradient.dtype = TN_F32;
    gradient.shape = entry.shape;
    gradient.data = from.bytes(entry.count * sizeof(float));
    machine_.step().set(entry.name, gradient);
  }
}

PassSums StepValues::read_buffers(MessageReader& from) {
  read_entries(buffers_, from.bytes(bytes_of(buffers_)));
  std::vector<double> numbers(results_);
  std::memcpy(numbers.data(), from.bytes(results_ * sizeof(double)), results_ * sizeof(double));
  return read_results(numbers.data());
}

void StepValues::write_results(const PassSums& results, double* to) const {
  *to++ = results.cost;
  *to++ = static_cast<double>(results.samples);
  for (const double cost : results.costs) *to++ = cost;
  for (const std::vector<double>& state : results.metrics) to = std::copy(state.begin(), state.end(), to);
}

PassSums StepValues::read_results(const double* from) const {
  PassSums results;
  results.cost = *from++;
  results.samples = static_cast<int64_t>(*from++);
  results.costs.assign(from, from + costs_);
  from += costs_;
  for (const size_t size : metric_sizes_) {
    results.metrics.emplace_back(from, from + size);
    from += size;
  }
  return results;
}

}  // namespace tenon::host
