// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include <tenon/plugin.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <tenon/base.hpp>
#include <type_traits>

namespace tenon_python {

namespace {

// Calls `work` with the interpreter lock, on a thread of the library. An exception of Python is kept for the error that
// the call of the library ends with.
template <typename Work>
tn_status entered(const tn_errors* errors, const Work& work) noexcept {
  return tn::guarded(errors, [&] {
    try {
      const Entered entered;
      try {
        work();
      } catch (nb::python_error& failure) {
        const std::string what = failure.what();
        throw tn::Failure(TN_INVALID, keep_exception(nb::borrow(failure.value())), what);
      }
    } catch (const tenon::Error& failure) {
      throw tn::Failure(failure.code(), failure.subject(), failure.what());
    }
  });
}

// Dimensions as Python sees them: numbers, and texts for those that vary.
class Dims {
 public:
  nb::tuple shape(const tn_spec& spec) {
    nb::list result;
    for (int32_t i = 0; i < spec.rank; ++i) {
      const tn_dim& dim = spec.dims[i];
      if (dim.symbol == TN_SYMBOL_NONE)
        result.append(dim.offset);
      else
        result.append(text(dim));
    }
    return nb::tuple(result);
  }
  // The texts are those of shape(), or "samples".
  [[nodiscard]] tn::Spec spec(const nb::handle& shape, tn_dtype dtype) const {
    tn::Spec result;
    for (const nb::handle each : shape)
      result.push_back(PyUnicode_Check(each.ptr()) ? varying_.at(nb::cast<std::string>(each))
                                                   : tn_dim_constant(nb::cast<int64_t>(each)));
    return result.as(dtype);
  }

 private:
  std::string text(const tn_dim& dim) {
    std::string result = dim.symbol == TN_SYMBOL_SAMPLES        ? "samples"
                         : dim.symbol == TN_SYMBOL_FIRST_RAGGED ? "rows"
                                                                : "rows_" + std::to_string(dim.symbol);
    if (dim.coefficient != 1) result = std::to_string(dim.coefficient) + " " + result;
    if (dim.offset != 0) result += " + " + std::to_string(dim.offset);
    varying_.emplace(result, dim);
    return result;
  }
  std::map<std::string, tn_dim> varying_ = {{"samples", tn_dim_symbol(TN_SYMBOL_SAMPLES)}};
};

nb::object value_of(const tn_value& value) {
  const auto list = [&](const auto* entries) {
    nb::list result;
    for (uint32_t i = 0; i < value.count; ++i) result.append(entries[i]);
    return nb::object(std::move(result));
  };
  switch (value.kind) {
    case TN_ATTR_BOOL:
      return nb::cast(value.as.i != 0);
    case TN_ATTR_INT:
      return nb::cast(value.as.i);
    case TN_ATTR_FLOAT:
      return nb::cast(value.as.f);
    case TN_ATTR_STRING:
      return nb::cast(value.as.s);
    case TN_ATTR_INTS:
      return list(value.as.ints);
    case TN_ATTR_FLOATS:
      return list(value.as.floats);
    default:
      return list(value.as.strings);
  }
}

nb::dict python_attributes(const tn_attributes* attributes) {
  nb::dict result;
  for (uint32_t i = 0; i < attributes->count; ++i)
    if (attributes->values[i].kind != 0)
      result[nb::cast(attributes->declared[i]->name)] = value_of(attributes->values[i]);
  return result;
}

std::vector<int64_t> shape_of(const tn_tensor& tensor) { return {tensor.dl.shape, tensor.dl.shape + tensor.dl.ndim}; }
tn_dtype dtype_of(const tn_tensor& tensor) { return TN_DTYPE(tensor.dl.dtype.code, tensor.dl.dtype.bits); }

// A copy, so that the layer may keep the array; None for an operand that is absent. sequences: their number, in the
// form of python_array; -1: the rows alone.
nb::object array_of(const tn_tensor* tensor, int64_t sequences = -1) {
  if (tensor == nullptr) return nb::none();
  tenon::Array array;
  array.dtype = dtype_of(*tensor);
  array.shape = shape_of(*tensor);
  array.data = tn_data(tensor);
  if (sequences >= 0) {
    const auto& ragged = *static_cast<const tn_ragged*>(tensor->part);
    array.storage = TN_RAGGED;
    array.levels = ragged.levels;
    array.samples = sequences;
    for (uint32_t i = 0; i < ragged.levels; ++i) array.offsets[i] = ragged.offsets[ragged.levels - 1 - i];
  }
  return python_array(array);
}

// Shape and type of a result that a call asks for; else None.
nb::object expected_of(const tn_call& call, uint32_t output) {
  const tn_tensor* const tensor = call.outputs[output];
  if (tensor == nullptr || call.requests[output] == TN_REQUEST_NONE) return nb::none();
  return nb::make_tuple(nb::tuple(nb::cast(shape_of(*tensor))), dtype_of(*tensor));
}

template <typename Number>
void add(tn_tensor& to, const void* from) {
  auto* const values = reinterpret_cast<Number*>(tn_data(&to));
  for (int64_t i = 0, count = tn_elements(&to); i < count; ++i) values[i] += static_cast<const Number*>(from)[i];
}

// Writes an array that has the shape and type of the tensor.
void write(tn_tensor& to, uint8_t request, nb::handle result) {
  const auto array = nb::cast<nb::ndarray<nb::ro, nb::device::cpu>>(result);
  const int64_t count = tn_elements(&to);
  if (count == 0) return;
  if (request != TN_REQUEST_ADD)
    std::memcpy(tn_data(&to), array.data(), static_cast<size_t>(count) * tn_dtype_bytes(dtype_of(to)));
  else if (dtype_of(to) == TN_F64)
    add<double>(to, array.data());
  else
    add<float>(to, array.data());
}

}  // namespace

// The tables of one type, which live as long as its host.
class KernelType {
 public:
  KernelType(const nb::dict& description, nb::object handler);
  KernelType(const KernelType&) = delete;
  KernelType& operator=(const KernelType&) = delete;
  ~KernelType() = default;
  [[nodiscard]] const tn_plugin* plugin() const { return &plugin_; }

 private:
  struct Binding {
    const KernelType& type;
    Held instance;
    int32_t direction;
    uint32_t inputs, parameters, buffers;          // of the layer, which may lack optional inputs at the end
    std::vector<tn::Spec> outputs;                 // of the layer
    std::vector<std::optional<tn_dim>> sequences;  // the number of those of each input that the class takes as such
  };

  static tn_status plan(const tn_planner* planner);
  static tn_status finalize(const tn_finalizer* finalizer);
  static tn_status supports(const tn_kernel_site* site, int32_t* score);
  static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs);
  static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared);
  static tn_status run(void* bound, const tn_execution* execution, const tn_call* call);
  void forward(const Binding& binding, const tn_execution& execution, const tn_call& call) const;
  nb::list operands_of(const Binding& binding, const tn_execution& execution, const tn_call& call) const;
  void backward(const Binding& binding, const tn_execution& execution, const tn_call& call) const;
  // Lists something of the first `count` inputs, parameters and buffers, None for absent inputs at the end. of(number):
  // of those of the layer.
  nb::list by_operand(const Binding& binding, uint32_t count, const std::function<nb::object(uint32_t)>& of) const;

  const char* keep(nb::handle text) { return texts_.emplace_back(nb::cast<std::string>(text)).c_str(); }
  void add_ports(const nb::handle& from, std::vector<tn_port>& ports, std::vector<const tn_port*>& pointers);
  void add_attributes(const nb::handle& from);
  // The port of an input: those beyond the last port belong to it.
  [[nodiscard]] size_t port(uint32_t input) const { return std::min<size_t>(input, inputs_.size() - 1); }
  [[nodiscard]] const nb::object& handler() const { return handler_.get(); }

  std::deque<std::string> texts_;
  std::vector<tn_port> inputs_, outputs_;
  std::vector<const tn_port*> input_pointers_, output_pointers_;
  tenon::Attributes defaults_;
  std::optional<tenon::detail::NamedValues> values_;
  std::vector<tn_attribute> attributes_;
  std::vector<const tn_attribute*> attribute_pointers_;
  std::vector<const char*> parameters_;
  std::vector<bool> sequences_;                       // of each input, whether the class takes its sequences
  std::vector<bool> reads_operands_, reads_outputs_;  // whether backward takes them
  bool has_backward_;
  std::string name_;  // of the class
  Held handler_;
  tn_layer_description description_ = {};
  tn_layer_type layer_ = {};
  tn_kernel kernel_ = {};
  const tn_layer_type* layers_[1] = {&layer_};
  const tn_kernel* kernels_[1] = {&kernel_};
  tn_plugin plugin_ = {};
};

KernelType::KernelType(const nb::dict& description, nb::object handler)
    : sequences_(nb::cast<std::vector<bool>>(description["sequences"])),
      reads_operands_(nb::cast<std::vector<bool>>(description["reads_operands"])),
      reads_outputs_(nb::cast<std::vector<bool>>(description["reads_outputs"])),
      has_backward_(nb::cast<bool>(description["has_backward"])),
      name_(nb::cast<std::string>(description["name"])),
      handler_(std::move(handler)) {
  static constexpr tn_dtype kComputes[] = {TN_F32, TN_F64};
  add_ports(description["inputs"], inputs_, input_pointers_);
  add_ports(description["outputs"], outputs_, output_pointers_);
  add_attributes(description["attributes"]);
  for (const nb::handle suffix : description["parameters"]) parameters_.push_back(keep(suffix));

  description_.size = sizeof description_;
  description_.role = nb::cast<int32_t>(description["role"]);
  description_.type = keep(description["type"]);
  description_.doc = keep(description["doc"]);
  description_.inputs_count = static_cast<uint32_t>(inputs_.size());
  description_.outputs_count = static_cast<uint32_t>(outputs_.size());
  description_.inputs = input_pointers_.data();
  description_.outputs = output_pointers_.data();
  description_.attributes_count = static_cast<uint32_t>(attributes_.size());
  description_.parameters_count = static_cast<uint32_t>(parameters_.size());
  description_.attributes = attribute_pointers_.data();
  description_.parameters = parameters_.data();
  description_.state_version = 1;

  layer_.size = sizeof layer_;
  layer_.description = &description_;
  layer_.plan = plan;
  layer_.finalize = description_.role == TN_ROLE_METRIC ? finalize : nullptr;
  layer_.user = this;

  kernel_.size = sizeof kernel_;
  kernel_.score = 1;
  kernel_.type = description_.type;
  kernel_.device = "cpu";
  kernel_.name = description_.type;
  kernel_.dtypes = kComputes;
  kernel_.dtypes_count = 2;
  kernel_.supports = supports;
  kernel_.query = query;
  kernel_.prepare = prepare;
  kernel_.user = this;

  plugin_.size = sizeof plugin_;
  plugin_.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 2, 0};
  plugin_.id = description_.type;
  plugin_.version = "1";
  plugin_.doc = "a class of the program";
  plugin_.license = plugin_.isa = "";
  plugin_.layers_count = plugin_.kernels_count = 1;
  plugin_.layers = layers_;
  plugin_.kernels = kernels_;
}

// from: a list of (name, documentation, flags).
void KernelType::add_ports(const nb::handle& from, std::vector<tn_port>& ports, std::vector<const tn_port*>& pointers) {
  for (const nb::handle each : from)
    ports.push_back({sizeof(tn_port), nb::cast<uint32_t>(each[2]), keep(each[0]), keep(each[1])});
  for (const tn_port& port : ports) pointers.push_back(&port);
}

// from: a list of (name, documentation, kind, default or None).
void KernelType::add_attributes(const nb::handle& from) {
  nb::dict defaults;
  for (const nb::handle each : from) defaults[each[0]] = each[3];
  defaults_ = attributes_from(defaults);
  values_.emplace(defaults_);
  for (const nb::handle each : from) {
    tn_attribute attribute = {};
    attribute.size = sizeof attribute;
    attribute.name = keep(each[0]);
    attribute.doc = keep(each[1]);
    attribute.kind = nb::cast<int32_t>(each[2]);
    attribute.flags = nb::cast<bool>(each[4]) ? TN_ATTR_REQUIRED : 0;
    for (uint32_t i = 0; i < values_->size(); ++i) {
      if (std::strcmp(values_->data()[i].name, attribute.name) != 0) continue;
      attribute.initial = values_->data()[i].value;
      if (attribute.initial.count == 0) attribute.initial.kind = attribute.kind;  // an empty list is of any kind
    }
    attributes_.push_back(attribute);
  }
  for (const tn_attribute& attribute : attributes_) attribute_pointers_.push_back(&attribute);
}

tn_status KernelType::plan(const tn_planner* planner) {
  return entered(planner->errors, [&] {
    const KernelType& type = *static_cast<const KernelType*>(planner->user);
    Dims dims;
    nb::list inputs, ragged;
    for (uint32_t i = 0; i < planner->inputs_count; ++i) {
      const tn_spec* const spec = planner->inputs[i];
      inputs.append(spec == nullptr ? nb::none() : nb::object(dims.shape(*spec)));
      ragged.append(spec != nullptr && spec->storage == TN_RAGGED);
    }
    const nb::object planned = type.handler().attr("plan")(python_attributes(planner->attributes), inputs, ragged);
    uint32_t port = 0;
    for (const nb::handle shape : planned[0]) {
      const tn::Spec made = dims.spec(shape, TN_COMPUTE);
      const tn_spec spec = made.get();
      tn::check(planner->output(planner->self, port++, &spec));
    }
    for (const nb::handle each : planned[1]) {
      const tn::Spec made = dims.spec(each[1], TN_COMPUTE);
      const tn_spec spec = made.get();
      const auto suffix = nb::cast<std::string>(each[0]);
      tn_parameter parameter = {};
      parameter.size = sizeof parameter;
      parameter.suffix = suffix.c_str();
      parameter.spec = &spec;
      parameter.initializer = {nb::cast<int32_t>(each[2]), 0, nb::cast<double>(each[3]), nb::cast<double>(each[4])};
      const auto declare = nb::cast<bool>(each[5]) ? planner->buffer : planner->parameter;
      if (declare(planner->self, &parameter) < 0) throw tn::Reported(TN_INVALID);
    }
    if (type.description_.role == TN_ROLE_METRIC)
      tn::check(planner->state(planner->self, nb::cast<uint32_t>(planned[2])));
  });
}

tn_status KernelType::finalize(const tn_finalizer* finalizer) {
  return entered(finalizer->errors, [&] {
    const KernelType& type = *static_cast<const KernelType*>(finalizer->user);
    const std::vector<double> sums(finalizer->state, finalizer->state + finalizer->state_count);
    const auto results =
        nb::cast<nb::dict>(type.handler().attr("finalize")(python_attributes(finalizer->attributes), sums));
    for (const auto& [name, value] : results)
      finalizer->result(finalizer->self, nb::cast<std::string>(name).c_str(), nb::cast<double>(value));
  });
}

tn_status KernelType::supports(const tn_kernel_site* site, int32_t*) {
  const KernelType& type = *static_cast<const KernelType*>(site->user);
  bool wanted = false;
  for (uint32_t i = 0; i < site->inputs_count + site->parameters_count; ++i) wanted = wanted || site->gradients[i] != 0;
  if (type.has_backward_ || !wanted) return TN_OK;
  return tn::guarded(site->errors, [&] {
    throw tn::Failure(TN_UNSUPPORTED, "",
                      "the class " + type.name_ + " has no method backward, which a training needs");
  });
}

tn_status KernelType::query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  const KernelType& type = *static_cast<const KernelType*>(site->user);
  for (uint32_t i = 0; i < site->inputs_count; ++i) needs->reads_in[i] = type.reads_operands_[type.port(i)] ? 1 : 0;
  for (uint32_t i = 0; i < site->parameters_count + site->buffers_count; ++i)
    needs->reads_in[site->inputs_count + i] = type.reads_operands_[type.inputs_.size() + i] ? 1 : 0;
  // Not site->outputs_count, which of a metric is that of its sums.
  for (size_t i = 0; i < type.reads_outputs_.size(); ++i) needs->reads_out[i] = type.reads_outputs_[i] ? 1 : 0;
  return TN_OK;
}

tn_status KernelType::prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  if (direction != TN_FORWARD && direction != TN_BACKWARD) return TN_UNSUPPORTED;
  return entered(site->errors, [&] {
    const KernelType& type = *static_cast<const KernelType*>(site->user);
    Held instance(type.handler().attr("make")(python_attributes(site->attributes), site->training != 0));
    auto binding = std::make_unique<Binding>(Binding{
        type, std::move(instance), direction, site->inputs_count, site->parameters_count, site->buffers_count, {}, {}});
    for (uint32_t i = 0; i < site->inputs_count; ++i) {
      const tn_spec* const spec = site->inputs[i];
      const bool taken = spec != nullptr && type.sequences_[type.port(i)];
      binding->sequences.push_back(taken ? std::optional(spec->outer[spec->levels - 1]) : std::nullopt);
    }
    for (uint32_t i = 0; i < site->outputs_count; ++i) binding->outputs.emplace_back(*site->outputs[i]);
    prepared->traits = TN_TRAIT_HOST_CALLBACK;
    prepared->run = run;
    prepared->destroy = [](void* made) { delete static_cast<Binding*>(made); };
    prepared->binding = binding.release();
  });
}

nb::list KernelType::by_operand(const Binding& binding, uint32_t count,
                                const std::function<nb::object(uint32_t)>& of) const {
  nb::list result;
  for (uint32_t i = 0; i < binding.inputs; ++i) result.append(of(i));
  for (size_t i = binding.inputs; i < inputs_.size(); ++i) result.append(nb::none());
  for (uint32_t i = binding.inputs; i < count; ++i) result.append(of(i));
  return result;
}

nb::list KernelType::operands_of(const Binding& binding, const tn_execution& execution, const tn_call& call) const {
  const uint32_t count = binding.inputs + binding.parameters + binding.buffers;
  return by_operand(binding, count, [&](uint32_t i) {
    const bool taken = i < binding.inputs && binding.sequences[i].has_value();
    return array_of(call.inputs[i], taken ? tn_dim_value(&*binding.sequences[i], execution.symbols) : -1);
  });
}

void KernelType::forward(const Binding& binding, const tn_execution& execution, const tn_call& call) const {
  const nb::list operands = operands_of(binding, execution, call);
  nb::list expected;
  for (uint32_t i = 0; i < call.outputs_count; ++i) expected.append(expected_of(call, i));
  const nb::object results = handler().attr("forward")(binding.instance.get(), operands, expected);
  for (uint32_t i = 0; i < call.outputs_count; ++i)
    if (!expected[i].is_none()) write(*call.outputs[i], call.requests[i], results[i]);
}

void KernelType::backward(const Binding& binding, const tn_execution& execution, const tn_call& call) const {
  const auto count = static_cast<uint32_t>(binding.outputs.size());
  const uint32_t learned = binding.inputs + binding.parameters, first = learned + binding.buffers;
  const nb::list operands = operands_of(binding, execution, call);
  nb::list outputs, gradients;
  for (uint32_t i = 0; i < count; ++i) {
    outputs.append(array_of(call.inputs[first + i]));
    const tn_tensor* const gradient = call.inputs[first + count + i];
    if (gradient != nullptr) {
      gradients.append(array_of(gradient));
      continue;
    }
    nb::list shape;  // of zeros
    for (int32_t k = 0; k < binding.outputs[i].rank(); ++k)
      shape.append(tn_dim_value(&binding.outputs[i][k], execution.symbols));
    gradients.append(nb::tuple(shape));
  }
  const nb::list expected = by_operand(binding, learned, [&](uint32_t i) { return expected_of(call, i); });
  const nb::object results = handler().attr("backward")(binding.instance.get(), operands, outputs, gradients, expected);
  for (uint32_t i = 0; i < learned; ++i) {
    const size_t operand =
        i < binding.inputs ? i : i - binding.inputs + std::max<size_t>(binding.inputs, inputs_.size());
    if (!expected[operand].is_none()) write(*call.outputs[i], call.requests[i], results[operand]);
  }
}

tn_status KernelType::run(void* bound, const tn_execution* execution, const tn_call* call) {
  return entered(execution->errors, [&] {
    const Binding& binding = *static_cast<const Binding*>(bound);
    if (binding.direction == TN_FORWARD)
      binding.type.forward(binding, *execution, *call);
    else
      binding.type.backward(binding, *execution, *call);
  });
}

// ---- the types of a host

namespace {

struct Log {
  std::shared_ptr<KernelTypes> types = std::make_shared<KernelTypes>();
  void operator()(int, const char*) const {}
};

}  // namespace

KernelTypes::KernelTypes() = default;
KernelTypes::~KernelTypes() = default;

void KernelTypes::add(const tenon::Host& host, const nb::dict& description, nb::object handler) {
  auto type = std::make_unique<KernelType>(description, std::move(handler));
  unlocked([&] {
    const std::lock_guard lock(mutex_);
    types_.reserve(types_.size() + 1);
    host.add_plugin(type->plugin());
    types_.push_back(std::move(type));
  });
}

std::function<void(int, const char*)> KernelTypes::new_log() { return Log(); }

KernelTypes& KernelTypes::of(const tenon::Host& host) { return *host.host_ref()->log.target<Log>()->types; }

void bind_kernels(nb::module_& module) {
  module.def("add_kernel_type", [](const tenon::Host& host, const nb::dict& description, nb::object handler) {
    KernelTypes::of(host).add(host, description, std::move(handler));
  });
}

}  // namespace tenon_python
