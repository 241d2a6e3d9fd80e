// "tenon.pool/1". A task is some places of a sample, or, where results spread over images, some channels of one. Sums
// are in the order of the elements of a window, or of the places. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "conv/geometry.h"
#include "conv/pool_kernels.h"
#include "primitives.h"

namespace tenon::cpu {

namespace {

constexpr int64_t kChannels = 64;     // of a task that spreads results
constexpr int64_t kTaskWork = 32768;  // elements that a task reads at least

// What a window has of the image along one dimension: the number of the first element, and how many there are.
struct Part {
  int64_t first, count;
};

struct Binding {
  tn_pool pool;
  Phase phase;                   // of results from images
  int64_t images, places, taps;  // elements of a sample, of one channel
  int64_t line;                  // places of a task of SUM, MAX and TAKE
  const PoolKernels* kernels;
  std::array<std::vector<Part>, TN_MAX_SPACE> parts;  // by dimension and position
  std::array<int64_t, TN_MAX_SPACE> steps;            // elements of the image from one of a window to the next
};

struct Run {
  const Binding* binding;
  const uint8_t* from;
  const int32_t* at;  // positions that are read
  uint8_t* to;
  int32_t* made;  // positions that are written, or null
  bool write, add;
  int64_t samples;
  int64_t tasks;                         // of a sample
  mutable std::atomic<int64_t> bad{-1};  // 1 + an index of a position outside of its image, from 0
};

// Returns what the windows at each position along a dimension have of the image. step: elements of the image from one
// index of the dimension to the next.
std::vector<Part> parts_of(const Axis& axis, int64_t step) {
  const auto taps = static_cast<int64_t>(axis.offsets.size());
  const int64_t apart = taps > 1 ? axis.offsets[1] : 1;
  std::vector<Part> parts;
  for (int64_t position = 0; position < axis.count; ++position) {
    const int64_t start = axis.low(position);
    const int64_t skipped = start < 0 ? std::min(taps, (-start + apart - 1) / apart) : 0;
    const int64_t room = axis.source - start;  // taps at offsets below it are in the image
    const int64_t end = room > 0 ? std::min(taps, (room + apart - 1) / apart) : 0;
    parts.push_back({(start + skipped * apart) * step, std::max<int64_t>(0, end - skipped)});
  }
  return parts;
}

// The windows of places, one after the other.
class Windows {
 public:
  // image: of the sample, or null.
  Windows(const Binding& b, const void* image, int64_t place) : binding_(b), image_(image) {
    const auto& axes = b.phase.axes;
    at_[2] = static_cast<size_t>(place % axes[2].count);
    at_[1] = static_cast<size_t>(place / axes[2].count % axes[1].count);
    at_[0] = static_cast<size_t>(place / axes[2].count / axes[1].count);
  }
  // Returns the elements of the next windows, at most `most`, that lie in the image: those along a line that have the
  // same form.
  PoolWindow next(int64_t most) {
    const auto& [x, y, z] = binding_.parts;
    const Part &a = x[at_[0]], &b = y[at_[1]], &c = z[at_[2]];
    const auto& [i, j, k] = binding_.steps;
    PoolWindow result = {
        image_, binding_.pool.channels, 0, 0, a.first + b.first + c.first, {a.count, b.count, c.count}, {i, j, k}, 1,
        0};
    const int64_t end = std::min(static_cast<int64_t>(z.size() - at_[2]), most);
    for (const Part* last = &c; result.windows < end; ++result.windows, ++last) {
      const int64_t apart = last[1].first - last->first;
      if (last[1].count != c.count || (result.windows > 1 && apart != result.apart)) break;
      result.apart = apart;
    }
    at_[2] += static_cast<size_t>(result.windows);
    if (at_[2] == z.size()) {
      at_[2] = 0;
      if (++at_[1] == y.size()) at_[1] = 0, ++at_[0];
    }
    return result;
  }

 private:
  const Binding& binding_;
  const void* const image_;
  size_t at_[TN_MAX_SPACE];
};

// Records a position that is not in its image, the first one of the call.
void refuse(const Run& run, int64_t index) {
  int64_t seen = run.bad.load(std::memory_order_relaxed);
  while ((seen < 0 || index < seen) && !run.bad.compare_exchange_weak(seen, index, std::memory_order_relaxed)) {
  }
}

// The channels of a place, whose first one is number `first` of all positions.
template <class T>
void take(const Run& run, const T* image, int64_t first, T* to) {
  const Binding& b = *run.binding;
  for (int64_t c = 0; c < b.pool.channels; ++c) {
    const int64_t at = run.at[first + c];
    const bool known = at >= 0 && at < b.images;
    if (!known) refuse(run, first + c);
    const T taken = known ? image[at * b.pool.channels + c] : T{0};
    to[c] = run.add ? to[c] + taken : taken;
  }
}

// Places of one sample: SUM, MAX, TAKE.
template <class T>
void pool_places(const Run& run, int64_t index) {
  const Binding& b = *run.binding;
  const int64_t sample = index / run.tasks, begin = index % run.tasks * b.line;
  const int64_t channels = b.pool.channels;
  const T* const image = reinterpret_cast<const T*>(run.from) + sample * b.images * channels;
  const int64_t end = std::min(begin + b.line, b.places);
  Windows windows(b, image, begin);
  for (int64_t place = begin; place < end;) {
    const int64_t at = (sample * b.places + place) * channels;
    T* const to = run.write ? reinterpret_cast<T*>(run.to) + at : nullptr;
    if (b.pool.op == TN_POOL_TAKE) {
      take(run, image, at, to);
      ++place;
      continue;
    }
    PoolWindow window = windows.next(end - place);
    place += window.windows;
    window.readable = (run.samples - sample) * b.images * channels;
    window.spare = (end - place) * channels;  // of the task itself, which writes it next
    if (b.pool.op == TN_POOL_SUM) {
      b.kernels->sum(window, to, run.add);
    } else {
      b.kernels->max(window, to, run.add, run.made == nullptr ? nullptr : run.made + at);
    }
  }
}

// Some channels of one sample: SPREAD, SCATTER.
template <class T>
void spread_channels(const Run& run, int64_t index) {
  const Binding& b = *run.binding;
  const int64_t channels = b.pool.channels, elements = b.images;
  const int64_t sample = index / run.tasks, c = index % run.tasks * kChannels;
  const int64_t count = std::min(kChannels, channels - c);
  T* const image = reinterpret_cast<T*>(run.to) + sample * b.images * channels + c;
  if (!run.add && count == channels) {
    std::fill_n(image, b.images * channels, T{0});
  } else if (!run.add) {
    for (int64_t i = 0; i < b.images; ++i) std::fill_n(image + i * channels, count, T{0});
  }
  Windows windows(b, nullptr, 0);
  for (int64_t place = 0; place < b.places; ++place) {
    const int64_t first = (sample * b.places + place) * channels + c;
    const T* const read = reinterpret_cast<const T*>(run.from) + first;
    if (b.pool.op == TN_POOL_SPREAD) {
      const PoolWindow window = windows.next(1);
      for (int64_t i = 0, x = window.first; i < window.count[0]; ++i, x += window.step[0])
        for (int64_t j = 0, y = x; j < window.count[1]; ++j, y += window.step[1])
          for (int64_t k = 0, z = y; k < window.count[2]; ++k, z += window.step[2])
            for (int64_t at = 0; at < count; ++at) image[z * channels + at] += read[at];
      continue;
    }
    const int32_t* const positions = run.at + first;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = positions[i];
      if (at < 0 || at >= elements) {
        refuse(run, first + i);
      } else {
        image[at * channels + i] += read[i];
      }
    }
  }
}

bool spreads(const tn_pool& pool) { return pool.op == TN_POOL_SPREAD || pool.op == TN_POOL_SCATTER; }
bool reads_positions(const tn_pool& pool) { return pool.op == TN_POOL_SCATTER || pool.op == TN_POOL_TAKE; }

void run_task(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const tn_pool& pool = run.binding->pool;
  if (pool.dtype == TN_F64)
    return spreads(pool) ? spread_channels<double>(run, index) : pool_places<double>(run, index);
  return spreads(pool) ? spread_channels<float>(run, index) : pool_places<float>(run, index);
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const Binding& b = *static_cast<const Binding*>(self);
  const tn_errors* const errors = execution->errors;
  const uint32_t inputs = reads_positions(b.pool) ? 2 : 1, outputs = b.pool.op == TN_POOL_MAX ? 2 : 1;
  if (call->inputs_count != inputs || call->outputs_count != outputs || call->inputs[0] == nullptr ||
      call->inputs[inputs - 1] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "pooling with another number of operands");
  Run run = {};
  run.binding = &b;
  run.write = call->requests[0] != TN_REQUEST_NONE;
  const bool writes_positions = outputs == 2 && call->requests[1] != TN_REQUEST_NONE;
  if (!run.write && !writes_positions) return TN_OK;
  if ((run.write && call->outputs[0] == nullptr) || (writes_positions && call->outputs[1] == nullptr))
    return tn_fail(errors, TN_MISUSE, "outputs", "pooling without its output");
  if (writes_positions && call->requests[1] == TN_REQUEST_ADD)
    return tn_fail(errors, TN_UNSUPPORTED, "outputs", "positions cannot be added");
  const int64_t samples = tn_dim_value(&b.pool.samples, execution->symbols);
  if (samples < 0) return tn_fail(errors, TN_MISUSE, nullptr, "pooling of a negative number of samples");
  run.samples = samples;
  run.from = tn_data(call->inputs[0]);
  if (reads_positions(b.pool)) run.at = reinterpret_cast<const int32_t*>(tn_data(call->inputs[1]));
  run.to = tn_data(call->outputs[0]);
  run.made = writes_positions ? reinterpret_cast<int32_t*>(tn_data(call->outputs[1])) : nullptr;
  run.add = call->requests[0] == TN_REQUEST_ADD;
  run.tasks = spreads(b.pool) ? (b.pool.channels + kChannels - 1) / kChannels : (b.places + b.line - 1) / b.line;
  execution->parallel->for_each(execution->parallel->self, samples * run.tasks, &run_task, &run);
  if (const int64_t bad = run.bad.load(); bad >= 0) {
    char message[120];
    std::snprintf(message, sizeof message, "position %d of a pooled image is outside of it: it has %lld elements",
                  run.at[bad], static_cast<long long>(b.images));
    return tn_fail(errors, TN_BAD_DATA, "positions", message);
  }
  return TN_OK;
}

void destroy(void* self) { delete static_cast<Binding*>(self); }

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_pool* pool,
                  tn_prepared* prepared) {
  if (pool->dtype != TN_F32 && pool->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu pools float32 and float64 only");
  if (pool->op < TN_POOL_SUM || pool->op > TN_POOL_TAKE)
    return tn_fail(errors, TN_UNSUPPORTED, "op", "the cpu does not offer this form of pooling");
  try {
    auto binding = std::make_unique<Binding>();
    binding->pool = *pool;
    binding->pool.window = nullptr;  // borrowed
    binding->phase = phases_of(*pool->window, false).front();
    const auto& [x, y, z] = binding->phase.axes;
    binding->images = x.source * y.source * z.source;
    for (size_t i = TN_MAX_SPACE, step = 1; i-- > 0;) {
      const Axis& axis = binding->phase.axes[i];
      const auto elements = static_cast<int64_t>(step);
      binding->parts[i] = parts_of(axis, elements);
      binding->steps[i] = (axis.offsets.size() > 1 ? axis.offsets[1] : 1) * elements;
      step *= static_cast<size_t>(axis.source);
    }
    binding->places = x.count * y.count * z.count;
    binding->kernels = &pool_kernels(detect_isa(), pool->dtype == TN_F64);
    binding->taps = static_cast<int64_t>(binding->phase.taps.size());
    const int64_t reads = pool->op == TN_POOL_TAKE ? pool->channels : pool->channels * binding->taps;
    binding->line = std::clamp<int64_t>(kTaskWork / std::max<int64_t>(reads, 1), 1, binding->places);
    prepared->binding = binding.release();
  } catch (const std::exception&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for the binding of pooling");
  }
  prepared->traits = call_traits(services);
  prepared->workspace_bytes = 0;
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char pool_id[] = TN_POOL;
const tn_pool_table pool_table = {sizeof(tn_pool_table), 0, &prepare};

}  // namespace tenon::cpu
