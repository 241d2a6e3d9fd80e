// Scans that a layer records, and what is refused: errors name the layer. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

constexpr int64_t kSize = 2;

// A layer of sequences [rows, 2] and one value [2] for each of them, whose body a test sets.
struct Scanned {
  static inline std::function<void(tn::Builder& body)> lowered;
  static void describe(tn::LayerDescription& d) {
    d.type("test_scanned", "a layer of a test");
    d.input("rows", "[rows, 2]");
    d.input("each", "[samples, 2]");
    d.output("output", "[rows, 2]");
    d.output("last", "[samples, 2]");
  }
  static void plan(tn::Planner& planner) {
    planner.output(0, tn::Spec({planner.input(0)[0], kSize}));
    planner.output(1, tn::Spec({planner.input(0).outer(0), kSize}));
  }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) { lowered(body); }
};
void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.scanned", "1.0.0", "Layers of a test", "Apache-2.0");
  plugin.layer<Scanned>();
}

tn::Tensor added(tn::Builder& body, const tn::Tensor& a, const tn::Tensor& b) {
  tn::Program program;
  const tn::Float x = program.full();
  program.output(x + program.full());
  return body.pointwise(program, {a, b}).front();
}

class ScanRecorder : public testing::Test {
 protected:
  ScanRecorder() {
    host_.add_plugin(tn::entry<describe>());
    DataOptions rows, each;
    rows.name = "rows", rows.shape = {kSize}, rows.storage = TN_RAGGED;
    each.name = "each", each.shape = {kSize};
    layer_ = host_.layer("test_scanned", {host_.data(rows), host_.data(each)}, {}, "summed");
  }
  ~ScanRecorder() override { Scanned::lowered = nullptr; }

  Machine machine() {
    MachineOptions options;
    options.max_samples = 3, options.keep_all = true;
    return host_.machine(host_.parameters({layer_}, 1), {layer_}, options);
  }
  // Returns why a body is refused.
  std::string refusal(std::function<void(tn::Builder& body)> body) {
    Scanned::lowered = std::move(body);
    try {
      machine();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("layer \"summed\" (test_scanned)"));
      return error.what();
    }
    return "nothing was refused";
  }
  static std::vector<float> values(const Array& array) {
    const auto* const first = static_cast<const float*>(array.data);
    return {first, first + array.count()};
  }

  Host host_{{1, {plugin_folder()}, nullptr, {}}};
  Layer layer_;
};

// Sums of the rows so far, from the value of each sequence on.
void sums(tn::Builder& body, uint32_t flags) {
  body.scan_begin(body.input(0).spec()[0], flags);
  const tn::Tensor before = body.scan_memory(tn::Spec({kSize}), body.input(1));
  const tn::Tensor sum = added(body, before, body.scan_input(body.input(0)));
  body.scan_next(before, sum);
  body.scan_end();
  body.output(0, body.scan_output(sum));
  body.output(1, body.scan_last(before));
}

TEST_F(ScanRecorder, RunsOverEachSequence) {
  const float rows[] = {1, 10, 2, 20, 3, 30}, each[] = {0, 0, 5, 5, 100, 100};
  const int64_t offsets[] = {0, 2, 2, 3};
  const auto run = [&](uint32_t flags) {
    Scanned::lowered = [flags](tn::Builder& body) { sums(body, flags); };
    Machine made = machine();
    made.forward(
        {{"rows", Array::sequences(TN_F32, {3, kSize}, rows, 3, offsets)}, {"each", {TN_F32, {3, kSize}, each}}});
    std::vector<float> all = values(made.output(layer_));
    const std::vector<float> last = values(made.output(layer_.output(1)));
    all.insert(all.end(), last.begin(), last.end());
    return all;
  };
  EXPECT_THAT(run(0), testing::ElementsAre(1, 10, 3, 30, 103, 130, 3, 30, 5, 5, 103, 130));
  EXPECT_THAT(run(TN_SCAN_REVERSE), testing::ElementsAre(3, 30, 2, 20, 103, 130, 3, 30, 5, 5, 103, 130));
}

TEST_F(ScanRecorder, RefusesWrongBodies) {
  const auto memory = [](tn::Builder& body) {
    body.scan_begin(body.input(0).spec()[0]);
    return body.scan_memory(tn::Spec({kSize}));
  };
  EXPECT_THAT(refusal([&](tn::Builder& body) {
                body.scan_next(memory(body), body.input(0));
                body.scan_end();
              }),
              HasSubstr("is updated with"));
  EXPECT_THAT(refusal([&](tn::Builder& body) { body.scan_next(body.input(0), memory(body)); }),
              HasSubstr("which is no memory of the scan"));
  EXPECT_THAT(refusal([&](tn::Builder& body) { body.scan_last(memory(body)); }),
              HasSubstr("no memory of a scan that has ended"));
  EXPECT_THAT(refusal([&](tn::Builder& body) {
                memory(body);
                memory(body);
              }),
              HasSubstr("a scan in another scan"));
  EXPECT_THAT(refusal([&](tn::Builder& body) {
                memory(body);
                body.output(0, body.input(0));
                body.output(1, body.input(1));
              }),
              HasSubstr("lower returned before scan_end"));
  EXPECT_THAT(refusal([&](tn::Builder& body) {
                const tn::Tensor inside = memory(body);
                body.scan_end();
                body.output(0, inside);
              }),
              HasSubstr("to a value of the steps of a scan, not to its scan_output"));
  EXPECT_THAT(refusal([&](tn::Builder& body) { added(body, memory(body), body.input(0)); }),
              HasSubstr("pointwise input"));
  EXPECT_THAT(refusal([](tn::Builder& body) { body.scan_input(body.input(0)); }),
              HasSubstr("scan_input outside of a scan"));
  EXPECT_THAT(refusal([](tn::Builder& body) { body.scan_begin(body.input(1).spec()[0]); }),
              HasSubstr("is not a ragged dimension"));
  EXPECT_THAT(refusal([](tn::Builder& body) { body.scan_begin(body.input(0).spec()[0], 2); }),
              HasSubstr("flags of a scan"));
}

}  // namespace

}  // namespace tenon_tests
