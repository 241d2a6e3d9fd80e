// Tenon's C++ API: the options of generators. Include <tenon/tenon.hpp>. Written by
// host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_GENERATE_OPTIONS_HPP
#define TENON_TENON_GENERATE_OPTIONS_HPP

#include <tenon/tenon_generate.h>

#include <cstdint>
#include <functional>
#include <string>
#include <tenon/tenon_model.hpp>
#include <tenon/tenon_option_lists.hpp>
#include <vector>

namespace tenon {
inline namespace v0 {

// As tn_generator_options documents it.
struct GeneratorOptions {
  // 1: the scores are numbers whose softmax are probabilities; 0: they are probabilities.
  bool from_logits = false;
  // That are generated at once; 0: 32.
  int64_t max_samples = 0;
  // As in tn_machine_options.
  tn_dtype compute = TN_F32;
  // Empty: "cpu".
  std::string device;
};

// As tn_generate_options documents it.
struct GenerateOptions {
  // TN_GENERATE_*.
  uint32_t method = TN_GENERATE_GREEDY;
  // Of the data layers that the scores depend on.
  std::vector<Feed> feeds = {};
  // TN_FORWARD_*.
  uint32_t flags = 0;
  // Fed before each prompt, in no result; -1: none.
  int64_t begin_id = -1;
  // Ends a result, and is its last id; -1: none, which beam search refuses.
  int64_t end_id = -1;
  // Of prompt and result together, without begin_id; at least 1, and more than any prompt has.
  int64_t max_length = 0;
  // Of each sample, 1 (also 0) to beam_size; greedy: 1; sampling: draws of each sample.
  int64_t results = 1;
  // Beam search alone; 0: 1.
  int64_t beam_size = 1;
  // Results are ranked by the sum of the logarithms of the probabilities of their ids, divided by ((5 + number of ids)
  // / 6) ^ length_penalty, as in Wu et al.
  double length_penalty = 0;
  // Sampling: probabilities are raised to 1 / temperature; 0: 1.
  double temperature = 1;
  // Sampling: all but the so many most probable ids are left out; 0: none.
  int64_t top_k = 0;
  // Sampling, after top_k: all but the fewest most probable ids that together have at least top_p of what is left are
  // left out; 0: 1.
  double top_p = 1;
  // A draw depends on seed, stream, number of the result and number of the id alone.
  uint64_t seed = 0;
  // Of draws, one number for each sample; empty: 0, 1, 2 and so on.
  std::vector<int64_t> streams = {};
  // Called with each id as it is chosen, greedily or by draws, in no fixed order of samples and results; empty: not.
  std::function<bool(int64_t sample, int64_t result, int64_t id)> sink = {};
  // Called before each step, on the calling thread; empty: not.
  std::function<bool()> poll = {};
};

namespace detail {

// Each fills a struct of C, which borrows from `from` and `lists`.
inline void fill(tn_generator_options& to, const GeneratorOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.from_logits = from.from_logits ? 1 : 0;
  to.max_samples = from.max_samples;
  to.device = from.device.empty() ? nullptr : c_text(from.device, "options.device");
  to.compute = from.compute;
}
inline void fill(tn_generate_options& to, const GenerateOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.method = from.method;
  lists.set(to.feeds, to.feeds_count, c_feeds(from.feeds));
  to.flags = from.flags;
  to.begin_id = from.begin_id;
  to.end_id = from.end_id;
  to.max_length = from.max_length;
  to.results = from.results;
  to.beam_size = from.beam_size;
  to.length_penalty = from.length_penalty;
  to.temperature = from.temperature;
  to.top_k = from.top_k;
  to.top_p = from.top_p;
  to.seed = from.seed;
  lists.set(to.streams, to.streams_count, from.streams);
}

}  // namespace detail
}  // namespace v0
}  // namespace tenon
#endif
