// SPDX-License-Identifier: Apache-2.0
#include "check/layer_case.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/text.h"
#include "check/drawn_attributes.h"
#include "check/drawn_inputs.h"
#include "check/layer_bench.h"

namespace tenon::check {

namespace {

constexpr int kMostTries = 30'000;
constexpr size_t kMostBranches = 24;  // cases of attributes

std::string input_text(const InputSpec& input) {
  std::string result = input.sparse ? "sparse " : "";
  if (!input.sequence.empty()) result = input.levels == 2 ? "sequences of sequences of " : "sequences of ";
  if (input.below > 0) result += "int ";
  result += base::to_string(input.shape);
  if (input.below > 0) result += " below " + std::to_string(input.below);
  return result;
}

// ---- search

class Search {
 public:
  Search(const Subject& subject, size_t most, bool plans_alone)
      : subject_(subject), most_(most), plans_alone_(plans_alone), random_(subject.seed) {}

  std::vector<LayerCase> run() {
    const json& schema = subject_.described.at("attributes");
    const std::vector<json> sets = drawn_attributes(schema, random_);
    const std::vector<std::vector<int64_t>> bases = {{4}, {3, 4}, {}, {2, 3, 4}, {1}, {5}, {2}};
    // First one case at all, whatever it takes; then others near it.
    for (const json& attributes : sets) {
      if (!found_.empty()) break;
      for (const Storage storage :
           {Storage::kDense, Storage::kSequences, Storage::kLastSequences, Storage::kFirstSequences, Storage::kSparse})
        if (first(attributes, storage, bases)) break;
    }
    if (found_.empty()) return {};
    more(sets, bases);
    spread_widths();
    const size_t usual = found_.size();
    add_branches(schema, usual);
    add_large();
    return std::move(found_);
  }
  [[nodiscard]] int tries() const { return tries_; }
  [[nodiscard]] const std::string& last_reason() const { return reason_; }

 private:
  bool first(const json& attributes, Storage storage, const std::vector<std::vector<int64_t>>& bases) {
    for (const auto& base : bases)
      for (const int64_t below : {int64_t{2}, int64_t{4}})
        for (const auto& inputs : inputs_of(base, storage, below, false, 2))
          if (accept(attributes, inputs)) return true;
    return false;
  }
  void more(const std::vector<json>& sets, const std::vector<std::vector<int64_t>>& bases) {
    const auto any_of = [&](const json& attributes, const std::vector<std::vector<InputSpec>>& lists) {
      if (found_.size() >= most_) return;
      for (const auto& inputs : lists)
        if (accept(attributes, inputs)) return;
    };
    const LayerCase found = found_.front();
    const int64_t below =
        std::any_of(found.inputs.begin(), found.inputs.end(), [](const InputSpec& i) { return i.below == 4; }) ? 4 : 2;
    for (const auto& base : bases)  // another rank
      if (found.inputs.empty() || base != found.inputs[0].shape) {
        any_of(found.attributes, inputs_of(base, Storage::kDense, below, false, 2));
        if (found_.size() > 1) break;
      }
    any_of(found.attributes, inputs_of({4}, Storage::kSequences, below, false, 2));
    any_of(found.attributes, inputs_of({4}, Storage::kNested, below, false, 2));
    any_of(found.attributes, inputs_of({4}, Storage::kSparse, below, false, 2));
    any_of(found.attributes, inputs_of({4}, Storage::kDense, below, true, 2));
    any_of(found.attributes, inputs_of({4}, Storage::kDense, below, false, 1));
    std::vector<json> others(sets.begin() + 1, sets.end());
    std::shuffle(others.begin(), others.end(), random_);
    for (const json& attributes : others) {
      if (found_.size() >= most_) return;
      if (!accept(attributes, found.inputs)) any_of(attributes, inputs_of({3, 4}, Storage::kDense, below, false, 2));
    }
  }
  // Gives the rows of the cases behind the first one, which have 4 elements, other numbers of them.
  void spread_widths() {
    std::vector<int64_t> widths = {7, 17, 3, 1};
    for (size_t i = 1; i < found_.size(); ++i) {
      const LayerCase of = found_[i];
      const auto width = std::find_if(widths.begin(), widths.end(),
                                      [&](int64_t w) { return accept(of.attributes, with_width(of.inputs, w)); });
      if (width == widths.end()) continue;
      found_[i] = found_.back();
      found_.pop_back();
      widths.erase(width);
    }
    for (const int64_t width : widths)
      if (found_.size() < most_) accept(found_[0].attributes, with_width(found_[0].inputs, width));
  }
  static std::vector<InputSpec> with_width(std::vector<InputSpec> inputs, int64_t width) {
    for (InputSpec& input : inputs) {
      std::replace(input.shape.begin(), input.shape.end(), int64_t{4}, width);
      if (input.below == 4) input.below = std::max<int64_t>(width, 2);
    }
    return inputs;
  }

  // Adds cases until each value that may be another branch is in one: with all attributes changed together if that is
  // accepted, else one after the other.
  void add_branches(const json& schema, size_t usual) {
    std::vector<std::vector<json>> wanted = branch_values(schema);
    const auto name = [&](size_t i) { return schema[i].at("name").get<std::string>(); };
    const auto has = [&](const LayerCase& of, size_t i, const json& value) {
      return of.attributes.value(name(i), json(nullptr)) == value;
    };
    for (size_t i = 0; i < wanted.size(); ++i)
      std::erase_if(wanted[i], [&](const json& value) {
        return std::any_of(found_.begin(), found_.end(), [&](const LayerCase& of) { return has(of, i, value); });
      });
    for (size_t round = 0; round < kMostBranches; ++round) {
      json together = found_[0].attributes;
      for (size_t i = 0; i < wanted.size(); ++i)
        if (!wanted[i].empty()) together[name(i)] = wanted[i].back();
      if (together == found_[0].attributes) return;
      const bool accepted = accept_as(CaseKind::kAttributes, together, usual, round);
      for (size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i].empty()) continue;
        json alone = found_[0].attributes;
        alone[name(i)] = wanted[i].back();
        if (!accepted && found_.size() < usual + kMostBranches) accept_as(CaseKind::kAttributes, alone, usual, round);
        wanted[i].pop_back();
      }
    }
  }
  // With the inputs of one of the usual cases.
  bool accept_as(CaseKind kind, const json& attributes, size_t usual, size_t first) {
    for (size_t k = 0; k < usual; ++k) {
      if (!accept(attributes, found_[(first + k) % usual].inputs)) continue;
      found_.back().kind = kind;
      return true;
    }
    return false;
  }

  // Adds a case with rows that are longer than the blocks of a loop, unless the layer's memory grows faster than they.
  void add_large() {
    constexpr int64_t kLarge = 5008;  // 313 times 16: the operands end at a page, however many samples there are
    const LayerCase of = found_[0];
    if (plans_alone_ || with_width(of.inputs, 1).empty() || !of.inputs[0].sequence.empty()) return;
    try {
      if (bytes_at(of, 128) > 2.2 * bytes_at(of, 64)) return;
    } catch (const Error&) {
      return;
    }
    if (accept(of.attributes, with_width(of.inputs, kLarge))) found_.back().kind = CaseKind::kLarge;
  }
  // The bytes of a machine and of its parameters.
  double bytes_at(LayerCase of, int64_t width) {
    of.inputs = with_width(of.inputs, width);
    const Bench bench(host_, subject_.type, of, subject_.seed);
    const json bytes = json::parse(bench.machine(TN_F32, true).plan()).at("bytes");
    return bytes.at("machine").get<double>() + bytes.at("parameters").get<double>();
  }

  [[nodiscard]] std::vector<std::vector<InputSpec>> inputs_of(const std::vector<int64_t>& base, Storage storage,
                                                              int64_t below, bool optional, size_t variadic) const {
    const json& ports = subject_.described.at("inputs");
    std::vector<std::vector<InputSpec>> result;
    const std::vector<Port> connected = ports_of(ports, optional, variadic);
    if (optional && connected.size() == ports_of(ports, false, variadic).size()) return result;
    add_inputs(connected, base, storage, below, result);
    return result;
  }

  bool accept(const json& attributes, const std::vector<InputSpec>& inputs) {
    LayerCase candidate;
    candidate.attributes = attributes;
    candidate.inputs = inputs;
    if (tries_ >= kMostTries || !tried_.insert(candidate.text()).second) return false;
    ++tries_;
    static constexpr double kRanges[][2] = {{-2, 2}, {0.125, 0.875}, {0.5, 2.5}};
    for (const auto& range : kRanges) {
      for (InputSpec& input : candidate.inputs) input.low = range[0], input.high = range[1];
      if (!plans(candidate)) return false;
      if (!plans_alone_ && !finite(candidate)) continue;
      found_.push_back(candidate);
      return true;
    }
    return false;
  }
  bool plans(const LayerCase& candidate) try {
    const Bench bench(host_, subject_.type, candidate, subject_.seed);
    return true;
  } catch (const Error& error) {
    if (error.code() == TN_PLUGIN_FAULT || error.code() == TN_INTERNAL || error.code() == TN_REFUSED) throw;
    reason_ = error.what();
    return false;
  }
  // A layer that fails later than in plan, by a fault, has a case: the checks show the fault.
  bool finite(const LayerCase& candidate) try {
    const Bench bench(host_, subject_.type, candidate, subject_.seed);
    const Machine machine = bench.machine(TN_F32, false);
    bench.forward(machine, TN_F32, Bench::all());
    for (const Numbers& output : bench.read(machine))
      for (const double value : output)
        if (!std::isfinite(value)) {
          reason_ = "its outputs are not finite for " + candidate.text();
          return false;
        }
    (void)bench.machine(TN_F32, true);  // fails where an output is an input: there is no gradient to compute
    return true;
  } catch (const Error& error) {
    reason_ = error.what();
    return error.code() == TN_PLUGIN_FAULT;
  }

  const Subject& subject_;
  size_t most_;
  bool plans_alone_;
  std::mt19937_64 random_;
  Host host_ = subject_.host();
  std::vector<LayerCase> found_;
  std::set<std::string> tried_;
  int tries_ = 0;
  std::string reason_;
};

}  // namespace

std::string LayerCase::text() const {
  std::string result = name.empty() ? text_of(attributes) : name;
  for (const ChainLayer& layer : chain)
    base::append(result, layer.type + (layer.attributes.empty() ? "" : "(" + text_of(layer.attributes) + ")"));
  const std::string list = base::joined(inputs, input_text);
  if (!list.empty()) result += (result.empty() ? "inputs " : "; inputs ") + list;
  return result.empty() ? "no inputs" : result;
}

namespace {

InputSpec read_input(const json& given) {
  InputSpec input;
  for (const auto& [of, what] : given.items()) {
    if (of == "shape")
      input.shape = what.get<std::vector<int64_t>>();
    else if (of == "below")
      input.below = what.get<int64_t>();
    else if (of == "range")
      input.low = what.at(0).get<double>(), input.high = what.at(1).get<double>();
    else if (of == "sequence")
      input.sequence = what.get<std::string>();
    else if (of == "levels")
      input.levels = what.get<uint32_t>();
    else if (of == "gradient")
      input.gradient = what.get<bool>();
    else if (of == "sparse")
      input.sparse = what.get<bool>();
    else
      throw Fault("a case has an input with the unknown key \"" + of + "\"");
  }
  return input;
}

ChainLayer read_chain_layer(const json& given, bool first) {
  ChainLayer layer;
  for (const auto& [of, what] : given.items()) {
    if (of == "type")
      layer.type = what.get<std::string>();
    else if (of == "attributes")
      layer.attributes = what;
    else if (of == "inputs")
      layer.inputs = what.get<std::vector<int64_t>>();
    else
      throw Fault("a case has a layer of a chain with the unknown key \"" + of + "\"");
  }
  const bool reads = std::count(layer.inputs.begin(), layer.inputs.end(), ChainLayer::kBefore) > 0;
  if (layer.type.empty() || layer.inputs.empty() || reads == first)
    throw Fault(
        "a layer of the chain of a case needs a type and inputs: numbers of inputs of the case, and, of each "
        "layer but the first, -1 for the output of the layer before");
  return layer;
}

}  // namespace

LayerCase read_layer_case(const json& given) {
  LayerCase result;
  for (const auto& [key, value] : given.items()) try {
      if (key == "attributes") {
        result.attributes = value;
      } else if (key == "couples_samples") {
        result.couples_samples = value.get<bool>();
      } else if (key == "differentiable") {
        result.differentiable = value.get<bool>();
      } else if (key == "zeros") {
        result.zeros = value.get<bool>();
      } else if (key == "huge") {
        result.huge = value.get<bool>();
      } else if (key == "inputs") {
        for (const json& each : value) result.inputs.push_back(read_input(each));
      } else if (key == "chain") {
        for (const json& each : value) result.chain.push_back(read_chain_layer(each, result.chain.empty()));
      } else if (key != "type") {
        throw Fault("a case has the unknown key \"" + key + "\"");
      }
    } catch (const json::exception&) {
      throw Fault("a case has a wrong value of \"" + key + "\": " + value.dump());
    }
  for (const ChainLayer& layer : result.chain)
    for (const int64_t input : layer.inputs)
      if (input < ChainLayer::kBefore || input >= static_cast<int64_t>(result.inputs.size()))
        throw Fault("a layer of the chain of a case reads input " + std::to_string(input) + "; the case has " +
                    std::to_string(result.inputs.size()));
  return result;
}

std::vector<LayerCase> given_cases(const Subject& subject, bool chains) {
  std::vector<LayerCase> given;
  for (const json& each : subject.cases)
    if (each.contains("chain") == chains) given.push_back(read_layer_case(each));
  for (const LayerCase& each : given) try {
      const Bench planned(subject.host(), subject.type, each, subject.seed);
    } catch (const Error& error) {
      throw Fault("the case (" + each.text() + ") is refused: " + error.what());
    }
  return given;
}

std::vector<LayerCase> layer_cases(const Subject& subject, size_t most, bool plans_alone) {
  if (std::vector<LayerCase> given = given_cases(subject, false); !given.empty()) return given;
  Search search(subject, most, plans_alone);
  std::vector<LayerCase> found = search.run();
  if (found.empty())
    throw Fault("no inputs are accepted; tried " + std::to_string(search.tries()) +
                " of shapes and attributes that its schema allows; give some by --cases" +
                (search.last_reason().empty() ? "" : "; the last try: " + search.last_reason()));
  return found;
}

}  // namespace tenon::check
