// Updaters of the application (tn_rule_options). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon_updater.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/api/application.h"
#include "host/training/updater.h"

namespace tenon::host {

// Calls the update rule of the application in each step. It updates one set, whose states the application has.
class RuleUpdater final : public Updater {
 public:
  // Calls its argument with the handle under which the application may use the machine of the step meanwhile.
  using Lend = std::function<void(const std::function<void(tn_machine)>&)>;

  explicit RuleUpdater(const tn_rule_options& options);
  // From here on options.release is called at the end.
  void own() { user_.use(); }
  // For the updates that follow; empty: they fail.
  void set_lend(Lend lend) { lend_ = std::move(lend); }

  void check_tables(const std::vector<std::string>& tables) const override;
  [[nodiscard]] bool calls_application() const override { return true; }
  void prepare(StepGradients& gradients, const UsedNames& used) override { prepare_with(lend_, gradients, used); }
  void prepare_with(const Lend& lend, StepGradients& gradients, const UsedNames& used);
  void update(StepGradients& gradients, const UsedNames& used) override;

  [[nodiscard]] const std::string& type() const override { return type_; }
  [[nodiscard]] double learning_rate() const override;
  void set_learning_rate(double rate) override;
  void require_learning_rate(double rate) const;  // throws if set_learning_rate would refuse it
  [[nodiscard]] double scheduled_rate(const std::shared_ptr<ParameterSet>& /*set*/) const override {
    return learning_rate();
  }
  [[nodiscard]] uint64_t state_bytes(const ParameterSet& set) const override;
  [[nodiscard]] nlohmann::json describe() const override { return {{"type", type_}, {"attributes", attributes_}}; }

  [[nodiscard]] std::vector<StateValues> states(const std::shared_ptr<ParameterSet>& set) override;
  [[nodiscard]] std::vector<StateValues> state_shapes(const std::shared_ptr<ParameterSet>& set) override {
    return states(set);
  }
  [[nodiscard]] uint64_t steps(const std::shared_ptr<ParameterSet>& set) const override {
    return is_of(set) ? steps_ : 0;
  }
  [[nodiscard]] uint64_t skipped(const std::shared_ptr<ParameterSet>& set) const override {
    return is_of(set) ? skipped_ : 0;
  }
  void set_steps(const std::shared_ptr<ParameterSet>& set, uint64_t steps) override;
  [[nodiscard]] std::shared_ptr<SetState> read_states(const std::shared_ptr<ParameterSet>& set,
                                                      StateSource& source) const override;
  void adopt(const std::shared_ptr<SetState>& states, uint64_t steps, double learning_rate) override;

 private:
  struct Copies;  // of states of the application

  [[nodiscard]] bool is_of(const std::shared_ptr<ParameterSet>& set) const { return set_.lock() == set; }
  // Throws TN_MISUSE if the updater has another set.
  void take(const std::shared_ptr<ParameterSet>& set);
  [[nodiscard]] std::shared_ptr<Copies> copies(const ParameterSet& set) const;

  const tn_rule_options options_;
  const std::string type_, who_;
  nlohmann::json attributes_;
  api::User user_;
  Lend lend_;
  std::weak_ptr<ParameterSet> set_;
  uint64_t steps_ = 0, skipped_ = 0;
  StepGradients::Rule rule_;      // what prepare leaves for update
  bool skips_ = false;            // likewise: gradients of a machine that skips steps are not finite
  std::shared_ptr<Copies> lent_;  // by states()
};

}  // namespace tenon::host
