// The functions of the class Program of tenon_program.hpp. Include <tenon/tenon_program.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_PROGRAM_FUNCTIONS_HPP
#define TENON_TENON_PROGRAM_FUNCTIONS_HPP

#include <set>
#include <tenon/tenon_program_views.hpp>

namespace tenon {
inline namespace v0 {

inline std::vector<Block> Program::blocks() const {
  std::vector<Block> result;
  for (size_t i = 0; i < state_->blocks.size(); ++i) result.emplace_back(state_, i);
  return result;
}
inline Variable Program::find(const std::string& name) const {
  for (const auto* const names : {&state_->values, &state_->parameters})
    if (const auto found = names->find(name); found != names->end()) return {state_, found->second};
  detail::refuse(TN_NOT_FOUND, "program", name, "there is no variable \"" + name + "\"");
}

namespace detail {

// Adds a block, and calls work(its number); removes it if that fails.
template <typename Work>
size_t with_block(ProgramState& program, ProgramBlock block, const Work& work) {
  program.blocks.push_back(std::move(block));
  const size_t number = program.blocks.size() - 1;
  try {
    work(number);
  } catch (...) {
    program.blocks.pop_back();
    throw;
  }
  program.current = number;
  return number;
}
inline ProgramBlock begun(const ProgramState& program, size_t parent, BlockInfo info) {
  ProgramBlock block;
  block.parent = parent;
  block.info = std::move(info);
  block.previous = program.current;
  return block;
}
inline Variable first_of(const Variables& variables, const std::shared_ptr<ProgramState>& program) {
  if (variables.empty()) refuse(TN_INVALID, "program", "over", "a block needs at least one variable");
  for (const Variable& each : variables)
    if (each.program() != program)
      refuse(TN_INVALID, "program", each.name(), "variable \"" + each.name() + "\" is of another program");
  return variables[0];
}

}  // namespace detail

inline Block Program::create_step_block(const Variables& over, const ScanOptions& options) const {
  const Variable first = detail::first_of(over, state_);
  ScanOptions named = options;
  if (named.name.empty()) named.name = detail::unique_name(*state_, "scan");
  detail::require_new(*state_, named.name);
  Step step = begin_scan(layers_of(over), named);
  detail::ProgramBlock block = detail::begun(*state_, first.block().number(), {TN_BLOCK_STEP, named.name, 0});
  block.open = std::make_shared<detail::OpenBlock>();
  block.open->results.resize(1);
  block.open->blocks = {state_->blocks.size()};
  block.open->step = step;
  return {state_, detail::with_block(*state_, std::move(block), [&](size_t number) {
            detail::ProgramChange change(*state_);
            for (size_t i = 0; i < over.size(); ++i) change.add(step.input(i), number);
            change.commit();
          })};
}

inline Block Program::create_branch_block(const Variable& choice, uint32_t cases, const std::string& name) const {
  const Variable first = detail::first_of({choice}, state_);
  const std::string named = name.empty() ? detail::unique_name(*state_, "cond") : name;
  detail::require_new(*state_, named);
  detail::ProgramBlock block = detail::begun(*state_, first.block().number(), {TN_BLOCK_BRANCH, named, 0});
  block.open = std::make_shared<detail::OpenBlock>();
  block.open->results.resize(cases == 0 ? 2 : cases);
  block.open->blocks.reserve(block.open->results.size());
  block.open->blocks.push_back(state_->blocks.size());
  block.open->cond = begin_cases(choice.layer(), cases, named);
  return {state_, detail::with_block(*state_, std::move(block), [](size_t) {})};
}

inline Block Program::create_branch_block(const Block& beside) const {
  const std::shared_ptr<detail::OpenBlock> open = beside.state().open;
  if (beside.program() != state_ || open == nullptr || !open->cond || open->blocks.size() == open->results.size())
    detail::refuse(TN_MISUSE, "program", detail::number_of(beside.number()),
                   detail::number_of(beside.number()) + " has no further branch beside it");
  const auto branch = static_cast<uint32_t>(open->blocks.size());
  detail::ProgramBlock block =
      detail::begun(*state_, *beside.state().parent, {TN_BLOCK_BRANCH, beside.info().name, branch});
  block.open = open;
  return {state_,
          detail::with_block(*state_, std::move(block), [&](size_t number) { open->blocks.push_back(number); })};
}

inline void Program::rollback() const {
  const size_t block = state_->current;
  if (block == 0)
    detail::refuse(TN_MISUSE, "program", "block 0", "the global block is current; nothing is to be ended");
  if (state_->blocks[block].open->step)
    end_scan_block(block);
  else
    end_branch(block);
  state_->current = state_->blocks[block].previous;
}

// Adds the operator that stands for blocks, which are complete with it.
inline void Program::leave(const std::vector<size_t>& blocks, const Layer& layer) const {
  detail::ProgramChange change(*state_);
  const size_t op = change.add(layer, detail::find_block(*state_, inspect_block(layer)).value());
  change.commit();
  for (const size_t block : std::vector<size_t>(blocks)) {
    state_->blocks[block].left = state_->ops[op].outputs;
    state_->blocks[block].open = nullptr;
  }
}
inline void Program::end_scan_block(size_t block) const {
  detail::OpenBlock& open = *state_->blocks[block].open;
  Variables results;
  for (const size_t each : open.results[0]) results.emplace_back(state_, each);
  leave({block}, end_scan(*open.step, layers_of(results)).layer);
}
inline void Program::end_branch(size_t block) const {
  const std::shared_ptr<detail::OpenBlock> open = state_->blocks[block].open;
  if (open->blocks.size() < open->results.size()) return;  // other branches follow
  std::vector<Layers> results;
  for (const std::vector<size_t>& branch : open->results) {
    Variables variables;
    for (const size_t each : branch) variables.emplace_back(state_, each);
    results.push_back(layers_of(variables));
  }
  leave(open->blocks, end_cond(*open->cond, results).layer);
}

inline Layers Program::layers_of(const Variables& variables) {
  Layers result;
  for (const Variable& each : variables) result.push_back(each.layer());
  return result;
}

inline Layers Program::ends() const {
  std::set<std::string> read;
  for (const detail::ProgramOperator& op : state_->ops)
    for (uint32_t i = 0, count = op.layer ? inspect(op.layer).inputs : 0; i < count; ++i)
      if (const std::optional<Layer> input = tenon::input(op.layer, i)) read.insert(inspect(*input).name);
  Layers result;
  for (const size_t number : state_->blocks[0].ops) {
    const detail::ProgramOperator& op = state_->ops[number];
    if (op.layer && read.count(op.name) == 0) result.push_back(op.layer);
  }
  if (result.empty()) detail::refuse(TN_MISUSE, "program", "", "the program has no operators");
  return result;
}

namespace detail {
// Adds the operators "load" of a program to one that was made of it. name(parameter): there; empty: it is not there.
template <typename Name>
void copy_loads(const ProgramState& from, ProgramState& to, const Name& name) {
  ProgramChange change(to);
  for (const size_t number : from.blocks[0].ops) {
    ProgramOperator op = from.ops[number];
    if (op.type != "load" || op.layer) continue;
    const std::string before = from.variables[op.outputs[0]].name;
    const auto found = to.parameters.find(name(op));
    if (found == to.parameters.end()) continue;
    if (text_of(op.attributes, "name") == nullptr) op.attributes.push_back({"name", before});
    op.outputs = {found->second};
    change.add(std::move(op));
  }
  change.commit(true);
}
}  // namespace detail

inline Program Program::prune(const Variables& outputs) const {
  detail::first_of(outputs, state_);
  Program result(layers_of(outputs));
  detail::copy_loads(*state_, *result.state_,
                     [&](const detail::ProgramOperator& op) { return state_->variables[op.outputs[0]].name; });
  return result;
}

inline Program Program::clone(const CloneOptions& options) const {
  detail::require_complete(*state_);
  Program result(tenon::clone(ends(), options));
  detail::copy_loads(*state_, *result.state_, [&](const detail::ProgramOperator& op) -> std::string {
    const Parameter parameter(state_, op.outputs[0]);
    for (const Operator& user : parameter.users()) {
      std::string name = user.name();
      for (const auto& [before, now] : options.layers)
        if (before == user.name()) name = now;
      const auto paths = user.parameters();
      for (size_t i = 0; i < paths.size(); ++i)
        if (paths[i].second == parameter) return result.find(name).op()->parameters()[i].second.name();
    }
    return {};
  });
  return result;
}

inline Parameters Program::parameters(const Variables& outputs, uint64_t seed) const {
  detail::first_of(outputs, state_);
  Parameters set = host().parameters(layers_of(outputs), seed);
  std::set<std::string> names;
  for (const ParameterInfo& each : entries(set)) names.insert(each.name);
  for (const size_t number : state_->blocks[0].ops) {
    const detail::ProgramOperator& op = state_->ops[number];
    if (op.type != "load" || op.layer) continue;
    const std::string& name = state_->variables[op.outputs[0]].name;
    const std::string* const source = detail::text_of(op.attributes, "name");
    if (names.count(name) != 0) set.set(name, op.loaded.get(source == nullptr ? name : *source));
  }
  return set;
}

}  // namespace v0
}  // namespace tenon
#endif
