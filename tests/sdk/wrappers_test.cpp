// The C++ wrappers of the plugin interface: exception barriers, reports, tables. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <tenon/plugin.hpp>
#include <utility>

#include "core/program.h"
#include "core/shape.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A sink that keeps the last report as text.
struct Sink {
  tn_errors errors = {};
  std::string port, message, expected, actual;
  tn_status code = TN_OK;
  int reports = 0;

  Sink() {
    errors.size = sizeof errors;
    errors.self = this;
    errors.report = [](void* self, const tn_error_report* report) {
      auto& sink = *static_cast<Sink*>(self);
      const auto shown = [](const tn_spec* spec) {
        return spec == nullptr ? std::string() : tenon::core::to_string(tenon::core::Spec::from(*spec));
      };
      ++sink.reports;
      sink.code = report->code;
      sink.message = report->message;
      sink.port = report->port == nullptr ? "" : report->port;
      sink.expected = shown(report->expected);
      sink.actual = shown(report->actual);
    };
  }
};

// ---- the barrier

TEST(Barrier, EveryExceptionBecomesAStatusAndAReport) {
  const auto status_of = [](const std::function<void()>& work, Sink& sink) { return tn::guarded(&sink.errors, work); };
  Sink sink;
  EXPECT_EQ(status_of([] {}, sink), TN_OK);
  EXPECT_EQ(sink.reports, 0);
  EXPECT_EQ(status_of([] { throw std::runtime_error("broken"); }, sink), TN_PLUGIN_FAULT);
  EXPECT_EQ(sink.message, "broken");
  EXPECT_EQ(status_of([] { throw std::invalid_argument("wrong"); }, sink), TN_INVALID);
  EXPECT_EQ(sink.message, "wrong");
  EXPECT_EQ(status_of([] { throw std::bad_alloc(); }, sink), TN_OUT_OF_MEMORY);
  EXPECT_EQ(status_of([] { throw 7; }, sink), TN_PLUGIN_FAULT);
  EXPECT_EQ(sink.reports, 4);
  EXPECT_EQ(status_of([] { throw tn::Reported(TN_NOT_FOUND); }, sink), TN_NOT_FOUND);
  EXPECT_EQ(sink.reports, 4) << "the host has reported it already";
  EXPECT_EQ(tn::guarded(nullptr, [] { throw std::runtime_error("nobody listens"); }), TN_PLUGIN_FAULT);
}

TEST(Barrier, AFailureCarriesPortAndShapes) {
  Sink sink;
  const tn_status status = tn::guarded(&sink.errors, [] {
    throw tn::Failure(TN_UNSUPPORTED, "label", "no").expected(tn::Spec({3}, TN_I32)).actual(tn::Spec({2, 4}, TN_F32));
  });
  EXPECT_EQ(status, TN_UNSUPPORTED);
  EXPECT_EQ(sink.code, TN_UNSUPPORTED);
  EXPECT_EQ(sink.port, "label");
  EXPECT_EQ(sink.expected, "int32 [3]");
  EXPECT_EQ(sink.actual, "float32 [2, 4]");
}

// ---- layers

// The functions that plan and expand of Probe call.
std::function<void(tn::Planner&)>* planning = nullptr;
std::function<bool(tn::Expander&)>* expanding = nullptr;

struct Probe {
  static void describe(tn::LayerDescription& d) {
    d.type("probe", "for tests");
    d.input("first", "");
    d.input("rest", "", TN_PORT_VARIADIC);
    d.output("output", "");
    d.attribute(tn::int_attribute("size", 3).at_least(1).at_most(9).doc("a size"));
    d.attribute(tn::string_attribute("mode", "a").one_of({"a", "b"}));
    d.attribute(tn::float_attribute("rate").required());
    d.parameter("weight");
    d.state_version(4);
  }
  static void plan(tn::Planner& planner) { (*planning)(planner); }
  static bool expand(tn::Expander& expander) { return (*expanding)(expander); }
};

const tn_dim kSamples = tn_dim_symbol(TN_SYMBOL_SAMPLES);

// A planner with three inputs: float [samples, 4, 5], an absent one, and int32 [samples].
struct FakePlan {
  Sink sink;
  tn::Spec image = tn::Spec({kSamples, 4, 5}, TN_F32), label = tn::Spec({kSamples}, TN_I32);
  tn_spec views[2] = {image.get(), label.get()};
  const tn_spec* inputs[3] = {&views[0], nullptr, &views[1]};
  tn_planner planner = {};
  std::vector<std::string> calls;
  tn_status answer = TN_OK;

  FakePlan() {
    planner.size = sizeof planner;
    planner.inputs_count = 3;
    planner.self = this;
    planner.errors = &sink.errors;
    planner.inputs = inputs;
    planner.output = [](void* self, uint32_t port, const tn_spec* spec) {
      return note(self,
                  "output " + std::to_string(port) + " " + tenon::core::to_string(tenon::core::Spec::from(*spec)));
    };
    planner.parameter = [](void* self, const tn_parameter* p) -> int32_t {
      const tn_status status = note(self, "parameter " + std::string(p->suffix) + " " +
                                              tenon::core::to_string(tenon::core::Spec::from(*p->spec)));
      return status == TN_OK ? 0 : -1;
    };
    planner.index_limit = [](void* self, uint32_t input, int64_t limit) {
      return note(self, "limit " + std::to_string(input) + " " + std::to_string(limit));
    };
  }
  static tn_status note(void* self, std::string call) {
    auto& plan = *static_cast<FakePlan*>(self);
    plan.calls.push_back(std::move(call));
    return plan.answer;
  }
  tn_status run(std::function<void(tn::Planner&)> body) {
    planning = &body;
    return tn::layer_type<Probe>()->plan(&planner);
  }
};

TEST(LayerType, DescriptionIsAsDeclared) {
  const tn_layer_type& type = *tn::layer_type<Probe>();
  EXPECT_EQ(&type, tn::layer_type<Probe>());
  EXPECT_EQ(type.size, sizeof type);
  EXPECT_EQ(type.lower, nullptr);
  EXPECT_EQ(type.finalize, nullptr);
  const tn_layer_description& d = *type.description;
  EXPECT_STREQ(d.type, "probe");
  EXPECT_EQ(d.state_version, 4u);
  ASSERT_EQ(d.inputs_count, 2u);
  EXPECT_STREQ(d.inputs[1]->name, "rest");
  EXPECT_EQ(d.inputs[1]->flags, static_cast<uint32_t>(TN_PORT_VARIADIC));
  ASSERT_EQ(d.attributes_count, 3u);
  EXPECT_EQ(d.attributes[0]->initial.as.i, 3);
  EXPECT_EQ(d.attributes[0]->has_range, 3u);
  EXPECT_EQ(d.attributes[0]->minimum, 1);
  EXPECT_EQ(d.attributes[0]->maximum, 9);
  EXPECT_STREQ(d.attributes[1]->choices[1], "b");
  EXPECT_EQ(d.attributes[1]->choices[2], nullptr);
  EXPECT_EQ(d.attributes[2]->choices, nullptr);
  EXPECT_EQ(d.attributes[2]->flags, static_cast<uint32_t>(TN_ATTR_REQUIRED));
  ASSERT_EQ(d.parameters_count, 1u);
  EXPECT_STREQ(d.parameters[0], "weight");
}

TEST(LayerType, PlanHandsOverWhatItDeclares) {
  FakePlan plan;
  EXPECT_EQ(plan.run([](tn::Planner& planner) {
    EXPECT_FALSE(planner.has_input(1));
    EXPECT_FALSE(planner.has_input(3));
    planner.output(0, tn::Spec({planner.input(0)[0], planner.elements(0, 1)}));
    planner.parameter("weight", tn::Spec({2, 3}), tn::constant_initializer(0));
    planner.require_per_row(2, planner.input(0).leading(1));
    planner.index_limit(2, 10);
  }),
            TN_OK)
      << plan.sink.message;
  EXPECT_THAT(plan.calls, ElementsAre(HasSubstr("output 0"), HasSubstr("weight"), "limit 2 10"));
  EXPECT_THAT(plan.calls[0], HasSubstr("[samples, 20]"));
  EXPECT_THAT(plan.calls[1], HasSubstr("[2, 3]"));
}

TEST(LayerType, PlanNamesThePort) {
  FakePlan plan;
  EXPECT_EQ(plan.run([](tn::Planner& planner) { planner.input(1); }), TN_INVALID);
  EXPECT_EQ(plan.sink.port, "rest");
  EXPECT_EQ(plan.run([](tn::Planner& planner) { planner.input_of_rank(0, 2, "[samples, classes]"); }), TN_INVALID);
  EXPECT_EQ(plan.sink.port, "first");
  EXPECT_EQ(plan.sink.message, "must be [samples, classes]");
  EXPECT_THAT(plan.sink.actual, HasSubstr("[samples, 4, 5]"));
  EXPECT_EQ(plan.run([](tn::Planner& planner) { planner.require_shape(2, tn::Spec({kSamples, 2})); }), TN_INVALID);
  EXPECT_EQ(plan.sink.port, "rest");
  EXPECT_THAT(plan.sink.expected, HasSubstr("[samples, 2]"));
  EXPECT_EQ(plan.run([](tn::Planner& planner) { planner.require_per_row(0, planner.input(2)); }), TN_INVALID);
  EXPECT_EQ(plan.sink.port, "first");
  EXPECT_EQ(plan.run([](tn::Planner& planner) { planner.elements(0, 0); }), TN_INVALID);
  EXPECT_EQ(plan.sink.message, "dimension 0 must be constant");
}

TEST(LayerType, ElementsDoNotOverflow) {
  FakePlan plan;
  plan.image = tn::Spec({kSamples, INT64_MAX / 2, 3});
  plan.views[0] = plan.image.get();
  EXPECT_EQ(plan.run([](tn::Planner& planner) { planner.elements(0, 1); }), TN_INVALID);
  EXPECT_EQ(plan.sink.message, "has too many elements");
  plan.image = tn::Spec({kSamples, 0});
  plan.views[0] = plan.image.get();
  EXPECT_EQ(plan.run([](tn::Planner& planner) { planner.elements(0, 1); }), TN_INVALID);
  EXPECT_EQ(plan.sink.message, "has no elements");
}

TEST(LayerType, AHostsRefusalEndsPlanWithoutASecondReport) {
  FakePlan plan;
  plan.answer = TN_PLUGIN_FAULT;
  EXPECT_EQ(plan.run([](tn::Planner& planner) { planner.output(0, tn::Spec()); }), TN_PLUGIN_FAULT);
  EXPECT_NE(plan.run([](tn::Planner& p) { p.parameter("weight", tn::Spec({1}), tn::glorot_uniform(1, 1)); }), TN_OK);
  EXPECT_EQ(plan.sink.reports, 0);
}

TEST(LayerType, OnlyADeclinedExpansionIsUnsupported) {
  Sink sink;
  tn_expander expander = {};
  expander.size = sizeof expander;
  expander.errors = &sink.errors;
  const auto run = [&](std::function<bool(tn::Expander&)> body) {
    expanding = &body;
    return tn::layer_type<Probe>()->expand(&expander);
  };
  EXPECT_EQ(run([](tn::Expander&) { return false; }), TN_UNSUPPORTED);
  EXPECT_EQ(run([](tn::Expander&) { return true; }), TN_OK);
  EXPECT_EQ(run([](tn::Expander&) -> bool { throw tn::Failure(TN_UNSUPPORTED, "", "not yet"); }), TN_INVALID);
  EXPECT_EQ(sink.message, "not yet");
}

TEST(Attributes, ReadingWhatIsNotThereThrows) {
  const tn::Attribute size = tn::int_attribute("size");
  const tn_attribute declared = size.get();
  const tn_attribute* list[1] = {&declared};
  tn_value value = tn::int_value(5);
  const tn_attributes table = {sizeof table, 1, list, &value};
  const tn::Attributes attributes(&table);
  EXPECT_EQ(attributes.integer("size"), 5);
  EXPECT_THROW(attributes.number("size"), tn::Failure);
  EXPECT_THROW(attributes.integer("depth"), tn::Failure);
  value.kind = 0;
  EXPECT_FALSE(attributes.has("size"));
  EXPECT_THROW(attributes.integer("size"), tn::Failure);
}

// ---- updaters

std::function<void(tn::UpdateRecorder&)>* recording = nullptr;

struct ProbeUpdater {
  static void describe(tn::UpdaterDescription& d) { d.type("probe", "for tests"); }
  static void record(tn::UpdateRecorder& update) { (*recording)(update); }
};

struct FakeRecorder {
  Sink sink;
  tn_update_recorder recorder = {};
  std::vector<std::string> states;
  std::vector<int32_t> scalars;
  tenon::core::Program program;

  FakeRecorder() {
    recorder.size = sizeof recorder;
    recorder.self = this;
    recorder.errors = &sink.errors;
    recorder.state = [](void* self, const tn_state* state) -> int32_t {
      auto& made = *static_cast<FakeRecorder*>(self);
      made.states.emplace_back(state->name);
      return static_cast<int32_t>(made.states.size() - 1);
    };
    recorder.program = [](void* self, const tn_update* update) {
      auto& made = *static_cast<FakeRecorder*>(self);
      made.program = tenon::core::Program::from(*update->program);
      made.scalars.assign(update->scalars, update->scalars + update->scalars_count);
      return tn_status{TN_OK};
    };
  }
  tn_status run(std::function<void(tn::UpdateRecorder&)> body) {
    recording = &body;
    return tn::updater_type<ProbeUpdater>()->record(&recorder);
  }
};

TEST(UpdaterType, InputsComeInTheHostsOrderHoweverTheyWereAskedFor) {
  FakeRecorder fake;
  ASSERT_EQ(fake.run([](tn::UpdateRecorder& update) {
    const tn::Float rate = update.learning_rate();
    const tn::State a = update.state("a", 0);
    const tn::Float step = update.step();
    const tn::State b = update.state("b", 1);
    update.parameter_next(update.parameter() - rate * update.learning_rate());
    update.state_next(b, b + step);
    update.state_next(a, a + update.gradient());
  }),
            TN_OK)
      << fake.sink.message;
  EXPECT_THAT(fake.states, ElementsAre("a", "b"));
  EXPECT_STREQ(tn::Reported(TN_INVALID).what(), "a call into the host failed");
  EXPECT_THAT(fake.scalars, ElementsAre(TN_SCALAR_LEARNING_RATE, TN_SCALAR_STEP));
  ASSERT_EQ(fake.program.inputs.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(fake.program.inputs[i].extent, i < 4 ? TN_FULL : TN_SCALAR);
  // Output 2 is state b's next value: input 3 (b) plus input 5 (the step).
  const auto& list = fake.program.instructions;
  const tn_instruction& sum = list[static_cast<size_t>(fake.program.outputs[2].value)];
  EXPECT_EQ(list[static_cast<size_t>(sum.a)].a, 3);
  EXPECT_EQ(list[static_cast<size_t>(sum.b)].a, 5);
}

TEST(UpdaterType, EverythingNeedsANextValue) {
  FakeRecorder fake;
  EXPECT_EQ(fake.run([](tn::UpdateRecorder&) {}), TN_INVALID);
  EXPECT_THAT(fake.sink.message, HasSubstr("next value of the parameter"));
  EXPECT_EQ(fake.run([](tn::UpdateRecorder& update) {
    update.state("v", 0);
    update.parameter_next(update.parameter());
  }),
            TN_INVALID);
  EXPECT_THAT(fake.sink.message, HasSubstr("next value of a state"));
}

// ---- the descriptor

void describe_sound(tn::Plugin& plugin) {
  plugin.about("tenon.test.sound", "1.2.3", "doc", "MIT");
  plugin.layer<Probe>();
  plugin.updater<ProbeUpdater>();
  plugin.library("libabsent.so", "install it");
}
void describe_throwing(tn::Plugin&) { throw std::runtime_error("never"); }
void describe_without_memory(tn::Plugin& plugin) {
  static bool first = true;
  if (std::exchange(first, false)) throw std::bad_alloc();
  plugin.about("tenon.test.second", "1.0.0", "Made at the second call", "Apache-2.0");
}
void describe_too_much(tn::Plugin& plugin) {
  for (int i = 0; i < 1000; ++i) plugin.layer<Probe>();
}

TEST(Entry, GivesTheSameDescriptorEveryTime) {
  const tn_plugin* plugin = tn::entry<describe_sound>();
  ASSERT_NE(plugin, nullptr);
  EXPECT_EQ(plugin, tn::entry<describe_sound>());
  EXPECT_EQ(plugin->abi.major, TN_ABI_MAJOR);
  EXPECT_EQ(plugin->abi.built, TN_ABI_MINOR);
  ASSERT_EQ(plugin->layers_count, 1u);
  EXPECT_EQ(plugin->layers[0], tn::layer_type<Probe>());
  ASSERT_EQ(plugin->updaters_count, 1u);
  ASSERT_EQ(plugin->libraries_count, 1u);
  EXPECT_STREQ(plugin->libraries[0]->name, "libabsent.so");
  EXPECT_EQ(plugin->readers_count, 0u);
}

TEST(Entry, ADescribeThatThrowsLeavesItsReason) {
  const tn_plugin* const plugin = tn::entry<describe_throwing>();
  ASSERT_NE(plugin, nullptr);
  EXPECT_EQ(plugin->size, sizeof(tn_plugin));
  EXPECT_EQ(plugin->id, nullptr);
  EXPECT_STREQ(plugin->doc, "never");
  EXPECT_EQ(plugin, tn::entry<describe_throwing>()) << "at the second call";
  EXPECT_THAT(tn::entry<describe_too_much>()->doc, testing::HasSubstr("too many entries"));
}

TEST(Entry, MissingMemoryMayBeThereAtTheNextCall) {
  EXPECT_EQ(tn::entry<describe_without_memory>(), nullptr);
  ASSERT_NE(tn::entry<describe_without_memory>(), nullptr);
  EXPECT_STREQ(tn::entry<describe_without_memory>()->id, "tenon.test.second");
}

}  // namespace
