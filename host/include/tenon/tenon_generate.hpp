// Tenon's public API for C++17 and later: sequences of ids that a model generates.
//
//   const tenon::Generator generator(parameters, score, "words", {.from_logits = true});  // C++20; else by assignment
//   tenon::GenerateOptions options;
//   options.method = TN_GENERATE_BEAM, options.beam_size = 4, options.end_id = 0, options.max_length = 50;
//   options.feeds = {{"words", prompts}};
//   const auto results = generator.generate(options);  // of each sample
//   for (const tenon::Generation& each : results[0]) use(each.ids, each.score);
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_GENERATE_HPP
#define TENON_TENON_GENERATE_HPP

#include <tenon/tenon_generate.h>

#include <cstdint>
#include <string>
#include <tenon/tenon_generate_options.hpp>
#include <tenon/tenon_machine.hpp>
#include <vector>

namespace tenon {
inline namespace v0 {

struct Generation {
  std::vector<int64_t> ids;
  double score = 0;
};

// Generates with a model that was trained on whole sequences. One call at a time.
class Generator : public detail::Owned<tn_generator, tn_generator_release> {
 public:
  using Owned::Owned;
  // scores: of the id that comes next, in each row of the data layer `ids`.
  Generator(const Parameters& parameters, const Layer& scores, const std::string& ids,
            const GeneratorOptions& options = {})
      : Owned(parameters.host_ref()) {
    tn_generator_options given = {};
    detail::OptionLists lists;
    detail::fill(given, options, lists);
    given.scores = scores.handle();
    given.ids = detail::c_text(ids, "ids");
    make([&](tn_generator* handle) {
      detail::checked(
          [&](tn_error* error) { return tn_generator_create(host(), parameters.handle(), &given, handle, error); });
    });
  }

  // Returns the results of each sample, the best first.
  [[nodiscard]] std::vector<std::vector<Generation>> generate(const GenerateOptions& options) const {
    Target target{options, {}};
    tn_generate_options given = {};
    detail::OptionLists lists;
    detail::fill(given, options, lists);
    given.sink = options.sink ? &receive : nullptr;
    given.poll = options.poll ? &proceed : nullptr;
    given.user = &target;
    tn_generated made = {};
    made.size = sizeof made;
    detail::checked([&](tn_error* error) {
      const tn_status status = tn_generate(host(), handle(), &given, &made, error);
      target.failure.rethrow();
      return status;
    });
    const auto* const ids = static_cast<const int64_t*>(made.ids.data);
    const auto* const scores = static_cast<const double*>(made.scores.data);
    std::vector<std::vector<Generation>> results(static_cast<size_t>(made.ids.samples));
    for (size_t i = 0; i < results.size(); ++i)
      for (int64_t k = made.ids.offsets[0][i]; k < made.ids.offsets[0][i + 1]; ++k)
        results[i].push_back({{ids + made.ids.offsets[1][k], ids + made.ids.offsets[1][k + 1]}, scores[k]});
    return results;
  }

 private:
  struct Target {
    const GenerateOptions& options;
    detail::CallbackFailure failure;
  };

  static int32_t receive(void* user, int64_t sample, int64_t result, int64_t id) {
    Target& to = *static_cast<Target*>(user);
    return to.failure.keep([&] { return to.options.sink(sample, result, id); }) ? 0 : 1;
  }
  static int32_t proceed(void* user) {
    Target& to = *static_cast<Target*>(user);
    return to.failure.keep([&] { return to.options.poll(); }) ? 0 : 1;
  }
};

}  // namespace v0
}  // namespace tenon
#endif
