// SPDX-License-Identifier: Apache-2.0
#include "host/training/agreement.h"

#include <array>
#include <vector>

#include "core/error.h"
#include "core/files/checksum.h"

namespace tenon::host {

void Agreement::require_equal(const std::string& text, const char* what) const {
  if (team_ == nullptr) return;
  Xxh3 hash;
  hash.update(text.data(), text.size());
  const std::string digest = hash.finish();
  std::vector<std::byte> all(digest.size() * static_cast<size_t>(team_->processes()));
  const auto place = [&](int64_t process) {
    return reinterpret_cast<char*>(all.data()) + static_cast<size_t>(process) * digest.size();
  };
  digest.copy(place(team_->rank()), digest.size());
  team_->gather(all);
  for (int64_t process = 1; process < team_->processes(); ++process)
    if (std::string_view(place(process), digest.size()) != std::string_view(place(0), digest.size()))
      fail(TN_INVALID, SubjectName{"team"}, "process ", process, " has ", what, " than process 0");
}

}  // namespace tenon::host
