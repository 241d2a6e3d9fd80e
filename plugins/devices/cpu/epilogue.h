// A product of matrices or a convolution, and a pointwise program over its rows. Each chunk of rows is computed just
// before the program reads it, so that it is in the cache. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "pointwise/run_passes.h"

namespace tenon::cpu {

// The program of a prepared call. The operands of the call are the two inputs of the product, then the program's inputs
// without the product; the outputs the product, then the program's.
struct Epilogue {
  size_t product;  // number of the program's input that is the product
  std::shared_ptr<const Binding> program;
  // [program.inputs_count] The program's inputs. run_epilogue writes the pointers, so that an epilogue must not run
  // twice at once.
  std::vector<const tn_tensor*> inputs;
};

// How often the program may go over the whole grid. The first pass reads the product from the cache, others from
// memory.
enum class Passes : uint8_t { kOne, kSeveral };

// What `supports` of a table returns for the program: TN_OK if input number `product` can be a product of `dtype`.
[[nodiscard]] tn_status check_epilogue(const tn_pointwise_site& site, int32_t product, tn_dtype dtype, Passes most);

// Reports that `supports` returned `status`, and returns it.
tn_status refuse_epilogue(const tn_errors* errors, tn_status status);

// Prepares a program that check_epilogue accepts. Reports types and operations that are unknown. caches: see
// binding_at.
[[nodiscard]] tn_status make_epilogue(ProgramCaches* caches, const tn_errors* errors, const tn_pointwise_site& site,
                                      int32_t product, const Chunks& chunks, Epilogue* epilogue);

// Reports a wrong number of operands.
[[nodiscard]] tn_status check_operands(const Epilogue& epilogue, const tn_execution& execution, const tn_call& call);

// Runs the program over rows that `maker` computes, in the workspace of the call from its beginning. After
// check_operands.
[[nodiscard]] tn_status run_epilogue(Epilogue& epilogue, const tn_execution& execution, const tn_call& call,
                                     const RowMaker& maker);

}  // namespace tenon::cpu
