// Compositions of readers, for tests of what holds for all of them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tests/support/memory_system.h"
#include "tests/support/read_samples.h"

namespace tenon_tests {

using namespace tenon::host;

using ReaderPtr = std::unique_ptr<Reader>;

inline std::shared_ptr<Allocator> memory() { return system_allocator(); }

// The data sets from which a composition opens readers.
struct World {
  MemoryData all{23, true}, few{5, true}, more{11, true};
};
struct Composition {
  const char* name;
  std::function<ReaderPtr(World&)> make;
};
inline ReaderPtr shuffled(ReaderPtr of, int64_t buffer = 0) { return shuffle(std::move(of), buffer, 9, memory()); }
inline ReaderPtr buckets(ReaderPtr of, int64_t samples = 0, int64_t rows = 9) {
  return bucket(std::move(of), {"words", 8, samples, rows, 5}, memory());
}
inline ReaderPtr some_slots(ReaderPtr of) { return choose(std::move(of), {{"text", "text"}, {"id", "id"}}, memory()); }
inline ReaderPtr renamed(ReaderPtr of) {
  return choose(std::move(of), {{"bag", "other_bag"}, {"words", "other"}}, memory());
}
// Maps all slots to themselves.
inline ReaderPtr same(ReaderPtr of) {
  const std::vector<Slot> slots = of->slots();
  return map(
      std::move(of), slots, [](const std::vector<ArrayView>& from, int64_t, std::vector<ArrayView>& to) { to = from; },
      memory());
}
inline Readers two(ReaderPtr a, ReaderPtr b) {
  Readers result;
  result.push_back(std::move(a));
  result.push_back(std::move(b));
  return result;
}

inline const Composition kCompositions[] = {
    {"plugin", [](World& w) { return open(w.all); }},
    {"first_n", [](World& w) { return first_n(open(w.all, false), 7, memory()); }},
    {"shuffle_indexed", [](World& w) { return shuffled(open(w.all)); }},
    {"shuffle_buffer", [](World& w) { return shuffled(open(w.all, false), 6); }},
    {"shard_indexed", [](World& w) { return shard(open(w.all), 1, 4, memory()); }},
    {"shard_in_order", [](World& w) { return shard(open(w.all, false), 1, 4, memory()); }},
    {"split_others",
     [](World& w) {
       return split(open(w.all), {0.3, 1, false}, memory());
     }},
    {"split_held_out",
     [](World& w) {
       return split(open(w.all), {0.3, 1, true}, memory());
     }},
    {"chain", [](World& w) { return chain(two(open(w.few), open(w.all, false)), memory()); }},
    {"interleave", [](World& w) { return interleave(two(open(w.few, false), open(w.all)), memory()); }},
    {"interleave_other", [](World& w) { return interleave(two(open(w.all), open(w.few)), memory()); }},
    {"compose", [](World& w) { return compose(two(open(w.all), renamed(open(w.all, false))), memory()); }},
    {"choose", [](World& w) { return some_slots(open(w.all)); }},
    {"map", [](World& w) { return same(open(w.all)); }},
    {"batch", [](World& w) { return batch(open(w.all), 4, false, memory()); }},
    {"batch_drop_last", [](World& w) { return batch(open(w.all), 4, true, memory()); }},
    {"bucket_rows", [](World& w) { return buckets(open(w.all, false)); }},
    {"bucket_samples", [](World& w) { return buckets(open(w.all), 3, 0); }},
    {"buffered", [](World& w) { return buffered(batch(open(w.all), 4, false, memory()), 3, memory()); }},
    {"pipeline",
     [](World& w) {
       ReaderPtr joined = chain(two(first_n(open(w.few), 3, memory()), open(w.more)), memory());
       ReaderPtr ready = buckets(same(shuffled(std::move(joined))));
       return buffered(some_slots(same(buffered(std::move(ready), 1, memory()))), 2, memory());
     }},
    {"shuffled_shard_of_interleave",
     [](World& w) {
       ReaderPtr joined = interleave(two(open(w.few), open(w.more)), memory());
       return batch(shuffled(shard(std::move(joined), 0, 2, memory()), 4), 3, false, memory());
     }},
};

}  // namespace tenon_tests
