// SPDX-License-Identifier: Apache-2.0
#include "host/machine/machine_memory.h"

#include <cstring>

#include "core/alignment.h"
#include "core/checked.h"
#include "host/machine/compiled_model.h"

namespace tenon::host {

namespace {

// Returns the bytes of the sizes of all symbols, and likewise of their inverses (int64 or double per symbol).
uint64_t bytes_by_symbol(const CompiledModel& model) { return whole_lines(model.bounds.size() * sizeof(int64_t)); }

// Returns the values that lie in the section `feeds`: those of a minibatch, and given gradients.
std::vector<ValueId> fed_values(const CompiledModel& model) {
  const Lowered& lowered = model.lowered;
  std::vector<ValueId> values;
  for (const RaggedUse& rows : lowered.rows)
    if (!rows.is_written()) values.push_back(rows.of.offsets);
  for (const Feed& feed : lowered.feeds) {
    values.push_back(feed.value);
    if (feed.weights != kNoValue) values.push_back(feed.weights);
  }
  for (const GivenGradient& given : model.given) values.push_back(given.gradient);
  for (const MachineTable& table : model.tables)
    for (const TableRead& read : table.reads) values.push_back(read.places);
  return values;
}

// Returns the values that lie in the section `fixed`: constants, then carried states.
std::vector<ValueId> fixed_values(const Lowered& lowered) {
  std::vector<ValueId> values;
  for (const ConstantUse& constant : lowered.constants) values.push_back(constant.value);
  for (const CarriedUse& carried : lowered.carried) values.push_back(carried.now);
  return values;
}

uint64_t fixed_bytes(const CompiledModel& model) {
  uint64_t bytes = 0;
  for (const ValueId value : fixed_values(model.lowered))
    bytes = checked_add(bytes, bytes_of(model.calls->graph().spec(value), model.bounds), "constants");
  return bytes;
}

uint64_t gradient_bytes(const CompiledModel& model) {
  uint64_t bytes = 0;
  for (const PlacedGradient& gradient : model.gradients) bytes = gradient.offset + gradient.bytes;
  return bytes;
}

void bind_control(CompiledModel& model, HostAccess& access, const tn_random& random) {
  MachineMemory& memory = model.memory;
  std::byte* const block = memory.block.data() + memory.sections.control;
  if (!access.is_direct()) memory.control = Buffer(access.allocator(), memory.sections.feeds);
  std::byte* const control = access.is_direct() ? block : memory.control.data();
  const uint64_t symbols_at = whole_lines(sizeof(tn_random)), inverses_at = symbols_at + bytes_by_symbol(model);
  std::memset(control, 0, memory.sections.feeds);
  memory.random = new (control) tn_random(random);
  memory.symbols = reinterpret_cast<int64_t*>(control + symbols_at);
  memory.inverses = control + inverses_at;
  memory.device_random = reinterpret_cast<tn_random*>(block);
  memory.device_symbols = reinterpret_cast<int64_t*>(block + symbols_at);
  for (const auto& [symbol, inverse] : model.inverses.by_symbol())
    model.calls->bind(inverse, block + inverses_at + static_cast<size_t>(symbol) * sizeof(double));
  for (const RaggedUse& rows : model.lowered.rows)
    if (rows.is_written()) model.calls->bind(rows.of.count, memory.device_symbols + rows.symbol);
}

// Binds constants and copies their elements; binds carried states and sets them to zero.
void bind_fixed(CompiledModel& model, HostAccess& access) {
  std::byte* next = model.memory.block.data() + model.memory.sections.fixed;
  access.zero(next, fixed_bytes(model));
  for (const ConstantUse& constant : model.lowered.constants) {
    access.write(next, constant.bytes.data(), constant.bytes.size());
    model.calls->bind(constant.value, next);
    next += bytes_of(model.calls->graph().spec(constant.value), model.bounds);
  }
  for (const CarriedUse& carried : model.lowered.carried) {
    model.calls->bind(carried.now, next);
    next += bytes_of(model.calls->graph().spec(carried.now), model.bounds);
  }
}

void bind_feeds(CompiledModel& model) {
  std::byte* next = model.memory.block.data() + model.memory.sections.feeds;
  for (const ValueId fed : fed_values(model)) {
    model.calls->bind(fed, next);
    model.memory.fed[fed].own = next;
    next += bytes_of(model.calls->graph().spec(fed), model.bounds);
  }
}

// Binds a parameter or buffer to where the device has it.
void bind_resident(CompiledModel& model, ParameterSet& set, const HostAccess& access, const std::string& name,
                   ValueId stored) {
  const ParameterEntry& entry = set.find(name);
  const MachineMemory::Resident resident{Residence(set.home(entry), access), ParameterSet::part(entry)};
  model.calls->bind(stored, resident.data());
  model.memory.residents.push_back(resident);
}

// Binds the parameters, those of tables to caches with room for one row.
void bind_parameters(CompiledModel& model, ParameterSet& set, const HostAccess& access) {
  for (const ParameterUse& use : model.lowered.parameters)
    if (!set.find(use.name).table) bind_resident(model, set, access, use.name, use.stored);
  for (const MachineTable& table : model.tables) {
    model.memory.caches.emplace_back(access.device(), static_cast<uint64_t>(table.width) * sizeof(float));
    model.calls->bind(table.stored, model.memory.caches.back().data());
  }
  model.memory.first_buffer = model.memory.residents.size();
}

// Binds every view to the memory of the value that it is a view of.
void bind_views(CompiledModel& model) {
  const Graph& graph = model.calls->graph();
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const auto value = static_cast<ValueId>(i);
    const ValueId root = graph.root(value);
    if (root != value) model.calls->bind(value, model.calls->memory(root));
    if (const auto fed = model.memory.fed.find(root); fed != model.memory.fed.end()) fed->second.views.push_back(value);
  }
}

}  // namespace

void lay_out(CompiledModel& model) {
  MachineMemory::Sections& sections = model.memory.sections;
  uint64_t total = whole_lines(sizeof(tn_random)) + 2 * bytes_by_symbol(model);
  const auto section = [&](uint64_t bytes) {
    const uint64_t begin = total;
    total = checked_add(total, whole_lines(bytes), "machine bytes");
    return begin;
  };
  uint64_t feed_bytes = 0;
  for (const ValueId fed : fed_values(model))
    feed_bytes = checked_add(feed_bytes, bytes_of(model.calls->graph().spec(fed), model.bounds), "feeds");
  sections.feeds = section(feed_bytes);
  sections.fixed = section(fixed_bytes(model));
  sections.gradients = section(gradient_bytes(model));
  sections.arena = section(model.memory_plan.bytes);
  sections.workspace = section(model.calls->workspace_bytes());
  sections.total = total;
}

void put_control(const MachineMemory& memory, HostAccess& access) {
  if (!access.is_direct())
    access.write(memory.block.data() + memory.sections.control, memory.control.data(), memory.control.size());
}

void bring_residents(const MachineMemory& memory) {
  for (const MachineMemory::Resident& resident : memory.residents) resident.residence.bring(resident.part);
}

void allocate(CompiledModel& model, ParameterSet& set, HostAccess& access, const tn_random& random) {
  const MachineMemory::Sections& sections = model.memory.sections;
  CallArray& calls = *model.calls;
  model.memory.block = DeviceMemory(access.device(), sections.total);
  const HostAccess::Finishing finishing(access);
  std::byte* const base = model.memory.block.data();
  access.zero(base + sections.gradients, gradient_bytes(model));
  bind_control(model, access, random);
  bind_feeds(model);
  for (const GivenGradient& given : model.given)  // finite before the first is given
    access.zero(calls.memory(given.gradient), bytes_of(calls.graph().spec(given.gradient), model.bounds));
  bind_fixed(model, access);
  bind_parameters(model, set, access);
  for (const BufferUse& use : model.lowered.buffers) bind_resident(model, set, access, use.name, use.stored);
  for (const PlacedGradient& gradient : model.gradients)
    calls.bind(gradient.value, base + sections.gradients + gradient.offset);
  const std::vector<uint64_t>& offsets = model.memory_plan.offsets;
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != MemoryPlan::kNotHere) calls.bind(static_cast<ValueId>(i), base + sections.arena + offsets[i]);
  bind_views(model);
  calls.seal({base + sections.workspace, model.memory.symbols, model.memory.device_symbols, &access});
  access.wait();
}

}  // namespace tenon::host
