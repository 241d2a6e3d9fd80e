// The public C API: updates in steps of the application, and its own updaters. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_updater.h>

#include <algorithm>
#include <optional>
#include <set>

#include "host/api/api.h"
#include "host/api/lent_machine.h"
#include "host/api/rule_updater.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

// Updates parameters of a machine of the application; calls `end` before others can read the set.
template <typename End>
void update(const std::shared_ptr<HeldMachine>& held, std::unique_ptr<Use>& use, tn_machine machine, Updater& updater,
            const UsedNames& used, const End& end) {
  StepGradients& gradients = held->machine->step();
  if (updater.calls_application()) {
    auto& rule = dynamic_cast<RuleUpdater&>(updater);
    const auto lend = [&](const std::function<void(tn_machine)>& call) {
      api::while_lent(
          *held, use, Machine::Lending::kUpdating, [&] { call(machine); }, [] {});
    };
    rule.prepare_with(lend, gradients, used);
  }
  const SetWrite write(held->parameters->gate);
  updater.update(gradients, used);
  end(gradients);
}

void require_not_updated(const StepGradients& gradients, const std::set<std::string>& parameters) {
  for (const std::string& parameter : parameters)
    if (gradients.updated().contains(parameter))
      fail(TN_MISUSE, SubjectName{parameter}, "parameter \"", parameter, "\" has been updated in this step");
}

// What the application computes in a rule belongs to the rule's parameters.
void require_of_rule(const StepGradients& gradients, const std::set<std::string>& parameters) {
  if (gradients.rule() == nullptr) return;
  for (const std::string& parameter : parameters)
    if (!gradients.rule()->names.contains(parameter))
      fail(TN_INVALID, SubjectName{parameter}, "parameter \"", parameter,
           "\" is not among those that this updater is to update");
}

}  // namespace

void api::end_step(Updater& updater, Machine& machine, const UsedNames& used) {
  updater.update(machine.step(), used.without(machine.step().updated()));
  machine.step().commit(used);
}

void api::update(Host& host, Updater& updater, tn_machine machine, const UsedNames& used) {
  const std::shared_ptr<HeldMachine> held = host.machines.at(machine);
  auto use = std::make_unique<Use>(held->mark, "machine");
  held->machine->require_updatable();
  StepGradients& step = held->machine->step();
  if (const StepGradients::Rule* const rule = step.rule()) {
    std::set<std::string> parameters;
    for (const std::string& name : rule->names)
      if (used.contains(name) && !step.updated().contains(name)) parameters.insert(name);
    ::update(held, use, machine, updater, UsedNames(parameters),
             [&](StepGradients& gradients) { gradients.add_updated(parameters); });
    return;
  }
  ::update(held, use, machine, updater, used.without(step.updated()),
           [&](StepGradients& gradients) { gradients.commit(used); });
}

tn_status tn_updater_update(tn_host* host, tn_updater updater, tn_machine machine, tn_error* error) {
  return api::call_updater(host, updater, error,
                           [&](Host& owner, Updater& with) { api::update(owner, with, machine, UsedNames()); });
}

tn_status tn_updater_update_model(tn_host* host, tn_updater updater, tn_machine machine, tn_layer output,
                                  tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, Updater& with) {
    api::update(owner, with, machine, UsedNames(Topology::trace({owner.layers.at(output)})));
  });
}

tn_status tn_updater_update_parameters(tn_host* host, tn_updater updater, tn_machine machine, const char* const* names,
                                       uint32_t names_count, tn_error* error) {
  return api::call_updater(host, updater, error, [&](Host& owner, Updater& updating) {
    const std::shared_ptr<HeldMachine> held = owner.machines.at(machine);
    auto use = std::make_unique<Use>(held->mark, "machine");
    held->machine->require_updatable();
    StepGradients& step = held->machine->step();
    if (names_count == 0) fail(TN_INVALID, SubjectName{"names"}, "names is empty");
    const std::set<std::string> parameters = step.trained(api::strings(names, names_count, "names"));
    if (!step.exist()) return;
    require_not_updated(step, parameters);
    require_of_rule(step, parameters);
    ::update(held, use, machine, updating, UsedNames(parameters),
             [&](StepGradients& gradients) { gradients.add_updated(parameters); });
  });
}

tn_status tn_updater_create_from(tn_host* host, const tn_rule_options* options, tn_updater* updater, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_rule_options request = api::sized(options, "options");
    check_unused(request.reserved, "options.reserved");
    api::required(updater, "updater");
    auto rule = std::make_unique<RuleUpdater>(request);
    RuleUpdater& made = *rule;
    *updater = owner.updaters.add<tn_updater>(std::make_shared<HeldUpdater>(std::move(rule)));
    made.own();
  });
}

tn_status tn_machine_commit(tn_host* host, tn_machine machine, tn_error* error) {
  return tn_machine_commit_values(host, machine, nullptr, nullptr, 0, error);
}

tn_status tn_machine_commit_values(tn_host* host, tn_machine machine, const char* const* names, const tn_array* values,
                                   uint32_t count, tn_error* error) {
  return api::call_machine(host, machine, error, [&](Host&, HeldMachine& held) {
    held.machine->require_updatable();
    StepGradients& step = held.machine->step();
    const std::vector<std::string> written = api::strings(names, count, "names");
    if (count > 0) api::required(values, "values");
    ParameterSet& set = *held.parameters->set;
    std::vector<ArrayView> arrays;
    std::set<std::string> once;
    for (uint32_t i = 0; i < count; ++i) {
      arrays.push_back(api::view(values[i], [&] { return "the values of parameter \"" + written[i] + "\""; }));
      set.check(written[i], arrays[i]);
      if (!once.insert(written[i]).second)
        fail(TN_INVALID, SubjectName{written[i]}, "parameter \"", written[i], "\" is given twice");
    }
    require_of_rule(step, once);
    if (StepGradients::Rule* const rule = step.rule()) {  // the training writes them, and ends the step
      require_not_updated(step, once);
      for (uint32_t i = 0; i < count; ++i) {
        std::vector<std::byte> copy(element_bytes(arrays[i]));
        if (!copy.empty()) copy_elements(arrays[i], copy.data());
        rule->values[written[i]] = std::move(copy);
      }
      return;
    }
    const SetWrite write(held.parameters->gate);
    if (!step.exist()) return;
    for (uint32_t i = 0; i < count; ++i) set.set(written[i], arrays[i]);
    step.commit(UsedNames());
  });
}
