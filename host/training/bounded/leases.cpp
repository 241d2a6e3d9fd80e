// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/leases.h"

#include <algorithm>

namespace tenon::host {

void Leases::begin(int64_t first, int64_t end) {
  next_ = first;
  end_ = end;
  draining_ = pass_has_ended_ = false;
}

int64_t Leases::first_undone() const {
  int64_t first = returned_.empty() ? next_ : std::min(next_, *returned_.begin());
  for (const auto& [trainer, lease] : leases_) first = std::min(first, lease.minibatch);
  return first;
}

std::optional<Leases::Lease> Leases::lease(int64_t trainer) {
  if (returned_.empty() && !has_next()) return std::nullopt;
  const int64_t minibatch = returned_.empty() ? next_ : *returned_.begin();
  if (minibatch - first_undone() > staleness_) return std::nullopt;
  const bool is_again = !returned_.empty();
  if (!is_again)
    ++next_;
  else
    returned_.erase(returned_.begin());
  const Lease lease = {minibatch, serial_++, is_again};
  leases_.insert_or_assign(trainer, lease);
  return lease;
}

void Leases::end_pass(int64_t trainer) {
  const int64_t minibatch = leases_.at(trainer).minibatch;
  leases_.erase(trainer);
  pass_has_ended_ = true;
  end_ = std::min(end_, minibatch);
  next_ = std::min(next_, minibatch);
  returned_.erase(returned_.lower_bound(end_), returned_.end());
}

std::optional<Leases::Lease> Leases::give_back(int64_t trainer) {
  const auto lease = leases_.find(trainer);
  if (lease == leases_.end()) return std::nullopt;
  const Lease result = lease->second;
  leases_.erase(lease);
  if (result.minibatch < end_ && !stopped_) returned_.insert(result.minibatch);
  return result;
}

}  // namespace tenon::host
