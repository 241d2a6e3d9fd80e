// SPDX-License-Identifier: Apache-2.0
#include "check/bench/chain_search.h"

#include "check/bench/case_search.h"
#include "check/bench/layer_bench.h"
#include "check/cases/drawn_attributes.h"
#include "check/cases/drawn_inputs.h"
#include "check/cases/fault.h"

namespace tenon::check {

namespace {

constexpr int kMostChainTries = 6000;
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
    return std::move(chains_);
  }
  [[nodiscard]] const std::string& last_reason() const { return reason_; }

 private:
  void extend(const LayerCase& chain_case) {
    const size_t next = chain_case.chain.size();
    if ((chains_.size() >= most_ && chain_case.kind == CaseKind::kUsual) || tries_ >= kMostChainTries) return;
    if (next == described_.size()) {
      if (is_chosen(chain_case)) chains_.push_back(chain_case);
      return;
    }
    std::vector<json> sets = drawn_attributes(described_[next].at("attributes"), random_);
    if (sets.size() > kMostSets) sets.resize(kMostSets);
    const size_t before = chains_.size();
    for (const json& attributes : sets) {
      extend_by(chain_case, attributes);
      if (chains_.size() > before) return;  // one chain for each beginning
    }
  }
  // Connects each port in turn with the layer before, and the others with inputs.
  void extend_by(const LayerCase& chain_case, const json& attributes) {
    const size_t next = chain_case.chain.size(), before = chains_.size();
    const std::vector<Port> ports = ports_of(described_[next].at("inputs"), false, 2);
    const std::vector<int64_t> base =
        chain_case.inputs.empty() ? std::vector<int64_t>{4} : chain_case.inputs.front().shape;
    for (size_t port = 0; port < ports.size(); ++port)
      for (const auto& others : inputs_beside(ports, port, base)) {
        LayerCase longer = chain_case;
        ChainLayer layer;
        layer.type = subject_.chain[next];
        layer.attributes = attributes;
        for (size_t i = 0, other = 0; i < ports.size(); ++i) {
          layer.inputs.push_back(i == port ? ChainLayer::kBefore : static_cast<int64_t>(longer.inputs.size()));
          if (i != port) longer.inputs.push_back(others[other++]);
        }
        longer.chain.push_back(layer);
        if (plans(longer)) extend(longer);
        if (chains_.size() > before) return;
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

  bool plans(const LayerCase& chain_case) try {
    ++tries_;
    const Bench bench(host_, subject_.type, chain_case, subject_.seed);
    return true;
  } catch (const Error& error) {
    if (error.code() == TN_PLUGIN_FAULT || error.code() == TN_INTERNAL || error.code() == TN_REFUSED) throw;
    reason_ = error.what();
    return false;
  }
  bool is_chosen(const LayerCase& chain_case) try {
    if (plans_alone_) return true;
    const Bench bench(host_, subject_.type, chain_case, subject_.seed);
    for (const tn_dtype compute : {TN_F32, TN_F64})
      if (is_called(bench.machine(compute, true), subject_.shown)) return true;
    reason_ = "another kernel, or the recorded bodies, compute " + chain_case.text();
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
  std::vector<LayerCase> chains_;
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
