// Topologies as programs: tenon_program.hpp. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <tenon/tenon_program.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Extents = std::vector<int64_t>;

class ProgramView : public testing::Test {
 protected:
  ProgramView() {
    x_ = program_.data({"x", TN_F32, {3}});
    DataOptions words;
    words.name = "words", words.shape = {4}, words.storage = TN_RAGGED;
    words_ = program_.data(words);
  }
  template <typename Work>
  static Error refused(const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      return error;
    }
    return {TN_OK, "nothing was refused"};
  }
  static std::vector<std::string> names_of(const std::vector<Operator>& ops) {
    std::vector<std::string> result;
    for (const Operator& op : ops) result.push_back(op.name());
    return result;
  }
  static std::vector<float> values_of(const Parameters& set, const std::string& name) {
    const Array array = set.get(name);
    const auto* const data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }
  [[nodiscard]] Block global() const { return program_.global_block(); }
  // fc without a bias, by a parameter of its own.
  [[nodiscard]] Operator fc(const Block& block, const Variable& of, const std::string& weight, int64_t size,
                            const std::string& name = {}) const {
    return block.append_op({"fc",
                            {{"inputs", {of}}, {"weight", {block.create_parameter(weight)}}},
                            {},
                            {{"size", size}, {"bias", false}},
                            name});
  }
  // A scan over words with the memory h of 2.
  [[nodiscard]] Block recurrent() const {
    const Block block = program_.create_step_block({words_}, {false, "rnn"});
    const Variable x = block.variables().at(0), h = block.memory({2});
    const Operator next = block.append_op({"fc",
                                           {{"inputs", {x, h}},
                                            {"weight", {block.create_parameter("in", Extents{4, 2})}},
                                            {"weight_1", {block.create_parameter("back", Extents{2, 2})}}},
                                           {},
                                           {{"size", 2}, {"bias", false}, {"act", "tanh"}},
                                           "cell"});
    block.next(h, next.outputs()[0]);
    block.output({next.outputs()[0]});
    program_.rollback();
    return block;
  }

  TemporaryFolder folder_;
  Host host_{HostOptions{1, {plugin_folder()}, nullptr, {}}};
  Program program_{host_};
  Variable x_{nullptr, 0}, words_{nullptr, 0};
};

TEST_F(ProgramView, AnOperatorIsALayerAndItsOutputsAreVariables) {
  const Parameter w = global().create_parameter("w", Extents{3, 2}, {{"init", "constant"}, {"init_value", 0.5}});
  const Parameter b = global().create_parameter("b", Extents{2});
  const Variable out = global().create_var("out");
  EXPECT_FALSE(out.op());
  EXPECT_EQ(refused([&] { (void)out.layer(); }).code(), TN_MISUSE);
  const Operator fc = global().append_op(
      {"fc", {{"inputs", {x_}}, {"weight", {w}}, {"bias", {b}}}, {{"output", {out}}}, {{"size", 2}}});
  EXPECT_EQ(fc.name(), "out");
  EXPECT_EQ(out.op(), fc);
  EXPECT_THAT(fc.outputs(), ElementsAre(out));
  EXPECT_EQ(out.info().shape.at(1).extent, 2);
  EXPECT_EQ(out.info().port, "output");
  ASSERT_EQ(fc.inputs().size(), 1U);
  EXPECT_EQ(fc.inputs()[0].first, "inputs");
  EXPECT_EQ(fc.inputs()[0].second[0], x_);
  ASSERT_EQ(fc.parameters().size(), 2U);
  EXPECT_EQ(fc.parameters()[0].first, "weight");
  EXPECT_EQ(fc.parameters()[0].second, w);
  EXPECT_EQ(w.users().at(0), fc);
  EXPECT_FALSE(w.op());
  EXPECT_EQ(w.attributes().size(), 2U);
  // The layer is one like any other.
  const Parameters set = program_.parameters({out});
  EXPECT_EQ(entries(set).size(), 2U);
  EXPECT_EQ(values_of(set, "w"), std::vector<float>(6, 0.5F));
  const Machine machine = host_.machine(set, {out.layer()}, {});
  const std::vector<float> ones(3, 1);
  machine.forward({{"x", {TN_F32, {1, 3}, ones.data()}}});
  EXPECT_EQ(static_cast<const float*>(machine.output(out.layer()).data)[0], 1.5F);
}

TEST_F(ProgramView, ParametersAreOfTheGlobalBlockWhicheverAsks) {
  const Block block = recurrent();
  EXPECT_EQ(block.info().kind, TN_BLOCK_STEP);
  const Variable in = program_.find("in");
  EXPECT_TRUE(in.is_parameter());
  EXPECT_EQ(in.block(), global());
  EXPECT_EQ(block.find("in"), in);
  EXPECT_EQ(names_of(block.ops()), (std::vector<std::string>{"rnn.input_0", "rnn.memory_0", "cell"}));
  EXPECT_EQ(names_of(global().ops()), (std::vector<std::string>{"x", "words", "rnn"}));
  EXPECT_EQ(program_.find("rnn").op()->blocks().at(0), block);
  EXPECT_EQ(block.parent(), global());
  ASSERT_EQ(block.left().size(), 2U);  // the sequence, and the last value of the memory
  EXPECT_EQ(block.left()[1].name(), "rnn:1");
  // What is inside cannot be found outside by the block, and has another shape there.
  EXPECT_EQ(refused([&] { (void)global().find("cell"); }).code(), TN_NOT_FOUND);
  // Another block that asks for a parameter of the same name gets the same one.
  EXPECT_EQ(global().create_parameter("in", Extents{4, 2}), in);
  const Error differs = refused([&] { (void)global().create_parameter("in", Extents{4, 5}); });
  EXPECT_EQ(differs.code(), TN_INVALID);
  EXPECT_EQ(differs.subject(), "in");
  EXPECT_THAT(differs.what(),
              HasSubstr("parameter \"in\" has the shape [4, 5] here; expected [4, 2], that of the caller"));
}

TEST_F(ProgramView, BranchesAreBlocks) {
  const Variable sign =
      global().append_op({"slice", {{"", {x_}}}, {}, {{"axis", 1}, {"start", 0}, {"length", 1}}}).outputs()[0];
  const Block then = program_.create_branch_block(sign, 0, "gate");
  then.output({fc(then, then.input(x_), "one", 2).outputs()[0]});
  program_.rollback();
  EXPECT_EQ(program_.current_block(), global());
  const Block otherwise = program_.create_branch_block(then);
  EXPECT_EQ(otherwise.info().branch, 1U);
  otherwise.output({fc(otherwise, otherwise.input(x_), "other", 2).outputs()[0]});
  program_.rollback();
  const Variable result = then.left().at(0);
  EXPECT_EQ(result.name(), "gate");
  EXPECT_EQ(result.block(), global());
  EXPECT_EQ(otherwise.left().at(0), result);
  EXPECT_EQ(program_.find("gate").op()->blocks().size(), 2U);
  EXPECT_EQ(entries(program_.parameters({result})).size(), 2U);
  EXPECT_EQ(refused([&] { (void)program_.create_branch_block(then); }).code(), TN_MISUSE);
  EXPECT_EQ(refused([&] { program_.rollback(); }).code(), TN_MISUSE);
}

TEST_F(ProgramView, EveryTopologyIsAProgramAndEveryProgramATopology) {
  (void)recurrent();
  const Variable end = fc(global(), program_.find("rnn:1"), "head", 1, "end").outputs()[0];
  const Program read(Layers{end.layer()});
  EXPECT_EQ(print(Layers{end.layer()}), read.print());
  EXPECT_EQ(read.blocks().size(), 2U);
  EXPECT_EQ(read.blocks()[1].info().name, "rnn");
  EXPECT_EQ(names_of(read.blocks()[1].ops()).size(), 3U);
  EXPECT_EQ(topology(read.ends()), topology({end.layer()}));
  EXPECT_EQ(read.find("head").is_parameter(), true);
  EXPECT_EQ(read.print(), R"(block 0 {
  parameter in: float32 [4, 2]
  parameter back: float32 [2, 2]
  parameter head: float32 [2, 1]
  words: float32 [rows of "words", 4] = data()
  block 1, each step of rnn {
    rnn.input_0: float32 [steps of "words", 4] = scan_input(sequences = words, reverse = false, scan = "rnn")
    rnn.memory_0: float [steps of "words", 2] = scan_memory(over = words, initial_value = 0.0, reverse = false, scan = "rnn", shape = [2])
    cell: float [steps of "words", 2] = fc(inputs = [rnn.input_0, rnn.memory_0], weight = in, weight_1 = back, act = "tanh", bias = false, size = 2)
  }
  rnn: float [rows of "words", 2], rnn:1: float [samples, 2] = scan(over = words, results = cell, memories = rnn.memory_0, next = cell, results = 1, reverse = false, scan = "rnn")
  end: float [samples, 1] = fc(inputs = rnn:1, weight = head, bias = false, size = 1)
}
outputs end
)");
}

TEST_F(ProgramView, IsPruned) {
  const Variable one = fc(global(), x_, "one", 2, "first").outputs()[0];
  const Variable two = fc(global(), one, "two", 2, "second").outputs()[0];
  EXPECT_EQ(names_of(program_.prune({one}).global_block().ops()), (std::vector<std::string>{"x", "first"}));
  EXPECT_EQ(names_of(program_.prune({two}).global_block().ops()).size(), 3U);
  EXPECT_EQ(refused([&] { (void)program_.prune({program_.find("third")}); }).code(), TN_NOT_FOUND);
  EXPECT_EQ(refused([&] { (void)Program(host_).prune({one}); }).code(), TN_INVALID);
}

TEST_F(ProgramView, IsClonedUnderOtherNames) {
  (void)recurrent();
  (void)fc(global(), program_.find("rnn"), "head.weight", 1, "end");
  CloneOptions options;
  options.layers = {{"rnn", "other"}, {"end", "other.end"}};
  options.parameters = {{"head", "new"}, {"in", "entry"}};
  const Program made = program_.clone(options);
  EXPECT_EQ(made.find("other.end").op()->parameters()[0].second.name(), "new.weight");
  EXPECT_EQ(made.find("cell").op()->parameters()[0].second.name(), "entry");
  EXPECT_EQ(made.find("cell").op()->parameters()[1].second.name(), "back");
  EXPECT_EQ(made.blocks()[1].info().name, "other");
  // The clone is no part of the program that it was made from.
  EXPECT_EQ(program_.find("end").op()->parameters()[0].second.name(), "head.weight");
  const auto refusal = [&](const Renames& layers, const Renames& parameters) {
    CloneOptions wrong;
    wrong.layers = layers, wrong.parameters = parameters;
    return refused([&] { (void)program_.clone(wrong); });
  };
  EXPECT_EQ(refusal({{"rn", "a"}}, {}).code(), TN_NOT_FOUND);
  EXPECT_THAT(refusal({{"rn", "a"}}, {}).what(), HasSubstr("the topology has no layer \"rn\"; known: cell, end, rnn"));
  EXPECT_EQ(refusal({{"rnn", "end"}}, {}).code(), TN_INVALID);
  EXPECT_EQ(refusal({}, {{"hea", "a"}}).code(), TN_NOT_FOUND);
}

TEST_F(ProgramView, IsSavedWithoutValuesAndReadAgain) {
  (void)recurrent();
  (void)fc(global(), program_.find("rnn:1"), "head", 1, "end");
  const std::string path = folder_.file("net.json");
  program_.save(path);
  const Host other{HostOptions{1, {plugin_folder()}, nullptr, {}}};
  EXPECT_EQ(Program::load(other, path).print(), program_.print());
  // A model file is read without its values.
  const Layers outputs = program_.ends();
  host_.parameters(outputs, 1).save(outputs, folder_.file("model.safetensors"));
  EXPECT_EQ(Program::load(other, folder_.file("model.safetensors")).print(), program_.print());
}

TEST_F(ProgramView, BrokenFilesAreRefused) {
  const std::string path = folder_.file("net.json");
  const auto refusal = [&](const std::string& text) {
    std::ofstream(path) << text;
    return refused([&] { (void)Program::load(host_, path); });
  };
  for (const char* const text : {"", "{", "[1, 2, 3, 4]", "nonsense", R"({"version": 1, "layers": []})"}) {
    const Error error = refusal(text);
    EXPECT_EQ(error.code(), TN_BAD_DATA) << text;
    EXPECT_THAT(error.what(), HasSubstr(path)) << text;
  }
  const Error newer = refusal(R"({"version": 2, "layers": [], "outputs": []})");
  EXPECT_EQ(newer.code(), TN_BAD_DATA);
  EXPECT_THAT(newer.what(), HasSubstr("topology version 2; expected 1"));
  EXPECT_EQ(refused([&] { (void)Program::load(host_, folder_.file("none.json")); }).code(), TN_NOT_FOUND);
}

TEST_F(ProgramView, AnOperatorInitializeSaysHowAParameterBegins) {
  // In front of an operator that is there already.
  const Variable early = fc(global(), x_, "early", 2, "one").outputs()[0];
  const auto initialize = [&](const std::string& name, double value) {
    return OperatorOptions{
        "initialize", {}, {{"out", {program_.find(name)}}}, {{"init", "constant"}, {"init_value", value}}};
  };
  const Operator made = global().prepend_op(initialize("early", 2));
  EXPECT_EQ(global().ops()[0], made);
  // Before the first operator.
  (void)global().create_parameter("late");
  (void)global().prepend_op(initialize("late", 3));
  const Variable late = fc(global(), x_, "late", 2, "two").outputs()[0];
  EXPECT_EQ(values_of(program_.parameters({early}), "early"), std::vector<float>(6, 2));
  EXPECT_EQ(values_of(program_.parameters({late}), "late"), std::vector<float>(6, 3));
  // Otherwise again: what belonged to the other initializer is gone.
  (void)global().prepend_op(
      {"initialize", {}, {{"out", {program_.find("early")}}}, {{"init", "normal"}, {"init_std", 1.0}}});
  EXPECT_EQ(
      static_cast<const Parameter&>(Parameter(early.program(), program_.find("early").number())).attributes().size(),
      2U);
  EXPECT_NE(values_of(program_.parameters({early}), "early"), std::vector<float>(6, 2));
  // It is an attribute of the layer, so a file has it.
  program_.save(folder_.file("net.json"));
  const Program read = Program::load(host_, folder_.file("net.json"));
  EXPECT_EQ(values_of(read.parameters({read.find("two")}), "late"), std::vector<float>(6, 3));
}

TEST_F(ProgramView, AnOperatorLoadTakesValuesFromAFile) {
  const Variable out = fc(global(), x_, "w", 2, "one").outputs()[0];
  const std::string path = folder_.file("model.safetensors");
  const Parameters saved = program_.parameters({out}, 7);
  saved.save({out.layer()}, path);
  const Variable further = fc(global(), x_, "v", 2, "two").outputs()[0];
  const auto load = [&](const std::string& parameter, const Attributes& attributes) {
    return global().prepend_op({"load", {}, {{"out", {program_.find(parameter)}}}, attributes});
  };
  const std::string before = program_.print();
  EXPECT_THAT(refused([&] { (void)load("v", {{"path", path}}); }).what(), HasSubstr("there is no parameter \"v\""));
  EXPECT_EQ(refused([&] { (void)load("v", {{"path", path + "x"}}); }).code(), TN_NOT_FOUND);
  EXPECT_EQ(refused([&] { (void)load("v", {}); }).subject(), "path");
  (void)fc(global(), x_, "wide", 5, "three");
  EXPECT_THAT(refused([&] {
                (void)load("wide", {{"path", path}, {"name", "w"}});
              }).what(),
              HasSubstr("parameter \"w\" is [3, 2]; expected [3, 5], that of \"wide\""));
  (void)load("w", {{"path", path}});
  (void)load("v", {{"path", path}, {"name", "w"}});
  const Parameters set = program_.parameters({out, further}, 1);
  EXPECT_EQ(values_of(set, "w"), values_of(saved, "w"));
  EXPECT_EQ(values_of(set, "v"), values_of(saved, "w"));
  // Pruned and cloned programs begin likewise.
  const Program pruned = program_.prune({further});
  EXPECT_EQ(values_of(pruned.parameters({pruned.find("two")}, 2), "v"), values_of(saved, "w"));
  CloneOptions options;
  options.layers = {{"two", "copy"}}, options.parameters = {{"v", "u"}};
  const Program made = program_.clone(options);
  EXPECT_EQ(values_of(made.parameters({made.find("copy")}, 3), "u"), values_of(saved, "w"));
}

TEST_F(ProgramView, WrongOperatorsChangeNothing) {
  const Parameter w = global().create_parameter("w", Extents{3, 2});
  const Variable out = fc(global(), x_, "w", 2, "one").outputs()[0];
  const std::string before = program_.print();
  const auto refusal = [&](const OperatorOptions& options) {
    const Error error = refused([&] { (void)global().append_op(options); });
    EXPECT_EQ(program_.print(), before);
    return error;
  };
  const Attributes size = {{"size", 2}};
  EXPECT_EQ(refusal({"fcc", {{"inputs", {x_}}}, {}, size}).code(), TN_NOT_FOUND);
  EXPECT_EQ(refusal({"fc", {{"inputs", {x_}}}, {}, {{"size", 2}, {"sise", 2}}}).subject(), "sise");
  EXPECT_THAT(refusal({"fc", {{"X", {x_}}}, {}, size}).what(), HasSubstr("unknown input \"X\""));
  EXPECT_THAT(refusal({"fc", {{"inputs", {x_}}, {"wait", {w}}}, {}, size}).what(), HasSubstr("no parameter \"wait\""));
  EXPECT_THAT(refusal({"fc", {{"inputs", {x_}}, {"weight", {w}}}, {}, {{"size", 7}}}).what(),
              HasSubstr("parameter \"w\" is [3, 7]; expected [3, 2], that of the caller"));
  EXPECT_THAT(refusal({"add", {{"", {x_, out}}}, {}, {}}).what(), HasSubstr("layer"));  // shapes differ
  EXPECT_THAT(refusal({"fc", {{"inputs", {x_}}}, {{"y", {global().create_var()}}}, size}).what(),
              HasSubstr("unknown output \"y\""));
  EXPECT_THAT(refusal({"fc", {{"inputs", {x_}}}, {{"output", {out}}}, size}).what(), HasSubstr("has a value already"));
  EXPECT_EQ(refusal({"fc", {{"inputs", {x_}}}, {}, size, "one"}).code(), TN_INVALID);
  EXPECT_THAT(refusal({"fc", {{"inputs", {x_}}, {"weight", {w}}, {"bias", {w}}}, {}, size}).what(),
              HasSubstr("\"weight\" and \"bias\" have the same name, \"w\""));
  EXPECT_THAT(refusal({"add", {{"a", {x_}}, {"", {x_}}}, {}, {}}).what(), HasSubstr("unknown input"));
  EXPECT_EQ(refusal({"fc", {{"inputs", {global().create_var()}}}, {}, size}).code(), TN_MISUSE);
  const Program foreign(host_);
  const Variable other = foreign.data({"z", TN_F32, {3}});
  EXPECT_THAT(refusal({"fc", {{"inputs", {other}}}, {}, size}).what(), HasSubstr("\"z\" is of another program"));
  EXPECT_THAT(refusal({"initialize", {}, {{"out", {out}}}, {}}).what(),
              HasSubstr("expected no inputs, and one parameter"));
  EXPECT_EQ(refusal({"initialize", {}, {{"out", {w}}}, {}}).subject(), "init");
  EXPECT_EQ(refusal({"initialize", {}, {{"out", {w}}}, {{"init", "constant"}, {"initt", 1}}}).code(), TN_INVALID);
  EXPECT_THAT(refused([&] {
                (void)global().prepend_op({"relu", {{"", {out}}}});
              }).what(),
              HasSubstr("\"one\" is written by an operator of block 0"));
  EXPECT_EQ(refused([&] { (void)global().create_var("one"); }).code(), TN_INVALID);
  EXPECT_EQ(refused([&] { (void)global().create_parameter("one"); }).code(), TN_INVALID);
  EXPECT_EQ(refused([&] { (void)program_.data({"w", TN_F32, {3}}); }).code(), TN_INVALID);
  EXPECT_EQ(program_.print(), before);
}

TEST_F(ProgramView, AnOperatorBelongsToTheBlockThatItReads) {
  const Block block = program_.create_step_block({words_});
  // It reads nothing of the steps: it is the same at each of them, and outside.
  const Operator outside = fc(block, x_, "v", 2);
  EXPECT_EQ(outside.block(), global());
  const Variable row = block.variables().at(0);
  const Error error = refused([&] { (void)fc(global(), row, "w", 2); });
  EXPECT_EQ(error.subject(), "block");
  EXPECT_THAT(error.what(), HasSubstr("it reads variables of block 1, and cannot be appended to block 0"));
  EXPECT_EQ(refused([&] { (void)program_.clone(); }).code(), TN_MISUSE);
  EXPECT_EQ(refused([&] { (void)global().memory({2}); }).code(), TN_MISUSE);
  const Variable h = block.memory({2});
  EXPECT_EQ(refused([&] { program_.rollback(); }).code(), TN_INVALID);  // nothing is left in the memory
  EXPECT_EQ(program_.current_block(), block);
  block.next(h, fc(block, row, "w", 2).outputs()[0]);
  program_.rollback();
  EXPECT_EQ(program_.current_block(), global());
}

TEST(EmptyProgram, HasNothingToPrint) {
  const Host host{HostOptions{1, {plugin_folder()}, nullptr, {}}};
  const Program program(host);
  EXPECT_THROW((void)program.print(), Error);
  EXPECT_EQ(program.blocks().size(), 1U);
}

}  // namespace

}  // namespace tenon_tests
