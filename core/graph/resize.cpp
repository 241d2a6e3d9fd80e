// Resize: nearest and linear resizing of images, and the transposed maps. SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/checked.h"
#include "core/error.h"
#include "core/graph/differentiator.h"
#include "core/graph/window.h"

namespace tenon::core {

// value [N, from..., C]; out [N, to..., C]; TN_RESIZE_TRANSPOSED: the reverse
ValueId GraphWriter::resize(const tn_resize& how, ValueId value) {
  if (how.rank < 1 || how.rank > TN_MAX_SPACE)
    fail(TN_INVALID, "resize: ", how.rank, " dimensions; expected 1 to ", TN_MAX_SPACE);
  if ((how.flags & ~uint32_t{TN_RESIZE_LINEAR | TN_RESIZE_TRANSPOSED}) != 0)
    fail(TN_INVALID, "resize: unknown flags ", how.flags);
  int64_t before = 1, after = 1;
  for (int32_t i = 0; i < how.rank; ++i) {
    if (how.from[i] < 1 || how.to[i] < 1)
      fail(TN_INVALID, "resize: from ", how.from[i], " to ", how.to[i], " along dimension ", i, "; at least 1");
    if (!std::isfinite(how.scale[i]) || !std::isfinite(how.offset[i]) || how.scale[i] < 0)
      fail(TN_INVALID, "resize: the scale ", how.scale[i], " or the offset ", how.offset[i], " of dimension ", i,
           " is not in its range");
    before = checked_multiply(before, how.from[i], "resize");
    after = checked_multiply(after, how.to[i], "resize");
  }
  constexpr int64_t kMost = int64_t{1} << 31;
  if (before >= kMost || after >= kMost)
    fail(TN_UNSUPPORTED, "resize: images of ", before, " and ", after, " elements; at most 2^31 - 1");
  const Shape from = space_of(how.from, how.rank), to = space_of(how.to, how.rank);
  const bool transposed = (how.flags & TN_RESIZE_TRANSPOSED) != 0;
  const Spec given = graph_.spec(value);
  const int64_t channels = channels_of("resize", given, transposed ? to : from);
  append(Resize{how}, {value});
  return output({given.dtype, around(given.shape[0], transposed ? from : to, channels), TN_DENSE, 0, {}});
}

void Resize::derive(Differentiator& gradients, const Node& node) const {
  if (!gradients.needed(node.inputs[0])) return;
  tn_resize back = how;
  back.flags ^= TN_RESIZE_TRANSPOSED;
  const ValueId given = gradients.gradient(node.outputs[0]);
  gradients.add(node.inputs[0], gradients.writer(node.layer).resize(back, given), node.layer);
}

}  // namespace tenon::core
