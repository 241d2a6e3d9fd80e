// A libcudnn for tests: graphs of one convolution, built by the rules of its real headers, and computed on the CPU from
// memory of the emulated GPU. What is set twice, too late, with another type or not at all is refused, and so are
// operands that do not lie where plans say, and heuristics and plans during a capture, which end it. It has engines
// that Tenon must not choose, and one that refuses. The calls are recorded. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <set>
#include <string>

#include "../cuda_emulator/driver.h"
#include "check/definitions/image_reference.h"
#include "cudnn_objects.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
  std::atomic_flag busy;  // threads must not use one handle at the same time (cuDNN 9, "Thread Safety")
};

namespace fake_cudnn {

namespace {

struct Engine {
  int64_t number;
  cudnnBackendHeurMode_t mode;
  int note;  // that it has, or -1
  uint64_t workspace;
};
// In the order in which they are offered. Number 5 knows the same padding on both sides alone.
constexpr Engine kEngines[] = {{11, CUDNN_HEUR_MODE_A, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0},
                               {12, CUDNN_HEUR_MODE_A, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 0},
                               {13, CUDNN_HEUR_MODE_A, CUDNN_NUMERICAL_NOTE_WINOGRAD, 0},
                               {14, CUDNN_HEUR_MODE_A, CUDNN_NUMERICAL_NOTE_FFT, 0},
                               {15, CUDNN_HEUR_MODE_A, -1, uint64_t{1} << 40},
                               {5, CUDNN_HEUR_MODE_A, -1, 1000},
                               {1, CUDNN_HEUR_MODE_FALLBACK, -1, 64}};
constexpr int64_t kKnob = 3;  // the value of the one knob that each engine has

const Engine* engine_of(int64_t number) {
  for (const Engine& engine : kEngines)
    if (engine.number == number) return &engine;
  return nullptr;
}

struct State {
  std::set<cudnnHandle_t> handles;
  std::map<void*, std::shared_ptr<Object>> objects;
  std::string error, record;
};
State& state() {
  static State only;
  return only;
}

// A handle while a call uses it; `first` is false if another thread's call does.
class Use {
 public:
  explicit Use(cudnnHandle_t handle) : handle_(*handle), first(!handle_.busy.test_and_set()) {}
  ~Use() {
    if (first) handle_.busy.clear();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  cudnnContext& handle_;

 public:
  const bool first;
};

cudnnStatus_t fail(cudnnStatus_t status, const std::string& words) {
  state().error = words;
  return status;
}
cudnnStatus_t bad(const std::string& words) { return fail(CUDNN_STATUS_BAD_PARAM, words); }

std::shared_ptr<Object> object_of(void* handle) {
  const auto found = state().objects.find(handle);
  return found == state().objects.end() ? nullptr : found->second;
}

// A convolution as its graph states it.
struct Convolution {
  int32_t op;
  tn_window window;
  tenon::check::reference::ImageSizes sizes;
  float beta;
};

// The attributes of an operation by their order.
enum { kBeta = 1, kWindow = 2, kWeights = 3, kImages = 4, kResults = 5 };

int32_t op_of(const Object& operation) {
  return operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? TN_CONV_RESULTS
         : operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? TN_CONV_IMAGES
                                                                                          : TN_CONV_WEIGHTS;
}
cudnnBackendAttributeName_t name_of(int32_t op, int number) {
  const int first = op == TN_CONV_RESULTS  ? CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA
                    : op == TN_CONV_IMAGES ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                                           : CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA;
  return static_cast<cudnnBackendAttributeName_t>(first + number);
}

Convolution convolution_of(const Object& graph) {
  const Object& operation = graph.object(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const int32_t op = op_of(operation);
  const Object& window = operation.object(name_of(op, kWindow));
  const auto weights = operation.object(name_of(op, kWeights)).numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto images = operation.object(name_of(op, kImages)).numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  Convolution c = {};
  c.op = op;
  c.window.size = sizeof c.window;
  c.window.rank = static_cast<int32_t>(window.value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  for (int32_t i = 0; i < c.window.rank; ++i) {
    const auto k = static_cast<size_t>(i);
    c.window.images[i] = images[k + 2];
    c.window.kernel[i] = weights[k + 2];
    c.window.stride[i] = window.numbers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)[k];
    c.window.dilation[i] = window.numbers(CUDNN_ATTR_CONVOLUTION_DILATIONS)[k];
    c.window.before[i] = window.numbers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)[k];
    c.window.after[i] = window.numbers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)[k];
  }
  c.sizes = {images[0], images[1], weights[0], images[1] / weights[1]};
  c.beta = operation.value<float>(name_of(op, kBeta));
  return c;
}

bool is_even(const tn_window& w) { return std::equal(w.before, w.before + w.rank, w.after); }

// What is wrong with the three tensors of an operation; empty: nothing.
std::string fault_of(const Object& graph) {
  const Convolution c = convolution_of(graph);
  const Object& operation = graph.object(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  std::vector<int64_t> results{c.sizes.samples, c.sizes.filters};
  for (int32_t i = 0; i < c.window.rank; ++i) results.push_back(tn_window_places(&c.window, i));
  for (const int number : {kWeights, kImages, kResults}) {
    const Object& tensor = operation.object(name_of(c.op, number));
    const auto sizes = tensor.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto strides = tensor.numbers(CUDNN_ATTR_TENSOR_STRIDES);
    if (sizes.size() != static_cast<size_t>(c.window.rank) + 2) return "dimensions of the window";
    if (number == kResults && sizes != results) return "sizes of the results";
    if (strides[1] != 1) return "channels are not last";
    int64_t step = sizes[1];
    for (size_t i = sizes.size(); i-- > 2; step *= sizes[i])
      if (strides[i] != step) return "strides in space";
    if (strides[0] != step) return "strides of samples";
  }
  return "";
}

cudnnStatus_t finalize_plan(const Object& plan) {
  const Object& engine = plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).object(CUDNN_ATTR_ENGINECFG_ENGINE);
  const Object& configuration = plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (configuration.object(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES).value<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE) !=
      kKnob)
    return fail(CUDNN_STATUS_NOT_SUPPORTED, "value of a knob");
  const int64_t number = engine.value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  const Convolution c = convolution_of(engine.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
  if (number == 5 && !is_even(c.window)) return fail(CUDNN_STATUS_NOT_SUPPORTED, "other padding behind than before");
  if (c.window.rank == 3 && c.sizes.groups > 1) return fail(CUDNN_STATUS_NOT_SUPPORTED, "groups in three dimensions");
  state().record += "plan " + std::to_string(c.op) + " of " + std::to_string(c.sizes.samples) + " on " +
                    std::to_string(number) + (c.beta != 0 ? " adds" : "") + "\n";
  return CUDNN_STATUS_SUCCESS;
}

// The line of the driver's list for an object whose making is no work of a stream, and may use the GPU; null: others.
const char* line_of(const Object& object) {
  return object.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR       ? "cudnnBackendFinalize heuristics"
         : object.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ? "cudnnBackendFinalize plan"
                                                                  : nullptr;
}

cudnnStatus_t finalize(Object& object) {
  if (const char* const line = line_of(object); line != nullptr && emulated::outside_capture(line) != CUDA_SUCCESS)
    return fail(CUDNN_STATUS_INTERNAL_ERROR, "a capture is under way");
  for (const Rule& rule : rules())
    if (rule.owner == object.type && rule.least > 0 && object.attributes.count(rule.name) == 0)
      return bad("attribute " + std::to_string(rule.name) + " was not set");
  if (object.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
    if (const std::string fault = fault_of(object); !fault.empty()) return bad(fault);
  if (object.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
      engine_of(object.value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)) == nullptr)
    return bad("there is no such engine");
  if (object.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    if (const cudnnStatus_t status = finalize_plan(object); status != CUDNN_STATUS_SUCCESS) return status;
  object.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

template <class T>
void put(Object& object, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
  Attribute& attribute = object.attributes[name];
  attribute.type = type, attribute.count = 1, attribute.bytes.resize(sizeof value);
  std::memcpy(attribute.bytes.data(), &value, sizeof value);
}
void put(Object& object, cudnnBackendAttributeName_t name, std::shared_ptr<Object> value) {
  Attribute& attribute = object.attributes[name];
  attribute.type = CUDNN_TYPE_BACKEND_DESCRIPTOR, attribute.count = 1, attribute.objects = {std::move(value)};
}

// The configuration of an engine as heuristics give it.
Object offered(const Engine& engine, const std::shared_ptr<Object>& graph) {
  auto made = std::make_shared<Object>(Object{CUDNN_BACKEND_ENGINE_DESCRIPTOR, true, {}});
  put(*made, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  put(*made, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, engine.number);
  if (engine.note >= 0)
    put(*made, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
        static_cast<cudnnBackendNumericalNote_t>(engine.note));
  auto knob = std::make_shared<Object>(Object{CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, true, {}});
  put(*knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, CUDNN_KNOB_TYPE_TILE_SIZE);
  put(*knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, kKnob);
  Object configuration = {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, true, {}};
  put(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, made);
  put(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knob);
  return configuration;
}

// What an attribute holds; those that objects derive are made here.
Attribute read(const Object& object, cudnnBackendAttributeName_t name) {
  Attribute made;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    made.type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    const auto mode = object.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
    for (const Engine& engine : kEngines)
      if (engine.mode == mode)
        made.objects.push_back(std::make_shared<Object>(
            offered(engine, object.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).objects[0])));
    made.count = static_cast<int64_t>(made.objects.size());
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    const Object& engine = object.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).object(CUDNN_ATTR_ENGINECFG_ENGINE);
    Object holder = {object.type, true, {}};
    put(holder, name, CUDNN_TYPE_INT64,
        static_cast<int64_t>(engine_of(engine.value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX))->workspace));
    made = holder.attributes.at(name);
  } else if (const auto found = object.attributes.find(name); found != object.attributes.end()) {
    made = found->second;
  }
  return made;
}

std::vector<double> numbers_at(const void* memory, size_t count) {
  const auto* const floats = static_cast<const float*>(memory);
  return {floats, floats + count};
}

cudnnStatus_t execute(const Object& plan, const Object& pack) {
  const Object& engine = plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).object(CUDNN_ATTR_ENGINECFG_ENGINE);
  const Convolution c = convolution_of(engine.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
  const auto ids = pack.numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  void* tensors[4] = {};
  for (size_t i = 0; i < 3; ++i) {
    void* memory = nullptr;
    std::memcpy(&memory, pack.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).bytes.data() + 8 * i, 8);
    if (ids[i] < 1 || ids[i] > 3 || reinterpret_cast<uintptr_t>(memory) % 16 != 0) return bad("an operand");
    tensors[ids[i]] = memory;
  }
  const uint64_t workspace = engine_of(engine.value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX))->workspace;
  // cuDNN 9 has CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER and states no number for workspaces: those of its sister
  // library, and of every address that cudaMalloc returns.
  void* const scratch = pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (workspace > 0 && reinterpret_cast<uintptr_t>(scratch) % 256 != 0) return bad("alignment of the workspace");
  if (workspace > 0 && !emulated::is_device(reinterpret_cast<CUdeviceptr>(scratch), workspace))
    return bad("memory of the workspace");
  std::memset(scratch, 0x5a, workspace);
  namespace reference = tenon::check::reference;
  const auto at = [](int64_t count) { return static_cast<size_t>(count); };
  const size_t counts[] = {
      0, at(c.sizes.samples * reference::image_elements(c.window) * c.sizes.channels),
      at(c.sizes.filters * reference::kernel_elements(c.window) * c.sizes.channels / c.sizes.groups),
      at(c.sizes.samples * reference::place_elements(c.window) * c.sizes.filters)};
  const int first = c.op == TN_CONV_IMAGES ? 3 : 1, second = c.op == TN_CONV_WEIGHTS ? 3 : 2;
  const int made = c.op == TN_CONV_RESULTS ? 3 : c.op == TN_CONV_IMAGES ? 1 : 2;
  const std::vector<double> result = reference::conv(c.op, c.window, c.sizes, numbers_at(tensors[first], counts[first]),
                                                     numbers_at(tensors[second], counts[second]));
  auto* const to = static_cast<float*>(tensors[made]);
  for (size_t i = 0; i < result.size(); ++i)
    to[i] = static_cast<float>(result[i] + (c.beta != 0 ? static_cast<double>(c.beta * to[i]) : 0.0));
  state().record += "run " + std::to_string(c.op) + " of " + std::to_string(c.sizes.samples) + "\n";
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

}  // namespace fake_cudnn

using namespace fake_cudnn;

extern "C" {

// For tests: the plans and runs since the last call.
const char* fake_cudnn_record() {
  static std::string last;
  last.swap(state().record);
  state().record.clear();
  return last.c_str();
}

size_t cudnnGetVersion() { return 92300; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}
void cudnnGetLastErrorString(char* message, size_t most) { std::snprintf(message, most, "%s", state().error.c_str()); }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  state().handles.insert(*handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (state().handles.erase(handle) == 0) return bad("no handle");
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (state().handles.count(handle) == 0 || stream == nullptr) return bad("no handle or no stream");
  if (const Use use(handle); !use.first) return bad("a handle that another thread uses");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  auto object = std::make_shared<Object>(Object{type, false, {}});
  *made = object.get();
  state().objects[*made] = std::move(object);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  return state().objects.erase(handle) == 1 ? CUDNN_STATUS_SUCCESS : bad("no object");
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  const std::shared_ptr<Object> object = object_of(handle);
  if (object == nullptr || object->finalized) return bad("no object, or a finished one");
  const Rule* const rule = rule_of(object->type, name);
  if (rule == nullptr || rule->type != type || count < std::max<int64_t>(rule->least, 1) || count > rule->most ||
      object->attributes.count(name) != 0)
    return bad("attribute " + std::to_string(name));
  Attribute made = {type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      const std::shared_ptr<Object> of = object_of(static_cast<void* const*>(values)[i]);
      if (of == nullptr || !of->finalized) return bad("an attribute that is not finished");
      made.objects.push_back(of);
    }
  } else {
    made.bytes.resize(static_cast<size_t>(count) * bytes_of(type));
    std::memcpy(made.bytes.data(), values, made.bytes.size());
  }
  object->attributes[name] = std::move(made);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  const std::shared_ptr<Object> object = object_of(handle);
  return object == nullptr || object->finalized ? bad("no object, or a finished one") : finalize(*object);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values) {
  const std::shared_ptr<Object> object = object_of(handle);
  if (object == nullptr || !object->finalized) return bad("no object, or one that is not finished");
  const Attribute attribute = read(*object, name);
  if (attribute.count > 0 && attribute.type != type) return bad("type of attribute " + std::to_string(name));
  *count = attribute.count;
  for (int64_t i = 0; i < std::min(most, attribute.count); ++i) {
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      const size_t bytes = bytes_of(type), from = static_cast<size_t>(i) * bytes;
      std::memcpy(static_cast<char*>(values) + from, attribute.bytes.data() + from, bytes);
      continue;
    }
    const std::shared_ptr<Object> to = object_of(static_cast<void**>(values)[i]);
    const Object& from = *attribute.objects[static_cast<size_t>(i)];
    if (to == nullptr || to->type != from.type) return bad("an object of another kind");
    *to = from;
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const std::shared_ptr<Object> of = object_of(plan), operands = object_of(pack);
  if (state().handles.count(handle) == 0 || handle->stream == nullptr || of == nullptr || !of->finalized ||
      of->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || operands == nullptr || !operands->finalized)
    return bad("no plan, or no operands");
  if (const Use use(handle); !use.first) return bad("a handle that another thread uses");
  // Work of a stream, which keeps it while it captures.
  const CUresult result = emulated::enqueue("cudnnBackendExecute", handle->stream, [=] {
    return execute(*of, *operands) == CUDNN_STATUS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
  return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
