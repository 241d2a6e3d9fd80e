// Tenon's C++ API: the options of inference on arrays. Include <tenon/tenon.hpp>. Written by
// host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_INFER_OPTIONS_HPP
#define TENON_TENON_INFER_OPTIONS_HPP

#include <tenon/tenon_infer_options.h>

#include <cstdint>
#include <string>
#include <tenon/tenon_model.hpp>
#include <tenon/tenon_option_lists.hpp>
#include <vector>

namespace tenon {
inline namespace v0 {

// As tn_infer_options documents it.
struct InferOptions {
  // Dense ones with one entry for each sample.
  Layers outputs = {};
  Parameters parameters;
  // Of any number of samples, the same in all.
  std::vector<Feed> feeds = {};
  // TN_FORWARD_*.
  uint32_t flags = 0;
  // That are computed at once; 0: 256.
  int64_t max_samples = 0;
  // Empty: "cpu".
  std::string device;
  // As in tn_machine_options.
  tn_dtype compute = TN_F32;
};

namespace detail {

// Each fills a struct of C, which borrows from `from` and `lists`.
inline void fill(tn_infer_options& to, const InferOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  lists.set(to.outputs, to.outputs_count, handles(from.outputs));
  to.parameters = from.parameters.handle();
  lists.set(to.feeds, to.feeds_count, c_feeds(from.feeds));
  to.flags = from.flags;
  to.max_samples = from.max_samples;
  to.device = from.device.empty() ? nullptr : c_text(from.device, "options.device");
  to.compute = from.compute;
}

}  // namespace detail
}  // namespace v0
}  // namespace tenon
#endif
