// Branches that are refused: errors name the cond, the branch and the layers that do not fit.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <tenon/tenon.hpp>
#include <tenon/tenon_cond.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/support/paths.h"
#include "tests/support/refused.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

class CondLayers : public testing::Test {
 protected:
  static Host make_host() {
    HostOptions options;
    options.plugin_paths = {plugin_folder()};
    return Host(options);
  }
  [[nodiscard]] Layer rows(const std::string& name, uint32_t levels = 1) const {
    DataOptions options;
    options.name = name, options.shape = {3}, options.storage = TN_RAGGED, options.levels = levels;
    return host_.data(options);
  }
  [[nodiscard]] Layer integers(const std::string& name, const std::vector<int64_t>& shape = {}) const {
    return host_.data({name, TN_I64, shape});
  }
  [[nodiscard]] Layer fc(const Layers& inputs, int64_t size, const std::string& name) const {
    return host_.layer("fc", inputs, {{"size", size}}, name);
  }
  // The error of a cond "gate" whose branch 0 has what `then` makes; branch 1 has `x`.
  [[nodiscard]] Error refused_then(const BranchFunction& then) const {
    return refused([&] {
      cond(
          predicate_, then, [&](Branch& branch) { return Layers{branch.input(x_)}; }, "gate");
    });
  }
  static void expect(const Error& error, tn_status code, const std::vector<std::string>& parts) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }

  const Host host_ = make_host();
  const Layer x_ = host_.data({"x", TN_F32, {3}}), predicate_ = host_.data({"predicate", TN_F32, {1}});
};

TEST_F(CondLayers, APredicateIsOneNumberForEachRow) {
  const auto same = [&](Branch& branch) { return Layers{branch.input(x_)}; };
  expect(refused([&] { cond(x_, same, same, "gate"); }), TN_INVALID,
         {"layer \"gate.rows\" (choose_rows)", "choice: must have one number for each sample or row", "[samples, 3]"});
  expect(refused([&] {
           cases(predicate_, {same, same}, "gate");
         }),
         TN_INVALID, {"layer \"gate.rows\" (choose_rows)", "must be integers if cases are given"});
  DataOptions three;
  three.name = "three", three.dtype = TN_I64, three.index_limit = 3;
  expect(refused([&] {
           cases(host_.data(three), {same, same}, "gate");
         }),
         TN_INVALID, {"data layer \"three\" has values from 0 to 2; expected"});
  expect(refused([&] { cases(integers("n"), {}); }), TN_INVALID, {"cases need at least one function"});
}

TEST_F(CondLayers, ResultsOfBranchesAreEqualFloats) {
  expect(refused_then([&](Branch& branch) { return Layers{fc({branch.input(x_)}, 4, "wide")}; }), TN_INVALID,
         {"cond \"gate\": result 0 is [samples, 4] of layer \"wide\" (fc) in branch 0 and [samples, 3] of layer "
          "\"gate.1.input_0\" (cond_input) in branch 1"});
  expect(refused_then([](Branch&) { return Layers{}; }), TN_INVALID, {"different numbers of results"});
  const Layer n = integers("n", {3});
  expect(refused_then([&](Branch& branch) { return Layers{branch.input(n)}; }), TN_UNSUPPORTED,
         {"result layer \"gate.0.input_0\" (cond_input) of branch 0 has int64", "results are floats"});
  const Layer words = rows("words");
  expect(refused_then([&](Branch&) { return Layers{words}; }), TN_INVALID,
         {"result layer \"words\" (data) of branch 0 has", "expected one value for each row of the branch"});
}

TEST_F(CondLayers, ValuesInsideAreNotReadOutside) {
  Layer inside;
  const CondResult made = cond(
      predicate_, [&](Branch& branch) { return Layers{inside = fc({branch.input(x_)}, 3, "inside")}; },
      [&](Branch& branch) {
        expect(
            refused([&] {
              static_cast<void>(fc({branch.input(x_), inside}, 2, "both"));
            }),
            TN_INVALID,
            {"layer \"both\" (fc): it reads layer \"gate.1.input_0\" (cond_input) inside of branch 1 of cond \"gate\" "
             "and layer \"inside\" (fc) inside of branch 0 of cond \"gate\""});
        expect(refused([&] { static_cast<void>(branch.input(inside)); }), TN_INVALID,
               {"input layer \"inside\" (fc) is inside of branch 0 of cond \"gate\"; expected a value from outside"});
        return Layers{branch.input(x_)};
      },
      "gate");
  expect(refused([&] { static_cast<void>(fc({inside}, 2, "outside")); }), TN_INVALID,
         {"layer \"outside\" (fc): it reads layer \"inside\" (fc) inside of branch 0 of cond \"gate\", whose results "
          "alone can be read outside"});
  const std::string output = "layer \"inside\" (fc): it is inside of branch 0 of cond \"gate\"";
  expect(refused([&] { static_cast<void>(host_.parameters({inside}, 1)); }), TN_INVALID, {output});
  const Machine machine = host_.machine(host_.parameters({made.layer}, 1), {made.layer}, {});
  expect(refused([&] { static_cast<void>(machine.output(inside)); }), TN_INVALID, {output});
}

TEST_F(CondLayers, LayersInsideHaveAValueForEachRow) {
  const Layer words = rows("words"), n = integers("n");
  expect(refused_then([&](Branch& branch) {
           return Layers{host_.layer("square_error", {branch.input(x_), x_}, {}, "cost")};
         }),
         TN_INVALID, {"layer \"cost\" (square_error): a cost cannot be inside of branch 0 of cond \"gate\""});
  expect(refused_then([&](Branch& branch) {
           return Layers{host_.layer("sequence_pool", {branch.input(x_)}, {{"kind", "sum"}}, "pool")};
         }),
         TN_INVALID, {"layer \"pool\" (sequence_pool)", "must be sequences"});
  expect(refused_then([&](Branch& branch) {
           return Layers{fc({branch.input(x_), words}, 3, "both")};
         }),
         TN_INVALID, {"layer \"both\" (fc)", "layer \"words\" (data) has", "outside of branch 0 of cond \"gate\""});
  const Layer other = host_.layer("sequence_pool", {rows("pages", 2)}, {{"kind", "sum"}}, "inner");
  expect(refused_then([&](Branch& branch) {
           return Layers{fc({branch.input(x_), other}, 3, "both")};
         }),
         TN_INVALID, {"layer \"both\" (fc)", "layer \"inner\" (sequence_pool)"});
}

TEST_F(CondLayers, SequencesComeWithTheirRows) {
  const Layer words = rows("words"), pages = rows("pages", 2);
  const Layer chosen = host_.layer("choose_rows", {predicate_}, {}, "chosen");
  const Layers numbers = {chosen.output(0), chosen.output(1)};
  const Cond of = begin_cond(predicate_, numbers, "gate");
  const auto input = [&](const Layer& value, const Layer& of_sequences, uint32_t branch = 0) {
    return refused([&] {
      tn_layer made = {};
      detail::checked([&](tn_error* error) {
        return tn_cond_input(of.host(), of.handle(), branch, value.handle(), of_sequences.handle(), nullptr, &made,
                             error);
      });
    });
  };
  const Error without = input(words, {});
  expect(without, TN_INVALID,
         {"cond \"gate\": input layer \"words\" (data) has", "the numbers of its rows in the branch"});
  EXPECT_EQ(without.subject(), "sequence_rows");
  expect(input(words, chosen), TN_INVALID, {"layer \"chosen\" (choose_rows), the rows of sequences"});
  expect(input(x_, chosen), TN_INVALID, {"input layer \"x\" (data) has", "rows of sequences are given"});
  expect(input(pages, chosen), TN_UNSUPPORTED, {"sequences of 2 levels"});
  expect(input(x_, {}, 2), TN_INVALID, {"branch 2 of 2 branches"});
}

TEST_F(CondLayers, RowsAreNumbersOfRows) {
  const Layer chosen = host_.layer("choose_rows", {predicate_}, {}, "chosen");
  expect(refused([&] { begin_cond(predicate_, {x_}, "gate"); }), TN_INVALID,
         {"cond \"gate\": layer \"x\" (data), the rows of a branch, has float32 [samples, 3]"});
  expect(refused([&] { begin_cond(rows("pages", 2), {chosen}, "gate"); }), TN_INVALID,
         {"layer \"chosen\" (choose_rows), the rows of a branch"});
  expect(refused([&] { begin_cond(predicate_, {}, "gate"); }), TN_INVALID, {"cond \"gate\": it has no branches"});
  // Of a value inside of a branch, they are inside as well, and the other way round.
  const Layer more = host_.layer("choose_rows", {predicate_}, {}, "more");
  Layer inside;
  expect(refused_then([&](Branch& branch) {
           const Layer value = branch.input(predicate_);
           inside = host_.layer("choose_rows", {value}, {}, "inside");
           begin_cond(value, {more.output(0), more.output(1)}, "inner");
           return Layers{value};
         }),
         TN_INVALID, {"cond \"inner\": layer \"more\" (choose_rows)"});
  expect(refused([&] {
           begin_cond(predicate_, {inside.output(0), inside.output(1)}, "inner");
         }),
         TN_INVALID, {"cond \"inner\": layer \"inside\" (choose_rows)"});
}

TEST_F(CondLayers, BranchesInsideOfScansAreRefused) {
  const Layer words = rows("words");
  expect(refused([&] {
           scan({words}, [&](Step& step) {
             const Layer row = step.input(0);
             const auto same = [&](Branch& branch) { return Layers{branch.input(row)}; };
             return cond(fc({row}, 1, "score"), same, same, "gate").results;
           });
         }),
         TN_UNSUPPORTED, {"gate.rows", "inside of scan"});
}

// The steps of a scan inside of a branch are not rows of it.
TEST_F(CondLayers, ValuesOfAScanInsideOfABranchAreNotRowsOfIt) {
  const Layer words = rows("words");
  const auto inside = [&](const std::function<Layer(Branch&, const Layer& value)>& read) {
    return refused_then([&](Branch& branch) {
      ScanOptions options;
      options.name = "rnn";
      Layer found;
      scan(
          {branch.input(words)},
          [&](Step& step) {
            found = read(branch, host_.layer("tanh", {step.input(0)}, {}, "inside"));
            return Layers{step.input(0)};
          },
          options);
      return Layers{found};
    });
  };
  expect(inside([](Branch& branch, const Layer& value) { return branch.input(value); }), TN_INVALID,
         {"cond \"gate\": input layer \"inside\" (tanh) is inside of scan \"rnn\""});
  expect(inside([](Branch&, const Layer& value) { return value; }), TN_INVALID,
         {"cond \"gate\": result layer \"inside\" (tanh) of branch 0 is inside of scan \"rnn\""});
}

// ---- files

TEST_F(CondLayers, DamagedTopologiesAreRefused) {
  const CondResult made = cond(
      predicate_, [&](Branch& branch) { return Layers{fc({branch.input(x_, "in")}, 3, "inside")}; },
      [&](Branch& branch) { return Layers{branch.input(x_)}; }, "gate");
  using nlohmann::json;
  const json good = json::parse(topology({made.layer}));
  EXPECT_EQ(read_topology(host_, good.dump()).size(), 1U);
  const auto with = [&](const std::string& name, const std::function<void(json&)>& change) {
    json damaged = good;
    for (json& layer : damaged.at("layers"))
      if (layer.at("name") == name) change(layer);
    return refused([&] { static_cast<void>(read_topology(host_, damaged.dump())); });
  };
  const auto bad = [&](const std::string& name, const std::string& pointer, const json& value) {
    return with(name, [&](json& layer) { layer[json::json_pointer(pointer)] = value; });
  };
  expect(bad("in", "/branch", 2), TN_BAD_DATA, {"branch 2 of 2 branches"});
  expect(bad("in", "/branch", -1), TN_BAD_DATA, {"branch -1 of 2 branches"});
  expect(bad("in", "/branch", "0"), TN_BAD_DATA, {"\"branch\" is a text; expected an integer"});
  expect(bad("in", "/cond", 1), TN_BAD_DATA, {"\"cond\" is a number; expected an object"});
  expect(bad("in", "/cond/branches", 9), TN_BAD_DATA, {"9 branches of 4 inputs"});
  expect(bad("in", "/cond/branches", 0), TN_BAD_DATA, {"0 branches of 4 inputs"});
  expect(bad("in", "/type", "cond_output"), TN_BAD_DATA, {"a part of branches has the type \"cond_output\""});
  expect(bad("in", "/inputs/3", "gate.rows"), TN_BAD_DATA, {"cond \"gate\" chooses other rows"});
  expect(bad("gate", "/cond/branches", 3), TN_BAD_DATA, {"cond \"gate\""});
  expect(with("gate", [](json& layer) { layer["inputs"].erase(3); }), TN_BAD_DATA,
         {"3 inputs for the results of 2 branches"});
  expect(with("gate", [](json& layer) { layer["inputs"].push_back("x"), layer["inputs"].push_back("x"); }), TN_BAD_DATA,
         {"6 inputs for the results of 2 branches"});
}

}  // namespace

}  // namespace tenon_tests
