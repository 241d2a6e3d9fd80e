// SPDX-License-Identifier: Apache-2.0
#include "host/training/team/agreement.h"

#include "core/error.h"
#include "core/files/checksum.h"
#include "host/training/data_digest.h"

namespace tenon::host {

std::string Agreement::gathered(const std::string& digests) const {
  std::string all(digests.size() * static_cast<size_t>(team_->processes()), '\0');
  all.replace(digests.size() * static_cast<size_t>(team_->rank()), digests.size(), digests);
  team_->gather(std::as_writable_bytes(std::span(all)));
  return all;
}

void Agreement::require_equal(const std::string& text, const char* what) const {
  if (team_ == nullptr) return;
  Xxh3 hash;
  hash.update(text.data(), text.size());
  const std::string digest = hash.finish();
  const std::string all = gathered(digest);
  for (int64_t process = 1; process < team_->processes(); ++process)
    if (all.compare(static_cast<size_t>(process) * digest.size(), digest.size(), all, 0, digest.size()) != 0)
      fail(TN_INVALID, SubjectName{"team"}, "process ", process, " has ", what, " than process 0");
}

void Agreement::require_equal_values(const ParameterSet& set) const {
  if (team_ == nullptr) return;
  std::string digests;
  for (const ParameterEntry& entry : set.entries()) digests += digest_of(set, entry);
  const std::string all = gathered(digests);
  const size_t digits = set.entries().empty() ? 0 : digests.size() / set.entries().size();
  for (size_t i = 0; i < set.entries().size(); ++i)
    for (int64_t process = 1; process < team_->processes(); ++process) {
      const size_t at = static_cast<size_t>(process) * digests.size() + i * digits;
      if (all.compare(at, digits, all, i * digits, digits) == 0) continue;
      const std::string& name = set.entries()[i].name;
      fail(TN_INTERNAL, SubjectName{name}, "the values of \"", name, "\" in process ", process,
           " are not those of process 0 after ", set.updates(), " updates: a memory, a kernel or a line is faulty");
    }
}

}  // namespace tenon::host
