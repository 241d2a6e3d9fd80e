// SPDX-License-Identifier: Apache-2.0
#include "check/chain_case.h"

#include "check/drawn_attributes.h"
#include "check/drawn_inputs.h"
#include "check/layer_bench.h"

namespace tenon::check {

namespace {

constexpr int kMostTries = 6000;
constexpr size_t kMostSets = 12;  // of attributes of one layer

// Extends chains layer by layer, from cases of their first layer.
class ChainSearch {
 public:
  ChainSearch(const Subject& subject, size_t most, bool plans_alone)
      : subject_(subject), most_(most), plans_alone_(plans_alone), random_(subject.seed) {
    for (const std::string& type : subject.chain) described_.push_back(json::parse(host_.describe_type("layer", type)));
  }

  std::vector<LayerCase> run() {
    Subject first = subject_;
    first.type = subject_.chain.front();
    first.described = described_.front();
    first.cases = json::array();
    for (LayerCase& begin : layer_cases(first, most_, plans_alone_)) {
      if (begin.kind == CaseKind::kAttributes) continue;
      ChainLayer layer;
      layer.type = first.type;
      layer.attributes = std::exchange(begin.attributes, json::object());
      for (size_t i = 0; i < begin.inputs.size(); ++i) layer.inputs.push_back(static_cast<int64_t>(i));
      begin.chain = {layer};
      extend(begin);
    }
    return std::move(found_);
  }
  [[nodiscard]] const std::string& last_reason() const { return reason_; }

 private:
  void extend(const LayerCase& of) {
    const size_t next = of.chain.size();
    if ((found_.size() >= most_ && of.kind == CaseKind::kUsual) || tries_ >= kMostTries) return;
    if (next == described_.size()) {
      if (is_chosen(of)) found_.push_back(of);
      return;
    }
    std::vector<json> sets = drawn_attributes(described_[next].at("attributes"), random_);
    if (sets.size() > kMostSets) sets.resize(kMostSets);
    const size_t before = found_.size();
    for (const json& attributes : sets) {
      extend_by(of, attributes);
      if (found_.size() > before) return;  // one chain for each beginning
    }
  }
  // Connects each port in turn with the layer before, and the others with inputs.
  void extend_by(const LayerCase& of, const json& attributes) {
    const size_t next = of.chain.size(), before = found_.size();
    const std::vector<Port> ports = ports_of(described_[next].at("inputs"), false, 2);
    const std::vector<int64_t> base = of.inputs.empty() ? std::vector<int64_t>{4} : of.inputs.front().shape;
    for (size_t port = 0; port < ports.size(); ++port)
      for (const auto& others : inputs_beside(ports, port, base)) {
        LayerCase longer = of;
        ChainLayer layer;
        layer.type = subject_.chain[next];
        layer.attributes = attributes;
        for (size_t i = 0, other = 0; i < ports.size(); ++i) {
          layer.inputs.push_back(i == port ? ChainLayer::kBefore : static_cast<int64_t>(longer.inputs.size()));
          if (i != port) longer.inputs.push_back(others[other++]);
        }
        longer.chain.push_back(layer);
        if (plans(longer)) extend(longer);
        if (found_.size() > before) return;
      }
  }
  // Inputs for all ports but one. Those of sequences are those of the first input.
  [[nodiscard]] static std::vector<std::vector<InputSpec>> inputs_beside(const std::vector<Port>& ports, size_t but,
                                                                         const std::vector<int64_t>& base) {
    std::vector<std::vector<InputSpec>> lists = {{}};
    for (size_t i = 0; i < ports.size(); ++i) {
      if (i == but) continue;
      std::vector<std::vector<InputSpec>> longer;
      const bool integers = ports[i].is(TN_PORT_INTEGER) || ports[i].is(TN_PORT_ANY);
      for (const auto& list : lists)
        for (const bool integer : {false, true}) {
          if (integer ? !integers : ports[i].is(TN_PORT_INTEGER)) continue;
          for (const auto& shape : shapes_beside(base, integer))
            for (const int64_t below : {int64_t{4}, int64_t{2}}) {
              if (!integer && below == 2) continue;
              longer.push_back(list);
              longer.back().emplace_back();
              longer.back().back().shape = shape;
              longer.back().back().below = integer ? below : 0;
            }
        }
      lists = std::move(longer);
    }
    return lists;
  }

  bool plans(const LayerCase& of) try {
    ++tries_;
    const Bench bench(host_, subject_.type, of, subject_.seed);
    return true;
  } catch (const Error& error) {
    if (error.code() == TN_PLUGIN_FAULT || error.code() == TN_INTERNAL || error.code() == TN_REFUSED) throw;
    reason_ = error.what();
    return false;
  }
  bool is_chosen(const LayerCase& of) try {
    if (plans_alone_) return true;
    const Bench bench(host_, subject_.type, of, subject_.seed);
    for (const tn_dtype compute : {TN_F32, TN_F64})
      if (is_called(bench.machine(compute, true), subject_.shown)) return true;
    reason_ = "another kernel, or the recorded bodies, compute " + of.text();
    return false;
  } catch (const Error& error) {
    reason_ = error.what();
    return error.code() == TN_PLUGIN_FAULT;  // the checks show the fault
  }

  const Subject& subject_;
  size_t most_;
  bool plans_alone_;
  std::mt19937_64 random_;
  Host host_ = subject_.host();
  std::vector<json> described_;  // of each type
  std::vector<LayerCase> found_;
  int tries_ = 0;
  std::string reason_;
};

}  // namespace

std::vector<LayerCase> chain_cases(const Subject& subject, size_t most, bool plans_alone) {
  std::vector<LayerCase> cases = given_cases(subject, true);
  if (cases.empty()) {
    ChainSearch search(subject, most, plans_alone);
    cases = search.run();
    if (cases.empty())
      throw Fault("no chain of layers is computed by it; give one by --cases" +
                  (search.last_reason().empty() ? "" : "; the last try: " + search.last_reason()));
  }
  const size_t count = cases.size();
  for (size_t i = 0; i < count; ++i) {
    cases.push_back(cases[i]);
    cases.back().reads_inner = true;
  }
  return cases;
}

}  // namespace tenon::check
