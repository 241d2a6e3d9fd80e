/* Tenon SDK for C++17: layer types. SPDX-License-Identifier: MIT
 *
 * A layer type is a struct of static functions; layer_type<T>() makes its C table.
 *
 *   struct Double {
 *     static void describe(tn::LayerDescription& d);                          // shown by help, checks and plan
 *     static void plan(tn::Planner& planner);                                 // shapes, parameters
 *     static void lower(const tn::Attributes& attributes, tn::Builder& body); // the formula
 *     // optional
 *     static bool expand(tn::Expander& expander);      // other layers instead of lower; false: no expansion
 *     static void finalize(const tn::Attributes& attributes, const double* state, tn::Results& results);  // metrics
 *     static void migrate(tn::Migration& migration);  // of model files with an older state_version (migrate.hpp)
 *     static void step(tn::Stepper& stepper);  // layers of one step, if it reads earlier rows of a sequence (step.hpp)
 *     static const void* extension(const char* id) noexcept;
 *   };
 *
 * Each function may throw; plan and lower should throw tn::Failure. */
#ifndef TENON_LAYER_HPP
#define TENON_LAYER_HPP

#include <tenon/layer.h>

#include <cmath>
#include <tenon/attribute.hpp>
#include <tenon/builder.hpp>
#include <tenon/expander.hpp>
#include <tenon/migrate.hpp>
#include <tenon/step.hpp>

namespace tn {

// ---- first values of parameters

inline tn_initializer constant_initializer(double value) { return {TN_INIT_CONSTANT, 0, value, 0}; }
inline tn_initializer uniform_initializer(double low, double high) { return {TN_INIT_UNIFORM, 0, low, high}; }
inline tn_initializer normal_initializer(double mean, double deviation) { return {TN_INIT_NORMAL, 0, mean, deviation}; }
// Keeps the variance of values and gradients from layer to layer: X. Glorot, Y. Bengio, "Understanding the difficulty
// of training deep feedforward neural networks", 2010, equation 16.
inline tn_initializer glorot_uniform(int64_t fan_in, int64_t fan_out) {
  const double limit = std::sqrt(6.0 / (static_cast<double>(fan_in) + static_cast<double>(fan_out)));
  return uniform_initializer(-limit, limit);
}

// ---- description

// Filled by describe. Inputs, outputs and parameters are numbered in the order of declaration. Strings are literals.
class LayerDescription {
 public:
  LayerDescription() {
    table_.size = sizeof table_;
    table_.role = TN_ROLE_LAYER;
    table_.state_version = 1;
  }
  LayerDescription(const LayerDescription&) = delete;
  LayerDescription& operator=(const LayerDescription&) = delete;

  // doc: one paragraph with the formula and its source.
  void type(const char* name, const char* doc) {
    table_.type = name;
    table_.doc = doc;
  }
  void role(int32_t role) { table_.role = role; }
  void input(const char* name, const char* doc, uint32_t flags = 0) { inputs_.add(port(name, doc, flags)); }
  void output(const char* name, const char* doc, uint32_t flags = 0) { outputs_.add(port(name, doc, flags)); }
  void attribute(const Attribute& attribute) { attributes_.add(attribute); }
  // The suffix of a parameter or buffer that plan may declare.
  void parameter(const char* suffix) { parameters_.add(suffix); }
  // Version of what model files hold of a layer: names and meanings of its attributes, names, shapes and meanings of
  // its parameters and buffers. Raise it with every change of those, and offer migrate.
  void state_version(uint32_t version) { table_.state_version = version; }

  const tn_layer_description* get() {
    table_.inputs_count = inputs_.count();
    table_.outputs_count = outputs_.count();
    table_.inputs = inputs_.data();
    table_.outputs = outputs_.data();
    table_.attributes_count = attributes_.count();
    table_.parameters_count = parameters_.count();
    table_.attributes = attributes_.data();
    table_.parameters = parameters_.data();
    return &table_;
  }

 private:
  static tn_port port(const char* name, const char* doc, uint32_t flags) {
    tn_port result = {};
    result.size = sizeof result;
    result.flags = flags;
    result.name = name;
    result.doc = doc;
    return result;
  }

  detail::List<tn_port, 32> inputs_;
  detail::List<tn_port, 32> outputs_;
  detail::AttributeList<64> attributes_;
  detail::Pointers<char, 32> parameters_;
  tn_layer_description table_ = {};
};

// ---- plan

// Shapes in, shapes and parameters out. Inputs are numbered in port order; messages name the port.
class Planner {
 public:
  Planner(const tn_planner& planner, const tn_layer_description& description)
      : planner_(planner), description_(description) {}

  Attributes attributes() const { return Attributes(planner_.attributes); }
  uint32_t inputs_count() const { return planner_.inputs_count; }
  bool has_input(uint32_t i) const { return i < planner_.inputs_count && planner_.inputs[i] != nullptr; }
  // The spec of an input. The host converts floats to the compute type at the input of a layer.
  Spec input(uint32_t i) const {
    if (!has_input(i)) throw Failure(TN_INVALID, port(i), "is not connected");
    const Spec spec(*planner_.inputs[i]);
    return spec.is_float() ? spec.as(TN_COMPUTE) : spec;
  }

  // A failure about an input, with its shape: throw planner.bad_input(0, "must have ...");
  Failure bad_input(uint32_t i, std::string message, tn_status code = TN_INVALID) const {
    return Failure(code, port(i), std::move(message)).actual(input(i));
  }
  // The spec of an input that must have `rank` dimensions; `form` describes them: "[samples, classes]".
  Spec input_of_rank(uint32_t i, int32_t rank, const char* form) const {
    Spec spec = input(i);
    if (spec.rank() != rank) throw bad_input(i, "must be " + std::string(form));
    return spec;
  }
  // The input must have this shape.
  void require_shape(uint32_t i, const Spec& expected) const {
    if (!input(i).same_shape(expected)) throw bad_input(i, "has the wrong shape").expected(expected);
  }
  // The input must have as many values as input 0, in the same order: its shape, except for trailing ones, so that
  // [samples] and [samples, 1] fit each other. Bodies view it in the shape of input 0.
  void require_values(uint32_t i) const {
    const Spec first = input(0);
    if (!input(i).without_trailing_ones().same_shape(first.without_trailing_ones()))
      throw bad_input(i, "must have the shape of the first input").expected(first.as(input(i).dtype()));
  }
  // The input must have one value for each row, where the rows are all dimensions of `rows`; ones may follow.
  void require_per_row(uint32_t i, const Spec& rows) const {
    const Spec spec = input(i);
    bool fits = spec.rank() >= rows.rank() && spec.leading(rows.rank()).same_shape(rows);
    for (int32_t k = rows.rank(); fits && k < spec.rank(); ++k) fits = spec[k].same(1);
    if (!fits) throw bad_input(i, "must have one value for each row").expected(rows.as(spec.dtype()));
  }
  // The number of elements of dimensions `first` and above, which must be constant; at least 1.
  int64_t elements(uint32_t i, int32_t first) const {
    const Spec spec = input(i);
    int64_t product = 1;
    for (int32_t k = first; k < spec.rank(); ++k) {
      if (!spec[k].is_constant()) throw bad_input(i, "dimension " + std::to_string(k) + " must be constant");
      if (spec[k].offset <= 0) throw bad_input(i, "has no elements");
      if (product > INT64_MAX / spec[k].offset) throw bad_input(i, "has too many elements");
      product *= spec[k].offset;
    }
    return product;
  }

  // The number of the dimension of input i that an attribute calls `axis`: one after the samples.
  int32_t axis_of(uint32_t i, int64_t axis) const {
    const Spec spec = input(i);
    if (axis == 0 || axis >= spec.rank() || axis <= -spec.rank())
      throw bad_input(i, "has no axis " + std::to_string(axis) + " after the samples");
    return spec.axis(axis);
  }

  void output(uint32_t number, const Spec& spec) {
    const tn_spec view = spec.get();
    check(planner_.output(planner_.self, number, &view));
  }
  // Parameters (buffers) are numbered from 0 in the order of declaration. Dimensions are constant.
  void parameter(const char* suffix, const Spec& spec, const tn_initializer& initializer, uint32_t flags = 0) {
    declare(planner_.parameter, suffix, spec, initializer, flags);
  }
  // merge: TN_MERGE_*.
  void buffer(const char* suffix, const Spec& spec, const tn_initializer& initializer, int32_t merge = TN_MERGE_MEAN) {
    declare(planner_.buffer, suffix, spec, initializer, 0, merge);
  }
  // The integers at the input are used as indices below `limit`.
  void index_limit(uint32_t i, int64_t limit) { check(planner_.index_limit(planner_.self, i, limit)); }
#if TN_TARGET_MINOR >= 3
  // One integer that the input may hold beside those below the limit, such as a label that does not count.
  template <uint16_t kMinor = 3>
  void index_exempt(uint32_t i, int64_t value) {
    require<kMinor>();
    check(planner_.index_exempt(planner_.self, i, value));
  }
#endif
  // Ragged dimensions that the layer makes are numbered from 0 in the order of declaration; TN_ROWS_* has the rules.
  // Sequence i is a[i] followed by b[i].
  Dim concatenated_rows(uint32_t a, uint32_t b) {
    tn_rows_rule rule = rows_rule(TN_ROWS_CONCATENATED);
    const Spec other = input(b);
    const tn_spec view = other.get();
    rule.b = &view;
    return rows(rule, a);
  }
  // Of n rows of input `a`: floor((n + padding - window) / stride) + 1, or 0 if n + padding < window.
  Dim strided_rows(uint32_t a, int64_t window, int64_t stride, int64_t padding = 0) {
    tn_rows_rule rule = rows_rule(TN_ROWS_STRIDED);
    rule.window = window;
    rule.stride = stride;
    rule.padding = padding;
    return rows(rule, a);
  }
  // Of n rows of input `a` the first `count`.
  Dim first_rows(uint32_t a, int64_t count) {
    tn_rows_rule rule = rows_rule(TN_ROWS_FIRST);
    rule.count = count;
    return rows(rule, a);
  }
  // At most `bound` rows for all sequences of input `a` together, as many as the layer's native kernel writes.
  Dim data_rows(uint32_t a, const Dim& bound) {
    tn_rows_rule rule = rows_rule(TN_ROWS_DATA);
    rule.bound = &bound;
    return rows(rule, a);
  }
  // A state that is carried from minibatch to minibatch, zero at first. Numbered from 0 in the order of declaration.
  void carried(const Spec& spec) {
    const tn_spec view = spec.get();
    if (planner_.carried(planner_.self, &view) < 0) throw Reported(TN_INVALID);
  }
  // Metrics: the number of accumulators.
  void state(uint32_t count) { check(planner_.state(planner_.self, count)); }

 private:
  using Declare = int32_t (*)(void*, const tn_parameter*);
  void declare(Declare call, const char* suffix, const Spec& spec, const tn_initializer& initializer, uint32_t flags,
               int32_t merge = TN_MERGE_MEAN) {
    const tn_spec view = spec.get();
    tn_parameter parameter = {};
    parameter.size = sizeof parameter;
    parameter.flags = flags;
    parameter.suffix = suffix;
    parameter.spec = &view;
    parameter.initializer = initializer;
    parameter.merge = merge;
    if (call(planner_.self, &parameter) < 0) throw Reported(TN_INVALID);
  }
  static tn_rows_rule rows_rule(int32_t kind) {
    tn_rows_rule rule = {};
    rule.size = sizeof rule;
    rule.rule = kind;
    return rule;
  }
  Dim rows(tn_rows_rule& rule, uint32_t a) {
    const Spec of = input(a);
    const tn_spec view = of.get();
    rule.a = &view;
    Dim made;
    if (planner_.rows(planner_.self, &rule, &made) < 0) throw Reported(TN_INVALID);
    return made;
  }
  // Inputs beyond the last port belong to that port, which is variadic.
  const char* port(uint32_t i) const {
    const uint32_t count = description_.inputs_count;
    return count == 0 ? "" : description_.inputs[i < count ? i : count - 1]->name;
  }

  const tn_planner& planner_;
  const tn_layer_description& description_;
};

// ---- metrics

// Receives the named values of finalize.
class Results {
 public:
  Results(tn_metric_result result, void* self) : result_(result), self_(self) {}
  void add(const char* name, double value) { result_(self_, name, value); }

 private:
  tn_metric_result result_;
  void* self_;
};

// ---- the table

namespace detail {

template <typename T, typename = void>
struct HasLower : std::false_type {};
template <typename T>
struct HasLower<T, std::void_t<decltype(&T::lower)>> : std::true_type {};
template <typename T, typename = void>
struct HasExpand : std::false_type {};
template <typename T>
struct HasExpand<T, std::void_t<decltype(&T::expand)>> : std::true_type {};
template <typename T, typename = void>
struct HasFinalize : std::false_type {};
template <typename T>
struct HasFinalize<T, std::void_t<decltype(&T::finalize)>> : std::true_type {};

// Description and table of a layer type; immutable once made.
template <typename T>
class LayerTable {
 public:
  LayerTable() {
    T::describe(description_);
    table_.size = sizeof table_;
    table_.description = description_.get();
    table_.plan = &plan;
    if constexpr (HasLower<T>::value) table_.lower = &lower;
    if constexpr (HasExpand<T>::value) table_.expand = &expand;
    if constexpr (HasFinalize<T>::value) table_.finalize = &finalize;
    if constexpr (HasExtension<T>::value || HasMigrate<T>::value || HasStep<T>::value) table_.extension = &extension;
  }
  const tn_layer_type* get() const { return &table_; }
  static const LayerTable& instance() {
    static const LayerTable table;
    return table;
  }

 private:
  static tn_status plan(const tn_planner* planner) {
    return guarded(planner->errors, [&] {
      Planner wrapped(*planner, *instance().table_.description);
      T::plan(wrapped);
    });
  }
  static tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
    const tn_status status = guarded(builder->errors, [&] {
      Builder wrapped(*builder);
      T::lower(Attributes(attributes), wrapped);
    });
    return status != TN_OK ? status : builder->status(builder->self);
  }
  // TN_UNSUPPORTED makes the host use lower, so a failure is returned as another code.
  static tn_status expand(const tn_expander* expander) {
    bool expanded = true;
    const tn_status status = guarded(expander->errors, [&] {
      Expander wrapped(*expander);
      expanded = T::expand(wrapped);
    });
    if (status == TN_UNSUPPORTED) return TN_INVALID;
    return status == TN_OK && !expanded ? TN_UNSUPPORTED : status;
  }
  static const void* extension(void*, const char* id) {
    if constexpr (HasMigrate<T>::value)
      if (std::strcmp(id, TN_MIGRATE) == 0) return migrate_table<T>();
    if constexpr (HasStep<T>::value)
      if (std::strcmp(id, TN_STEP) == 0) return step_table<T>();
    if constexpr (HasExtension<T>::value) return T::extension(id);
    return nullptr;
  }
  static tn_status finalize(const tn_finalizer* finalizer) {
    return guarded(finalizer->errors, [&] {
      Results results(finalizer->result, finalizer->self);
      T::finalize(Attributes(finalizer->attributes), finalizer->state, results);
    });
  }

  LayerDescription description_;
  tn_layer_type table_ = {};
};

}  // namespace detail

// The C table of a layer type, made at the first call; valid while the plugin is mapped.
template <typename T>
const tn_layer_type* layer_type() {
  return detail::LayerTable<T>::instance().get();
}

}  // namespace tn
#endif
