// Scans that are refused: errors name the scan and the layers that do not fit. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tenon/tenon.hpp>
#include <tenon/tenon_cond.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/support/paths.h"
#include "tests/support/refused.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::HasSubstr;

class ScanLayers : public testing::Test {
 protected:
  static Host make_host() {
    HostOptions options;
    options.plugin_paths = {plugin_folder()};
    return Host(options);
  }
  [[nodiscard]] Layer rows(const std::string& name, const std::string& sequence, uint32_t levels = 1) const {
    DataOptions options;
    options.name = name, options.shape = {3}, options.storage = TN_RAGGED, options.sequence = sequence;
    options.levels = levels;
    return host_.data(options);
  }
  [[nodiscard]] Layer fc(const Layers& inputs, int64_t size, const std::string& name) const {
    return host_.layer("fc", inputs, {{"size", size}}, name);
  }
  // The error of a scan over `words` that is called "rnn".
  template <typename Function>
  Error refused_scan(Function function) const {
    ScanOptions options;
    options.name = "rnn";
    return refused([&] { scan({words_}, function, options); });
  }
  void expect(const Error& error, tn_status code, const std::vector<std::string>& parts) const {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }

  const Host host_ = make_host();
  const Layer words_ = rows("words", "text"), each_ = host_.data({"each", TN_F32, {4}});
};

TEST_F(ScanLayers, MemoriesAreLeftValuesOfTheirShapeOnce) {
  const auto with = [&](const std::function<void(Step&, const Layer& h)>& work) {
    return refused_scan([&](Step& step) {
      const Layer h = step.memory({4}, 0, "h");
      work(step, h);
      return Layers{h};
    });
  };
  expect(with([&](Step& step, const Layer& h) {
           step.next(h, fc({step.input(0), h}, 5, "wide"));
         }),
         TN_INVALID,
         {"scan \"rnn\": memory \"h\" holds [steps of \"text\", 4] and is left layer \"wide\" (fc), [steps of "
          "\"text\", 5]"});
  expect(with([](Step&, const Layer&) {}), TN_INVALID, {"scan \"rnn\": memory \"h\" is never left a value"});
  expect(with([&](Step& step, const Layer& h) {
           step.next(h, h);
           step.next(h, each_);
         }),
         TN_INVALID, {"memory \"h\" is left layer \"h\" (scan_memory) and layer \"each\" (data); expected one value"});
  expect(with([&](Step& step, const Layer& h) { step.next(step.input(0), h); }), TN_INVALID,
         {"layer \"rnn.input_0\" (scan_input) is not a memory of it"});
  expect(refused_scan([&](Step& step) { return Layers{step.memory(words_, "h")}; }), TN_INVALID,
         {"memory \"h\": its initial value is", "of layer \"words\" (data); expected one value for each sequence"});
  expect(refused_scan([&](Step& step) { return Layers{step.memory({0}, 0, "h")}; }), TN_INVALID,
         {"memory \"h\" has a dimension of 0; expected at least 1"});
  const std::vector<int64_t> most(7, 1), more(8, 1);
  expect(refused_scan([&](Step& step) { return Layers{step.memory(more, 0, "h")}; }), TN_INVALID,
         {"options.rank is 8"});
  static_cast<void>(scan({words_}, [&](Step& step) {
    const Layer h = step.memory(most, 0, "h");
    step.next(h, h);
    return Layers{h};
  }));
  for (const double start : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    expect(refused_scan([&](Step& step) { return Layers{step.memory({3}, start, "h")}; }), TN_INVALID,
           {"memory \"h\" begins with ", ", which is not finite"});
}

TEST_F(ScanLayers, ValuesInsideAreNotReadOutside) {
  Layer inside;
  ScanOptions options;
  options.name = "rnn";
  const ScanResult made = scan(
      {words_},
      [&](Step& step) {
        inside = fc({step.input(0)}, 4, "inside");
        return Layers{inside};
      },
      options);
  expect(
      refused([&] { static_cast<void>(fc({inside}, 2, "outside")); }), TN_INVALID,
      {"layer \"outside\" (fc): it reads layer \"inside\" (fc) inside of scan \"rnn\", whose results and last values "
       "alone can be read outside"});
  const std::string output = "layer \"inside\" (fc): it is inside of scan \"rnn\"";
  expect(refused([&] { static_cast<void>(host_.parameters({inside}, 1)); }), TN_INVALID, {output});
  const Parameters parameters = host_.parameters({made.layer}, 1);
  expect(refused([&] { static_cast<void>(host_.machine(parameters, {inside}, {})); }), TN_INVALID, {output});
  const Machine machine = host_.machine(parameters, {made.layer}, {});
  expect(refused([&] { static_cast<void>(machine.output(inside)); }), TN_INVALID, {output});
}

TEST_F(ScanLayers, SequencesHaveEqualLengths) {
  const Layer other = rows("other", "another");
  expect(refused([&] {
           scan({words_, other}, [](Step& step) { return Layers{step.input(0)}; });
         }),
         TN_INVALID,
         {"inputs layer \"words\" (data) and layer \"other\" (data) may have sequences of different lengths, [rows of "
          "\"text\"] and [rows of \"another\"]"});
  expect(refused_scan([&](Step& step) { return Layers{step.input(each_)}; }), TN_INVALID,
         {"input layer \"each\" (data) has float32 [samples, 4]; expected sequences"});
  expect(refused([&] { scan({each_}, [](Step& step) { return Layers{step.input(0)}; }); }), TN_INVALID,
         {"layer \"each\" (data), whose steps it goes through, has float32 [samples, 4]; expected sequences"});
  // Sub-sequences lie in the rows that the scan goes through.
  expect(refused([&] {
           scan({words_, rows("deep", "deep", 2)}, [](Step& step) { return Layers{step.input(0)}; });
         }),
         TN_INVALID,
         {"inputs layer \"words\" (data) and layer \"deep\" (data) may have sequences of different lengths, [rows of "
          "\"text\"] and [rows of \"deep\"]"});
}

TEST_F(ScanLayers, StepsReadNoOtherScans) {
  expect(refused_scan([&](Step& step) {
           scan({step.input(0)}, [](Step& inner) { return Layers{inner.input(0)}; });
           return Layers{};
         }),
         TN_INVALID,
         {"layer \"rnn.input_0\" (scan_input), whose steps it goes through, has float32 [steps of \"text\", 3]; "
          "expected sequences"});
  expect(refused_scan([&](Step& step) {
           scan({words_}, [&](Step& inner) {
             return Layers{host_.layer("add", {step.input(0), inner.input(0)}, {}, "both")};
           });
           return Layers{};
         }),
         TN_INVALID, {"layer \"both\" (add): it reads layer \"rnn.input_0\" (scan_input) inside of scan \"rnn\" and "});
}

TEST_F(ScanLayers, StepsSeeSequencesFromOutsideWhole) {
  // Sequences of other lengths, and those of the scan: the row of a step is that of an input.
  for (const auto& [name, outside] :
       {std::pair<std::string, Layer>{"words", words_}, {"other", rows("other", "another")}}) {
    expect(refused_scan([&](Step& step) {
             return Layers{host_.layer("add", {step.input(0), outside}, {}, "sum")};
           }),
           TN_INVALID, {"layer \"sum\" (add): ", "\" at the steps of \"text\", 3]"});
    expect(refused_scan([&](Step& step) {
             return Layers{host_.layer("sequence_expand", {step.input(0), outside}, {}, "spread")};
           }),
           TN_INVALID,
           {"result layer \"spread\" (sequence_expand) has ", "; expected one value for each step, or rows"});
    expect(refused_scan([&](Step& step) {
             const Layer h = step.memory({3}, 0, "h");
             step.next(h, outside);
             return Layers{h};
           }),
           TN_INVALID, {"memory \"h\" holds [steps of \"text\", 3] and is left layer \"" + name});
  }
  const Layer deep = rows("deep", "text", 2);
  const auto pool = [&](Step& step, const Layer& outside) {
    return Layers{host_.layer("sequence_expand", {step.input(0), outside}, {}, "spread")};
  };
  expect(
      refused_scan([&](Step& step) { return pool(step, deep); }), TN_INVALID,
      {"layer \"spread\" (sequence_expand): input \"like\": layer \"deep\" (data) is outside of scan \"rnn\" and has ",
       "; as an input of the scan it has the sub-sequence of each step"});
  expect(refused_scan([&](Step& step) { return pool(step, rows("apart", "apart", 2)); }), TN_INVALID,
         {"layer \"apart\" (data) is outside of scan \"rnn\" and has ",
          "; expected one value or one sequence for each sequence of the scan, [samples]"});
  const Layer pooled = host_.layer("sequence_pool", {rows("apart_2", "apart", 2)}, {{"kind", "sum"}}, "pooled");
  static_cast<void>(scan({words_}, [&](Step& step) {
    return Layers{host_.layer("sequence_pool", pool(step, pooled), {{"kind", "sum"}})};
  }));
  const Layer chosen = host_.layer("sequence_unpad", {host_.data({"grid", TN_F32, {5, 3}})}, {}, "chosen");
  expect(refused_scan([&](Step& step) { return pool(step, chosen); }), TN_UNSUPPORTED,
         {"layer \"chosen\" (sequence_unpad) in scan \"rnn\": rows of \"chosen\" are known only while a step runs"});
}

// The sequences of a branch are those of some samples: the steps of a scan over them read those of no others.
TEST_F(ScanLayers, AScanInABranchReadsSequencesOfTheBranch) {
  const Layer other = rows("other", "another");
  const auto in_branch = [&](const std::function<Layer(Branch&, Step&)>& result) {
    const auto both = [&](Branch& branch) {
      ScanOptions options;
      options.name = "rnn";
      const ScanResult made = scan(
          {branch.input(words_)}, [&](Step& step) { return Layers{result(branch, step)}; }, options);
      return Layers{host_.layer("sequence_pool", {made.results[0]}, {{"kind", "last"}})};
    };
    return refused([&] { cond(host_.data({"gate", TN_F32, {1}}), both, both, "of_gate"); });
  };
  const auto pooled = [&](const Layer& row, const Layer& seen) {
    return host_.layer("sequence_pool", {host_.layer("sequence_expand", {row, seen}, {}, "spread")}, {{"kind", "sum"}});
  };
  for (const auto& [name, outside] : {std::pair<std::string, Layer>{"words", words_}, {"other", other}}) {
    expect(in_branch([&](Branch&, Step& step) { return step.input(outside); }), TN_INVALID,
           {"scan \"rnn\": inputs layer \"of_gate.0.input_1\" (cond_input) and layer \"" + name +
            "\" (data) are not inside of the same branch"});
    expect(in_branch([&](Branch&, Step& step) { return pooled(step.input(0), outside); }), TN_INVALID,
           {"layer \"spread\" (sequence_expand): ", "layer \"" + name + "\" (data) is outside of scan \"rnn\" and has ",
            "; expected one value or one sequence for each sequence of the scan, ["});
  }
  EXPECT_THAT(refused([&] {
                (void)cond(
                    host_.data({"gate", TN_F32, {1}}), [&](Branch& branch) { return Layers{branch.input(each_)}; },
                    [&](Branch& branch) {
                      ScanOptions options;
                      options.name = "rnn";
                      const Layer inside = branch.input(other);
                      const auto step = [&](Step& each) { return Layers{each.input(inside)}; };
                      return Layers{scan({words_}, step, options).results[0]};
                    });
              }).what(),
              HasSubstr("are not inside of the same branch"));
}

TEST_F(ScanLayers, StatisticsInAScanInsideNameTheScanWhoseStepsTheyRelate) {
  const Layer deep = rows("deep", "text", 2);
  const auto refusal = [&](bool in_inner) {
    ScanOptions outer, inner;
    outer.name = "outer", inner.name = "inner";
    const auto normal = [&](const Layer& value, bool here) {
      return here ? host_.layer("batch_norm", {value}, {}, "normal") : value;
    };
    const ScanResult made = scan(
        {deep},
        [&](Step& step) {
          const Layer h = step.memory({2}, 0, "h");
          const ScanResult tokens = scan(
              {step.input(0)},
              [&](Step& token) {
                const Layer g = token.memory(h, "g");
                token.next(g, normal(host_.layer("tanh", {g}), in_inner));
                return Layers{g};
              },
              inner);
          const Layer all = normal(tokens.results[0], !in_inner);
          step.next(h, host_.layer("sequence_pool", {all}, {{"kind", "last"}}));
          return Layers{h};
        },
        outer);
    MachineOptions options;
    options.training = true, options.flags = TN_MACHINE_GIVEN_GRADIENTS;
    const Parameters parameters = host_.parameters({made.layer}, 1);
    return refused([&] { static_cast<void>(host_.machine(parameters, {made.layer}, options)); });
  };
  for (const bool in_inner : {false, true})
    expect(refusal(in_inner), TN_UNSUPPORTED,
           {"layer \"normal\": it lies on a way from a memory of scan \"",
            in_inner ? "of scan \"inner\" to the next step" : "of scan \"outer\" to the next step",
            "relates different steps"});
}

TEST_F(ScanLayers, LayersInsideComputeEachStepByItself) {
  expect(refused_scan([&](Step& step) {
           return Layers{host_.layer("square_error", {step.input(0), step.input(0)}, {}, "cost")};
         }),
         TN_INVALID, {"layer \"cost\" (square_error): a cost cannot be inside of scan \"rnn\""});
  expect(refused_scan([&](Step& step) {
           return Layers{host_.layer("lstm", {step.input(0)}, {{"size", 2}}, "inner")};
         }),
         TN_INVALID, {"layer \"inner\" (lstm): input: must be sequences (ragged)"});
  // What relates steps can be inside where no memory has a part in it; else the machine is refused.
  const ScanResult made = scan({words_}, [&](Step& step) {
    const Layer h = step.memory({3});
    const Layer normal = host_.layer("batch_norm", {h}, {}, "normal");
    step.next(h, normal);
    return Layers{host_.layer("batch_norm", {step.input(0)}, {}, "apart")};
  });
  const Parameters parameters = host_.parameters({made.layer}, 1);
  MachineOptions options;
  options.training = true, options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  expect(
      refused([&] { static_cast<void>(host_.machine(parameters, {made.layer}, options)); }), TN_UNSUPPORTED,
      {"layer \"normal\": it lies on a way from a memory of scan \"", "to the next step", "relates different steps"});
}

TEST_F(ScanLayers, AFunctionThatThrowsLeavesNothing) {
  EXPECT_THROW(scan({words_}, [](Step&) -> Layers { throw std::runtime_error("mine"); }), std::runtime_error);
  const Layer none;
  expect(refused_scan([&](Step&) { return Layers{}; }), TN_INVALID, {"it has neither results nor memories"});
}

// ---- topologies from elsewhere

class ScanTopologies : public ScanLayers {
 protected:
  // The topology of a scan with two memories, of which the second is made first by the layers inside.
  [[nodiscard]] ScanResult made() const {
    ScanOptions options;
    options.name = "rnn";
    return scan(
        {words_},
        [&](Step& step) {
          const Layer a = step.memory({3}, 0.5, "a"), b = step.memory({3}, 0, "b");
          const Layer sum = host_.layer("add", {b, a, step.input(0)}, {}, "sum");
          step.next(a, sum);
          step.next(b, a);
          return Layers{sum};
        },
        options);
  }
  // The error of reading the topology with `from` replaced.
  [[nodiscard]] std::string refused_with(const std::string& from, const std::string& to) const {
    std::string json = topology({made().layer});
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << json;
    json.replace(at, from.size(), to);
    const Error error = refused([&] { static_cast<void>(read_topology(host_, json)); });
    EXPECT_EQ(error.code(), TN_BAD_DATA) << error.what();
    return error.what();
  }
};

TEST_F(ScanTopologies, AreReadAsTheyWereWritten) {
  const Layer more = rows("more", "text");
  const ScanResult two = scan({words_, more}, [&](Step& step) {
    const Layer sum = step.memory({3});
    step.next(sum, host_.layer("add", {step.input(1), step.input(0), sum}));
    return Layers{sum};
  });
  // Two outputs of one layer are two inputs.
  const Layer sorted = host_.layer("top_k", {words_}, {{"k", 2}}, "sorted");
  const ScanResult outputs_of_one = scan({sorted, sorted.output(1)}, [&](Step& step) {
    return Layers{step.input(1), step.input(0)};
  });
  for (const ScanResult& scan : {made(), two, outputs_of_one}) {
    Layers outputs = scan.last;
    outputs.push_back(scan.results[0]);
    const std::string json = topology(outputs);
    EXPECT_EQ(topology(read_topology(host_, json)), json);
  }
}

TEST_F(ScanTopologies, DamageIsRefused) {
  EXPECT_THAT(refused_with("\"results\":1", "\"results\":2"), HasSubstr("2 results of 5 inputs"));
  EXPECT_THAT(refused_with("\"results\":1", "\"results\":-1"), HasSubstr("-1 results of 5 inputs"));
  EXPECT_THAT(refused_with("\"results\":1", "\"results\":3"), HasSubstr("memory \"a\" is never left a value"));
  EXPECT_THAT(refused_with("\"inputs\":[\"words\",\"sum\"", "\"inputs\":[\"sum\",\"sum\""),
              HasSubstr("scan \"rnn\" goes through other sequences"));
  EXPECT_THAT(refused_with("\"reverse\":false", "\"reverse\":0"),
              HasSubstr("\"reverse\" is a number; expected true or"));
  EXPECT_THAT(refused_with("\"shape\":[3],\"type\":\"scan_memory\"", "\"shape\":[-3],\"type\":\"scan_memory\""),
              HasSubstr("has a dimension of -3; expected at least 1"));
  EXPECT_THAT(refused_with("\"type\":\"scan_memory\"", "\"type\":\"scan_cell\""),
              HasSubstr("a part of a scan has the type \"scan_cell\""));
  EXPECT_THAT(refused_with("\"sum\",\"b\",\"a\"]", "\"sum\",\"sum\",\"a\"]"), HasSubstr("is not a memory of it"));
  EXPECT_THAT(refused_with("\"outputs\":[\"rnn\"]", "\"outputs\":[\"sum\"]"),
              HasSubstr("it is inside of scan \"rnn\""));
}

}  // namespace

}  // namespace tenon_tests
