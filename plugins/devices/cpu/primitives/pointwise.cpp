// "tenon.pointwise/1": prepares pointwise programs. SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <memory>
#include <new>

#include "device.h"
#include "pointwise/run_passes.h"
#include "primitives.h"

namespace tenon::cpu {

namespace {

using SharedBinding = std::shared_ptr<const Binding>;

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  return run_pointwise(**static_cast<const SharedBinding*>(binding), *execution, *call);
}

void destroy(void* binding) { delete static_cast<SharedBinding*>(binding); }

tn_status check(const tn_errors* errors, const tn_pointwise_site& site) {
  if (site.compute != TN_F32 && site.compute != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "compute", "the cpu computes in float32 and float64 only");
  if (site.columns.symbol != TN_SYMBOL_NONE && (site.rows.symbol != TN_SYMBOL_NONE || site.rows.offset != 1))
    return tn_fail(errors, TN_UNSUPPORTED, "columns", "only a grid of one row may have a varying number of columns");
  if (site.columns.symbol == TN_SYMBOL_NONE && site.columns.offset < 0)
    return tn_fail(errors, TN_INVALID, "columns", "a grid with a negative number of columns");
  return TN_OK;
}

tn_status prepare_checked(ProgramCaches* caches, const tn_services* services, const tn_errors* errors,
                          const tn_pointwise_site& site, tn_prepared* prepared) {
  if (const tn_status status = check(errors, site); status != TN_OK) return status;
  tn_dtype missing = TN_COMPUTE;
  auto binding = std::make_unique<SharedBinding>(binding_at(site, detect_isa(), caches, &missing));
  if (missing != TN_COMPUTE) {
    char message[96];
    std::snprintf(message, sizeof message, "the cpu has no conversion for element type code %u with %u bits",
                  tn_dtype_code(missing), tn_dtype_bits(missing));
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", message);
  }
  if (!is_complete(**binding))
    return tn_fail(errors, TN_UNSUPPORTED, "program", "the program has an operation that the cpu does not know");
  prepared->traits = call_traits(services);
  prepared->workspace_bytes = workspace_bytes(**binding);
  prepared->run = &run;
  prepared->destroy = &destroy;
  prepared->binding = binding.release();
  return TN_OK;
}

tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const tn_pointwise_site* site,
                  tn_prepared* prepared) {
  try {
    return prepare_checked(caches_of(device), services, errors, *site, prepared);
  } catch (const std::bad_alloc&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for the code of a pointwise program");
  } catch (const std::exception& e) {
    return tn_fail(errors, TN_INTERNAL, nullptr, e.what());
  } catch (...) {
    return tn_fail(errors, TN_INTERNAL, nullptr, "an exception of unknown type");
  }
}

}  // namespace

const char pointwise_id[] = TN_POINTWISE;
const tn_pointwise_table pointwise_table = {sizeof(tn_pointwise_table), TN_OPSET, &prepare};

}  // namespace tenon::cpu
