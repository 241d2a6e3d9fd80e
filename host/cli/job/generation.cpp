// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/generation.h"

namespace tenon::cli {

void read_generation(Section& top, Job& job) {
  const Node* table = top.table("generate");
  if (table == nullptr) return;
  Section section(*table, "[generate]");
  JobGeneration result;
  result.place = section.place();
  const auto scores = section.string("scores");
  result.ids = section.string("ids").value_or("");
  result.reader = section.string("reader").value_or("");
  result.from_logits = section.boolean("from_logits").value_or(false);
  result.begin = section.string("begin").value_or("");
  result.end = section.string("end").value_or("");
  result.spaces = section.boolean("spaces").value_or(result.spaces);
  result.method = section.string("method").value_or(result.method);
  result.max_length = section.integer("max_length", 1, INT64_MAX).value_or(result.max_length);
  result.results = section.integer("results", 1, INT64_MAX).value_or(result.results);
  result.beam_size = section.integer("beam_size", 1, INT64_MAX).value_or(result.beam_size);
  result.length_penalty = section.number("length_penalty").value_or(result.length_penalty);
  result.temperature = section.number("temperature").value_or(result.temperature);
  result.top_k = section.integer("top_k", 0, INT64_MAX).value_or(result.top_k);
  result.top_p = section.number("top_p").value_or(result.top_p);
  section.finish();
  if (!scores) section.missing("scores");
  result.scores = *scores;
  job.generation = std::move(result);
}

}  // namespace tenon::cli
