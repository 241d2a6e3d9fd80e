// SPDX-License-Identifier: Apache-2.0
#include "host/compile/call_array.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/alignment.h"
#include "core/checked.h"
#include "core/error.h"
#include "host/compile/lowering.h"

namespace tenon {

namespace {

size_t at(ValueId value) { return static_cast<size_t>(value); }

nlohmann::json trait_names(uint32_t traits) {
  nlohmann::json names = nlohmann::json::array();
  if ((traits & TN_TRAIT_OWN_THREADS) != 0) names.push_back("own_threads");
  if ((traits & TN_TRAIT_HOST_CALLBACK) != 0) names.push_back("host_callback");
  if ((traits & TN_TRAIT_CAPTURABLE) != 0) names.push_back("capturable");
  if ((traits & TN_TRAIT_NONDETERMINISTIC) != 0) names.push_back("nondeterministic");
  return names;
}

Dim bound(const Dim& dim, const std::vector<int64_t>& bounds) { return bounded({dim}, bounds)[0]; }

// The product of the leading batch dimensions of a gemm operand.
Dim batch_of(const Shape& shape) { return elements(shape.data(), shape.size() - 2); }

}  // namespace

CallArray::CallArray(Graph graph, std::shared_ptr<Device> device, std::vector<int64_t> bounds)
    : graph_(std::move(graph)), device_(std::move(device)), bounds_(std::move(bounds)) {
  make_tensors();
  makers_.assign(graph_.values.size(), {~size_t{0}, 0});
  for (size_t node = 0; node < graph_.nodes.size(); ++node)
    if (graph_.nodes[node].primitive != Primitive::kView) prepare(node);
}

void CallArray::make_tensors() {
  tensors_.resize(graph_.values.size());
  shapes_.resize(graph_.values.size());
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Spec& spec = graph_.values[i].spec;
    for (const Dim& dim : spec.shape) {
      shapes_[i].push_back(bound(dim, bounds_).bound);
      if (dim.symbol != TN_SYMBOL_NONE && (varying_.empty() || varying_.back() != static_cast<ValueId>(i)))
        varying_.push_back(static_cast<ValueId>(i));
    }
    tn_tensor& tensor = tensors_[i];
    tensor = {};
    tensor.size = sizeof tensor;
    tensor.storage = spec.storage;
    tensor.alignment = kCacheLine;
    tensor.dl.device = {static_cast<DLDeviceType>(device_->table().description->dlpack_type), 0};
    tensor.dl.ndim = static_cast<int32_t>(spec.shape.size());
    tensor.dl.dtype = dlpack_type(spec.dtype);
    tensor.dl.shape = shapes_[i].data();
  }
}

// Where each dimension of rows begins and ends, for kernels that take ragged tensors.
void CallArray::make_ragged() {
  for (const auto& [symbol, of] : graph_.rows) {
    tn_ragged& ragged = ragged_[symbol];
    ragged = {};
    ragged.size = sizeof ragged;
    for (auto level = graph_.rows.find(symbol); level != graph_.rows.end();
         level = graph_.rows.find(level->second.outer.symbol)) {
      // From the outside in, as in tn_ragged.
      ragged.offsets[1] = ragged.offsets[0];
      ragged.capacity[1] = ragged.capacity[0];
      ragged.offsets[0] = static_cast<const int64_t*>(memory(level->second.offsets));
      ragged.capacity[0] = bound(level->second.outer, bounds_).bound;
      ++ragged.levels;
    }
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Shape& shape = graph_.values[i].spec.shape;
    if (graph_.values[i].spec.storage == TN_ROWS || shape.empty()) continue;
    const auto found = ragged_.find(shape[0].symbol);
    tensors_[i].storage = found == ragged_.end() ? TN_DENSE : TN_RAGGED;
    if (found != ragged_.end()) tensors_[i].part = &found->second;
  }
}

int64_t CallArray::contributions(ValueId rows, const std::vector<int64_t>& symbols) const {
  const Node& node = graph_.nodes[static_cast<size_t>(graph_.values[at(rows)].producer)];
  int64_t sum = 0;
  for (size_t i = 1; i < node.inputs.size(); i += 3) {
    const Dim count = elements(graph_.spec(node.inputs[i]).shape);
    sum = checked_add(sum, tn_dim_value(&count, symbols.data()), "rows");
  }
  return sum;
}

void CallArray::bind_rows(ValueId value, void* values, const tn_rows* rows) {
  bind(value, values);
  tensors_[at(value)].part = rows;
  shapes_[at(value)][0] = rows->capacity;
}

std::string CallArray::who(const Node& node) const {
  std::string names;
  for (const int32_t layer : node.served())
    if (layer >= 0) names += (names.empty() ? "\"" : ", \"") + graph_.layers[static_cast<size_t>(layer)] + "\"";
  return (names.empty() ? std::string("the machine") : "layer " + names) + " (" + primitive_name(node.primitive) +
         (node.backward ? ", backward)" : ")");
}

void CallArray::prepare(size_t number) {
  const Node& node = graph_.nodes[number];
  Call& call = calls_.emplace_back();
  call.node = number;
  call.kernel = device_->origin().plugin;
  ErrorSink errors(who(node), device_->origin().tags);
  switch (node.primitive) {
    case Primitive::kPointwise:
      prepare_pointwise(node, call, errors);
      break;
    case Primitive::kGemm:
      prepare_gemm(node, call, errors);
      break;
    case Primitive::kGather:
    case Primitive::kScatterAdd:
      prepare_gather(node, call, errors);
      break;
    case Primitive::kMove:
      prepare_move(node, call, errors);
      break;
    case Primitive::kSegment:
      prepare_segment(node, call, errors);
      break;
    case Primitive::kCoalesce:
      prepare_coalesce(node, call, errors);
      break;
    case Primitive::kNative:
      prepare_native(node, call, errors);
      break;
    case Primitive::kView:
      break;
  }
  if (call.prepared->run == nullptr) fail(TN_PLUGIN_FAULT, who(node), ": ", call.kernel, " prepared no function");
  for (const ValueId input : node.inputs) call.inputs.push_back(input == kNoValue ? nullptr : &tensors_[at(input)]);
  for (const ValueId output : node.outputs) {
    if (output != kNoValue) makers_[at(output)] = {calls_.size() - 1, call.outputs.size()};
    call.outputs.push_back(output == kNoValue ? nullptr : &tensors_[at(output)]);
    call.requests.push_back(output == kNoValue ? TN_REQUEST_NONE : TN_REQUEST_WRITE);
  }
  workspace_bytes_ = std::max(workspace_bytes_, call.prepared->workspace_bytes);
}

template <typename Table>
const Table& CallArray::table(const char* id) const {
  const auto* found = device_->primitives<Table>(id);
  if (found == nullptr) fail(TN_UNSUPPORTED, "device \"", device_->kind(), "\" does not offer ", id);
  return *found;
}

template <typename Function, typename Site>
void CallArray::prepare_by(Function* function, const Site* site, Call& call, ErrorSink& errors) const {
  if (function == nullptr) fail(TN_UNSUPPORTED, "device \"", device_->kind(), "\" lacks a primitive that is needed");
  call.prepared.prepare(device_->origin(), errors, function, device_->instance(), device_->services(), errors.get(),
                        site);
}

namespace {

// A pointwise site with what it points to. `inputs` are the program's own.
struct PointwiseSite {
  tn_program program;
  std::vector<tn_dtype> inputs, outputs;
  tn_pointwise_site site = {};

  PointwiseSite(const Graph& graph, const Node& node, const std::vector<ValueId>& operands,
                const std::vector<ValueId>& results, const std::vector<int64_t>& bounds)
      : program(node.program->view()) {
    for (const ValueId input : operands) inputs.push_back(graph.spec(input).dtype);
    for (const ValueId output : results) outputs.push_back(graph.spec(output).dtype);
    // The type of float values: that of any 64-bit operand, so that fp64 machines lose nothing.
    const bool wide = std::any_of(outputs.begin(), outputs.end(), [](tn_dtype dtype) { return dtype == TN_F64; });
    site.size = sizeof site;
    site.compute = wide ? TN_F64 : TN_F32;
    site.program = &program;
    site.extents = node.program->extents.data();
    site.inputs = inputs.data();
    site.outputs = outputs.data();
    site.rows = bound(node.rows, bounds);
    site.columns = bound(node.columns, bounds);
  }
  PointwiseSite(const PointwiseSite&) = delete;
  PointwiseSite& operator=(const PointwiseSite&) = delete;
};

tn_gemm gemm_of(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds) {
  const Shape& a = graph.spec(node.inputs[0]).shape;
  const Shape& c = graph.spec(node.outputs[0]).shape;
  tn_gemm gemm = {};
  gemm.size = sizeof gemm;
  gemm.dtype = graph.spec(node.outputs[0]).dtype;
  gemm.batch = bound(batch_of(c), bounds);
  gemm.m = bound(c[c.size() - 2], bounds);
  gemm.n = bound(c[c.size() - 1], bounds);
  gemm.k = bound(a[a.size() - ((node.flags & TN_TRANSPOSE_A) != 0 ? 2 : 1)], bounds);
  gemm.flags = node.flags;
  gemm.alpha = node.alpha;
  return gemm;
}

}  // namespace

bool prefers_epilogue(const Device& device, const Graph& graph, const std::vector<int64_t>& bounds, const Node& gemm,
                      const Node& pointwise, int32_t product) {
  const auto* table = device.primitives<tn_gemm_epilogue_table>(TN_GEMM_EPILOGUE);
  if (table == nullptr || table->supports == nullptr || table->prepare == nullptr) return false;
  const tn_gemm first = gemm_of(graph, gemm, bounds);
  const PointwiseSite second(graph, pointwise, pointwise.inputs, pointwise.outputs, bounds);
  const tn_gemm_epilogue epilogue = {sizeof epilogue, product, &first, &second.site};
  const tn_status status = call_plugin(device.origin(), device.who(), {Tag::kSetup, "supports"}, table->supports,
                                       device.instance(), &epilogue);
  if (status == TN_OUT_OF_MEMORY) ErrorSink(device.who()).check(status);
  return status == TN_OK;
}

void CallArray::prepare_pointwise(const Node& node, Call& call, ErrorSink& errors) {
  const auto& primitives = table<tn_pointwise_table>(TN_POINTWISE);
  const PointwiseSite site(graph_, node, node.inputs, node.outputs, bounds_);
  prepare_by(primitives.prepare, &site.site, call, errors);
}

void CallArray::prepare_gemm(const Node& node, Call& call, ErrorSink& errors) {
  const tn_gemm gemm = gemm_of(graph_, node, bounds_);
  if (!node.program) {
    prepare_by(table<tn_gemm_table>(TN_GEMM).prepare, &gemm, call, errors);
    return;
  }
  const auto& primitives = table<tn_gemm_epilogue_table>(TN_GEMM_EPILOGUE);
  std::vector<ValueId> inputs(node.inputs.begin() + 2, node.inputs.end());
  inputs.insert(inputs.begin() + node.product, node.outputs[0]);
  const std::vector<ValueId> outputs(node.outputs.begin() + 1, node.outputs.end());
  const PointwiseSite site(graph_, node, inputs, outputs, bounds_);
  const tn_gemm_epilogue epilogue = {sizeof epilogue, node.product, &gemm, &site.site};
  prepare_by(primitives.prepare, &epilogue, call, errors);
}

void CallArray::prepare_gather(const Node& node, Call& call, ErrorSink& errors) {
  const auto& primitives = table<tn_gather_table>(TN_GATHER);
  const bool scatter = node.primitive == Primitive::kScatterAdd;
  const Spec& tall = graph_.spec(scatter ? node.outputs[0] : node.inputs[0]);
  const Spec& ids = graph_.spec(node.inputs[1]);
  tn_gather gather = {};
  gather.size = sizeof gather;
  gather.dtype = tall.dtype;
  gather.ids = ids.dtype;
  gather.op = scatter ? TN_SCATTER_ADD : TN_GATHER_ROWS;
  gather.height = bound(tall.shape[0], bounds_);
  gather.width = bound(elements(tall.shape.data() + 1, tall.shape.size() - 1), bounds_);
  gather.count = bound(elements(ids.shape), bounds_);
  if (node.inputs.size() == 3) {
    gather.op = TN_GATHER_SUM;
    gather.segments = bound(graph_.spec(node.outputs[0]).shape[0], bounds_);
  }
  prepare_by(primitives.prepare, &gather, call, errors);
}

void CallArray::prepare_move(const Node& node, Call& call, ErrorSink& errors) {
  const auto& primitives = table<tn_move_table>(TN_MOVE);
  const Shape to = bounded(graph_.spec(node.outputs[0]).shape, bounds_);
  std::vector<std::pair<Shape, Shape>> shapes;  // of each part: its input, its box
  for (const MovePart& part : node.move->parts)
    shapes.emplace_back(bounded(graph_.spec(node.inputs[part.input]).shape, bounds_), bounded(part.box, bounds_));
  std::vector<tn_move_part> parts;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const MovePart& part = node.move->parts[i];
    parts.push_back({sizeof(tn_move_part), part.input, shapes[i].first.data(), shapes[i].second.data(),
                     part.from.data(), part.to.data(), part.axes.data()});
  }
  std::vector<const tn_move_part*> pointers;
  for (const tn_move_part& part : parts) pointers.push_back(&part);
  tn_move move = {};
  move.size = sizeof move;
  move.dtype = graph_.spec(node.outputs[0]).dtype;
  move.rank = static_cast<int32_t>(to.size());
  move.parts_count = static_cast<uint32_t>(parts.size());
  move.to = to.data();
  move.parts = pointers.data();
  move.fill = node.move->fill ? 1 : 0;
  prepare_by(primitives.prepare, &move, call, errors);
}

void CallArray::prepare_segment(const Node& node, Call& call, ErrorSink& errors) {
  const auto& primitives = table<tn_segment_table>(TN_SEGMENT);
  // What a row holds is known from the value, where there is one, else it is one integer.
  const ValueId wide = node.inputs[0] == kNoValue ? node.outputs[0] : node.inputs[0];
  const Spec& spec = graph_.spec(wide);
  tn_segment segment = {};
  segment.size = sizeof segment;
  segment.op = node.segment.op;
  segment.dtype = spec.dtype;
  segment.by = node.segment.by;
  segment.rows = bound(node.segment.rows, bounds_);
  segment.segments = bound(graph_.rows.at(node.segment.rows.symbol).outer, bounds_);
  segment.width = bound(elements(spec.shape.data() + 1, spec.shape.size() - 1), bounds_);
  prepare_by(primitives.prepare, &segment, call, errors);
}

void CallArray::prepare_coalesce(const Node& node, Call& call, ErrorSink& errors) {
  const auto& primitives = table<tn_rows_table>(TN_ROWS_TABLE);
  const Spec& whole = graph_.spec(node.outputs[0]);
  std::vector<tn_coalesce_part> parts;
  for (size_t i = 0; i < node.inputs.size(); i += 3) {
    const Spec& ids = graph_.spec(node.inputs[i + 1]);
    tn_coalesce_part part = {};
    part.size = sizeof part;
    part.ids = ids.dtype;
    part.count = bound(elements(ids.shape), bounds_);
    part.has_offsets = node.inputs[i + 2] == kNoValue ? 0 : 1;
    part.segments = part.has_offsets != 0 ? bound(graph_.spec(node.inputs[i]).shape[0], bounds_) : tn_dim_constant(0);
    parts.push_back(part);
  }
  std::vector<const tn_coalesce_part*> pointers;
  for (const tn_coalesce_part& part : parts) pointers.push_back(&part);
  tn_coalesce coalesce = {};
  coalesce.size = sizeof coalesce;
  coalesce.dtype = whole.dtype;
  coalesce.height = bound(whole.shape[0], bounds_);
  coalesce.width = bound(elements(whole.shape.data() + 1, whole.shape.size() - 1), bounds_);
  coalesce.parts_count = static_cast<uint32_t>(parts.size());
  coalesce.parts = pointers.data();
  prepare_by(primitives.prepare_coalesce, &coalesce, call, errors);
}

void CallArray::prepare_native(const Node& node, Call& call, ErrorSink& errors) {
  const auto& site = *static_cast<const KernelSite*>(node.native.site.get());
  call.kernel = site.kernel->table.name;
  call.prepared.prepare(*site.kernel, errors, site.kernel->table.prepare, device_->services(), errors.get(),
                        device_->instance(), &site.site, node.backward ? TN_BACKWARD : TN_FORWARD);
}

void CallArray::seal(void* workspace) {
  make_ragged();
  for (Call& call : calls_) {
    call.call.size = sizeof call.call;
    call.call.inputs_count = static_cast<uint32_t>(call.inputs.size());
    call.call.outputs_count = static_cast<uint32_t>(call.outputs.size());
    call.call.inputs = call.inputs.data();
    call.call.outputs = call.outputs.data();
    call.call.requests = call.requests.data();
    call.call.workspace = workspace;
    call.call.node = call.node;
  }
}

void CallArray::resize(const std::vector<int64_t>& symbols) {
  for (const ValueId value : varying_) {
    const Shape& shape = graph_.spec(value).shape;
    for (size_t i = 0; i < shape.size(); ++i) shapes_[at(value)][i] = tn_dim_value(&shape[i], symbols.data());
  }
}

void CallArray::request(ValueId value, uint8_t request) {
  const auto& [call, output] = makers_[at(value)];
  if (call < calls_.size()) calls_[call].requests[output] = request;
}

void CallArray::run(bool backward, const tn_execution& execution, ErrorSink& errors) const {
  for (const Call& call : calls_) {
    if (graph_.nodes[call.node].backward != backward) continue;
    const tn_status status = call.prepared.run(execution, call.call);
    if (status == TN_OK) continue;
    try {
      errors.check(status);
    } catch (const Error& error) {
      throw Error(error.code(), who(graph_.nodes[call.node]) + ": " + error.message());
    }
  }
}

nlohmann::json CallArray::describe_saved() const {
  std::set<ValueId> saved;
  for (const Node& node : graph_.nodes) {
    if (!node.backward) continue;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      const ValueId root = graph_.root(input);
      const int32_t producer = graph_.values[at(root)].producer;
      if (producer >= 0 && !graph_.nodes[static_cast<size_t>(producer)].backward) saved.insert(root);
    }
  }
  nlohmann::json list = nlohmann::json::array();
  for (const ValueId value : saved) {
    const Node& maker = graph_.nodes[static_cast<size_t>(graph_.values[at(value)].producer)];
    const std::string& name = graph_.values[at(value)].name;
    list.push_back(
        {{"layer", !name.empty() || maker.layer < 0 ? name : graph_.layers[static_cast<size_t>(maker.layer)]},
         {"value", to_string(graph_.spec(value))},
         {"bytes", bytes_of(graph_.spec(value), bounds_)}});
  }
  return list;
}

nlohmann::json CallArray::describe() const {
  nlohmann::json list = nlohmann::json::array();
  const auto total = [&](const std::vector<ValueId>& values) {
    uint64_t bytes = 0;
    for (const ValueId value : values) {
      if (value == kNoValue) continue;
      Spec spec = graph_.spec(value);
      if (spec.storage == TN_ROWS) spec.shape[0] = tn_dim_constant(shapes_[at(value)][0]);  // the rows that fit
      bytes += bytes_of(spec, bounds_);
    }
    return bytes;
  };
  for (const Call& call : calls_) {
    const Node& node = graph_.nodes[call.node];
    nlohmann::json layers = nlohmann::json::array();
    for (const int32_t layer : node.served())
      layers.push_back(layer < 0 ? std::string() : graph_.layers[static_cast<size_t>(layer)]);
    nlohmann::json outputs = nlohmann::json::array();
    for (const ValueId output : node.outputs)
      if (output != kNoValue) outputs.push_back(to_string(graph_.spec(output)));
    list.push_back({{"phase", node.backward ? "backward" : "forward"},
                    {"layers", layers},
                    {"call", primitive_name(node.primitive)},
                    {"kernel", call.kernel},
                    {"operations", node.program ? node.program->instructions.size() : 1},
                    {"outputs", outputs},
                    {"reads", total(node.inputs)},
                    {"writes", total(node.outputs)},
                    {"workspace", call.prepared->workspace_bytes},
                    {"traits", trait_names(call.prepared->traits)}});
  }
  return list;
}

}  // namespace tenon
