// A list of checks, and the state that those of one component share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "check/layer_case.h"
#include "check/process.h"
#include "check/subject.h"

namespace tenon::check {

// What the checks of one component use. Lives in the child process.
class Context {
 public:
  // Confines the process (process.h). `plans_alone`: cases are found without computing anything, as after the death of
  // a process.
  Context(const Subject& subject, bool plans_alone);

  [[nodiscard]] const Subject& subject() const { return subject_; }
  // Found at the first call, which throws Fault if there are none; later ones throw Skip then.
  [[nodiscard]] const std::vector<LayerCase>& cases();
  // A host that the checks share. A call with other choices than before makes one.
  [[nodiscard]] const Host& host(int threads, bool checking);
  // Throws Fault with the text, which names the case, unless `good`; counts the comparison.
  void expect(bool good, const std::string& text);
  // The state of the process before the component was used.
  [[nodiscard]] const ProcessState& process() const { return process_; }
  void count(int64_t comparisons) { comparisons_ += comparisons; }
  [[nodiscard]] int64_t comparisons() const { return comparisons_; }

 private:
  const Subject& subject_;
  ProcessState process_;
  bool plans_alone_, searched_ = false;
  std::vector<LayerCase> cases_;
  std::map<std::pair<int, bool>, Host> hosts_;
  int64_t comparisons_ = 0;
};

// A check throws Fault or tenon::Error if the component fails it, Skip if it does not apply.
struct Check {
  const char* name;
  const char* meaning;
  void (*run)(Context& context);
};

}  // namespace tenon::check
