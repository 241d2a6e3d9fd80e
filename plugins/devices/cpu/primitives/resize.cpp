// "tenon.resize/1": along each axis an element of the larger tensor reads one or two elements with weights. A task is a
// sample, whose sums are in the order of the elements. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "primitives.h"

namespace tenon::cpu {

namespace {

// What an element reads along one axis: low and low + 1, or `low` alone if high is 0.
struct Reads {
  int64_t low;
  double high;  // the weight of the second
};

struct Binding {
  tn_resize_site site;
  tn_resize how;
  std::array<std::vector<Reads>, TN_MAX_SPACE> axes;  // axes that are not there have one element and come first
  std::array<int64_t, TN_MAX_SPACE> from;
};

std::vector<Reads> reads_of(const tn_resize& how, int32_t i) {
  std::vector<Reads> reads;
  const auto last = static_cast<double>(how.from[i] - 1);
  for (int64_t o = 0; o < how.to[i]; ++o) {
    const double at = std::clamp(how.scale[i] * static_cast<double>(o) + how.offset[i], 0.0, last);
    const double low = std::floor(at);
    reads.push_back({static_cast<int64_t>(low), (how.flags & TN_RESIZE_LINEAR) != 0 ? at - low : 0.0});
  }
  return reads;
}

struct Run {
  const Binding* binding;
  const uint8_t* from;
  uint8_t* to;
  bool add;
};

// Calls work(element of the resized image, element of the other, weight) for all pairs of a sample.
template <class Work>
void each_pair(const Binding& b, Work work) {
  int64_t place = 0;
  for (const Reads& x : b.axes[0])
    for (const Reads& y : b.axes[1])
      for (const Reads& z : b.axes[2]) {
        for (int corner = 0; corner < 8; ++corner) {
          const bool up[3] = {(corner & 4) != 0, (corner & 2) != 0, (corner & 1) != 0};
          const Reads* const all[3] = {&x, &y, &z};
          double weight = 1;
          int64_t at = 0;
          for (size_t i = 0; i < 3; ++i) {
            weight *= up[i] ? all[i]->high : 1 - all[i]->high;
            at = at * b.from[i] + all[i]->low + (up[i] ? 1 : 0);
          }
          if (weight != 0) work(place, at, weight);
        }
        ++place;
      }
}

template <class T>
void resize_sample(const Run& run, int64_t sample) {
  const Binding& b = *run.binding;
  const bool transposed = (b.how.flags & TN_RESIZE_TRANSPOSED) != 0;
  const int64_t channels = b.site.channels;
  const int64_t small = b.from[0] * b.from[1] * b.from[2] * channels;
  const auto large = static_cast<int64_t>(b.axes[0].size() * b.axes[1].size() * b.axes[2].size()) * channels;
  const T* const from = reinterpret_cast<const T*>(run.from) + sample * (transposed ? large : small);
  T* const to = reinterpret_cast<T*>(run.to) + sample * (transposed ? small : large);
  if (!run.add) std::fill(to, to + (transposed ? small : large), T{0});
  each_pair(b, [&](int64_t place, int64_t at, double weight) {
    const T* const read = from + (transposed ? place : at) * channels;
    T* const written = to + (transposed ? at : place) * channels;
    const auto by = static_cast<T>(weight);
    for (int64_t c = 0; c < channels; ++c) written[c] += by * read[c];
  });
}

void run_task(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  if (run.binding->site.dtype == TN_F64) return resize_sample<double>(run, index);
  resize_sample<float>(run, index);
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const Binding& b = *static_cast<const Binding*>(self);
  const tn_errors* const errors = execution->errors;
  if (call->inputs_count != 1 || call->outputs_count != 1 || call->inputs[0] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "a resize needs one input and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "a resize without its output");
  const int64_t samples = tn_dim_value(&b.site.samples, execution->symbols);
  if (samples < 0) return tn_fail(errors, TN_MISUSE, nullptr, "a resize of a negative number of samples");
  Run run = {&b, tn_data(call->inputs[0]), tn_data(call->outputs[0]), call->requests[0] == TN_REQUEST_ADD};
  execution->parallel->for_each(execution->parallel->self, samples, &run_task, &run);
  return TN_OK;
}

void destroy(void* self) { delete static_cast<Binding*>(self); }

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_resize_site* site,
                  tn_prepared* prepared) {
  if (site->dtype != TN_F32 && site->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu resizes float32 and float64 only");
  if ((site->resize->flags & ~uint32_t{TN_RESIZE_LINEAR | TN_RESIZE_TRANSPOSED}) != 0)
    return tn_fail(errors, TN_UNSUPPORTED, "flags", "the cpu does not offer this form of a resize");
  try {
    auto binding = std::make_unique<Binding>();
    binding->site = *site;
    binding->site.resize = nullptr;  // borrowed
    binding->how = *site->resize;
    binding->from.fill(1);
    for (size_t i = 0; i < TN_MAX_SPACE; ++i) {
      const int32_t axis = static_cast<int32_t>(i) - (TN_MAX_SPACE - binding->how.rank);
      if (axis >= 0) binding->from[i] = binding->how.from[axis];
      binding->axes[i] = axis < 0 ? std::vector<Reads>{{0, 0.0}} : reads_of(binding->how, axis);
    }
    prepared->binding = binding.release();
  } catch (const std::exception&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a resize's binding");
  }
  prepared->traits = call_traits(services);
  prepared->workspace_bytes = 0;
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char resize_id[] = TN_RESIZE;
const tn_resize_table resize_table = {sizeof(tn_resize_table), 0, &prepare};

}  // namespace tenon::cpu
