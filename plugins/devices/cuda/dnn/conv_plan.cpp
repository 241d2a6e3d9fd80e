// SPDX-License-Identifier: Apache-2.0
#include "conv_plan.h"

#include <algorithm>
#include <tenon/base.hpp>

namespace tenon::cuda {

namespace {

constexpr int64_t kMostEngines = 64;
constexpr int64_t kMostKnobs = 64;
constexpr int64_t kAlignment = 16;  // of the operands, in bytes

// What an engine's notes must not say.
constexpr cudnnBackendNumericalNote_t kNoNotes[] = {
    CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
    CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
    CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
    CUDNN_NUMERICAL_NOTE_FFT,
    CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
    CUDNN_NUMERICAL_NOTE_WINOGRAD,
};

// The spatial dimensions of a problem. cuDNN has no convolutions of one: a line is a plane of one row.
struct Space {
  std::vector<int64_t> images, places, kernel, stride, dilation, before, after;
};

Space space_of(const tn_window& w) {
  Space space;
  if (w.rank == 1) space = {{1}, {1}, {1}, {1}, {1}, {0}, {0}};
  for (int32_t i = 0; i < w.rank; ++i) {
    const int64_t places = tn_window_places(&w, i);
    // Engines know the same padding on both sides best, and indices that no window reaches do not count.
    tn_window even = w;
    even.after[i] = w.before[i];
    space.images.push_back(w.images[i]);
    space.places.push_back(places);
    space.kernel.push_back(w.kernel[i]);
    space.stride.push_back(w.stride[i]);
    space.dilation.push_back(w.dilation[i]);
    space.before.push_back(w.before[i]);
    space.after.push_back(tn_window_places(&even, i) == places ? w.before[i] : w.after[i]);
  }
  return space;
}

// A dense tensor [first, channels, space...] whose channels lie last in memory.
Descriptor tensor(const DnnFunctions& dnn, ConvTensor id, int64_t first, int64_t channels,
                  const std::vector<int64_t>& space) {
  std::vector<int64_t> sizes{first, channels};
  sizes.insert(sizes.end(), space.begin(), space.end());
  std::vector<int64_t> strides(sizes.size(), 1);
  int64_t step = channels;
  for (size_t i = sizes.size(); i-- > 2; step *= sizes[i]) strides[i] = step;
  strides[0] = step;
  Descriptor made(dnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{id});
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  made.finalize();
  return made;
}

// The attributes of the operation that makes one of the three tensors.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t window, images, weights, results, alpha, beta;
};
OperationNames names_of(int32_t op) {
  if (op == TN_CONV_RESULTS)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  if (op == TN_CONV_IMAGES)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// A graph of one operation.
Descriptor graph_of(const DnnTarget& target, const ConvProblem& p) {
  const DnnFunctions& dnn = *target.dnn;
  const Space space = space_of(p.window);
  Descriptor window(dnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(space.images.size()));
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, space.dilation);
  window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, space.stride);
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, space.before);
  window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, space.after);
  window.finalize();

  const OperationNames names = names_of(p.op);
  Descriptor operation(dnn, names.type);
  operation.set(names.window, window);
  operation.set(names.images, tensor(dnn, kImages, p.samples, p.channels, space.images));
  operation.set(names.weights, tensor(dnn, kWeights, p.filters, p.channels / p.groups, space.kernel));
  operation.set(names.results, tensor(dnn, kResults, p.samples, p.filters, space.places));
  operation.set(names.alpha, 1.0F);
  operation.set(names.beta, p.adds ? 1.0F : 0.0F);
  operation.finalize();

  Descriptor graph(dnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  graph.finalize();
  return graph;
}

// cuDNN's list of engines with settings, the fastest first by its own judgement.
std::vector<Descriptor> configurations(const DnnTarget& target, const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor list(*target.dnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  list.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  list.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.properties != nullptr) list.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  list.finalize();
  return list.list(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMostEngines);
}

bool is_known_fault(const DnnTarget& target, int32_t op, int64_t engine) {
  return std::any_of(errata().begin(), errata().end(), [&](const Erratum& e) {
    return e.op == op && e.engine == engine && e.capability == target.capability &&
           target.dnn->cudnnGetVersion() < e.fixed_in;
  });
}

bool is_strict(const DnnTarget& target, int32_t op, const Descriptor& engine) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {};
  const int64_t count = std::min<int64_t>(
      CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
      engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes));
  for (int64_t i = 0; i < count; ++i)
    if (std::find(std::begin(kNoNotes), std::end(kNoNotes), notes[i]) != std::end(kNoNotes)) return false;
  return !is_known_fault(target, op, engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
}

ConvEngine engine_of(const Descriptor& configuration, const Descriptor& engine) {
  ConvEngine made;
  made.number = engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  for (const Descriptor& choice :
       configuration.list(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kMostKnobs)) {
    cudnnBackendKnobType_t kind = {};
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &kind);
    made.knobs.emplace_back(kind, choice.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return made;
}

Descriptor configuration_of(const DnnTarget& target, const Descriptor& graph, const ConvEngine& of) {
  Descriptor engine(*target.dnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, of.number);
  if (target.properties != nullptr) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.properties);
  engine.finalize();
  std::vector<Descriptor> choices;
  for (const auto& [kind, value] : of.knobs) {
    Descriptor& choice = choices.emplace_back(*target.dnn, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    const auto type = static_cast<cudnnBackendKnobType_t>(kind);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    choice.finalize();
  }
  Descriptor configuration(*target.dnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  std::vector<const Descriptor*> all;
  for (const Descriptor& choice : choices) all.push_back(&choice);
  if (!all.empty()) configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, all);
  configuration.finalize();
  return configuration;
}

// None if the engine does not know the problem, or needs more memory.
std::optional<ConvPlan> finished(const DnnTarget& target, const Descriptor& configuration, ConvEngine engine,
                                 uint64_t most_workspace) {
  Descriptor plan(*target.dnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (target.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  if (target.properties != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  plan.finalize();
  const auto bytes = static_cast<uint64_t>(plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  if (bytes > most_workspace) return std::nullopt;
  return ConvPlan{std::move(plan), std::move(engine), bytes};
}

// Calls `make`; none for what cuDNN refuses, for which its engines have several codes.
template <typename Make>
std::optional<ConvPlan> if_supported(const Make& make) {
  try {
    return make();
  } catch (const tn::Failure& failure) {
    if (failure.code() == TN_OUT_OF_MEMORY) throw;
    return std::nullopt;
  }
}

}  // namespace

std::vector<int64_t> ConvProblem::key() const {
  std::vector<int64_t> all{op, window.rank, samples, channels, filters, groups, adds ? 1 : 0};
  for (int32_t i = 0; i < window.rank; ++i)
    all.insert(all.end(), {window.images[i], window.kernel[i], window.stride[i], window.dilation[i], window.before[i],
                           window.after[i]});
  return all;
}

const std::vector<Erratum>& errata() {
  // pytorch#188318, #189207, #189483: other bits from run to run up to 9.23.1, on GPUs of 8.6 alone.
  static const std::vector<Erratum> known = {{TN_CONV_RESULTS, 5, 86, 92400}};
  return known;
}

std::optional<ConvPlan> find_plan(const DnnTarget& target, const ConvProblem& problem, uint64_t most_workspace) {
  return if_supported([&]() -> std::optional<ConvPlan> {
    const Descriptor graph = graph_of(target, problem);
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      for (const Descriptor& configuration : configurations(target, graph, mode)) {
        std::optional<ConvPlan> plan = if_supported([&]() -> std::optional<ConvPlan> {
          const std::vector<Descriptor> engine =
              configuration.list(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
          if (engine.empty() || !is_strict(target, problem.op, engine[0])) return std::nullopt;
          return finished(target, configuration, engine_of(configuration, engine[0]), most_workspace);
        });
        if (plan) return plan;
      }
    return std::nullopt;
  });
}

std::optional<ConvPlan> plan_on(const DnnTarget& target, const ConvProblem& problem, const ConvEngine& engine,
                                uint64_t most_workspace) {
  return if_supported([&] {
    const Descriptor graph = graph_of(target, problem);
    return finished(target, configuration_of(target, graph, engine), engine, most_workspace);
  });
}

}  // namespace tenon::cuda
