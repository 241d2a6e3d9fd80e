// SPDX-License-Identifier: Apache-2.0
#include "host/training/training_loop.h"

#include <algorithm>

#include "core/error.h"

namespace tenon {

PassResult::PassResult(const Machine& machine, Registry& registry) {
  for (const MetricUse& use : machine.metrics())
    metrics_.push_back({use.layer, &registry.layer(use.layer->type), std::vector<double>(use.state.size(), 0.0)});
}

void PassResult::clear() {
  for (Metric& metric : metrics_) std::fill(metric.state.begin(), metric.state.end(), 0.0);
  cost_sum_ = 0;
  samples_ = 0;
}

void PassResult::add(const Machine& machine) {
  for (Metric& metric : metrics_) {
    const std::vector<double> state = machine.metric_state(metric.layer);
    for (size_t i = 0; i < state.size(); ++i) metric.state[i] += state[i];
  }
  cost_sum_ += machine.cost() * static_cast<double>(machine.samples());
  samples_ += machine.samples();
}

double PassResult::cost() const { return samples_ == 0 ? 0 : cost_sum_ / static_cast<double>(samples_); }

std::vector<MetricValue> PassResult::metrics() const {
  struct Named {
    std::string layer;
    MetricValue metric;
  };
  std::vector<Named> all;
  for (const Metric& metric : metrics_) {
    std::vector<MetricValue> values;
    const AttributesView attributes(metric.type->description.attributes, metric.layer->attributes);
    const std::string who = "metric \"" + metric.layer->name + "\"";
    struct Results {
      uint32_t size;
      void* self;
    };
    const Loan<Results> results(metric.type->tags, &values, "metric's result", who);
    const tn_metric_result result = [](void* self, const char* name, double value) {
      const LentUse use(self);
      auto* const list = use.object<std::vector<MetricValue>>();
      if (list != nullptr) list->push_back({name == nullptr ? "" : name, value});
    };
    const tn_status status = call_plugin(*metric.type, who, {Tag::kAny, "finalize"}, metric.type->table.finalize,
                                         attributes.get(), metric.state.data(), result, results->self);
    if (status != TN_OK) fail(TN_PLUGIN_FAULT, who, ": finalize answered ", status_text(status));
    for (MetricValue& value : values) all.push_back({metric.layer->name, std::move(value)});
  }
  std::vector<MetricValue> result;
  for (const Named& named : all) {
    const auto same_name = [&](const Named& other) { return other.metric.name == named.metric.name; };
    const bool unique = std::count_if(all.begin(), all.end(), same_name) == 1;
    result.push_back({unique ? named.metric.name : named.layer + "." + named.metric.name, named.metric.value});
  }
  return result;
}

Feeder::Feeder(const Topology& topology, const std::vector<Slot>& slots,
               const std::map<std::string, std::string>& feeding) {
  std::vector<std::string> names;
  for (const Slot& slot : slots) names.push_back(slot.name);
  for (const auto& [slot, layer] : feeding)
    if (std::find(names.begin(), names.end(), slot) == names.end())
      fail(TN_INVALID, "feeding: the reader has no slot \"", slot, "\"", suggestion(slot, names));
  for (const LayerRef& layer : topology.layers) {
    if (!layer->data) continue;
    const auto feeds_layer = [&](const std::string& slot) {
      const auto mapped = feeding.find(slot);
      return (mapped == feeding.end() ? slot : mapped->second) == layer->name;
    };
    const auto slot = std::find_if(names.begin(), names.end(), feeds_layer);
    const auto second = slot == names.end() ? slot : std::find_if(slot + 1, names.end(), feeds_layer);
    if (second != names.end())
      fail(TN_INVALID, "data layer \"", layer->name, "\": the slots \"", *slot, "\" and \"", *second,
           "\" both feed it");
    const auto elsewhere = feeding.find(layer->name);
    if (slot == names.end() && elsewhere != feeding.end())
      fail(TN_INVALID, "data layer \"", layer->name, "\": no slot of the reader feeds it; that of its name feeds \"",
           elsewhere->second, "\"");
    if (slot == names.end())
      fail(TN_INVALID, "data layer \"", layer->name, "\": no slot of the reader feeds it",
           suggestion(layer->name, names));
    const auto number = static_cast<size_t>(slot - names.begin());
    links_.push_back({number, layer->name, slots[number]});
  }
}

std::vector<NamedArray> Feeder::feeds(const SampleBlock& minibatch) const {
  std::vector<NamedArray> feeds;
  for (const Link& link : links_) feeds.push_back({link.data_layer, minibatch.columns()[link.slot].view()});
  return feeds;
}

void Feeder::check_names(const ParameterSet& set) const {
  for (const Link& link : links_)
    if (const auto known = set.names().find(link.data_layer); known != set.names().end())
      require_known("data layer \"" + link.data_layer + "\"", link.source, *known->second);
}

// A reader may name fewer than are known.
void Feeder::keep_names(ParameterSet& set) const {
  DataNames names = set.names();
  for (const Link& link : links_)
    if (link.source.names != nullptr) names.try_emplace(link.data_layer, link.source.names);
  set.set_names(std::move(names));
}

namespace {

// The minibatches of a run. It begins with the first sample where the reader can go back to it; else it goes on in the
// pass that was left in the middle, and where nothing is left of that, with the next.
class Minibatches {
 public:
  explicit Minibatches(const TrainRequest& request) : reader_(request.reader), minibatch_(request.minibatch) {
    if (reader_.position() == 0) return;
    try {
      reader_.seek(reader_.pass(), 0);
    } catch (const Error& error) {
      if (error.code() != TN_UNSUPPORTED) throw;
      amid_ = true;
    }
  }

  // Samples of the next one; 0 at the end of a pass.
  int64_t next() {
    minibatch_.clear();
    int64_t samples = reader_.next(minibatch_, reader_.batch());
    if (samples == 0 && amid_) samples = reader_.next(minibatch_, reader_.batch());
    amid_ = false;
    return samples;
  }

 private:
  Reader& reader_;
  SampleBlock& minibatch_;
  bool amid_ = false;
};

// One training run: the state that events are made from.
class Training {
 public:
  Training(const TrainRequest& request, Updater& updater, const EventHandler& handler)
      : request_(request),
        updater_(updater),
        handler_(handler),
        feeder_(request.machine.topology(), request.reader.slots(), request.feeding),
        minibatches_(request),
        pass_result_(request.machine, request.registry),
        batch_result_(request.machine, request.registry) {
    feeder_.check_names(*request.machine.set());
  }

  void run(int64_t passes) {
    pass_began_ = request_.clock.now();
    bool going = send(EventKind::kBeginTraining, nullptr);
    for (pass_ = 0; going && pass_ < passes; ++pass_) going = run_pass();
    pass_ = std::max<int64_t>(pass_ - 1, 0);
    send(EventKind::kEndTraining, &pass_result_);
  }

 private:
  bool run_pass() {
    pass_result_.clear();
    pass_began_ = request_.clock.now();
    batch_ = 0;
    bool going = send(EventKind::kBeginPass, nullptr);
    for (; going; ++batch_) {
      if (minibatches_.next() == 0) return send(EventKind::kEndPass, &pass_result_);
      going = run_iteration();
    }
    return false;
  }

  bool run_iteration() {
    if (!send(EventKind::kBeginIteration, nullptr)) return false;
    request_.machine.forward(feeder_.feeds(request_.minibatch), Feeding::kLent);
    request_.machine.backward();
    updater_.update(request_.machine);
    if (batch_ == 0) feeder_.keep_names(*request_.machine.set());
    batch_result_.clear();
    batch_result_.add(request_.machine);
    pass_result_.add(request_.machine);
    return send(EventKind::kEndIteration, &batch_result_);
  }

  // False when the handler asks to stop.
  bool send(EventKind kind, const PassResult* result) {
    if (!handler_) return true;
    Event event;
    event.kind = kind;
    event.pass = pass_;
    event.batch = batch_;
    event.learning_rate = updater_.learning_rate();
    event.scheduled_rate = updater_.scheduled_rate(request_.machine.set());
    event.seconds = request_.clock.now() - pass_began_;
    if (result != nullptr) {
      event.samples = result->samples();
      event.cost = result->cost();
      event.metrics = result->metrics();
    }
    handler_(event);
    if (event.learning_rate != updater_.learning_rate()) updater_.set_learning_rate(event.learning_rate);
    return !event.stop;
  }

  const TrainRequest& request_;
  Updater& updater_;
  const EventHandler& handler_;
  Feeder feeder_;
  Minibatches minibatches_;
  PassResult pass_result_, batch_result_;
  int64_t pass_ = 0, batch_ = 0;
  double pass_began_ = 0;
};

// Calls `each` after the forward of every minibatch of one pass, until it answers false.
template <typename Each>
void one_pass(const TrainRequest& request, Each&& each) {
  const Feeder feeder(request.machine.topology(), request.reader.slots(), request.feeding);
  feeder.check_names(*request.machine.set());
  Minibatches minibatches(request);
  while (minibatches.next() != 0) {
    request.machine.forward(feeder.feeds(request.minibatch), Feeding::kLent);
    if (!each()) return;
  }
}

}  // namespace

void train(const TrainRequest& request, Updater& updater, int64_t passes, const EventHandler& handler) {
  if (passes < 0) fail(TN_INVALID, "passes is ", passes, "; expected at least 0");
  Training(request, updater, handler).run(passes);
}

TestResult test(const TrainRequest& request) {
  PassResult result(request.machine, request.registry);
  const double began = request.clock.now();
  one_pass(request, [&] {
    result.add(request.machine);
    return true;
  });
  return {result.cost(), result.samples(), request.clock.now() - began, result.metrics()};
}

void infer(const TrainRequest& request, const std::function<bool(const Machine&)>& sink) {
  one_pass(request, [&] { return sink(request.machine); });
}

}  // namespace tenon
