// SPDX-License-Identifier: Apache-2.0
#include "host/machine/gradient_runs.h"

#include <algorithm>

#include "core/alignment.h"

namespace tenon::host {

UsedNames::UsedNames(const Topology& model) : all_(false) {
  for (const ParameterDeclaration& declaration : model.declarations()) names_.insert(declaration.name);
}

UsedNames UsedNames::without(const std::set<std::string>& names) const {
  UsedNames result = *this;
  for (const std::string& name : names) {
    if (all_)
      result.names_.insert(name);
    else
      result.names_.erase(name);
  }
  return result;
}

namespace {

// Whether a table whose rows lie with several owners stands between two entries. It parts a run as a table in the set
// does, since the norm of the gradients is added up by runs, and must not depend on who owns rows.
bool is_parted(const ParameterSet& set, size_t before, size_t entry) {
  const auto begin = set.entries().begin();
  return std::any_of(begin + static_cast<ptrdiff_t>(before), begin + static_cast<ptrdiff_t>(entry),
                     [](const ParameterEntry& each) {
                       return each.table && std::find(each.shape.begin(), each.shape.end(), 0) == each.shape.end();
                     });
}

}  // namespace

std::vector<GradientRun> gradient_runs(const CompiledModel& model, const ParameterSet& set, const UsedNames& used) {
  const std::byte* const gradients = model.memory.block.data() + model.memory.sections.gradients;
  std::vector<GradientRun> runs;
  uint64_t end = 0;  // end of the last run, bytes into the section of gradients
  for (const PlacedGradient& gradient : model.gradients) {
    const ParameterEntry& entry = set.entries()[gradient.entry];
    if (!used.contains(entry.name)) continue;
    GradientRun* last = runs.empty() ? nullptr : &runs.back();
    const bool joins = last != nullptr && end == gradient.offset && last->slab == entry.slab &&
                       last->offset + padded_elements(last->elements) == entry.offset &&
                       last->multipliers == entry.multipliers && !is_parted(set, last->entries.back(), gradient.entry);
    if (!joins) {
      GradientRun run;
      run.gradients = gradients + gradient.offset;
      run.gradient_dtype = model.calls->graph().spec(gradient.value).dtype;
      run.slab = entry.slab;
      run.offset = entry.offset;
      run.multipliers = entry.multipliers;
      runs.push_back(std::move(run));
      last = &runs.back();
    }
    last->elements = entry.offset - last->offset + entry.count;
    last->entries.push_back(gradient.entry);
    end = gradient.offset + gradient.bytes;
  }
  return runs;
}

}  // namespace tenon::host
