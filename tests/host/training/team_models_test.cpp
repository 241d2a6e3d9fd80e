// Models of the kinds that people train, small: several processes save the file of one, resume in the middle of a pass
// with another number, and report the same numbers. SPDX-License-Identifier: Apache-2.0
#include "tests/host/training/team_job.h"

namespace tenon_tests {

namespace {

Layer ids(const Host& host, const std::string& name) {
  DataOptions options = integers(name, 20);
  options.storage = TN_RAGGED, options.levels = 1;
  return host.data(options);
}

// Scores of 4 classes, with their cost and accuracy.
Layers classified(const Host& host, const Layer& features) {
  const Layer scores = host.layer("fc", {features}, {{"size", 4}}, "scores"), label = host.data(integers("label", 4));
  return {host.layer("cross_entropy", {scores, label}, {{"from_logits", true}}, "cost"),
          host.layer("accuracy", {scores, label}, {}, "accuracy")};
}

// Convolutions, whose outputs are normalised by the minibatch, with buffers.
Layers lenet(const Host& host) {
  Layer image = host.data(floats("image", {8, 8, 1}));
  for (const int64_t filters : {3, 5}) {
    const std::string number = std::to_string(filters);
    image = host.layer("conv", {image}, {{"filters", filters}, {"kernel", 3}, {"same", true}}, "conv_" + number);
    image = host.layer("batch_norm", {image}, {{"act", "relu"}}, "norm_" + number);
    image = host.layer("pool", {image}, {{"kind", "max"}, {"kernel", 2}}, "pool_" + number);
  }
  return classified(host, host.layer("fc", {image}, {{"size", 12}, {"act", "relu"}}, "third"));
}

// A block that is normalised first; the rows of a text attend to those before them.
Layers transformer(const Host& host) {
  const Layer vectors = host.layer("embedding", {ids(host, "words")}, {{"vocabulary", 20}, {"size", 8}}, "vectors");
  const Layer placed = host.layer("positional_encoding", {vectors}, {}, "placed");
  const Layer first = host.layer("layer_norm", {placed}, {}, "first_norm");
  const Layer seen = host.layer("multi_head_attention", {first}, {{"heads", 2}, {"causal", true}}, "attention");
  const Layer middle = host.layer("add", {placed, seen}, {}, "middle");
  const Layer second = host.layer("layer_norm", {middle}, {}, "second_norm");
  const Layer wide = host.layer("fc", {second}, {{"size", 16}, {"act", "gelu"}, {"drop_rate", 0.1}}, "wide");
  const Layer sum = host.layer("add", {middle, host.layer("fc", {wide}, {{"size", 8}}, "narrow")}, {}, "sum");
  return classified(host, host.layer("sequence_pool", {sum}, {{"kind", "mean"}}, "text"));
}

// Texts of 0 to 6 words, read in both directions.
Layers lstm(const Host& host) {
  const Layer vectors = host.layer("embedding", {ids(host, "words")}, {{"vocabulary", 20}, {"size", 6}}, "vectors");
  const Layer forward = host.layer("lstm", {vectors}, {{"size", 5}}, "forward");
  const Layer backward = host.layer("lstm", {vectors}, {{"size", 5}, {"reverse", true}}, "backward");
  const Layer rows = host.layer("concat", {forward, backward}, {}, "rows");
  return classified(host, host.layer("sequence_pool", {rows}, {{"kind", "max"}}, "text"));
}

// Which of two texts is nearer to a query; three branches look up the rows of one table, few of them in a minibatch.
Layers ranking(const Host& host) {
  const auto branch = [&](const char* name) {
    const Layer sum = host.layer("embedding", {ids(host, name)},
                                 {{"vocabulary", 20}, {"size", 6}, {"reduce", "sum"}, {"parameter_name", "embedding"}},
                                 name + std::string("_sum"));
    return host.layer("softmax", {sum}, {{"size", 5}, {"parameter_name", "semantic"}}, name + std::string("_topics"));
  };
  const Layer query = branch("query");
  const Layer near = host.layer("cross_entropy", {branch("near"), query}, {}, "near_cost");
  const Layer far = host.layer("cross_entropy", {branch("far"), query}, {}, "far_cost");
  return {host.layer("less_than", {near, far}, {}, "cost"), host.layer("less_than_share", {near, far}, {}, "share")};
}

Layers perceptron_of_two(const Host& host) {
  const Layer hidden = host.layer("fc", {host.data(floats("x", {8}))}, {{"size", 16}, {"act", "relu"}}, "hidden");
  return classified(host, hidden);
}

// A test behind each third minibatch, so that its events are among those that are compared.
void add_tests(TrainOptions& options, const Host& host, int64_t) {
  options.test = TestOptions{host.reader(schema(), Samples()).batch(5), {}, {}, 0, 3};
}

class TeamModels : public testing::TestWithParam<std::pair<const char*, Job>> {};

TEST_P(TeamModels, HaveTheFileAndTheEventsOfOneProcess) {
  const Outcome one = expect_bits_of_one(GetParam().second);
  EXPECT_EQ(one.skipped > 0, GetParam().second.compute == TN_BF16) << one.log;
}

const Attributes kClipped = {{"learning_rate", 0.05}, {"clip_norm", 0.1}};
const Attributes kPlain = {{"learning_rate", 0.05}};
const Attributes kTooFast = {{"learning_rate", 1e30}};  // the gradients behind the first update are not finite

TEST_P(TeamModels, OfFourProcessesAreResumedByThree) {
  Job job = GetParam().second;
  if (job.compute == TN_BF16) job.updater = kPlain;  // no checkpoint has a cost that is not finite
  expect_resumes(job);
}

INSTANTIATE_TEST_SUITE_P(Of, TeamModels,
                         testing::Values(std::pair{"mlp", Job{perceptron_of_two, 7, TN_F32, kPlain, 2, add_tests}},
                                         std::pair{"lenet", Job{lenet, 7, TN_F32, kPlain, 2, add_tests}},
                                         std::pair{"lenet_of_3_shards", Job{lenet, 3, TN_F32, kPlain, 2, add_tests}},
                                         std::pair{"transformer", Job{transformer, 7, TN_F32, kClipped, 2, add_tests}},
                                         std::pair{"lstm", Job{lstm, 8, TN_F32, kPlain, 2, add_tests}},
                                         std::pair{"ranking", Job{ranking, 7, TN_F32, kPlain, 2, add_tests}},
                                         std::pair{"bf16", Job{lenet, 7, TN_BF16, kTooFast, 2, add_tests}}),
                         [](const auto& it) { return std::string(it.param.first); });

}  // namespace

}  // namespace tenon_tests
