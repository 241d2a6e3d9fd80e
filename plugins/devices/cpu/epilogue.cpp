// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#include <tenon/plugin.h>

#include <algorithm>
#include <exception>
#include <new>

namespace tenon::cpu {

tn_status check_epilogue(const tn_pointwise_site& site, int32_t product, tn_dtype dtype, Passes most) {
  if (product < 0 || static_cast<uint32_t>(product) >= site.program->inputs_count) return TN_UNSUPPORTED;
  if (site.rows.bound < 0 || site.columns.symbol != TN_SYMBOL_NONE || site.columns.offset > kChunkColumns ||
      site.compute != dtype)
    return TN_UNSUPPORTED;
  try {
    const size_t count = count_full_passes(site);
    return count == 1 || (count > 1 && most == Passes::kSeveral) ? TN_OK : TN_UNSUPPORTED;
  } catch (const std::bad_alloc&) {
    return TN_OUT_OF_MEMORY;
  } catch (const std::exception&) {
    return TN_UNSUPPORTED;
  }
}

tn_status refuse_epilogue(const tn_errors* errors, tn_status status) {
  return tn_fail(
      errors, status, "program",
      status == TN_OUT_OF_MEMORY ? "no memory to plan it" : "the cpu cannot run this program as an epilogue");
}

tn_status make_epilogue(ProgramCaches* caches, const tn_errors* errors, const tn_pointwise_site& site, int32_t product,
                        const Chunks& chunks, Epilogue* epilogue) {
  try {
    tn_dtype missing = TN_COMPUTE;
    epilogue->product = static_cast<size_t>(product);
    epilogue->program = binding_at(site, detect_isa(), caches, &missing, chunks);
    if (missing != TN_COMPUTE || !is_complete(*epilogue->program))
      return tn_fail(errors, TN_UNSUPPORTED, "program",
                     "the program has a type or an operation that the cpu does not know");
    epilogue->inputs.resize(epilogue->program->inputs_count);
  } catch (const std::exception&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a product with an epilogue");
  }
  return TN_OK;
}

tn_status check_operands(const Epilogue& epilogue, const tn_execution& execution, const tn_call& call) {
  if (call.inputs_count != 1 + epilogue.program->inputs_count ||
      call.outputs_count != 1 + epilogue.program->outputs_count)
    return tn_fail(execution.errors, TN_MISUSE, nullptr, "a product with an epilogue and another number of operands");
  return TN_OK;
}

tn_status run_epilogue(Epilogue& epilogue, const tn_execution& execution, const tn_call& call, const RowMaker& maker) {
  std::copy(call.inputs + 2, call.inputs + 2 + epilogue.product, epilogue.inputs.begin());
  epilogue.inputs[epilogue.product] = call.outputs[0];
  std::copy(call.inputs + 2 + epilogue.product, call.inputs + call.inputs_count,
            epilogue.inputs.begin() + static_cast<std::ptrdiff_t>(epilogue.product) + 1);
  tn_call program = call;
  program.inputs = epilogue.inputs.data();
  program.inputs_count = epilogue.program->inputs_count;
  program.outputs = call.outputs + 1;
  program.outputs_count = epilogue.program->outputs_count;
  program.requests = call.requests + 1;
  return run_pointwise(*epilogue.program, execution, program, &maker);
}

}  // namespace tenon::cpu
