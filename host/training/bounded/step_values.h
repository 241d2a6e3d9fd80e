// The values of a step of the bounded mode, as they travel. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/machine/machine.h"
#include "host/machine/tables/messages.h"
#include "host/training/checkpoint_record.h"

namespace tenon::host {

using namespace core;

// What the first server and a trainer exchange of a model, besides rows of tables: parameters and buffers one way;
// gradients, buffers and results the other. Both sides have the same machine, so that all sizes are known.
class StepValues {
 public:
  // Borrows the machine. Throws TN_UNSUPPORTED for a model that the bounded mode cannot train, naming the part.
  explicit StepValues(Machine& machine);

  // Numbers of the tables with gradients, in CompiledModel::tables.
  [[nodiscard]] const std::vector<size_t>& tables() const { return tables_; }

  // Parameters and buffers: those that change while training, or all.
  [[nodiscard]] uint64_t value_bytes(bool all) const { return bytes_of(all ? all_ : changing_); }
  void write_values(bool all, std::byte* to) const;
  void read_values(bool all, const std::byte* from);

  // Gradients, buffers and results of the last minibatch of the machine.
  [[nodiscard]] uint64_t step_bytes() const;
  void write_step(const PassSums& results, std::byte* to);
  // Gives the gradients to the machine, for an update.
  void read_gradients(MessageReader& from);
  // After the update, what follows. Returns the results.
  [[nodiscard]] PassSums read_buffers(MessageReader& from);

  // Results alone.
  [[nodiscard]] size_t result_count() const { return results_; }
  void write_results(const PassSums& results, double* to) const;
  [[nodiscard]] PassSums read_results(const double* from) const;

 private:
  using Entries = std::vector<size_t>;  // numbers in the set
  [[nodiscard]] uint64_t bytes_of(const Entries& entries) const;
  [[nodiscard]] std::byte* write_entries(const Entries& entries, std::byte* to) const;
  const std::byte* read_entries(const Entries& entries, const std::byte* from);
  [[nodiscard]] ParameterSet& set() const { return *machine_.set(); }

  Machine& machine_;
  Entries all_, changing_, dense_, row_sparse_, buffers_;  // the middle ones: by their gradients
  std::vector<size_t> tables_;
  std::vector<size_t> metric_sizes_;  // of their states
  size_t costs_ = 0, results_ = 0;    // numbers
};

}  // namespace tenon::host
