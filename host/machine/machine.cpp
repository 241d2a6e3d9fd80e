// SPDX-License-Identifier: Apache-2.0
#include "host/machine/machine.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/alignment.h"
#include "core/checked.h"
#include "core/error.h"

namespace tenon {

Machine::Machine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry,
                 std::shared_ptr<Device> device, const tn_parallel* parallel, const MachineOptions& options)
    : Machine(std::move(topology), std::move(set), registry, std::move(device), parallel, options, {}) {}

Machine::Machine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry,
                 std::shared_ptr<Device> device, const tn_parallel* parallel, const MachineOptions& options,
                 std::map<int32_t, int64_t> row_bounds)
    : topology_(std::move(topology)),
      set_(std::move(set)),
      registry_(&registry),
      device_(std::move(device)),
      parallel_(parallel),
      options_(options),
      row_bounds_(std::move(row_bounds)),
      errors_(device_->who(), device_->origin().tags) {
  if (options.max_samples < 1) fail(TN_INVALID, "max_samples is ", options.max_samples, "; expected at least 1");
  if (options.compute != TN_F32 && options.compute != TN_F64)
    fail(TN_UNSUPPORTED, "compute type ", dtype_name(options.compute), "; expected float32 or float64");
  if (!device_->host_memory())
    fail(TN_UNSUPPORTED, "device \"", device_->kind(),
         "\" does not share memory with the host; machines need replicas of the parameters there, which this version "
         "does not make");
  if (options.max_rows < 0) fail(TN_INVALID, "max_rows is ", options.max_rows, "; expected at least 0");
  set_bounds();
  compile(options);
}

// The bounds of the symbols that the topology has.
void Machine::set_bounds() {
  constexpr int64_t kFirstRows = 16;  // for each sample, until a minibatch has more
  bounds_ = {0, options_.max_samples};
  const auto put = [&](int32_t symbol, int64_t bound) {
    const auto at = static_cast<size_t>(symbol);
    if (bounds_.size() <= at) bounds_.resize(at + 1, 0);
    bounds_[at] = bound;
  };
  const int64_t first =
      options_.max_rows > 0 ? options_.max_rows : checked_multiply(options_.max_samples, kFirstRows, "rows");
  const auto fed = [&](const Dim& dim) {
    if (!is_rows(dim)) return;
    const auto grown = row_bounds_.find(dim.symbol);
    put(dim.symbol, grown == row_bounds_.end() ? first : grown->second);
  };
  for (const LayerRef& leaf : topology_.leaves) {
    for (const JoinedRows& joined : leaf->joined)
      put(joined.rows, checked_add(bounds_.at(static_cast<size_t>(joined.first)),
                                   bounds_.at(static_cast<size_t>(joined.second)), "rows"));
    if (!leaf->data) continue;
    fed(leaf->outputs[0].shape[0]);
    for (const Dim& outer : leaf->outputs[0].outer) fed(outer);
  }
}

void Machine::compile(const MachineOptions& options) {
  check_parameters();
  check_immutable();
  lowered_ = lower(topology_, *registry_, device_->kind(), options.compute, bounds_, options.training);
  Graph graph = std::move(lowered_.graph);
  add_costs(graph);
  if (options.training) {
    check_costs();
    differentiate_parameters(graph);
  }
  kept_ = kept_values(graph, options.keep_all);
  fuse(graph, kept_);
  join_bags(graph, kept_);
  attach_epilogues(graph, [&](const Node& gemm, const Node& pointwise, int32_t product) {
    return prefers_epilogue(*device_, graph, bounds_, gemm, pointwise, product);
  });

  const uint64_t gradient_bytes = place_gradients(graph);
  std::vector<bool> placed(graph.values.size(), false);
  for (size_t i = 0; i < graph.values.size(); ++i) placed[i] = graph.values[i].producer < 0;
  for (const ParameterUse& use : lowered_.parameters)
    if (use.gradient != kNoValue) placed[static_cast<size_t>(use.gradient)] = true;
  memory_plan_ = plan_memory(graph, placed, kept_, bounds_);
  std::vector<ParameterUse> by_rows;
  for (const ParameterUse& use : lowered_.parameters)
    if (use.gradient != kNoValue && graph.spec(use.gradient).storage == TN_ROWS) by_rows.push_back(use);
  calls_ = std::make_unique<CallArray>(std::move(graph), device_, bounds_);
  for (const ParameterUse& use : by_rows) place_rows(use);
  lay_out(memory_plan_, gradient_bytes);
  if (!set_->has_values()) return;
  memory_ = DeviceMemory(device_, sections_.total);
  std::memset(memory_.data() + sections_.gradients, 0, gradient_bytes);
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

namespace {

// A gradient is written (or added) straight into its place, so its value must be its own: not a view, not read by
// another node, not the gradient of two parameters. Where it is not, it is copied: for each of two parameters, since a
// copy would read what was added up in the place of the other.
ValueId own_value(Graph& graph, ValueId value, int owners, tn_dtype compute) {
  bool shared = owners > 1 || graph.root(value) != value || graph.values[static_cast<size_t>(value)].producer < 0;
  for (const Node& node : graph.nodes)
    shared = shared || std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
  for (const GraphValue& other : graph.values) shared = shared || other.alias_of == value;
  if (!shared) return value;
  const int32_t producer = graph.values[static_cast<size_t>(graph.root(value))].producer;
  const int32_t layer = producer < 0 ? -1 : graph.nodes[static_cast<size_t>(producer)].layer;
  return GraphWriter(graph, layer, true, compute).convert(value, 1, 0);
}

}  // namespace

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
    const Shape& shape = graph.spec(per_sample).shape;
    seeds.push_back({per_sample, nodes.pointwise_on(spread, {inverse_of(graph, shape[0].symbol)}, shape, 1)[0]});
  }
  std::vector<ValueId> wanted;
  std::set<ValueId> by_rows;
  for (const ParameterUse& parameter : lowered_.parameters) {
    if (is_frozen(parameter.name)) continue;
    wanted.push_back(parameter.computed);
    if (parameter.by_rows) by_rows.insert(parameter.computed);
  }
  if (wanted.empty() && !options_.immutable.empty())
    fail(TN_INVALID, "every parameter is immutable: nothing is left to train");
  const std::map<ValueId, ValueId> gradients = differentiate(graph, seeds, wanted, options_.compute, by_rows);
  std::map<ValueId, int> owners;  // of each gradient
  for (const auto& [computed, gradient] : gradients) ++owners[gradient];
  for (ParameterUse& parameter : lowered_.parameters) {
    if (is_frozen(parameter.name)) continue;
    const ValueId gradient = gradients.at(parameter.computed);
    if (gradient == kNoValue) continue;
    parameter.gradient = graph.spec(gradient).storage == TN_ROWS
                             ? gradient
                             : own_value(graph, gradient, owners.at(gradient), options_.compute);
  }
}

// Gradients lie in the order of the set, padded like it, so that neighbours there are neighbours here.
uint64_t Machine::place_gradients(const Graph& graph) {
  std::map<size_t, ValueId> by_entry;
  for (const ParameterUse& use : lowered_.parameters)
    if (use.gradient != kNoValue && graph.spec(use.gradient).storage != TN_ROWS)
      by_entry[set_->index(use.name)] = use.gradient;
  uint64_t bytes = 0;
  for (const auto& [number, gradient] : by_entry) {
    gradients_.push_back({gradient, number, bytes});
    bytes += padded_elements(set_->entries()[number].count) * tn_dtype_bytes(options_.compute);
  }
  return bytes;
}

Used::Used(const Topology* model) : all_(model == nullptr) {
  if (model == nullptr) return;
  for (const ParameterDeclaration& declaration : model->declarations()) names_.insert(declaration.name);
}

std::vector<GradientRun> Machine::gradient_runs(const Topology* model) const {
  const Used used(model);
  std::vector<GradientRun> runs;
  uint64_t end = 0;  // bytes into the gradients behind the last run
  for (const PlacedGradient& gradient : gradients_) {
    const ParameterEntry& entry = set_->entries()[gradient.entry];
    if (!used.contains(entry.name)) continue;
    GradientRun* last = runs.empty() ? nullptr : &runs.back();
    const bool joins = last != nullptr && end == gradient.offset && last->slab == entry.slab &&
                       last->offset + padded_elements(last->elements) == entry.offset &&
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
    end = gradient.offset + padded_elements(entry.count) * tn_dtype_bytes(options_.compute);
  }
  return runs;
}

void Machine::lay_out(const MemoryPlan& plan, uint64_t gradient_bytes) {
  uint64_t total = whole_lines(sizeof(tn_random)) + 2 * whole_lines(bounds_.size() * sizeof(int64_t));
  const auto section = [&](uint64_t bytes) {
    const uint64_t begin = total;
    total = checked_add(total, whole_lines(bytes), "machine bytes");
    return begin;
  };
  uint64_t feed_bytes = 0;
  for (const ValueId fed : fed_values())
    feed_bytes = checked_add(feed_bytes, bytes_of(calls_->graph().spec(fed), bounds_), "feeds");
  sections_.feeds = section(feed_bytes);
  sections_.gradients = section(gradient_bytes);
  sections_.arena = section(plan.bytes);
  sections_.workspace = section(calls_->workspace_bytes());
  sections_.total = total;
}

// What comes from outside with every minibatch.
std::vector<ValueId> Machine::fed_values() const {
  std::vector<ValueId> values;
  for (const RowsUse& rows : lowered_.rows) values.push_back(rows.of.offsets);
  for (const Feed& feed : lowered_.feeds) {
    values.push_back(feed.value);
    if (feed.weights != kNoValue) values.push_back(feed.weights);
  }
  return values;
}

void Machine::bind(const MemoryPlan& plan) {
  std::byte* base = memory_.data();
  const Graph& graph = calls_->graph();
  random_ = new (base + sections_.control) tn_random{options_.seed, 0};
  const uint64_t per_symbol = whole_lines(bounds_.size() * sizeof(int64_t));
  std::byte* const symbols = base + sections_.control + whole_lines(sizeof(tn_random));
  std::memset(symbols, 0, 2 * per_symbol);
  device_symbols_ = reinterpret_cast<int64_t*>(symbols);
  device_inverses_ = symbols + per_symbol;
  symbols_.assign(bounds_.size(), 0);
  for (const auto& [symbol, inverse] : inverses_)
    calls_->bind(inverse, device_inverses_ + static_cast<size_t>(symbol) * sizeof(double));
  uint64_t feed_offset = sections_.feeds;
  for (const ValueId fed : fed_values()) {
    calls_->bind(fed, base + feed_offset);
    fed_memory_[fed].own = base + feed_offset;
    feed_offset += bytes_of(graph.spec(fed), bounds_);
  }
  for (const ParameterUse& use : lowered_.parameters) calls_->bind(use.stored, set_->data(use.name));
  for (const BufferUse& use : lowered_.buffers) calls_->bind(use.stored, set_->data(use.name));
  for (const PlacedGradient& gradient : gradients_)
    calls_->bind(gradient.value, base + sections_.gradients + gradient.offset);
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (plan.offsets[i] != MemoryPlan::kNotHere)
      calls_->bind(static_cast<ValueId>(i), base + sections_.arena + plan.offsets[i]);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const auto value = static_cast<ValueId>(i);
    const ValueId root = graph.root(value);
    if (root != value) calls_->bind(value, calls_->memory(root));
    if (const auto fed = fed_memory_.find(root); fed != fed_memory_.end()) fed->second.views.push_back(value);
  }
  calls_->seal(base + sections_.workspace);
  execution_.size = sizeof execution_;
  execution_.device = device_->instance();
  execution_.symbols = device_symbols_;
  execution_.random = random_;
  execution_.parallel = parallel_;
  execution_.errors = errors_.get();
}

void Machine::backward() {
  if (!options_.training) fail(TN_MISUSE, "this machine was made without training; it has no backward");
  if (!fresh_) fail(TN_MISUSE, "backward needs a forward of its own that succeeded before it");
  if (samples_ > 0)
    for (const auto& gradient : rows_gradients_) reserve_rows(*gradient);  // may fail, before anything has changed
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
  const Used used(model);
  for (const BufferUse& buffer : lowered_.buffers) {
    if (buffer.next == kNoValue || samples_ <= 0 || is_frozen(buffer.name)) continue;
    if (!used.contains(buffer.name)) continue;
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
  set_->count_update();
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
  for (const Dim& dim : spec.shape) result.shape.push_back(size_of(dim));
  const Spec ragged = calls_->graph().in_sequences(value);
  if (ragged.storage != TN_RAGGED) return result;
  result.storage = TN_RAGGED;
  result.levels = ragged.levels;
  result.samples = samples_;
  const Graph& graph = calls_->graph();
  Dim rows = ragged.shape[0];
  for (size_t level = ragged.outer.size(); level-- > 0;) {  // from the inside
    const RowsOf& of = graph.rows.at(rows.symbol);
    result.offsets[level] = static_cast<const int64_t*>(calls_->memory(of.offsets));
    rows = of.outer;
  }
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

const ParameterUse& Machine::differentiated(const std::string& parameter) const {
  std::vector<std::string> names;
  for (const ParameterUse& use : lowered_.parameters) {
    names.push_back(use.name);
    if (use.name != parameter) continue;
    if (use.gradient == kNoValue) fail(TN_NOT_FOUND, "parameter \"", parameter, "\" has no gradient in this machine");
    if (!accumulated_) fail(TN_MISUSE, "parameter \"", parameter, "\": no backward since the last update");
    return use;
  }
  fail(TN_NOT_FOUND, "the machine has no parameter \"", parameter, "\"", suggestion(parameter, names));
}

ArrayView Machine::gradient(const std::string& parameter) {
  const ParameterUse& use = differentiated(parameter);
  for (const auto& gradient : rows_gradients_)
    if (gradient->value == use.gradient) return dense_copy(*gradient);
  return view(use.gradient);
}

nlohmann::json Machine::describe() const {
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerRef& leaf : topology_.leaves)
    layers.push_back({{"name", leaf->name},
                      {"type", leaf->type},
                      {"output", leaf->outputs.empty() ? std::string() : to_string(leaf->outputs[0])}});
  uint64_t parameter_bytes = 0;
  for (const ParameterSlab& slab : set_->slabs()) parameter_bytes += slab.padded_elements * sizeof(float);
  uint64_t rows_bytes = 0;
  for (const auto& gradient : rows_gradients_) rows_bytes += gradient->bytes;
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
            {"rows", rows_bytes},
            {"arena", sections_.workspace - sections_.arena},
            {"workspace", sections_.total - sections_.workspace},
            {"machine", sections_.total + rows_bytes},
            {"live_bound", memory_plan_.live_bound}}}};
}

}  // namespace tenon
