// Shared code of the layers of ranked lists. A list is the rows of an innermost sequence.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>

#include "ragged.h"

namespace tenon::ranking {

using kernels::innermost;

// Throws unless the input is one number for each row: [rows] or [rows, 1].
inline void require_one_number(const tn::Planner& planner, uint32_t i) {
  const tn::Spec spec = planner.input(i);
  if (spec.rank() < 1 || spec.rank() > 2 || (spec.rank() == 2 && !spec[1].same(1)))
    throw planner.bad_input(i, "must be one number for each row, [rows] or [rows, 1]");
}
inline void plan_lists(const tn::Planner& planner, uint32_t score, uint32_t relevance) {
  if (!planner.input(score).is_ragged())
    throw planner.bad_input(score, "must be sequences (ragged): each is a list that is ranked");
  require_one_number(planner, score);
  require_one_number(planner, relevance);
  planner.require_per_row(relevance, planner.input(score).leading(1));
}

// How many places of a list count.
inline void describe_top(tn::LayerDescription& d) {
  d.attribute(tn::int_attribute("top").at_least(1).doc("how many places count; absent, all"));
}
inline int64_t top_of(const tn::Attributes& attributes) {
  return attributes.has("top") ? attributes.integer("top") : std::numeric_limits<int32_t>::max();
}

// ---- in kernels

// A tensor of float32 or float64, read as doubles.
class Floats {
 public:
  explicit Floats(const tn_tensor& tensor) : data_(tn_data(&tensor)), wide_(tensor.dl.dtype.bits == 64) {}
  double operator[](int64_t i) const {
    return wide_ ? reinterpret_cast<const double*>(data_)[i]
                 : static_cast<double>(reinterpret_cast<const float*>(data_)[i]);
  }

 private:
  const uint8_t* data_;
  bool wide_;
};
// Element i of a float32 or float64 tensor = value, or += value.
inline void put(const tn_tensor& tensor, int64_t i, double value, bool add) {
  uint8_t* data = tn_data(&tensor);
  if (tensor.dl.dtype.bits == 64) {
    double& to = reinterpret_cast<double*>(data)[i];
    to = add ? to + value : value;
  } else {
    float& to = reinterpret_cast<float*>(data)[i];
    to = add ? to + static_cast<float>(value) : static_cast<float>(value);
  }
}

// Fills `prepared` with a copy of `binding`, which the host destroys.
template <typename Binding>
tn_status prepare(const tn_errors* errors, const Binding& binding, uint64_t workspace_bytes,
                  tn_status (*run)(void*, const tn_execution*, const tn_call*), tn_prepared* prepared) {
  prepared->binding = new (std::nothrow) Binding(binding);
  if (prepared->binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a binding");
  prepared->workspace_bytes = workspace_bytes;
  prepared->run = run;
  prepared->destroy = [](void* made) { delete static_cast<Binding*>(made); };
  return TN_OK;
}

constexpr tn_dtype kFloats[] = {TN_F32, TN_F64};

// The table of a kernel on the device cpu, for both float types.
constexpr tn_kernel kernel_of(const char* type, const char* name, decltype(tn_kernel::supports) supports,
                              decltype(tn_kernel::query) query, decltype(tn_kernel::prepare) prepare) {
  tn_kernel kernel = {};
  kernel.size = sizeof kernel;
  kernel.score = 1;
  kernel.type = type;
  kernel.device = "cpu";
  kernel.name = name;
  kernel.dtypes_count = 2;
  kernel.dtypes = kFloats;
  kernel.supports = supports;
  kernel.query = query;
  kernel.prepare = prepare;
  return kernel;
}

void add_lambda_cost(tn::Plugin& plugin);
void add_pnpair(tn::Plugin& plugin);
void add_retrieval(tn::Plugin& plugin);

}  // namespace tenon::ranking
