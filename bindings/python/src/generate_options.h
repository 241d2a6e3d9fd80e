// Reads the options of generators from dicts. Written by host/api/spec/generate_options.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.h"

namespace tenon_python {

inline void read(const nb::dict& from, tenon::GeneratorOptions* to) {
  take(from, "from_logits", &to->from_logits);
  take(from, "max_samples", &to->max_samples);
  take(from, "compute", &to->compute);
  take(from, "device", &to->device);
}

inline void read(const nb::dict& from, tenon::GenerateOptions* to) {
  take(from, "method", &to->method);
  take(from, "begin_id", &to->begin_id);
  take(from, "end_id", &to->end_id);
  take(from, "max_length", &to->max_length);
  take(from, "results", &to->results);
  take(from, "beam_size", &to->beam_size);
  take(from, "length_penalty", &to->length_penalty);
  take(from, "temperature", &to->temperature);
  take(from, "top_k", &to->top_k);
  take(from, "top_p", &to->top_p);
  take(from, "seed", &to->seed);
  take(from, "streams", &to->streams);
}

}  // namespace tenon_python
