// SPDX-License-Identifier: Apache-2.0
#include "host/compile/final_parts.h"

#include <algorithm>
#include <map>

#include "host/compile/call_array.h"
#include "host/compile/memory_plan.h"

namespace tenon::host {

std::vector<FinalPart> final_parts(const std::vector<SectionWrite>& writes, uint64_t bytes) {
  std::map<uint64_t, size_t> calls = {{0, 0}, {bytes, 0}};  // by the first byte of a piece of the section
  for (const SectionWrite& write : writes) calls[write.first] = calls[write.end] = 0;
  for (const SectionWrite& write : writes)
    for (auto piece = calls.find(write.first); piece->first < write.end; ++piece)
      piece->second = std::max(piece->second, write.calls);
  std::vector<FinalPart> parts;
  for (auto piece = calls.begin(); piece->first < bytes; ++piece) {
    const uint64_t size = std::next(piece)->first - piece->first;
    if (!parts.empty() && (piece->second == 0 || piece->second == parts.back().calls))
      parts.back().bytes += size;
    else
      parts.push_back({piece->second, piece->first, size});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.calls < b.calls; });
  return parts;
}

std::vector<FinalPart> CallArray::final_parts(std::span<const std::byte> section) const {
  // Steps of a loop write again and again, up to its end.
  const auto behind = [&](size_t call) {
    for (const LoopCalls& loop : loops_)
      if (loop.around() == nullptr && loop.first() <= call && call < loop.first() + loop.calls())
        return loop.first() + loop.calls();
    return call + 1;
  };
  std::vector<SectionWrite> writes;
  for (size_t call = forward_calls_; call < calls_.size(); ++call)
    for (const ValueId output : graph_.nodes[calls_[call].node].outputs) {
      const auto* const at = output == kNoValue ? nullptr : static_cast<const std::byte*>(memory(output));
      if (at == nullptr || at < section.data() || at >= section.data() + section.size()) continue;
      const auto first = static_cast<uint64_t>(at - section.data());
      writes.push_back({behind(call), first, first + bytes_of(graph_.spec(output), bounds_)});
    }
  return host::final_parts(writes, section.size());
}

void CallArray::run_backward(const tn_execution& execution, ErrorSink& errors, const std::vector<FinalPart>& parts,
                             const std::function<void(const FinalPart&)>& final) {
  auto [first, last] = range(Phase::kBackward);
  for (const FinalPart& part : parts) {
    if (part.calls > first) {
      run_loops(first, part.calls, nullptr, Phase::kBackward, execution, errors);
      first = part.calls;
    }
    final(part);
  }
  run_loops(first, last, nullptr, Phase::kBackward, execution, errors);
}

}  // namespace tenon::host
