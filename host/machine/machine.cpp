// SPDX-License-Identifier: Apache-2.0
#include "host/machine/machine.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/checked.h"
#include "core/error.h"
#include "core/floating_point_mode.h"
#include "host/machine/shards.h"

namespace tenon::host {

Machine::Machine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry,
                 std::shared_ptr<Device> device, const tn_parallel* parallel, const MachineOptions& options)
    : topology_(std::move(topology)),
      set_(std::move(set)),
      registry_(&registry),
      device_(std::move(device)),
      parallel_(parallel),
      options_(options),
      max_samples_(options.max_samples),
      access_(std::make_unique<HostAccess>(device_, set_->allocator())),
      model_(compile(topology_, target(), options_, {})),
      memory_id_(std::make_shared<const MemoryId>()),
      symbols_(model_.bounds.size(), 0),
      errors_(device_->who(), device_->origin().tags) {}

Machine::Machine(const Topology& topology, std::shared_ptr<ParameterSet> set, Registry& registry,
                 const std::vector<std::shared_ptr<Device>>& devices, const tn_parallel* parallel,
                 const MachineOptions& options)
    : Machine(topology, std::move(set), registry, devices.front(), parallel, options_of_shard(options, devices, 0)) {
  max_samples_ = options.max_samples;  // NOLINT(cppcoreguidelines-prefer-member-initializer): those of all shards
  if (devices.size() == 1) return;
  std::vector<std::unique_ptr<Machine>> others;
  for (size_t i = 1; i < devices.size(); ++i)
    others.push_back(std::make_unique<Machine>(topology, set_, registry, devices[i], parallel,
                                               options_of_shard(options, devices, i)));
  shards_ = std::make_unique<Shards>(*this, std::move(others));
}

Machine::~Machine() { access_->finish(); }

std::vector<std::shared_ptr<Device>> Machine::devices() const {
  return shards_ == nullptr ? std::vector{device_} : shards_->devices();
}

int64_t Machine::whole_samples() const { return shards_->samples(); }

void Machine::check_feeds(const std::vector<ArrayView>& arrays) const {
  static_cast<void>(FeedChecker(model_, std::numeric_limits<int64_t>::max()).check(arrays));
}

void Machine::forward(const std::vector<ArrayView>& arrays, FeedMode mode) {
  require_own();
  if (!set_->has_values())
    fail(TN_MISUSE, "the machine can only be planned: its parameters have no values, they were only declared");
  const MinibatchSizes sizes = FeedChecker(model_, max_samples_).check(arrays);
  if (shards_ != nullptr) return shards_->forward(arrays, sizes.symbols, mode);
  start_forward(arrays, sizes, sizes.symbols, mode);
  finish_forward();
}

void Machine::start_forward(const std::vector<ArrayView>& arrays, const MinibatchSizes& sizes,
                            const std::vector<int64_t>& whole, FeedMode mode) {
  const std::vector<int64_t>& symbols = sizes.symbols;
  grow(symbols);
  drop_outputs();
  begin_step(symbols, whole);
  const int64_t samples = symbols[TN_SYMBOL_SAMPLES];
  if (samples == 0) return;
  take_feeds(model_, *access_, arrays, sizes, mode);
  advance_carried(samples);
  run_once();
  start(Phase::kForward);
}

void Machine::finish_forward() {
  const int64_t samples = symbols_[TN_SYMBOL_SAMPLES];
  if (samples > 0) {
    finish(Phase::kForward);
    settle_rows();
    check_numbers();
    carried_samples_ = samples;
  }
  samples_ = samples;
  fresh_ = true;
}

void Machine::forward(SetGate& gate, const std::vector<ArrayView>& arrays, FeedMode mode) {
  const SetRead read(gate);
  set_version(read.version());
  forward(arrays, mode);
}

namespace {

// Returns a bound doubled as often as needed for `rows`.
int64_t doubled(int64_t bound, int64_t rows) {
  while (bound < rows) bound = checked_multiply(bound, int64_t{2}, "rows");
  return bound;
}

}  // namespace

// Compiles again with larger bounds if a minibatch has more rows than fit.
void Machine::grow(const std::vector<int64_t>& symbols) {
  RaggedBounds bounds = model_.ragged_bounds;
  bool fits = true;
  for (const RaggedUse& rows : model_.lowered.rows) {
    const auto at = static_cast<size_t>(rows.symbol);
    if (symbols[at] <= model_.bounds[at]) continue;
    if (options_.max_rows > 0)
      fail(TN_INVALID, SubjectName{rows.name}, "data layer \"", rows.name, "\": ", symbols[at],
           " rows in a minibatch; the machine was made for at most ", options_.max_rows);
    fits = false;
    if (rows.name.empty()) continue;  // derived: its bound follows from the others
    bounds[rows.symbol] = doubled(model_.bounds[at], symbols[at]);
  }
  const Graph& graph = model_.calls->graph();
  const StepRows* seen = nullptr;
  for (const StepRows& each : graph.step_rows) {
    const auto at = static_cast<size_t>(each.rows.symbol);
    if (symbols[at] <= model_.bounds[at]) continue;
    fits = false;
    if (!each.whole) continue;
    seen = &each;
    bounds[each.rows.symbol] = doubled(model_.bounds[at], symbols[at]);
  }
  if (fits) return;
  try {
    replace_model(compile(topology_, target(), options_, std::move(bounds)));
  } catch (const Error& error) {
    if (seen == nullptr || error.code() == TN_PLUGIN_FAULT) throw;
    fail(error.code(), ComponentName{text("layer \"", graph.layers[static_cast<size_t>(seen->layer)], "\"")},
         "its steps see ", symbols[static_cast<size_t>(seen->rows.symbol)],
         " rows of whole sequences in a minibatch, for which the machine cannot grow: ", error.message());
  }
}

// Replaces the compiled model by a larger one; keeps the gradients. Changes nothing on failure.
void Machine::replace_model(CompiledModel larger) {
  auto memory_id = std::make_shared<const MemoryId>();
  std::vector<int64_t> symbols(larger.bounds.size(), 0);
  if (accumulated_) {
    const MachineMemory &from = model_.memory, &to = larger.memory;
    access_->move(to.block.data() + to.sections.gradients, from.block.data() + from.sections.gradients,
                  from.sections.arena - from.sections.gradients);
    for (size_t i = 0; i < model_.sparse_gradients.size(); ++i) {
      const SparseGradient& kept = *model_.sparse_gradients[i];
      SparseGradient& gradient = *larger.sparse_gradients[i];
      if (gradient.capacity() < kept.count()) {
        gradient.resize(kept.count());
        larger.calls->bind_rows(gradient.value(), gradient.values(), &gradient.rows());
      }
      gradient.copy(kept);
    }
  }
  copy_carried(larger);
  access_->wait();  // before the former memory is released
  model_ = std::move(larger);
  access_->drop_views();
  memory_id_ = std::move(memory_id);
  symbols_ = std::move(symbols);
}

// Throws if a layer got numbers that it does not take.
void Machine::check_numbers() const {
  const auto is_other = [&](ValueId value, int64_t element) {
    return number_at(value, element) > -std::numeric_limits<double>::infinity();
  };
  for (const NumberCheck& check : model_.lowered.number_checks) {
    if (!is_other(check.any, 0)) continue;
    int64_t row = 0;
    while (!is_other(check.by_row, row)) ++row;
    check.refuse(number_at(check.by_row, row), row, first_sample_);
  }
}

// Returns an element of a kept value of the compute type.
double Machine::number_at(ValueId value, int64_t element) const {
  const auto at = static_cast<size_t>(element);
  if (options_.compute == TN_F64)
    return *static_cast<const double*>(
        access_->view(static_cast<const double*>(model_.calls->memory(value)) + at, sizeof(double)));
  return *static_cast<const float*>(
      access_->view(static_cast<const float*>(model_.calls->memory(value)) + at, sizeof(float)));
}

// Takes the sizes that calls have written.
void Machine::settle_rows() {
  for (const RaggedUse& rows : model_.lowered.rows)
    if (rows.is_written()) symbols_[static_cast<size_t>(rows.symbol)] = model_.memory.symbols[rows.symbol];
}

void Machine::begin_step(const std::vector<int64_t>& symbols, const std::vector<int64_t>& whole) {
  const bool changed = symbols != symbols_;
  symbols_ = symbols;
  bring_residents(model_.memory);
  if (options_.training) model_.memory.random->step = first_random(options_).step + set_->updates();
  std::copy(symbols.begin(), symbols.end(), model_.memory.symbols);
  for (const auto& by_symbol : model_.inverses.by_symbol()) {
    const int32_t symbol = by_symbol.first;
    const int64_t size = whole[static_cast<size_t>(symbol)];  // so that the costs of shards add up
    const double inverse = size > 0 ? 1.0 / static_cast<double>(size) : 0.0;
    std::byte* const to = model_.memory.inverses + static_cast<size_t>(symbol) * sizeof(double);
    if (options_.compute == TN_F64)
      *reinterpret_cast<double*>(to) = inverse;
    else
      *reinterpret_cast<float*>(to) = static_cast<float>(inverse);
  }
  put_control(model_.memory, *access_);
  if (changed) model_.calls->resize(symbols);
}

tn_execution Machine::execution() const {
  tn_execution execution = {};
  execution.size = sizeof execution;
  execution.device = device_->instance();
  execution.stream = access_->stream();
  execution.symbols = model_.memory.device_symbols;
  execution.host_symbols = model_.memory.symbols;
  execution.random = model_.memory.device_random;
  execution.parallel = parallel_;
  execution.errors = errors_.get();
  return execution;
}

void Machine::start(Phase phase) {
  const FloatingPointMode mode;  // also of what a kernel computes outside of parallel regions
  try {
    model_.calls->run(phase, execution(), errors_);
  } catch (const Error& error) {
    end_failed(phase, error);
    throw;
  } catch (...) {
    access_->finish();
    throw;
  }
}

void Machine::finish(Phase phase) {
  try {
    access_->wait();
  } catch (const Error& error) {
    end_failed(phase, error);
    throw;
  }
}

void Machine::end_failed(Phase phase, const Error& error) {
  access_->finish();
  const bool late = !access_->is_direct() && error.component() == device_->who();
  if (late && phase == Phase::kForward) name_failure();
}

// Runs a forward again of which work failed later than its run, to throw the failure with its component. A backward
// has overwritten what it read.
void Machine::name_failure() {
  const FloatingPointMode mode;
  std::copy(symbols_.begin(), symbols_.end(), model_.memory.symbols);
  put_control(model_.memory, *access_);
  model_.calls->resize(symbols_);
  try {
    model_.calls->run_stepwise(Phase::kForward, execution(), errors_);
  } catch (...) {
    access_->finish();
    throw;
  }
}

void Machine::run_once() {
  if (!model_.calls->has_once() || (version_ && model_.version == version_)) return;
  model_.version.reset();
  start(Phase::kOnce);
  finish(Phase::kOnce);
  model_.version = version_;
}

void Machine::drop_outputs() {
  if (shards_ != nullptr) shards_->drop_outputs();
  samples_ = -1;
  fresh_ = used_ = data_gradients_ = false;
}

void Machine::require_own() const {
  if (lent_) fail(TN_MISUSE, "the machine belongs to a training, whose handler may only read it");
}

void Machine::check_backward() const {
  require_own();
  if (!options_.training) fail(TN_MISUSE, "this machine was made without training; it has no backward");
  if (!fresh_) fail(TN_MISUSE, "backward needs a forward of its own that succeeded before it");
  if (!updated_.empty())
    fail(TN_MISUSE, SubjectName{*updated_.begin()}, "backward would add to gradients of which parameter \"",
         *updated_.begin(), "\" has been updated; end the step first");
}

void Machine::backward() {
  check_backward();
  if (options_.given_gradients)
    fail(TN_MISUSE, "this machine was made for given gradients; its backward begins with gradients of outputs");
  run_backward();
}

void Machine::run_backward() {
  if (shards_ != nullptr) return shards_->backward();
  start_backward();
  finish_backward();
}

void Machine::start_backward() {
  if (samples_ > 0 && accumulated_)
    for (const auto& gradient : model_.sparse_gradients)  // may fail: nothing has changed yet
      reserve_rows(*gradient, model_.calls->contributions(gradient->value(), symbols_));
  bring_residents(model_.memory);  // the application may have set some since the forward
  fresh_ = false;
  data_gradients_ = samples_ == 0;
  if (samples_ == 0) return;
  const uint8_t request = accumulated_ ? TN_REQUEST_ADD : TN_REQUEST_WRITE;
  for (const ParameterUse& use : model_.lowered.parameters)
    if (use.gradient != kNoValue) model_.calls->request(use.gradient, request);
  accumulated_ = false;
  start(Phase::kBackward);
}

void Machine::finish_backward() {
  if (samples_ == 0) return;
  finish(Phase::kBackward);
  accumulated_ = true;
  data_gradients_ = true;
}

// Makes room before `added` rows are added to a row-sparse gradient: all may be new ones.
void Machine::reserve_rows(SparseGradient& gradient, int64_t added) {
  const int64_t most = std::min(gradient.height(), checked_add(gradient.count(), added, "rows"));
  if (most <= gradient.capacity()) return;
  auto memory_id = std::make_shared<const MemoryId>();
  gradient.resize(std::min(gradient.height(), std::max(most, gradient.capacity() * 2)));
  model_.calls->bind_rows(gradient.value(), gradient.values(), &gradient.rows());
  memory_id_ = std::move(memory_id);
}

void Machine::commit(const UsedNames& used) {
  if (!accumulated_) return;
  bool changed = false;
  for (size_t i = 0; i < model_.lowered.buffers.size(); ++i) {
    const BufferUse& buffer = model_.lowered.buffers[i];
    if (buffer.next == kNoValue || samples_ <= 0 || options_.is_immutable(buffer.name)) continue;
    if (!used.contains(buffer.name) || skipped_) continue;
    commit_buffer(i);
    changed = true;
  }
  if (changed) access_->wait();  // other machines may read the buffers now
  accumulated_ = false;
  skipped_ = false;
  updated_.clear();
  used_ = true;
  set_->count_update();
}

// Makes the next values of a buffer the present ones. number: in Lowered::buffers.
void Machine::commit_buffer(size_t number) {
  const MachineMemory::Resident& kept = model_.memory.residents[model_.lowered.parameters.size() + number];
  const void* const next = model_.calls->memory(model_.lowered.buffers[number].next);
  if (options_.compute == TN_F32) {
    access_->move(kept.data(), next, kept.part.bytes);
  } else {
    const uint64_t count = kept.part.bytes / sizeof(float);
    const auto* const wide = static_cast<const double*>(access_->view(next, count * sizeof(double)));
    access_->write_by(kept.data(), kept.part.bytes, [&](std::byte* to) {
      std::transform(wide, wide + count, reinterpret_cast<float*>(to),
                     [](double value) { return static_cast<float>(value); });
    });
  }
  kept.residence.changed(kept.part);
}

std::vector<GradientRun> Machine::gradient_runs(const UsedNames& used) const {
  return host::gradient_runs(model_, *set_, used);
}

std::vector<const SparseGradient*> Machine::sparse_gradients(const UsedNames& used) const {
  std::vector<const SparseGradient*> result;
  for (const auto& gradient : model_.sparse_gradients)
    if (used.contains(set_->entries()[gradient->entry()].name)) result.push_back(gradient.get());
  return result;
}

}  // namespace tenon::host
