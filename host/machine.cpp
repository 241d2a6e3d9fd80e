// SPDX-License-Identifier: Apache-2.0
#include "host/machine.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/checked.h"
#include "core/error.h"

namespace tenon {

// What varies per step; read by kernels through device memory.
struct Machine::Control {
  int64_t symbols[8];
  tn_random random;
  double inverse_samples[1];  // 1 / samples, in the compute type
};

namespace {

constexpr uint64_t kLine = 64;
uint64_t lines(uint64_t bytes) { return checked_add(bytes, kLine - 1, "bytes") / kLine * kLine; }

// The integer at `index` of an array.
int64_t integer_at(const void* data, tn_dtype dtype, size_t index) {
  switch (dtype) {
    case TN_U8:
    case TN_BOOL:
      return static_cast<const uint8_t*>(data)[index];
    case TN_I8:
      return static_cast<const int8_t*>(data)[index];
    case TN_I16:
      return static_cast<const int16_t*>(data)[index];
    case TN_U16:
      return static_cast<const uint16_t*>(data)[index];
    case TN_I32:
      return static_cast<const int32_t*>(data)[index];
    case TN_U32:
      return static_cast<const uint32_t*>(data)[index];
    default:
      return static_cast<const int64_t*>(data)[index];
  }
}

}  // namespace

Machine::Machine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry,
                 std::shared_ptr<Device> device, const tn_parallel* parallel, const MachineOptions& options)
    : topology_(std::move(topology)),
      set_(std::move(set)),
      device_(std::move(device)),
      parallel_(parallel),
      options_(options),
      errors_(device_->who(), device_->origin().tags) {
  if (options.max_samples < 1) fail(TN_INVALID, "max_samples is ", options.max_samples, "; expected at least 1");
  if (options.compute != TN_F32 && options.compute != TN_F64)
    fail(TN_UNSUPPORTED, "compute type ", dtype_name(options.compute), "; expected float32 or float64");
  if (!device_->host_memory())
    fail(TN_UNSUPPORTED, "device \"", device_->kind(),
         "\" does not share memory with the host; machines need replicas of the parameters there, which this version "
         "does not make");
  bounds_ = {0, options.max_samples};
  compile(registry, options);
}

void Machine::compile(Registry& registry, const MachineOptions& options) {
  check_parameters();
  check_immutable();
  lowered_ = lower(topology_, registry, device_->kind(), options.compute, bounds_, options.training);
  Graph graph = std::move(lowered_.graph);
  add_costs(graph);
  if (options.training) differentiate_parameters(graph);
  kept_ = kept_values(graph, options.keep_all);
  fuse(graph, kept_);
  attach_epilogues(graph, [&](const Node& gemm, const Node& pointwise, int32_t product) {
    return prefers_epilogue(*device_, graph, bounds_, gemm, pointwise, product);
  });

  const uint64_t gradient_bytes = place_gradients();
  std::vector<bool> placed(graph.values.size(), false);
  for (size_t i = 0; i < graph.values.size(); ++i) placed[i] = graph.values[i].producer < 0;
  for (const PlacedGradient& gradient : gradients_) placed[static_cast<size_t>(gradient.value)] = true;
  memory_plan_ = plan_memory(graph, placed, kept_, bounds_);
  calls_ = std::make_unique<CallArray>(std::move(graph), device_, bounds_);
  allocate(memory_plan_, gradient_bytes);
  bind(memory_plan_);
}

namespace {

// Whether `name` is `of` or lies below it: "D.weight" below "D".
bool is_below(const std::string& name, const std::string& of) {
  return name == of || (name.size() > of.size() && name.compare(0, of.size(), of) == 0 && name[of.size()] == '.');
}

}  // namespace

void Machine::check_parameters() const {
  std::vector<std::string> known;
  for (const ParameterEntry& entry : set_->entries()) known.push_back(entry.name);
  for (const ParameterDeclaration& declaration : topology_.declarations()) {
    if (!set_->contains(declaration.name))
      fail(TN_INVALID, "parameter \"", declaration.name, "\": layer \"", declaration.owner,
           "\" needs it, and the set holds none of that name", suggestion(declaration.name, known),
           "; is this the set, or the model, of another topology?");
    if (const ParameterEntry& entry = set_->find(declaration.name); entry.shape != declaration.shape)
      fail(TN_INVALID, "parameter \"", declaration.name, "\": layer \"", declaration.owner, "\" needs ",
           to_string(declaration.shape), ", the set holds ", to_string(entry.shape));
  }
}

bool Machine::is_frozen(const std::string& name) const {
  return std::any_of(options_.immutable.begin(), options_.immutable.end(),
                     [&](const std::string& frozen) { return is_below(name, frozen); });
}

void Machine::check_immutable() const {
  std::vector<std::string> names;
  for (const ParameterDeclaration& declaration : topology_.declarations()) names.push_back(declaration.name);
  for (const std::string& frozen : options_.immutable)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return is_below(name, frozen); }))
      fail(TN_NOT_FOUND, "immutable parameter \"", frozen, "\": the topology has none of that name",
           suggestion(frozen, names));
}

// Every cost output is reduced at the root: the mean over samples.
void Machine::add_costs(Graph& graph) {
  inverse_samples_ = graph.add_external({options_.compute, {}, TN_DENSE, 0}, "1/samples");
  ProgramWriter writer;
  const int32_t sum = writer.reduce(TN_OP_REDUCE_SUM, writer.input(TN_FULL), TN_SCALAR);
  writer.output(writer.apply(TN_OP_MUL, sum, writer.input(TN_SCALAR)));
  const auto mean = std::make_shared<Program>(writer.finish());
  for (const Expression& output : topology_.outputs) {
    const Expression leaf = resolved(output);
    if (leaf.layer->role != TN_ROLE_COST || leaf.output != 0) continue;
    const ValueId per_sample = lowered_.value_of(leaf);
    const bool seen =
        std::any_of(costs_.begin(), costs_.end(), [&](const auto& cost) { return cost.first == per_sample; });
    if (seen) continue;
    const auto layer = std::find(topology_.leaves.begin(), topology_.leaves.end(), leaf.layer);
    GraphWriter nodes(graph, static_cast<int32_t>(layer - topology_.leaves.begin()), false, options_.compute);
    costs_.emplace_back(per_sample, nodes.pointwise(mean, {per_sample, inverse_samples_}, 0)[0]);
  }
}

std::vector<ValueId> Machine::kept_values(const Graph& graph, bool keep_all) const {
  std::vector<ValueId> kept;
  for (const auto& [per_sample, mean] : costs_) kept.push_back(mean);
  for (const MetricUse& metric : lowered_.metrics) kept.insert(kept.end(), metric.state.begin(), metric.state.end());
  for (const Expression& output : topology_.outputs)
    if (resolved(output).layer->role != TN_ROLE_METRIC) kept.push_back(lowered_.value_of(output));
  for (const BufferUse& buffer : lowered_.buffers)
    if (!is_frozen(buffer.name)) kept.push_back(buffer.next);
  for (const ParameterUse& parameter : lowered_.parameters) kept.push_back(parameter.gradient);
  if (keep_all)
    for (const auto& [layer, value] : lowered_.outputs) kept.push_back(value);
  std::erase_if(kept,
                [&](ValueId value) { return value == kNoValue || static_cast<size_t>(value) >= graph.values.size(); });
  return kept;
}

void Machine::differentiate_parameters(Graph& graph) {
  if (costs_.empty()) fail(TN_INVALID, "training needs a cost among the outputs; none of them has that role");
  std::vector<GradientSeed> seeds;
  // The derivative of the mean: 1 / samples for every sample.
  ProgramWriter writer;
  writer.output(writer.expand(writer.input(TN_SCALAR), TN_FULL));
  const auto spread = std::make_shared<Program>(writer.finish());
  for (const auto& [per_sample, mean] : costs_) {
    const int32_t layer = graph.nodes[static_cast<size_t>(graph.values[static_cast<size_t>(mean)].producer)].layer;
    GraphWriter nodes(graph, layer, true, options_.compute);
    seeds.push_back({per_sample, nodes.pointwise_on(spread, {inverse_samples_}, graph.spec(per_sample).shape, 1)[0]});
  }
  std::vector<ValueId> wanted;
  for (const ParameterUse& parameter : lowered_.parameters)
    if (!is_frozen(parameter.name)) wanted.push_back(parameter.computed);
  if (wanted.empty() && !options_.immutable.empty())
    fail(TN_INVALID, "every parameter is immutable: nothing is left to train");
  const std::map<ValueId, ValueId> gradients = differentiate(graph, seeds, wanted, options_.compute);
  for (ParameterUse& parameter : lowered_.parameters) {
    if (is_frozen(parameter.name)) continue;
    const ValueId gradient = gradients.at(parameter.computed);
    if (gradient != kNoValue) parameter.gradient = own_value(graph, gradient);
  }
}

// A gradient is written (or added) straight into its place, so its value must be its own: not a view, not read by
// another node, not the gradient of two parameters. Where it is not, it is copied.
ValueId Machine::own_value(Graph& graph, ValueId value) const {
  bool shared = graph.root(value) != value || graph.values[static_cast<size_t>(value)].producer < 0;
  for (const Node& node : graph.nodes)
    shared = shared || std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
  for (const ParameterUse& other : lowered_.parameters) shared = shared || other.gradient == value;
  for (const GraphValue& other : graph.values) shared = shared || other.alias_of == value;
  if (!shared) return value;
  const int32_t producer = graph.values[static_cast<size_t>(graph.root(value))].producer;
  const int32_t layer = producer < 0 ? -1 : graph.nodes[static_cast<size_t>(producer)].layer;
  return GraphWriter(graph, layer, true, options_.compute).convert(value, 1, 0);
}

namespace {

uint64_t padded(uint64_t count) { return (count + 15) / 16 * 16; }

}  // namespace

// Gradients lie in the order of the set, padded like it, so that neighbours there are neighbours here.
uint64_t Machine::place_gradients() {
  std::map<size_t, ValueId> by_entry;
  for (const ParameterUse& use : lowered_.parameters)
    if (use.gradient != kNoValue) by_entry[set_->index(use.name)] = use.gradient;
  uint64_t bytes = 0;
  for (const auto& [number, gradient] : by_entry) {
    gradients_.push_back({gradient, number, bytes});
    bytes += padded(set_->entries()[number].count) * tn_dtype_bytes(options_.compute);
  }
  return bytes;
}

std::vector<GradientRun> Machine::gradient_runs(const Topology* model) const {
  std::set<std::string> used;
  if (model != nullptr)
    for (const ParameterDeclaration& declaration : model->declarations()) used.insert(declaration.name);
  std::vector<GradientRun> runs;
  uint64_t end = 0;  // bytes into the gradients behind the last run
  for (const PlacedGradient& gradient : gradients_) {
    const ParameterEntry& entry = set_->entries()[gradient.entry];
    if (model != nullptr && !used.contains(entry.name)) continue;
    GradientRun* last = runs.empty() ? nullptr : &runs.back();
    const bool joins = last != nullptr && end == gradient.offset && last->slab == entry.slab &&
                       last->offset + padded(last->elements) == entry.offset &&
                       last->rate_multiplier == entry.rate_multiplier &&
                       last->decay_multiplier == entry.decay_multiplier;
    if (!joins) {
      GradientRun run;
      run.parameters = set_->data(entry);
      run.gradients = memory_.data() + sections_.gradients + gradient.offset;
      run.gradient_dtype = options_.compute;
      run.slab = entry.slab;
      run.offset = entry.offset;
      run.rate_multiplier = entry.rate_multiplier;
      run.decay_multiplier = entry.decay_multiplier;
      runs.push_back(std::move(run));
      last = &runs.back();
    }
    last->elements = entry.offset - last->offset + entry.count;
    last->entries.push_back(gradient.entry);
    end = gradient.offset + padded(entry.count) * tn_dtype_bytes(options_.compute);
  }
  return runs;
}

void Machine::allocate(const MemoryPlan& plan, uint64_t gradient_bytes) {
  uint64_t total = lines(sizeof(Control));
  const auto section = [&](uint64_t bytes) {
    const uint64_t begin = total;
    total = checked_add(total, lines(bytes), "machine bytes");
    return begin;
  };
  uint64_t feed_bytes = 0;
  for (const Feed& feed : lowered_.feeds) feed_bytes = checked_add(feed_bytes, bytes_of(feed.spec, bounds_), "feeds");
  sections_.feeds = section(feed_bytes);
  sections_.gradients = section(gradient_bytes);
  sections_.arena = section(plan.bytes);
  sections_.workspace = section(calls_->workspace_bytes());
  sections_.total = total;
  memory_ = DeviceMemory(device_, total);
  std::memset(memory_.data() + sections_.gradients, 0, gradient_bytes);
}

void Machine::bind(const MemoryPlan& plan) {
  std::byte* base = memory_.data();
  control_ = new (base + sections_.control) Control{};
  control_->random.seed = options_.seed;
  calls_->bind(inverse_samples_, control_->inverse_samples);
  uint64_t feed_offset = sections_.feeds;
  for (const Feed& feed : lowered_.feeds) {
    calls_->bind(feed.value, base + feed_offset);
    feed_offset += bytes_of(feed.spec, bounds_);
  }
  for (const ParameterUse& use : lowered_.parameters) calls_->bind(use.stored, set_->data(use.name));
  for (const BufferUse& use : lowered_.buffers) calls_->bind(use.stored, set_->data(use.name));
  for (const PlacedGradient& gradient : gradients_)
    calls_->bind(gradient.value, base + sections_.gradients + gradient.offset);
  const Graph& graph = calls_->graph();
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (plan.offsets[i] != MemoryPlan::kNotHere)
      calls_->bind(static_cast<ValueId>(i), base + sections_.arena + plan.offsets[i]);
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (const auto value = static_cast<ValueId>(i); graph.root(value) != value)
      calls_->bind(value, calls_->memory(graph.root(value)));
  calls_->seal(base + sections_.workspace);
  execution_.size = sizeof execution_;
  execution_.device = device_->instance();
  execution_.symbols = control_->symbols;
  execution_.random = &control_->random;
  execution_.parallel = parallel_;
  execution_.errors = errors_.get();
}

int64_t Machine::check_feeds(const std::vector<NamedArray>& feeds) const {
  std::vector<std::string> names;
  for (const Feed& feed : lowered_.feeds) names.push_back(feed.name);
  int64_t samples = -1;
  for (const NamedArray& given : feeds) {
    const auto feed = std::find_if(lowered_.feeds.begin(), lowered_.feeds.end(),
                                   [&](const Feed& known) { return known.name == given.name; });
    if (feed == lowered_.feeds.end())
      fail(TN_NOT_FOUND, "there is no data layer \"", given.name, "\"", suggestion(given.name, names));
    const Shape& shape = feed->spec.shape;
    bool fits = given.array.dtype == feed->spec.dtype && given.array.shape.size() == shape.size();
    for (size_t i = 1; fits && i < shape.size(); ++i) fits = given.array.shape[i] == shape[i].offset;
    if (!fits)
      fail(TN_INVALID, "data layer \"", given.name, "\": expected ", to_string(feed->spec), ", got ",
           dtype_name(given.array.dtype), " ", to_string(given.array.shape));
    const int64_t count = given.array.shape[0];
    if (count < 0 || count > options_.max_samples)
      fail(TN_INVALID, "data layer \"", given.name, "\": ", count, " samples; the machine was made for at most ",
           options_.max_samples);
    if (samples >= 0 && samples != count)
      fail(TN_INVALID, "data layer \"", given.name, "\" has ", count, " samples, another one ", samples);
    if (count > 0 && given.array.data == nullptr) fail(TN_MISUSE, "data layer \"", given.name, "\": null data");
    samples = count;
  }
  for (const std::string& name : names)
    if (std::none_of(feeds.begin(), feeds.end(), [&](const NamedArray& given) { return given.name == name; }))
      fail(TN_INVALID, "data layer \"", name, "\" is not fed");
  return std::max<int64_t>(samples, 0);
}

void Machine::check_indices(const Feed& feed, const ArrayView& array) const {
  if (feed.index_limit < 0 || is_float(array.dtype)) return;
  size_t per_sample = 1;
  for (size_t i = 1; i < array.shape.size(); ++i) per_sample *= static_cast<size_t>(array.shape[i]);
  const size_t count = static_cast<size_t>(array.shape[0]) * per_sample;
  for (size_t i = 0; i < count; ++i) {
    const int64_t value = integer_at(array.data, array.dtype, i);
    if (value >= 0 && value < feed.index_limit) continue;
    fail(TN_BAD_DATA, "data layer \"", feed.name, "\": sample ", i / per_sample, " of the minibatch is ", value,
         "; layer \"", feed.limited_by, "\" needs 0 to ", feed.index_limit - 1);
  }
}

void Machine::begin_step(int64_t samples) {
  control_->symbols[TN_SYMBOL_SAMPLES] = samples;
  const double inverse = samples > 0 ? 1.0 / static_cast<double>(samples) : 0.0;
  if (options_.compute == TN_F64) {
    control_->inverse_samples[0] = inverse;
  } else {
    const auto narrow = static_cast<float>(inverse);
    std::memcpy(control_->inverse_samples, &narrow, sizeof narrow);
  }
  if (samples != samples_) calls_->resize({0, samples});
}

void Machine::forward(const std::vector<NamedArray>& feeds) {
  const int64_t samples = check_feeds(feeds);
  for (const Feed& feed : lowered_.feeds)
    for (const NamedArray& given : feeds)
      if (given.name == feed.name) check_indices(feed, given.array);
  begin_step(samples);
  samples_ = -1;
  fresh_ = false;
  for (const Feed& feed : lowered_.feeds)
    for (const NamedArray& given : feeds) {
      if (given.name != feed.name || samples == 0) continue;
      uint64_t bytes = tn_dtype_bytes(given.array.dtype);
      for (const int64_t extent : given.array.shape) bytes *= static_cast<uint64_t>(extent);
      std::memcpy(calls_->memory(feed.value), given.array.data, bytes);
    }
  if (samples > 0) calls_->run(false, execution_, errors_);
  samples_ = samples;
  fresh_ = true;
}

void Machine::backward() {
  if (!options_.training) fail(TN_MISUSE, "this machine was made without training; it has no backward");
  if (!fresh_) fail(TN_MISUSE, "backward needs a forward of its own that succeeded before it");
  fresh_ = false;
  if (samples_ == 0) return;
  const uint8_t request = accumulated_ ? TN_REQUEST_ADD : TN_REQUEST_WRITE;
  for (const ParameterUse& use : lowered_.parameters)
    if (use.gradient != kNoValue) calls_->request(use.gradient, request);
  accumulated_ = false;
  calls_->run(true, execution_, errors_);
  accumulated_ = true;
}

void Machine::commit(const Topology* model) {
  std::set<std::string> used;
  if (model != nullptr)
    for (const ParameterDeclaration& declaration : model->declarations()) used.insert(declaration.name);
  for (const BufferUse& buffer : lowered_.buffers) {
    if (buffer.next == kNoValue || samples_ <= 0 || is_frozen(buffer.name)) continue;
    if (model != nullptr && !used.contains(buffer.name)) continue;
    const uint64_t count = set_->find(buffer.name).count;
    float* kept = set_->data(buffer.name);
    const void* next = calls_->memory(buffer.next);
    if (options_.compute == TN_F32)
      std::memcpy(kept, next, count * sizeof(float));
    else
      std::transform(static_cast<const double*>(next), static_cast<const double*>(next) + count, kept,
                     [](double value) { return static_cast<float>(value); });
  }
  accumulated_ = false;
  ++control_->random.step;
  set_->mark_changed();
}

double Machine::scalar(ValueId value) const {
  if (samples_ <= 0) return 0;
  const void* data = calls_->memory(value);
  return calls_->graph().spec(value).dtype == TN_F64 ? *static_cast<const double*>(data)
                                                     : static_cast<double>(*static_cast<const float*>(data));
}

double Machine::cost() const {
  double sum = 0;
  for (const auto& [per_sample, mean] : costs_) sum += scalar(mean);
  return sum;
}

std::vector<double> Machine::metric_state(const LayerRef& metric) const {
  for (const MetricUse& use : lowered_.metrics) {
    if (use.layer != metric) continue;
    std::vector<double> state;
    for (const ValueId value : use.state) state.push_back(scalar(value));
    return state;
  }
  fail(TN_NOT_FOUND, "the machine has no metric \"", metric->name, "\"");
}

ArrayView Machine::view(ValueId value) const {
  const Spec& spec = calls_->graph().spec(value);
  ArrayView result;
  result.dtype = spec.dtype;
  result.data = calls_->memory(value);
  const int64_t symbols[2] = {0, std::max<int64_t>(samples_, 0)};
  for (const Dim& dim : spec.shape) result.shape.push_back(tn_dim_value(&dim, symbols));
  return result;
}

bool Machine::is_kept(ValueId value) const {
  if (std::find(kept_.begin(), kept_.end(), value) != kept_.end()) return true;
  return std::any_of(lowered_.feeds.begin(), lowered_.feeds.end(),
                     [&](const Feed& feed) { return feed.value == value; });
}

ArrayView Machine::output(const Expression& expression) const {
  const ValueId value = lowered_.value_of(expression);
  if (value == kNoValue)
    fail(TN_NOT_FOUND, "layer \"", expression_name(expression), "\" has no output in this machine");
  if (!is_kept(value))
    fail(TN_NOT_KEPT, "the output of layer \"", expression_name(expression),
         "\" is not kept; make it one of the machine's outputs, or set keep_all");
  if (samples_ < 0) fail(TN_MISUSE, "an output needs a forward that succeeded before it");
  return view(value);
}

ArrayView Machine::gradient(const std::string& parameter) const {
  std::vector<std::string> names;
  for (const ParameterUse& use : lowered_.parameters) {
    names.push_back(use.name);
    if (use.name != parameter) continue;
    if (use.gradient == kNoValue) fail(TN_NOT_FOUND, "parameter \"", parameter, "\" has no gradient in this machine");
    if (!accumulated_) fail(TN_MISUSE, "parameter \"", parameter, "\": no backward since the last update");
    return view(use.gradient);
  }
  fail(TN_NOT_FOUND, "the machine has no parameter \"", parameter, "\"", suggestion(parameter, names));
}

nlohmann::json Machine::describe() const {
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerRef& leaf : topology_.leaves)
    layers.push_back({{"name", leaf->name},
                      {"type", leaf->type},
                      {"output", leaf->outputs.empty() ? std::string() : to_string(leaf->outputs[0])}});
  uint64_t parameter_bytes = 0;
  for (const ParameterSlab& slab : set_->slabs()) parameter_bytes += slab.padded_elements * sizeof(float);
  return {{"device", device_->kind()},
          {"compute", dtype_name(options_.compute)},
          {"max_samples", options_.max_samples},
          {"training", options_.training},
          {"layers", layers},
          {"calls", calls_->describe()},
          {"saved", calls_->describe_saved()},
          {"bytes",
           {{"parameters", parameter_bytes},
            {"control", sections_.feeds - sections_.control},
            {"feeds", sections_.gradients - sections_.feeds},
            {"gradients", sections_.arena - sections_.gradients},
            {"arena", sections_.workspace - sections_.arena},
            {"workspace", sections_.total - sections_.workspace},
            {"machine", sections_.total},
            {"live_bound", memory_plan_.live_bound}}}};
}

}  // namespace tenon
