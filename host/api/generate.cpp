// The public C API: generation. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_generate.h>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

GeneratorOptions generator_options(const Host& host, const tn_generator_options& request) {
  constexpr int64_t kMaxSamples = 32;
  if (request.from_logits > 1)
    fail(TN_INVALID, SubjectName{"options.from_logits"}, "options.from_logits is ", request.from_logits,
         "; expected 0 or 1");
  check_unused(request.reserved, "options.reserved");
  GeneratorOptions options;
  options.from_logits = request.from_logits == 1;
  api::read_compute(request.compute, &options.machine);
  options.machine.max_samples = request.max_samples == 0 ? kMaxSamples : request.max_samples;
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

DecodingOptions decoding_options(const tn_generate_options& request) {
  check_unused(request.reserved, "options.reserved");
  DecodingOptions options;
  options.method = method_of(request.method);
  options.begin_id = request.begin_id;
  options.end_id = request.end_id;
  options.max_length = request.max_length;
  options.results = request.results == 0 ? 1 : request.results;
  options.beam_size = request.beam_size == 0 ? 1 : request.beam_size;
  options.length_penalty = request.length_penalty;
  options.temperature = request.temperature == 0 ? 1 : request.temperature;
  options.top_k = request.top_k;
  options.top_p = request.top_p == 0 ? 1 : request.top_p;
  options.seed = request.seed;
  return options;
}

GenerationInput generation_input(const Host& host, const tn_generate_options& request) {
  GenerationInput input;
  input.feeds = api::named_arrays(request.feeds, request.feeds_count, "options.feeds");
  input.unknown = api::unknown_feeds(request.flags);
  if (request.streams_count > 0)
    input.streams.assign(&api::required(request.streams, "options.streams"), request.streams + request.streams_count);
  if (request.sink != nullptr)
    input.sink = [sink = request.sink, user = request.user](int64_t sample, int64_t result, int64_t id) {
      return sink(user, sample, result, id) == 0;
    };
  input.poll = [&host, poll = request.poll, user = request.user] {
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
  return api::call(host, error, [&](Host& owner) {
    const tn_generator_options request = api::sized(options, "options");
    api::required(generator, "generator");
    const GeneratorOptions wanted = generator_options(owner, request);
    const std::string ids = api::string(request.ids, "options.ids");
    const LayerOutput scores = owner.layers.at(request.scores);
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const std::shared_ptr<Device> device = owner.device(api::device_kind(request.device));
    const SetRead read(held->gate);
    StepModel model = [&] {
      const SetupLock lock = owner.registry.setup();
      return StepModel::make(owner.factory, scores, ids);
    }();
    *generator = owner.generators.add<tn_generator>(std::make_shared<HeldGenerator>(
        held, std::make_unique<Generator>(std::move(model), held->set, owner.registry, device, owner.parallel,
                                          owner.pool.parallel(), wanted)));
  });
}

tn_status tn_generate(tn_host* host, tn_generator generator, const tn_generate_options* options, tn_generated* result,
                      tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_generate_options request = api::sized(options, "options");
    const std::shared_ptr<HeldGenerator> held = owner.generators.at(generator);
    const Use use(held->mark, "generator");
    api::sized(result, "result");
    const DecodingOptions decoding = decoding_options(request);
    const GenerationInput input = generation_input(owner, request);
    const SetRead read(held->parameters->gate);
    held->generator->set_version(read.version());
    held->generated = held->generator->run(decoding, input);
    api::give(result, "result", borrowed(held->generated));
  });
}

tn_status tn_generator_release(tn_host* host, tn_generator generator, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.generators.take(generator); });
}
