#include <cstdio>
#include <tenon/tenon_program.hpp>

int main() {
  const tenon::Host host;
  const tenon::Program program(host);
  const tenon::Block block = program.global_block();
  const tenon::Variable x = program.data({"x", TN_F32, {13}});

  // Operators are made by type; shapes are derived and checked at the call.
  const tenon::Parameter w = block.create_parameter("w", {{13, 4}}, {{"init", "normal"}, {"init_std", 0.1}});
  const tenon::Variable hidden = block.create_var("hidden");
  block.append_op({"fc", {{"inputs", {x}}, {"weight", {w}}}, {{"output", {hidden}}}, {{"size", 4}}});
  try {
    block.append_op({"fc", {{"inputs", {hidden}}, {"weight", {w}}}, {}, {{"size", 4}}});
  } catch (const tenon::Error& error) {
    std::printf("%s\n", error.what());  // parameter "w" is [4, 4]; expected [13, 4], that of the caller
  }

  // A block for each step of a sequence.
  tenon::DataOptions words;
  words.name = "words", words.shape = {8}, words.storage = TN_RAGGED;
  const tenon::Block step = program.create_step_block({program.data(words)});
  const tenon::Variable word = step.variables()[0], state = step.memory({4});
  const tenon::Operator cell = step.append_op({"fc", {{"inputs", {word, state}}}, {}, {{"size", 4}, {"act", "tanh"}}, "cell"});
  step.next(state, cell.outputs()[0]);
  program.rollback();
  const tenon::Variable last = step.left()[0];

  const tenon::Operator both = block.append_op({"add", {{"", {hidden, last}}}, {}, {}, "both"});
  std::printf("%s", program.print().c_str());

  // Files of the topology, without values; parts of it; copies under other names.
  const tenon::Program pruned = program.prune({hidden});
  pruned.save("hidden.json");
  const tenon::Program read = tenon::Program::load(host, "hidden.json");
  tenon::CloneOptions names;
  names.layers = {{"hidden", "other"}};
  names.parameters = {{"w", "v"}};
  const tenon::Program copy = read.clone(names);

  // What all other calls take.
  const tenon::Parameters parameters = program.parameters(both.outputs());
  const tenon::Machine machine = host.machine(parameters, {both.outputs()[0].layer()}, {});
  return copy.find("v").is_parameter() ? 0 : 1;
}
