// "tenon.gemm_epilogue/1": a matrix product and a pointwise program over its rows. Each chunk of rows is multiplied
// just before the program reads it, so that it is in the cache. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "pointwise/run_passes.h"
#include "primitives.h"
#include "primitives/gemm.h"

namespace tenon::cpu {

namespace {

// A prepared call.
struct Epilogue {
  tn_gemm gemm;
  size_t product;  // number of the program's input that is C
  Binding program;
  // [program.inputs_count] The program's inputs. run writes the pointers, so that a binding must not run twice at once.
  std::vector<const tn_tensor*> inputs;
};

// Returns the least rows of C in a chunk: those that give work for a few microseconds, and enough for a copy of B to
// pay if C has many rows. If A is transposed, those of a tile, which the bits of the result depend on.
int64_t chunk_rows(const tn_gemm& gemm) {
  constexpr double kWorthwhile = 1e6;  // multiplications
  const int64_t m = gemm.m.bound, n = gemm.n.bound, k = gemm.k.bound;
  const auto row = static_cast<double>(n) * static_cast<double>(k);
  const auto least = static_cast<int64_t>(kWorthwhile / std::max(row, 1.0));
  int64_t tile = 1;
  if (m > 0 && n > 0 && k > 0)
    tile = (gemm.flags & TN_TRANSPOSE_A) != 0 ? choose_tiles(m, n, k, gemm.flags).rows
                                              : std::clamp<int64_t>(m / 8, 16, 96);
  return std::max({tile, least, int64_t{1}});
}

tn_status supports(void*, const tn_errors*, const tn_gemm_epilogue* epilogue) {
  try {
    const tn_gemm& gemm = *epilogue->gemm;
    const tn_pointwise_site& site = *epilogue->site;
    const bool bounded = gemm.m.bound >= 0 && gemm.n.bound > 0 && gemm.k.bound >= 0 && gemm.batch.bound >= 0 &&
                         site.rows.bound >= 0 && site.columns.symbol == TN_SYMBOL_NONE;
    if (!bounded || site.columns.offset > kChunkColumns || site.compute != gemm.dtype) return TN_UNSUPPORTED;
    // A second pass over the whole grid would read C from memory again.
    const Schedule plan = schedule(site);
    const auto full = [](const Pass& pass) { return pass.grid == Grid::kFull; };
    return std::count_if(plan.passes.begin(), plan.passes.end(), full) == 1 ? TN_OK : TN_UNSUPPORTED;
  } catch (const std::bad_alloc&) {
    return TN_OUT_OF_MEMORY;
  } catch (const std::exception&) {
    return TN_UNSUPPORTED;
  }
}

// RowMaker::make: computes rows [first, last) of C [batch * m, n] of a Product.
void make_rows(const void* self, int64_t first, int64_t last) {
  multiply_rows(*static_cast<const Product*>(self), first, last);
}

// call inputs: A, B, then the program's inputs without C; outputs: C [batch * m, n], then the program's outputs. The
// grid of the program is that of C.
tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  Epilogue& epilogue = *static_cast<Epilogue*>(self);
  if (call->inputs_count != 1 + epilogue.program.inputs_count ||
      call->outputs_count != 1 + epilogue.program.outputs_count)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a product with an epilogue and another number of operands");
  Product product = {};
  const tn_status status = make_product(epilogue.gemm, *execution, *call, &product);
  if (status != TN_OK) return status;
  std::copy(call->inputs + 2, call->inputs + 2 + epilogue.product, epilogue.inputs.begin());
  epilogue.inputs[epilogue.product] = call->outputs[0];
  std::copy(call->inputs + 2 + epilogue.product, call->inputs + call->inputs_count,
            epilogue.inputs.begin() + static_cast<std::ptrdiff_t>(epilogue.product) + 1);
  tn_call program = *call;
  program.inputs = epilogue.inputs.data();
  program.inputs_count = epilogue.program.inputs_count;
  program.outputs = call->outputs + 1;
  program.outputs_count = epilogue.program.outputs_count;
  program.requests = call->requests + 1;
  const RowMaker maker = {&make_rows, &product};
  const tn_status ran = run_pointwise(epilogue.program, *execution, program, &maker);
  return ran != TN_OK ? ran : check_done(execution->errors, product);
}

void destroy(void* self) { delete static_cast<Epilogue*>(self); }

tn_status prepare(void* device, const tn_services*, const tn_errors* errors, const tn_gemm_epilogue* given,
                  tn_prepared* prepared) {
  if (const tn_status status = check_gemm(errors, *given->gemm); status != TN_OK) return status;
  const bool known = given->product >= 0 && static_cast<uint32_t>(given->product) < given->site->program->inputs_count;
  if (const tn_status status = known ? supports(device, errors, given) : tn_status{TN_UNSUPPORTED}; status != TN_OK)
    return tn_fail(
        errors, status, "program",
        status == TN_OUT_OF_MEMORY ? "no memory to plan it" : "the cpu cannot run this program as an epilogue");
  try {
    tn_dtype missing = TN_COMPUTE;
    auto epilogue =
        std::make_unique<Epilogue>(Epilogue{*given->gemm,
                                            static_cast<size_t>(given->product),
                                            generate(*given->site, detect_isa(), &missing, chunk_rows(*given->gemm)),
                                            {}});
    if (missing != TN_COMPUTE || !is_complete(epilogue->program))
      return tn_fail(errors, TN_UNSUPPORTED, "program",
                     "the program has a type or an operation that the cpu does not know");
    epilogue->inputs.resize(epilogue->program.inputs_count);
    prepared->workspace_bytes = workspace_bytes(epilogue->program);
    prepared->binding = epilogue.release();
  } catch (const std::exception&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a product with an epilogue");
  }
  prepared->traits = 0;
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char gemm_epilogue_id[] = TN_GEMM_EPILOGUE;
const tn_gemm_epilogue_table gemm_epilogue_table = {sizeof(tn_gemm_epilogue_table), TN_OPSET, &supports, &prepare};

}  // namespace tenon::cpu
