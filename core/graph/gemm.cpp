// Gemm: products of matrices and of batches of matrices.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// C = alpha op(A) op(B), for each matrix of the batch
//   A [batch..., M, K], stored as [batch..., K, M] with TN_TRANSPOSE_A
//   B [batch..., K, N], stored as [batch..., N, K] with TN_TRANSPOSE_B
//   C [batch..., M, N]
ValueId GraphWriter::gemm(ValueId a, ValueId b, uint32_t flags, double alpha) {
  const Spec& left = graph_.spec(a);
  const Spec& right = graph_.spec(b);
  const auto bad = [&](const char* why) {
    fail(TN_INVALID, "gemm of ", to_string(left), " and ", to_string(right), ": ", why);
  };
  const size_t rank = left.shape.size();
  if (rank < 2 || right.shape.size() != rank) bad("both need the same rank of at least 2");
  if (left.dtype != right.dtype || !is_float(left.dtype)) bad("both need the same float type");
  for (size_t i = 0; i + 2 < rank; ++i)
    if (!same(left.shape[i], right.shape[i])) bad("the batch dimensions differ");
  check_unused(flags & ~uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}, "flags of a gemm, beside the known ones,");
  const bool ta = (flags & TN_TRANSPOSE_A) != 0;
  const bool tb = (flags & TN_TRANSPOSE_B) != 0;
  const Dim& m = left.shape[rank - (ta ? 1 : 2)];
  const Dim& k = left.shape[rank - (ta ? 2 : 1)];
  const Dim& k2 = right.shape[rank - (tb ? 1 : 2)];
  const Dim& n = right.shape[rank - (tb ? 2 : 1)];
  if (!same(k, k2)) bad("the inner dimensions differ");
  Spec result{left.dtype, Shape(left.shape.begin(), left.shape.end() - 2), TN_DENSE, 0, {}};
  result.shape.push_back(m);
  result.shape.push_back(n);
  append(Gemm{flags, alpha}, {a, b});
  return output(std::move(result));
}

// dA = alpha dC op(B)^T and dB = alpha op(A)^T dC, each in the shape in which A or B is stored. dC [batch..., M, N].
void Gemm::derive(Differentiator& gradients, const Node& node) const {
  const bool ta = (this->flags & TN_TRANSPOSE_A) != 0;
  const bool tb = (this->flags & TN_TRANSPOSE_B) != 0;
  const ValueId a = node.inputs[0];
  const ValueId b = node.inputs[1];
  const ValueId dc = gradients.gradient(node.outputs[0]);
  const auto transposes = [](bool first, bool second) {
    return static_cast<uint32_t>((first ? TN_TRANSPOSE_A : 0) | (second ? TN_TRANSPOSE_B : 0));
  };
  GraphWriter write = gradients.writer(node.layer);
  if (gradients.needed(a))
    gradients.add(
        a, ta ? write.gemm(b, dc, transposes(tb, true), alpha) : write.gemm(dc, b, transposes(false, !tb), alpha),
        node.layer);
  if (gradients.needed(b))
    gradients.add(
        b, tb ? write.gemm(dc, a, transposes(true, ta), alpha) : write.gemm(a, dc, transposes(!ta, false), alpha),
        node.layer);
}

}  // namespace tenon::core
