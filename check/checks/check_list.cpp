// SPDX-License-Identifier: Apache-2.0
#include "check/checks/check_list.h"

#include "check/bench/case_search.h"
#include "check/bench/chain_search.h"
#include "check/bench/device_cases.h"
#include "check/cases/fault.h"

namespace tenon::check {

Context::Context(const Subject& subject, bool plans_alone)
    : subject_(subject), process_((confine_process(), ProcessState())), plans_alone_(plans_alone) {}

const std::vector<LayerCase>& Context::cases() {
  constexpr size_t kMost = 6;
  if (!searched_) {
    searched_ = true;
    cases_ = !subject_.device.empty()  ? device_cases(subject_)
             : !subject_.chain.empty() ? chain_cases(subject_, kMost / 2, plans_alone_)
                                       : layer_cases(subject_, kMost, plans_alone_);
  }
  if (cases_.empty()) throw Skip("there is no case");
  return cases_;
}

const Host& Context::host(int threads, bool checking) {
  const auto entry = hosts_.find({threads, checking});
  if (entry != hosts_.end()) return entry->second;
  return hosts_.emplace(std::pair{threads, checking}, subject_.host({threads, checking})).first->second;
}

void Context::expect(bool good, const std::string& text) {
  ++comparisons_;
  if (!good) throw Fault(text);
}

void Context::expect_unchanged(const std::function<void()>& work) {
  check::expect_unchanged(process_, work, [this](bool good, const std::string& text) { expect(good, text); });
}

}  // namespace tenon::check
