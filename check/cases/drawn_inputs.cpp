// SPDX-License-Identifier: Apache-2.0
#include "check/cases/drawn_inputs.h"

#include <algorithm>

namespace tenon::check {

std::vector<std::vector<int64_t>> shapes_beside(const std::vector<int64_t>& base, bool integers) {
  std::vector<std::vector<int64_t>> result;
  std::vector<int64_t> shorter = base;
  if (!shorter.empty()) shorter.pop_back();
  std::vector<int64_t> longer = base;
  longer.insert(longer.begin(), 2);
  if (integers)
    result = {shorter, base, {}};
  else
    result = {base, shorter, {}, longer};
  if (base.size() == 2) result.push_back({base[1], base[0]});
  if (!base.empty()) {
    std::vector<int64_t> other = base;
    other.back() = 3;
    result.push_back(other);
  }
  std::vector<std::vector<int64_t>> unique;
  for (const auto& shape : result)
    if (std::find(unique.begin(), unique.end(), shape) == unique.end()) unique.push_back(shape);
  return unique;
}

void add_inputs(const std::vector<Port>& ports, const std::vector<int64_t>& base, Storage storage, int64_t below,
                std::vector<std::vector<InputSpec>>& to) {
  std::vector<std::vector<InputSpec>> lists = {{}};
  for (size_t i = 0; i < ports.size(); ++i) {
    const bool integers = ports[i].is(TN_PORT_INTEGER);
    std::vector<InputSpec> choices;
    const auto add = [&](const std::vector<int64_t>& shape, bool integer) {
      InputSpec input;
      input.shape = shape;
      input.below = integer ? below : 0;
      const bool rows = storage == Storage::kSequences || storage == Storage::kNested ||
                        (storage == Storage::kFirstSequences && i == 0) ||
                        (storage == Storage::kLastSequences && i + 1 == ports.size());
      if (rows) input.sequence = "rows", input.levels = storage == Storage::kNested ? 2 : 1;
      if (storage == Storage::kSparse && ports[i].is(TN_PORT_SPARSE)) {
        input.sparse = true;
        input.below = 0;
        input.shape = {4};
      }
      choices.push_back(input);
    };
    if (i == 0) {
      add(base, integers);
    } else {
      for (const auto& shape : shapes_beside(base, integers)) add(shape, integers);
    }
    if (ports[i].is(TN_PORT_ANY))
      for (const auto& shape : shapes_beside(base, true)) add(shape, true);
    std::vector<std::vector<InputSpec>> longer;
    for (const InputSpec& choice : choices)
      for (const auto& list : lists) {
        longer.push_back(list);
        longer.back().push_back(choice);
      }
    lists = std::move(longer);
  }
  to.insert(to.end(), lists.begin(), lists.end());
}

std::vector<Port> ports_of(const json& inputs, bool optional, size_t variadic) {
  std::vector<Port> result;
  for (const json& input : inputs) {
    const Port port = {input.at("flags").get<uint32_t>()};
    if (port.is(TN_PORT_OPTIONAL) && !optional) break;
    for (size_t i = 0; i < (port.is(TN_PORT_VARIADIC) ? variadic : 1); ++i) result.push_back(port);
  }
  return result;
}

}  // namespace tenon::check
