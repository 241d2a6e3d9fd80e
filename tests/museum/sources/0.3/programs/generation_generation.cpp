#include <cstdio>
#include <tenon/tenon.hpp>
#include <tenon/tenon_generate.hpp>
#include <tenon/tenon_scan.hpp>

int main() try {
  const tenon::Host host;
  const int64_t vocabulary = 8, begin = 0, end = 1;
  tenon::DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I64, ids.storage = TN_RAGGED, ids.index_limit = vocabulary;
  const tenon::Layer topic = host.data({"topic", TN_F32, {4}});
  const tenon::Layer vectors =
      host.layer("embedding", {host.data(ids)}, {{"vocabulary", vocabulary}, {"size", 16}}, "vectors");
  const tenon::ScanResult cells = tenon::scan({vectors}, [&](tenon::Step& step) {
    const tenon::Layer state = step.memory({16});
    const tenon::Layer next =
        host.layer("fc", {step.input(0), state, topic}, {{"size", 16}, {"act", "tanh"}}, "state");
    step.next(state, next);
    return tenon::Layers{next};
  });
  const tenon::Layer score = host.layer("fc", {cells.results[0]}, {{"size", vocabulary}}, "score");
  const tenon::Parameters parameters = host.parameters({score}, 1);  // a program would train or load them

  tenon::GeneratorOptions made;
  made.from_logits = true;
  const tenon::Generator generator(parameters, score, "ids", made);
  const float topics[] = {1, 0, 0, 0, 0, 0, 1, 0};
  tenon::GenerateOptions options;
  options.method = TN_GENERATE_BEAM, options.beam_size = 4, options.results = 2;
  options.begin_id = begin, options.end_id = end, options.max_length = 10;
  options.feeds = {{"topic", {TN_F32, {2, 4}, topics}}};  // without prompts: each begins with begin_id
  const auto samples = generator.generate(options);
  for (const tenon::Generation& each : samples[1]) {
    std::printf("%.3f:", each.score);
    for (const int64_t id : each.ids) std::printf(" %d", static_cast<int>(id));
    std::printf("\n");
  }
  return samples[1].size() == 2 && samples[1][0].score >= samples[1][1].score ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
