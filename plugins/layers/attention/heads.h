// What native kernels of attention have in common: heads, and the loop over those of whole sequences or samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tenon/kernel.hpp>

namespace tenon::attention {

// The sizes of the heads. Query, key and value are the first inputs; their last dimension is the features of all heads.
class Heads {
 public:
  static void describe(tn::KernelDescription& d, const char* type, const char* name);
  static bool supports(const tn::KernelSite& site, int32_t& score);

 protected:
  explicit Heads(const tn::KernelSite& site);

  bool wide_;
  int64_t heads_, key_features_, value_features_;
  double scale_;
};

// A kernel of a layer with the attribute causal and one output, forward and backward.
class WholeHeads : public Heads {
 protected:
  // log_sums: what forward saves, [rows of the query, heads].
  static void query(const tn::KernelSite& site, tn::KernelNeeds& needs, const tn::Spec& log_sums);
  WholeHeads(const tn::KernelSite& site, int32_t direction);

  // Where the rows of the sequences are: those of sequence i from ends[i] to ends[i + 1], or, if ends is null,
  // `queries` and `keys` rows of each. The mask, which may be null, has the compute type and `keys` numbers a row,
  // mask_row elements apart.
  struct Places {
    int64_t sequences;
    const int64_t* ends;
    int64_t queries, keys;
    const tn_tensor* mask;
    int64_t mask_row;
  };
  void run(const tn::Call& call, const Places& places) const;

 private:
  template <typename T>
  struct Run;
  template <typename T>
  void run_of(const tn::Call& call, const Places& places) const;

  bool backward_, causal_;
  uint32_t inputs_;
};

}  // namespace tenon::attention
