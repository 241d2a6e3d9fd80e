// SPDX-License-Identifier: Apache-2.0
#include "check/bench/case_search.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "check/bench/layer_bench.h"
#include "check/cases/drawn_attributes.h"
#include "check/cases/drawn_inputs.h"
#include "check/cases/fault.h"

namespace tenon::check {

namespace {

constexpr int kMostTries = 30'000;
constexpr size_t kMostBranches = 24;  // cases of attributes

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
      if (!cases_.empty()) break;
      for (const Storage storage :
           {Storage::kDense, Storage::kSequences, Storage::kLastSequences, Storage::kFirstSequences, Storage::kSparse})
        if (first(attributes, storage, bases)) break;
    }
    if (cases_.empty()) return {};
    more(sets, bases);
    spread_widths();
    const size_t usual = cases_.size();
    add_branches(schema, usual);
    add_large();
    return std::move(cases_);
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
      if (cases_.size() >= most_) return;
      for (const auto& inputs : lists)
        if (accept(attributes, inputs)) return;
    };
    const LayerCase first_case = cases_.front();
    const int64_t below =
        std::any_of(first_case.inputs.begin(), first_case.inputs.end(), [](const InputSpec& i) { return i.below == 4; })
            ? 4
            : 2;
    for (const auto& base : bases)  // another rank
      if (first_case.inputs.empty() || base != first_case.inputs[0].shape) {
        any_of(first_case.attributes, inputs_of(base, Storage::kDense, below, false, 2));
        if (cases_.size() > 1) break;
      }
    any_of(first_case.attributes, inputs_of({4}, Storage::kSequences, below, false, 2));
    any_of(first_case.attributes, inputs_of({4}, Storage::kNested, below, false, 2));
    any_of(first_case.attributes, inputs_of({4}, Storage::kSparse, below, false, 2));
    any_of(first_case.attributes, inputs_of({4}, Storage::kDense, below, true, 2));
    any_of(first_case.attributes, inputs_of({4}, Storage::kDense, below, false, 1));
    std::vector<json> others(sets.begin() + 1, sets.end());
    std::shuffle(others.begin(), others.end(), random_);
    for (const json& attributes : others) {
      if (cases_.size() >= most_) return;
      if (!accept(attributes, first_case.inputs))
        any_of(attributes, inputs_of({3, 4}, Storage::kDense, below, false, 2));
    }
  }
  // Gives the rows of the cases behind the first one, which have 4 elements, other numbers of them.
  void spread_widths() {
    std::vector<int64_t> widths = {7, 17, 3, 1};
    for (size_t i = 1; i < cases_.size(); ++i) {
      const LayerCase usual_case = cases_[i];
      const auto width = std::find_if(widths.begin(), widths.end(), [&](int64_t w) {
        return accept(usual_case.attributes, with_width(usual_case.inputs, w));
      });
      if (width == widths.end()) continue;
      cases_[i] = cases_.back();
      cases_.pop_back();
      widths.erase(width);
    }
    for (const int64_t width : widths)
      if (cases_.size() < most_) accept(cases_[0].attributes, with_width(cases_[0].inputs, width));
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
    std::vector<std::vector<json>> missing = branch_values(schema);
    const auto name = [&](size_t i) { return schema[i].at("name").get<std::string>(); };
    const auto has = [&](const LayerCase& candidate, size_t i, const json& value) {
      return candidate.attributes.value(name(i), json(nullptr)) == value;
    };
    for (size_t i = 0; i < missing.size(); ++i)
      std::erase_if(missing[i], [&](const json& value) {
        return std::any_of(cases_.begin(), cases_.end(),
                           [&](const LayerCase& candidate) { return has(candidate, i, value); });
      });
    for (size_t round = 0; round < kMostBranches; ++round) {
      json together = cases_[0].attributes;
      for (size_t i = 0; i < missing.size(); ++i)
        if (!missing[i].empty()) together[name(i)] = missing[i].back();
      if (together == cases_[0].attributes) return;
      const bool accepted = accept_as(CaseKind::kAttributes, together, usual, round);
      for (size_t i = 0; i < missing.size(); ++i) {
        if (missing[i].empty()) continue;
        json alone = cases_[0].attributes;
        alone[name(i)] = missing[i].back();
        if (!accepted && cases_.size() < usual + kMostBranches) accept_as(CaseKind::kAttributes, alone, usual, round);
        missing[i].pop_back();
      }
    }
  }
  // With the inputs of one of the usual cases.
  bool accept_as(CaseKind kind, const json& attributes, size_t usual, size_t first) {
    for (size_t k = 0; k < usual; ++k) {
      if (!accept(attributes, cases_[(first + k) % usual].inputs)) continue;
      cases_.back().kind = kind;
      return true;
    }
    return false;
  }

  // Adds a case with rows that are longer than the blocks of a loop, unless the layer's memory grows faster than they.
  void add_large() {
    constexpr int64_t kLarge = 5008;  // 313 times 16: the operands end at a page, however many samples there are
    const LayerCase first_case = cases_[0];
    if (plans_alone_ || with_width(first_case.inputs, 1).empty() || !first_case.inputs[0].sequence.empty()) return;
    try {
      if (bytes_at(first_case, 128) > 2.2 * bytes_at(first_case, 64)) return;
    } catch (const Error&) {
      return;
    }
    if (accept(first_case.attributes, with_width(first_case.inputs, kLarge))) cases_.back().kind = CaseKind::kLarge;
  }
  // The bytes of a machine and of its parameters.
  double bytes_at(LayerCase scaled, int64_t width) {
    scaled.inputs = with_width(scaled.inputs, width);
    const Bench bench(host_, subject_.type, scaled, subject_.seed);
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
      cases_.push_back(candidate);
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
  std::vector<LayerCase> cases_;
  std::set<std::string> tried_;
  int tries_ = 0;
  std::string reason_;
};

}  // namespace

std::vector<LayerCase> given_cases(const Subject& subject, bool chains) {
  std::vector<LayerCase> cases;
  for (const json& each : subject.cases)
    if (each.contains("chain") == chains) cases.push_back(read_layer_case(each));
  for (const LayerCase& each : cases) try {
      const Bench planned(subject.host(), subject.type, each, subject.seed);
    } catch (const Error& error) {
      throw Fault("the case (" + each.text() + ") is refused: " + error.what());
    }
  return cases;
}

std::vector<LayerCase> layer_cases(const Subject& subject, size_t most, bool plans_alone) {
  if (std::vector<LayerCase> cases = given_cases(subject, false); !cases.empty()) return cases;
  Search search(subject, most, plans_alone);
  std::vector<LayerCase> cases = search.run();
  if (cases.empty())
    throw Fault("no inputs are accepted; tried " + std::to_string(search.tries()) +
                " of shapes and attributes that its schema allows; give some by --cases" +
                (search.last_reason().empty() ? "" : "; the last try: " + search.last_reason()));
  return cases;
}

}  // namespace tenon::check
