// SPDX-License-Identifier: Apache-2.0
#include "heads.h"

#include <algorithm>
#include <cmath>

#include "attend.h"
#include "positions.h"
#include "targets.h"

namespace tenon::attention {

namespace {

int64_t features_of(const tn::KernelSite& site, uint32_t port) { return site.input(port).back().offset; }

double scale_of(const tn::KernelSite& site, int64_t depth) {
  const tn::Attributes attributes = site.attributes();
  return attributes.has("scale") ? attributes.number("scale") : 1 / std::sqrt(static_cast<double>(depth));
}

}  // namespace

void Heads::describe(tn::KernelDescription& d, const char* type, const char* name) {
  d.kernel(type, "cpu", name, 10);
  d.compute(TN_F32);
  d.compute(TN_F64);
  if (fuses()) d.portable();
}

bool Heads::supports(const tn::KernelSite& site, int32_t&) { return site.input(kQuery).dtype() == site->compute; }

Heads::Heads(const tn::KernelSite& site)
    : wide_(site->compute == TN_F64),
      heads_(site.attributes().integer("heads")),
      key_features_(features_of(site, kKey)),
      value_features_(features_of(site, kValue)),
      scale_(scale_of(site, key_features_ / heads_)) {}

void WholeHeads::query(const tn::KernelSite&, tn::KernelNeeds& needs, const tn::Spec& log_sums) {
  for (const uint32_t port : {kQuery, kKey, kValue}) needs.read_input(port);
  needs.read_output(0);
  needs.save(log_sums);
}

WholeHeads::WholeHeads(const tn::KernelSite& site, int32_t direction)
    : Heads(site),
      backward_(direction == TN_BACKWARD),
      causal_(site.attributes().flag("causal")),
      inputs_(site->inputs_count) {}

// One run: operands, and how it is cut into tasks, each of some queries of one head.
template <typename T>
struct WholeHeads::Run {
  const WholeHeads* of;
  Places places;
  int64_t parts;  // of a head
  const T *query, *key, *value, *mask;
  const T *output, *log_sums, *given;  // in backward
  T* to[3];  // the output and its logarithms of sums, which may be null; in backward gradients, null if not wanted

  // The head of a task, and the row of the queries and of the keys with which its sequence begins.
  struct Part {
    Head<T> head;
    int64_t query_row, key_row, number, part;
  };
  [[nodiscard]] Part part_of(int64_t task) const {
    const int64_t sequence = task / (of->heads_ * parts), number = task / parts % of->heads_;
    Part made = {{}, sequence * places.queries, sequence * places.keys, number, task % parts};
    Head<T>& head = made.head;
    head.queries = places.queries, head.keys = places.keys;
    if (places.ends != nullptr) {
      made.query_row = made.key_row = places.ends[sequence];
      head.queries = head.keys = places.ends[sequence + 1] - places.ends[sequence];
    }
    head.depth = of->key_features_ / of->heads_;
    head.width = of->value_features_ / of->heads_;
    head.query = of_keys(query, made.query_row, number);
    head.key = of_keys(key, made.key_row, number);
    head.value = of_values(value, made.key_row, number);
    if (mask != nullptr) {
      const int64_t rows = places.mask_row == 0 ? 1 : places.queries;
      head.mask = {mask + sequence * rows * places.keys, places.mask_row};
    }
    head.seen = of->causal_ ? head.keys - head.queries + 1 : head.keys;
    head.scale = static_cast<T>(of->scale_);
    return made;
  }
  // The rows of a head, from a row on, in a tensor of the features of keys, values, or of one number a head.
  template <typename U>
  [[nodiscard]] Rows<U> of_keys(U* tensor, int64_t row, int64_t number) const {
    return rows_of(tensor, row, number, of->key_features_);
  }
  template <typename U>
  [[nodiscard]] Rows<U> of_values(U* tensor, int64_t row, int64_t number) const {
    return rows_of(tensor, row, number, of->value_features_);
  }
  template <typename U>
  [[nodiscard]] Rows<U> rows_of(U* tensor, int64_t row, int64_t number, int64_t features) const {
    if (tensor == nullptr) return {};
    return {tensor + row * features + number * (features / of->heads_), features};
  }

  static void forward(void* argument, int64_t task, int32_t) {
    const Run& run = *static_cast<const Run*>(argument);
    const Part part = run.part_of(task);
    const int64_t first = part.part * attend<T>().tile;
    if (first >= part.head.queries) return;
    attend<T>().tile_of(part.head, first, run.of_values(run.to[0], part.query_row, part.number),
                        run.rows_of(run.to[1], part.query_row, part.number, run.of->heads_));
  }
  static void gradient(void* argument, int64_t task, int32_t) {
    const Run& run = *static_cast<const Run*>(argument);
    const Part part = run.part_of(task);
    const int64_t row = part.query_row, number = part.number;
    attend<T>().differentiate(
        part.head,
        {run.of_values(run.output, row, number), run.of_values(run.given, row, number),
         run.rows_of(run.log_sums, row, number, run.of->heads_), run.of_keys(run.to[kQuery], row, number),
         run.of_keys(run.to[kKey], part.key_row, number), run.of_values(run.to[kValue], part.key_row, number)});
  }
};

template <typename T>
void WholeHeads::run_of(const tn::Call& call, const Places& places) const {
  Run<T> run = {this,
                places,
                1,
                call.in<T>(kQuery),
                call.in<T>(kKey),
                call.in<T>(kValue),
                places.mask == nullptr ? nullptr : reinterpret_cast<const T*>(tn_data(places.mask)),
                call.in<T>(inputs_),
                call.in<T>(inputs_ + 1),
                call.in<T>(inputs_ + 2),
                {call.out<T>(0), call.out<T>(1), call.out<T>(2)}};
  if (!backward_) {
    int64_t longest = places.queries;
    for (int64_t i = 0; places.ends != nullptr && i < places.sequences; ++i)
      longest = std::max(longest, places.ends[i + 1] - places.ends[i]);
    run.parts = (longest + attend<T>().tile - 1) / attend<T>().tile;
  }
  const tn_parallel& parallel = *call.execution().parallel;
  parallel.for_each(parallel.self, places.sequences * heads_ * run.parts,
                    backward_ ? &Run<T>::gradient : &Run<T>::forward, &run);
}

void WholeHeads::run(const tn::Call& call, const Places& places) const {
  wide_ ? run_of<double>(call, places) : run_of<float>(call, places);
}

}  // namespace tenon::attention
