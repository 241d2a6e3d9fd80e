// The public C API: generation. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_generate.h>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

GeneratorOptions generator_options(const Host& host, const tn_generator_options& given) {
  constexpr int64_t kMaxSamples = 32;
  if (given.from_logits > 1)
    fail(TN_INVALID, SubjectName{"options.from_logits"}, "options.from_logits is ", given.from_logits,
         "; expected 0 or 1");
  check_unused(given.reserved, "options.reserved");
  GeneratorOptions options;
  options.from_logits = given.from_logits == 1;
  api::read_compute(given.compute, &options.machine);
  options.machine.max_samples = given.max_samples == 0 ? kMaxSamples : given.max_samples;
  options.machine.checks = host.checks;
  return options;
}

Method method_of(uint32_t method) {
  switch (method) {
    case TN_GENERATE_GREEDY:
      return Method::kGreedy;
    case TN_GENERATE_SAMPLE:
      return Method::kSample;
    case TN_GENERATE_BEAM:
      return Method::kBeam;
    default:
      fail(TN_INVALID, SubjectName{"options.method"}, "options.method is ", method, "; expected TN_GENERATE_*");
  }
}

DecodingOptions decoding_options(const tn_generate_options& given) {
  check_unused(given.reserved, "options.reserved");
  DecodingOptions options;
  options.method = method_of(given.method);
  options.begin_id = given.begin_id;
  options.end_id = given.end_id;
  options.max_length = given.max_length;
  options.results = given.results == 0 ? 1 : given.results;
  options.beam_size = given.beam_size == 0 ? 1 : given.beam_size;
  options.length_penalty = given.length_penalty;
  options.temperature = given.temperature == 0 ? 1 : given.temperature;
  options.top_k = given.top_k;
  options.top_p = given.top_p == 0 ? 1 : given.top_p;
  options.seed = given.seed;
  return options;
}

GenerationInput generation_input(const Host& host, const tn_generate_options& given) {
  GenerationInput input;
  input.feeds = api::named_arrays(given.feeds, given.feeds_count, "options.feeds");
  input.unknown = api::unknown_feeds(given.flags);
  if (given.streams_count > 0)
    input.streams.assign(&api::required(given.streams, "options.streams"), given.streams + given.streams_count);
  if (given.sink != nullptr)
    input.sink = [sink = given.sink, user = given.user](int64_t sample, int64_t result, int64_t id) {
      return sink(user, sample, result, id) == 0;
    };
  input.poll = [&host, poll = given.poll, user = given.user] {
    return !host.ending && (poll == nullptr || poll(user) == 0);
  };
  return input;
}

// Borrows the results.
tn_generated borrowed(Generated& from) {
  const auto samples = static_cast<int64_t>(from.samples.size()) - 1;
  tn_generated to = {};
  to.ids = api::array({TN_I64,
                       {static_cast<int64_t>(from.ids.size())},
                       from.ids.data(),
                       TN_RAGGED,
                       2,
                       {from.samples.data(), from.results.data()},
                       nullptr,
                       samples});
  to.scores = api::array({TN_F64,
                          {static_cast<int64_t>(from.scores.size())},
                          from.scores.data(),
                          TN_RAGGED,
                          1,
                          {from.samples.data(), nullptr},
                          nullptr,
                          samples});
  return to;
}

}  // namespace

tn_status tn_generator_create(tn_host* host, tn_parameters parameters, const tn_generator_options* options,
                              tn_generator* generator, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_generator_options given = api::sized(options, "options");
    api::required(generator, "generator");
    const GeneratorOptions wanted = generator_options(it, given);
    const std::string ids = api::string(given.ids, "options.ids");
    const LayerOutput scores = it.layers.at(given.scores);
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const std::shared_ptr<Device> device = it.device(api::device_kind(given.device));
    const SetRead read(held->gate);
    StepModel model = [&] {
      const SetupLock lock = it.registry.setup();
      return StepModel::make(it.factory, scores, ids);
    }();
    *generator = it.generators.add<tn_generator>(std::make_shared<HeldGenerator>(
        held, std::make_unique<Generator>(std::move(model), held->set, it.registry, device, it.parallel,
                                          it.pool.parallel(), wanted)));
  });
}

tn_status tn_generate(tn_host* host, tn_generator generator, const tn_generate_options* options, tn_generated* result,
                      tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_generate_options given = api::sized(options, "options");
    const std::shared_ptr<HeldGenerator> held = it.generators.at(generator);
    const Use use(held->mark, "generator");
    api::sized(result, "result");
    const DecodingOptions decoding = decoding_options(given);
    const GenerationInput input = generation_input(it, given);
    const SetRead read(held->parameters->gate);
    held->generator->set_version(read.version());
    held->generated = held->generator->run(decoding, input);
    api::give(result, "result", borrowed(held->generated));
  });
}

tn_status tn_generator_release(tn_host* host, tn_generator generator, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.generators.take(generator); });
}
