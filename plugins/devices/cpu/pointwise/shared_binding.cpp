// Lets pointwise programs at equal sites share their code. SPDX-License-Identifier: Apache-2.0
#include "pointwise/generate_code.h"

namespace tenon::cpu {

namespace {

// All that the code depends on.
std::string key_of(const tn_pointwise_site& site, Isa isa, const Chunks& chunks) {
  const tn_program& program = *site.program;
  std::string key;
  const auto add = [&](auto... numbers) { append(key, numbers...); };
  const auto add_dim = [&](const tn_dim& dim) { add(dim.symbol, dim.coefficient, dim.offset, dim.bound); };
  key.reserve(128 + 32 * size_t{program.instructions_count});
  add(isa, site.compute, chunks.rows, chunks.exact, chunks.is_eighth);
  add_dim(site.rows);
  add_dim(site.columns);
  add(program.instructions_count, program.inputs_count, program.outputs_count);
  for (uint32_t i = 0; i < program.instructions_count; ++i) {
    const tn_instruction& in = program.instructions[i];
    add(in.op, in.kind, in.extent, in.a, in.b, in.c, in.number, site.extents[i]);
  }
  for (uint32_t i = 0; i < program.inputs_count; ++i)
    add(program.inputs[i].extent, program.inputs[i].kind, site.inputs[i]);
  for (uint32_t i = 0; i < program.outputs_count; ++i)
    add(program.outputs[i].value, program.outputs[i].dtype, site.outputs[i]);
  return key;
}

}  // namespace

std::shared_ptr<const Binding> binding_at(const tn_pointwise_site& site, Isa isa, ProgramCaches* caches,
                                          tn_dtype* missing, const Chunks& chunks) {
  if (caches == nullptr) return std::make_shared<const Binding>(generate(site, isa, nullptr, missing, chunks));
  const std::string key = key_of(site, isa, chunks);
  *missing = TN_COMPUTE;
  std::shared_ptr<const Binding> binding = caches->bindings.find(key);
  if (binding != nullptr) return binding;
  binding = std::make_shared<const Binding>(generate(site, isa, &caches->functions, missing, chunks));
  if (*missing == TN_COMPUTE) caches->bindings.add(key, binding);
  return binding;
}

}  // namespace tenon::cpu
