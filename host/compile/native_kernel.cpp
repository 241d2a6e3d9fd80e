// SPDX-License-Identifier: Apache-2.0
#include "host/compile/native_kernel.h"

#include <algorithm>

#include "base/text.h"
#include "core/error.h"
#include "host/plugins/callback.h"
#include "host/plugins/manifest.h"

namespace tenon::host {

void KernelSite::seal(Device& device, tn_dtype compute, uint32_t precision, bool training,
                      const tn_attributes* attributes_of) {
  for (const auto* list : {&inputs, &outputs, &parameters, &buffers, &carried})
    for (const Spec& spec : *list) views.push_back(spec.view());
  for (size_t i = 0; i < views.size(); ++i) pointers.push_back(i < absent.size() && absent[i] ? nullptr : &views[i]);
  gradients.resize(inputs.size() + parameters.size(), 0);
  errors = std::make_unique<ErrorSink>(native_label(*this, false), kernel->tags);
  const tn_spec* const* next = pointers.data();
  const auto list = [&](uint32_t& count, const tn_spec* const*& at, const std::vector<Spec>& specs) {
    count = static_cast<uint32_t>(specs.size());
    at = next;
    next += specs.size();
  };
  site.size = sizeof site;
  site.compute = compute;
  site.attributes = attributes_of;
  list(site.inputs_count, site.inputs, inputs);
  list(site.outputs_count, site.outputs, outputs);
  list(site.parameters_count, site.parameters, parameters);
  list(site.buffers_count, site.buffers, buffers);
  list(site.carried_count, site.carried, carried);
  site.training = training ? 1 : 0;
  site.gradients = gradients.data();
  site.device = device.lent();
  site.services = device.services_of(*kernel);
  site.errors = errors->get();
  site.user = kernel->table.user;
  site.state_version = layer->type_version.state_version;
  site.precision = precision;
}

std::string native_label(const KernelSite& site, bool backward) {
  std::string names;
  if (site.fusion == nullptr)
    names = "\"" + site.layer->name + "\"";
  else
    for (const auto& member : site.fusion->layers)
      names += (names.empty() ? "\"" : ", \"") + member->layer->name + "\"";
  return text("layer ", names, " (", site.fusion == nullptr ? site.layer->type + ", " : "", "native kernel \"",
              site.kernel->table.name, "\"", backward ? ", backward)" : ")");
}

bool makes_rows(const Layer& layer) {
  return std::any_of(layer.derived_rows.begin(), layer.derived_rows.end(),
                     [](const DerivedRows& derived) { return derived.rule == TN_ROWS_DATA; });
}

namespace {

// How many ports, or parameters, a kernel knows of the types of its layers.
struct KnownCount {
  bool all = false;     // those of every layer
  bool stated = false;  // else by number: the first so many
  size_t first = 0;
};
bool states_counts(const tn_kernel& kernel) {
  return (kernel.inputs_known | kernel.outputs_known | kernel.parameters_known) != 0;
}
// known: as the kernel states it, of all types together. have: how many these have. Of which type of a chain the kernel
// does not know all is unknown.
KnownCount known_count(const tn_kernel& kernel, uint32_t known, size_t have, bool single) {
  const bool stated = states_counts(kernel);
  return {stated && have <= known, stated && single, single ? known : 0};
}

// Returns why a kernel of another plugin does not know the attributes or the version of a type, "" if it does.
std::string unknown_attribute(const tn_kernel& kernel, const Layer& layer, const LayerType& type) {
  if (kernel.state_version != type.description.state_version)
    return text("it is for state version ", kernel.state_version, " of ", layer.type, ", which has ",
                type.description.state_version);
  const char* const* const end = kernel.attributes + kernel.attributes_count;
  for (size_t i = 0; i < layer.attributes.size(); ++i) {
    const Attribute& attribute = type.description.attributes[i];
    const bool listed = std::any_of(kernel.attributes, end, [&](const char* name) { return attribute.name == name; });
    if (!listed && layer.attributes[i] != attribute.initial)
      return text("it does not know the attribute \"", attribute.name, "\" of ", layer.type);
  }
  return "";
}

// What a kernel knows of the types of its layers.
struct KnownPorts {
  KnownCount inputs, outputs, parameters;
  bool are_stated;

  // Returns what of a layer it does not know, "" if it knows everything.
  [[nodiscard]] std::string unknown(const Layer& layer, const LayerType& type) const {
    const LayerDescription& d = type.description;
    const auto lacks = [&](const KnownCount& known, const char* what, const std::string& name) {
      return text("it does not ", known.stated ? "know" : "state that it knows", " the ", what, " \"", name, "\" of ",
                  layer.type);
    };
    size_t used = layer.inputs.size();  // without absent inputs at the end, which move the operands behind them
    while (used > 0 && layer.inputs[used - 1].layer == nullptr) --used;
    for (size_t i = 0; !inputs.all && i < layer.inputs.size(); ++i) {
      const Port& port = port_of(d.inputs, i);
      const auto number = static_cast<size_t>(&port - d.inputs.data());
      const bool known = inputs.stated ? number < inputs.first : (port.flags & TN_PORT_OPTIONAL) == 0;
      if ((layer.inputs[i].layer != nullptr || i >= used) && !known) return lacks(inputs, "input", port.name);
    }
    const size_t known_outputs = outputs.stated ? outputs.first : 1;
    if (!outputs.all && d.outputs.size() > known_outputs)
      return lacks(outputs, "output", d.outputs[known_outputs].name);
    for (const auto* list : {&layer.parameters, &layer.buffers})
      for (const LayerParameter& each : *list) {
        const auto number = std::find(d.parameters.begin(), d.parameters.end(), each.suffix) - d.parameters.begin();
        if (are_stated && !parameters.all && static_cast<size_t>(number) >= parameters.first)
          return lacks(parameters, "parameter", each.suffix);
      }
    return "";
  }
};

}  // namespace

std::string unfit_for(const Kernel& kernel, const std::vector<LayerRef>& layers, Registry& registry) {
  const tn_kernel& table = kernel.table;
  size_t inputs = 0, outputs = 0, parameters = 0;
  for (const LayerRef& layer : layers) {
    const bool sparse = std::any_of(layer->inputs.begin(), layer->inputs.end(), [](const LayerOutput& input) {
      return input.layer != nullptr && input.layer->outputs.at(input.output).storage == TN_CSR;
    });
    if (sparse) return "native kernels of this version take no sparse (csr) inputs";
    const LayerType& type = registry.layer(layer->type);
    if (kernel.plugin != type.plugin)
      if (std::string unknown = unknown_attribute(table, *layer, type); !unknown.empty()) return unknown;
    inputs += type.description.inputs.size();
    outputs += type.description.outputs.size();
    parameters += type.description.parameters.size();
  }
  const bool single = layers.size() == 1;
  const KnownPorts known = {known_count(table, table.inputs_known, inputs, single),
                            known_count(table, table.outputs_known, outputs, single),
                            known_count(table, table.parameters_known, parameters, single), states_counts(table)};
  for (const LayerRef& layer : layers)
    if (const LayerType& type = registry.layer(layer->type); kernel.plugin != type.plugin)
      if (std::string unknown = known.unknown(*layer, type); !unknown.empty()) return unknown;
  return "";
}

// Returns the message of a refusal without the name of the layer and kernel, which the caller adds.
static std::string reason_of(const Error& error, const KernelSite& site) {
  const std::string reason = reason_of(error, native_label(site, false));
  return reason == error.message() ? reason_of(error, native_label(site, true)) : reason;
}

bool add_candidate(std::vector<KernelCandidate>& candidates, std::shared_ptr<KernelSite> site,
                   std::vector<PassedOver>& refusals) {
  const Kernel& kernel = *site->kernel;
  int32_t score = kernel.table.score;
  const tn_status status =
      call_plugin(kernel, site->errors->who(), {Tag::kSetup, "supports"}, kernel.table.supports, &site->site, &score);
  try {
    site->errors->check(status);
  } catch (const Error& error) {
    if (error.code() == TN_OUT_OF_MEMORY) throw;
    add_refusal(refusals, kernel, score, reason_of(error, *site));
    return false;
  }
  candidates.push_back({std::move(site), score});
  return true;
}

void add_refusal(std::vector<PassedOver>& refusals, const Kernel& kernel, int32_t score, const std::string& reason) {
  refusals.push_back(passed_over(kernel, score, reason));
}

PassedOver passed_over(const Kernel& kernel, int32_t score, const std::string& reason) {
  return {kernel.table.name, kernel.plugin, score, reason, false};
}

void remove_outranked(std::vector<KernelCandidate>& candidates, int32_t least, const std::string& by,
                      std::vector<PassedOver>& refusals) {
  for (const KernelCandidate& each : candidates) {
    if (each.score > least) continue;
    add_refusal(refusals, *each.site->kernel, each.score, text("its score is not above that of ", by, ", ", least));
    refusals.back().outranked = true;
  }
  std::erase_if(candidates, [&](const KernelCandidate& each) { return each.score <= least; });
}

std::string text_of(const std::vector<PassedOver>& refusals) {
  std::string result;
  for (const PassedOver& each : refusals)
    if (!each.outranked) base::append(result, text("kernel \"", each.kernel, "\": ", each.reason), "; ");
  return result;
}

namespace {

// The requirements of a kernel: the arrays behind a tn_kernel_needs, and its callbacks.
class KernelNeeds {
 public:
  KernelNeeds(const KernelSite& site, NativeChoice& choice)
      : site_(site),
        choice_(choice),
        sink_(*site.errors),
        loan_(site.kernel->tags, this, "kernel needs", site.errors->who()) {
    NativeCall& call = choice.call;
    NativeOperands& of = call.operands;
    of = {site.inputs.size(),
          site.parameters.size(),
          site.buffers.size(),
          site.carried.size(),
          site.outputs.size(),
          0,
          0};
    call.reads_in.assign(of.all_in(), 0);
    call.reads_out.assign(of.outputs, 0);
    call.in_place.assign(of.outputs, -1);
    call.backward_in_place.assign(of.inputs, -1);
    tn_kernel_needs& needs = *loan_.get();
    needs.reads_in = call.reads_in.data();
    needs.reads_out = call.reads_out.data();
    needs.in_place = call.in_place.data();
    needs.backward_in_place = call.backward_in_place.data();
    needs.saved = LentFunction<KernelNeeds, &KernelNeeds::save>();
    needs.rows = [](void* self, uint32_t parameter, const tn_dim* count) {
      bool stored = true;
      const tn_status status = lent<KernelNeeds>(self, [&](KernelNeeds& it) { stored = it.rows(parameter, count); });
      return status == TN_OK && !stored ? tn_status{TN_UNSUPPORTED} : status;
    };
  }

  tn_kernel_needs* get() { return loan_.get(); }
  ErrorSink& sink() { return sink_; }

  // Checks the numbers that the kernel wrote into the arrays.
  void check() const {
    const NativeCall& call = choice_.call;
    const auto refuse = [&](const char* what, int32_t number, size_t count) {
      fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()}, "kernel \"", site_.kernel->table.name, "\" of ",
           site_.kernel->plugin, " shares the memory of ", what, " ", number, "; the layer has ", count);
    };
    const auto marks = [&](const std::vector<uint8_t>& list) {
      return std::all_of(list.begin(), list.end(), [](uint8_t mark) { return mark <= 1; });
    };
    const auto numbers = [&](const std::vector<int32_t>& list) {
      return std::all_of(list.begin(), list.end(), [](int32_t number) { return number >= -1; });
    };
    if (!marks(call.reads_in) || !marks(call.reads_out) || !numbers(call.in_place) || !numbers(call.backward_in_place))
      fail(TN_PLUGIN_FAULT, ComponentName{sink_.who()},
           "query marks an operand with another number than 0 or 1, or "
           "shares memory with a number below -1");
    for (const int32_t input : call.in_place)
      if (input >= static_cast<int32_t>(call.operands.inputs)) refuse("input", input, call.operands.inputs);
    for (const int32_t output : call.backward_in_place)
      if (output >= static_cast<int32_t>(call.operands.outputs)) refuse("output", output, call.operands.outputs);
  }

 private:
  int32_t save(const tn_spec* spec) {
    if (spec == nullptr) fail(TN_PLUGIN_FAULT, "query saves a null spec");
    Spec saved = Spec::from(*spec);
    if (saved.dtype == TN_COMPUTE) saved.dtype = site_.site.compute;
    if (tn_dtype_bytes(saved.dtype) == 0)
      fail(TN_UNSUPPORTED, "query saves ", to_string(saved), "; expected elements of at least 8 bits");
    for (const Dim& dim : saved.shape)
      if (dim.symbol != TN_SYMBOL_NONE && !is_known(dim.symbol))
        fail(TN_PLUGIN_FAULT, "query saves ", to_string(saved), ", with a dimension that the site lacks");
    saved.storage = TN_DENSE;
    saved.levels = 0;
    saved.outer.clear();
    choice_.saved.push_back(std::move(saved));
    return static_cast<int32_t>(choice_.saved.size() - 1);
  }

  // Returns false if the user wants the whole gradient.
  bool rows(uint32_t parameter, const tn_dim* count) {
    if (count == nullptr) fail(TN_PLUGIN_FAULT, "query states rows without their number");
    if (site_.fusion != nullptr) fail(TN_UNSUPPORTED, "gradients by rows of a fused chain");
    if (parameter >= site_.layer->parameters.size())
      fail(TN_PLUGIN_FAULT, "query states rows of parameter ", parameter, "; the layer has ",
           site_.layer->parameters.size());
    const LayerParameter& of = site_.layer->parameters[parameter];
    if ((of.flags & TN_PARAMETER_SPARSE_GRADIENT) == 0) {
      if (!of.sparse_declared)
        fail(TN_PLUGIN_FAULT, "query states rows of parameter \"", of.name,
             "\", which plan declared without TN_PARAMETER_SPARSE_GRADIENT");
      sink_.advise(TN_UNSUPPORTED, "the user wants the whole gradient of a parameter, not its rows");
      return false;
    }
    if (count->symbol != TN_SYMBOL_NONE && !is_known(count->symbol))
      fail(TN_PLUGIN_FAULT, "query states rows by a dimension that the site lacks");
    if (of.spec.shape.empty()) fail(TN_PLUGIN_FAULT, "query states rows of the scalar \"", of.name, "\"");
    choice_.call.row_gradients[parameter] = given_dim(*count);
    return true;
  }

  // Whether a dimension of the site depends on the symbol.
  [[nodiscard]] bool is_known(int32_t symbol) const {
    if (symbol == TN_SYMBOL_SAMPLES) return true;
    const auto has = [&](const Dim& dim) { return dim.symbol == symbol; };
    for (const auto* list : {&site_.inputs, &site_.outputs, &site_.carried})
      for (const Spec& spec : *list)
        if (std::any_of(spec.shape.begin(), spec.shape.end(), has) ||
            std::any_of(spec.outer.begin(), spec.outer.end(), has))
          return true;
    return false;
  }

  const KernelSite& site_;
  NativeChoice& choice_;
  ErrorSink& sink_;
  Loan<tn_kernel_needs> loan_;
};

// Asks the kernel for its requirements; throws what it reports.
void ask(const Kernel& kernel, KernelSite& site, SharedObject* shared, tn_kernel_needs* needs) {
  const TaggedFunction query = {Tag::kSetup, "query"};
  const SetupLock setup = lock_setup(kernel, query);
  const auto entered = shared == nullptr ? std::unique_lock<std::mutex>() : shared->enter();
  site.errors->check(call_plugin(kernel, site.errors->who(), query, kernel.table.query, &site.site, needs));
}

// Prepares one direction; throws what the kernel reports.
Prepared prepared(KernelSite& site, const std::shared_ptr<SharedObject>& shared, int32_t direction) {
  ErrorSink errors(native_label(site, direction == TN_BACKWARD), site.kernel->tags);
  site.site.errors = errors.get();
  Prepared made;
  made.use(shared);
  const auto restore = [&] { site.site.errors = site.errors->get(); };
  try {
    made.prepare(*site.kernel, errors, site.kernel->table.prepare, &site.site, direction);
  } catch (...) {
    restore();
    throw;
  }
  restore();
  if (made->run == nullptr)
    fail(TN_PLUGIN_FAULT, ComponentName{errors.who()}, site.kernel->table.name, " prepared no function");
  if (const uint32_t unknown = made->traits & ~kKnownCallTraits; unknown != 0)
    fail(TN_PLUGIN_FAULT, ComponentName{errors.who()}, "prepare states the unknown traits ", unknown);
  return made;
}

// Whether a gradient can reach the kernel and leave it again.
bool is_differentiated(const KernelSite& site) {
  return site.site.training != 0 && site.layer->role != TN_ROLE_METRIC &&
         std::any_of(site.gradients.begin(), site.gradients.end(), [](uint8_t wanted) { return wanted != 0; }) &&
         std::any_of(site.outputs.begin(), site.outputs.end(), [](const Spec& spec) { return is_float(spec.dtype); });
}

// Asks the kernel for its requirements and prepares its calls. Returns nothing, and its report in `reason`, if it
// returns TN_UNSUPPORTED; if that is from prepare for backward, only unless `forward_alone`.
std::optional<NativeChoice> take(const KernelCandidate& candidate, Device& device, bool forward_alone,
                                 std::string& reason) {
  KernelSite& site = *candidate.site;
  const Kernel& kernel = *site.kernel;
  std::shared_ptr<SharedObject> shared;
  NativeChoice choice;
  choice.site = candidate.site;
  choice.call.site = candidate.site;
  choice.score = candidate.score;
  try {
    shared = device.shared().get(kernel, kernel.table.shared);
    site.site.shared = shared == nullptr ? nullptr : shared->get();
    KernelNeeds needs(site, choice);
    ask(kernel, site, shared.get(), needs.get());
    needs.check();
    choice.draws = needs.get()->draws;
    choice.call.operands.saved = choice.saved.size();
    site.forward.emplace(prepared(site, shared, TN_FORWARD));
  } catch (const Error& error) {
    if (error.code() != TN_UNSUPPORTED) throw;
    reason = reason_of(error, site);
    return std::nullopt;
  }
  if (!is_differentiated(site)) {
    choice.call.no_gradient = "its kernel was prepared without a backward";
    return choice;
  }
  try {
    site.backward.emplace(prepared(site, shared, TN_BACKWARD));
  } catch (const Error& error) {
    if (error.code() != TN_UNSUPPORTED) throw;
    reason = reason_of(error, site);
    if (!forward_alone) return std::nullopt;
    choice.call.no_gradient =
        text("kernel \"", kernel.table.name, "\" of plugin \"", kernel.plugin, "\" has no backward: ", reason);
  }
  return choice;
}

}  // namespace

std::optional<NativeChoice> first_that_takes(std::vector<KernelCandidate>& candidates, Device& device,
                                             bool needs_kernel, std::vector<PassedOver>& refusals) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const KernelCandidate& a, const KernelCandidate& b) { return a.score > b.score; });
  for (const bool forward_alone : {false, true}) {
    if (forward_alone && !needs_kernel) break;
    for (auto candidate = candidates.begin(); candidate != candidates.end(); ++candidate) {
      std::string reason;
      if (std::optional<NativeChoice> choice = take(*candidate, device, forward_alone, reason)) {
        std::vector<KernelCandidate> rest(candidate + 1, candidates.end());
        const std::string by = text("kernel \"", choice->site->kernel->table.name, "\"");
        if (!forward_alone) remove_outranked(rest, choice->score, by, refusals);
        return choice;
      }
      if (!forward_alone) add_refusal(refusals, *candidate->site->kernel, candidate->score, reason);
    }
  }
  return std::nullopt;
}

}  // namespace tenon::host
