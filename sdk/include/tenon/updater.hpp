/* Tenon SDK for C++17: updaters. SPDX-License-Identifier: MIT
 *
 *   struct Descent {
 *     static void describe(tn::UpdaterDescription& d);
 *     static void record(tn::UpdateRecorder& update) {
 *       update.parameter_next(update.parameter() - update.learning_rate() * update.gradient());
 *     }
 *   };
 *
 * By convention an updater declares an attribute `learning_rate`; learning_rate() reads its value after the host's
 * schedule. */
#ifndef TENON_UPDATER_HPP
#define TENON_UPDATER_HPP

#include <tenon/updater.h>

#include <tenon/attribute.hpp>
#include <tenon/expression.hpp>

namespace tn {

// Filled by describe. Strings are literals.
class UpdaterDescription {
 public:
  UpdaterDescription() {
    table_.size = sizeof table_;
    table_.state_version = 1;
  }
  UpdaterDescription(const UpdaterDescription&) = delete;
  UpdaterDescription& operator=(const UpdaterDescription&) = delete;

  // doc: the formula and its source.
  void type(const char* name, const char* doc) {
    table_.type = name;
    table_.doc = doc;
  }
  void attribute(const Attribute& attribute) { attributes_.add(attribute); }
  // Version of the states; changes with the meaning of a state.
  void state_version(uint32_t version) { table_.state_version = version; }

  const tn_updater_description* get() {
    table_.attributes_count = attributes_.count();
    table_.attributes = attributes_.data();
    return &table_;
  }

 private:
  detail::AttributeList<64> attributes_;
  tn_updater_description table_ = {};
};

// The current value of a state, and its `number`, which state_next uses.
struct State : Float {
  State(const Float& current, uint32_t index) : Float(current) { number = index; }
};

// Records the update as a formula over one element. The parameter and every state need a next value.
class UpdateRecorder {
 public:
  explicit UpdateRecorder(const tn_update_recorder& recorder)
      : recorder_(recorder), parameter_(program_.full()), gradient_(program_.full()) {}

  Attributes attributes() const { return Attributes(recorder_.attributes); }
  Float parameter() const { return parameter_; }
  Float gradient() const { return gradient_; }
  // Declares a state: one number per parameter element, stored by the host.
  State state(const char* name, double initial) {
    return declared(name, initial, TN_FULL, [this] { return program_.full(); });
  }
  // Declares a state with one number per row of the parameter; needs the grain TN_GRAIN_ROW or that of matrix().
  State row_state(const char* name, double initial) {
    return declared(name, initial, TN_PER_ROW, [this] { return program_.per_row(); });
  }
#if TN_TARGET_MINOR >= 3
  // Declares a state with one number per element of a row; needs the grain of matrix().
  template <uint16_t kMinor = 3>
  State column_state(const char* name, double initial) {
    require<kMinor>();
    return declared(name, initial, TN_PER_COLUMN, [this] { return program_.per_column(); });
  }
#endif

  // The host's scalars. Each one read becomes an input of the program.
  Float learning_rate() { return scalar(TN_SCALAR_LEARNING_RATE); }
  // The number of this update, from 1, rounded to a float, so exact up to 2^24; step_number() is always exact.
  Float step() { return scalar(TN_SCALAR_STEP); }
  Int step_number() { return scalar<Int>(TN_SCALAR_STEP); }
  Float rate_multiplier() { return scalar(TN_SCALAR_RATE_MULTIPLIER); }
  Float decay_multiplier() { return scalar(TN_SCALAR_DECAY_MULTIPLIER); }
  Float row_elements() { return scalar(TN_SCALAR_ROW_ELEMENTS); }

  void parameter_next(const Float& value) { parameter_next_ = value; }
  void state_next(const State& state, const Float& value) { next_.at(state.number) = value; }
  // TN_GRAIN_*: the smallest part that can be updated independently; default TN_GRAIN_ELEMENT. TN_GRAIN_MATRIX by
  // matrix(), which states the hosts that know it.
  void grain(int32_t grain) { grain_ = grain; }
#if TN_TARGET_MINOR >= 3
  // The grain TN_GRAIN_MATRIX: the program reduces along rows and columns of a parameter. Returns the number of rows.
  template <uint16_t kMinor = 3>
  Float matrix() {
    require<kMinor>();
    grain_ = TN_GRAIN_MATRIX;
    return sum_all(to_float(program_.row() >= 0));
  }
#endif

  // Passes the program to the host; called by the wrapper after record.
  void finish() {
    if (!parameter_next_) throw std::invalid_argument("record gave no next value of the parameter");
    program_.output(*parameter_next_);
    for (const std::optional<Float>& next : next_) {
      if (!next) throw std::invalid_argument("record gave no next value of a state");
      program_.output(*next);
    }
    tn_program program = *program_.get();
    const std::vector<int32_t> order = final_numbers();
    std::vector<int32_t> scalars;
    for (const ScalarInput& each : scalars_) scalars.push_back(each.which);
    std::vector<tn_instruction> instructions(program.instructions, program.instructions + program.instructions_count);
    for (tn_instruction& in : instructions)
      if (in.op == TN_OP_INPUT) in.a = order[static_cast<size_t>(in.a)];
    std::vector<tn_program_input> inputs(program.inputs_count);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[static_cast<size_t>(order[i])] = program.inputs[i];
    program.instructions = instructions.data();
    program.inputs = inputs.data();
    tn_update update = {};
    update.size = sizeof update;
    update.grain = grain_;
    update.program = &program;
    update.scalars = scalars.data();
    update.scalars_count = static_cast<uint32_t>(scalars.size());
    check(recorder_.program(recorder_.self, &update));
  }

 private:
  // A scalar that the program reads: its TN_SCALAR_*, kind, input number in the order of first use, and value.
  struct ScalarInput {
    int32_t which;
    uint8_t kind;
    size_t input;
    detail::Handle value;
  };

  template <typename Input>
  State declared(const char* name, double initial, uint8_t extent, Input&& input) {
    tn_state state = {};
    state.size = sizeof state;
    state.extent = extent;
    state.dtype = TN_F32;
    state.name = name;
    state.initial = initial;
    if (recorder_.state(recorder_.self, &state) < 0) throw Reported(TN_INVALID);
    states_.push_back(inputs_++);
    next_.emplace_back();
    return {input(), static_cast<uint32_t>(states_.size() - 1)};
  }
  template <typename V = Float>
  V scalar(int32_t which) {
    for (const ScalarInput& each : scalars_)
      if (each.which == which && each.kind == V::kKind) return V(each.value);
    scalars_.push_back({which, V::kKind, inputs_++, program_.scalar<V>()});
    return V(scalars_.back().value);
  }
  // Maps inputs from the order of their first use to the host's order: parameter, gradient, states, scalars.
  std::vector<int32_t> final_numbers() const {
    std::vector<int32_t> order(inputs_);
    order[1] = 1;
    int32_t next = 2;
    for (const size_t input : states_) order[input] = next++;
    for (const ScalarInput& each : scalars_) order[each.input] = next++;
    return order;
  }

  const tn_update_recorder& recorder_;
  Program program_;
  Float parameter_;
  Float gradient_;
  size_t inputs_ = 2;           // declared so far
  std::vector<size_t> states_;  // input number of each state
  std::vector<ScalarInput> scalars_;
  std::optional<Float> parameter_next_;
  std::vector<std::optional<Float>> next_;  // of each state
  int32_t grain_ = TN_GRAIN_ELEMENT;
};

namespace detail {

// Description and table of an updater type; immutable once made.
template <typename T>
class UpdaterTable {
 public:
  UpdaterTable() {
    T::describe(description_);
    table_.size = sizeof table_;
    table_.description = description_.get();
    table_.record = &record;
  }
  const tn_updater_type* get() const { return &table_; }
  static const UpdaterTable& instance() {
    static const UpdaterTable table;
    return table;
  }

 private:
  static tn_status record(const tn_update_recorder* recorder) {
    return guarded(recorder->errors, [&] {
      UpdateRecorder wrapped(*recorder);
      T::record(wrapped);
      wrapped.finish();
    });
  }

  UpdaterDescription description_;
  tn_updater_type table_ = {};
};

}  // namespace detail

// The C table of an updater type, made at the first call; valid while the plugin is mapped.
template <typename T>
const tn_updater_type* updater_type() {
  return detail::UpdaterTable<T>::instance().get();
}

}  // namespace tn
#endif
