// A parameter whose rows are read by ids, and updated by an updater. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tenon/tenon_machine.hpp>
#include <vector>

#include "check/bench/layer_bench.h"

namespace tenon::check {

class TableBench {
 public:
  static constexpr int64_t kHeight = 6, kWidth = 3, kMostIds = 8;

  // The data layer "ids".
  [[nodiscard]] static Layer ids(const Host& host) {
    DataOptions options;
    options.name = "ids", options.dtype = TN_I32, options.index_limit = kHeight;
    return host.data(options);
  }
  // A machine for up to kMostIds ids, whose backward begins with given gradients of the output.
  [[nodiscard]] static Machine training(const Host& host, const Parameters& parameters, const Layer& output,
                                        const std::string& device) {
    MachineOptions options;
    options.max_samples = kMostIds;
    options.training = true;
    options.device = device;
    options.flags = TN_MACHINE_GIVEN_GRADIENTS;
    return host.machine(parameters, {output}, options);
  }

  // `sparse`: gradients are row-sparse.
  TableBench(const Host& host, bool sparse, const std::string& device = "")
      : host_(host),
        rows_(host.layer("check.rows", {ids(host)}, {{"height", kHeight}, {"width", kWidth}, {"sparse", sparse}},
                         "table")),
        parameters_(host.parameters({rows_}, 11)),
        machine_(training(host, parameters_, rows_, device)) {}
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
