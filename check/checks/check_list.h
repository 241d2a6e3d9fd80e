// A list of checks, and the state that those of one component share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "check/bench/subject.h"
#include "check/cases/fault.h"
#include "check/cases/layer_case.h"
#include "check/watch/process_state.h"

namespace tenon::check {

// What the checks of one component use. Lives in the child process.
class Context {
 public:
  // Confines the process (process_state.h). `plans_alone`: cases are found without computing anything, as after the
  // death of a process.
  Context(const Subject& subject, bool plans_alone);

  [[nodiscard]] const Subject& subject() const { return subject_; }
  // Found at the first call, which throws Fault if there are none; later ones throw Skip then.
  [[nodiscard]] const std::vector<LayerCase>& cases();
  // Returns the shared host for these options; makes it at the first use.
  [[nodiscard]] const Host& host(int threads, bool checking);
  // Throws Fault with the text, which names the case, unless `good`; counts the comparison.
  void expect(bool good, const std::string& text);
  // Does the work. Throws Fault unless the process is as it was before the component was used.
  void expect_unchanged(const std::function<void()>& work);
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

// The meaning of the check "process" of each kind of component.
constexpr const char* kProcessMeaning =
    "signal handlers, floating-point mode, descriptors, working directory, locale, mask of new files, environment, "
    "limits, timers, priority and standard output stay";

}  // namespace tenon::check
