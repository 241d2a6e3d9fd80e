// A parameter whose rows are read by ids, and updated by an updater. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tenon/tenon_machine.hpp>
#include <vector>

#include "check/layer_bench.h"

namespace tenon::check {

class TableBench {
 public:
  static constexpr int64_t kHeight = 6, kWidth = 3, kMostIds = 8;

  // `sparse`: gradients are row-sparse.
  TableBench(const Host& host, bool sparse, const std::string& device = "") : host_(host) {
    DataOptions ids;
    ids.name = "ids", ids.dtype = TN_I32, ids.index_limit = kHeight;
    rows_ = host.layer("check.rows", {host.data(ids)}, {{"height", kHeight}, {"width", kWidth}, {"sparse", sparse}},
                       "table");
    parameters_ = host.parameters({rows_}, 11);
    MachineOptions options;
    options.max_samples = kMostIds;
    options.training = true;
    options.device = device;
    options.flags = TN_MACHINE_GIVEN_GRADIENTS;
    machine_ = host.machine(parameters_, {rows_}, options);
  }
  // Reads rows, and adds the gradients of what was read to those of the table.
  void add(const std::vector<int32_t>& ids, const std::vector<float>& gradients) const {
    const auto count = static_cast<int64_t>(ids.size());
    machine_.forward({{"ids", {TN_I32, {count}, ids.data()}}});
    backward_from(machine_, {{rows_, {TN_F32, {count, kWidth}, gradients.data()}}});
  }
  void update(const Updater& updater) const { updater.update(machine_); }
  [[nodiscard]] Numbers gradient() const { return numbers_of(machine_.gradient("table.values")); }
  [[nodiscard]] Numbers values() const { return numbers_of(parameters_.get("table.values")); }
  void set(const Numbers& values) const {
    const std::vector<float> narrow(values.begin(), values.end());
    parameters_.set("table.values", {TN_F32, {kHeight, kWidth}, narrow.data()});
  }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

 private:
  Host host_;
  Layer rows_;
  Parameters parameters_;
  Machine machine_;
};

}  // namespace tenon::check
