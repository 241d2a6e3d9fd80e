// SPDX-License-Identifier: Apache-2.0
#include "host/training/team/agreement.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "host/training/data/data_digest.h"

namespace tenon::host {

std::string Agreement::gathered(const std::string& digests) const {
  std::string all(digests.size() * static_cast<size_t>(team_->processes()), '\0');
  all.replace(digests.size() * static_cast<size_t>(team_->rank()), digests.size(), digests);
  team_->gather(std::as_writable_bytes(std::span(all)));
  return all;
}

void Agreement::require_equal(const std::string& text, const char* what) const {
  if (team_ == nullptr) return;
  const std::string digest = digest_of(text);
  const std::string all = gathered(digest);
  for (int64_t process = 1; process < team_->processes(); ++process)
    if (all.compare(static_cast<size_t>(process) * digest.size(), digest.size(), all, 0, digest.size()) != 0)
      fail(TN_INVALID, SubjectName{"team"}, "process ", team_->rank_of(process), " has ", what, " than process 0");
}

void Agreement::require_equal_parts(const std::map<std::string, std::string>& parts) const {
  if (team_ == nullptr) return;
  std::string list;  // of process 0: a line for each part
  if (leads())
    for (const auto& [name, value] : parts) list += name + '\t' + value + '\n';
  list.resize(of_leader(uint64_t{list.size()}));
  team_->broadcast(std::as_writable_bytes(std::span(list)));
  std::vector<std::string> names;
  std::vector<int64_t> differing(static_cast<size_t>(team_->processes()), -1);  // the first one of each process
  int64_t& own = differing[static_cast<size_t>(team_->rank())];
  std::istringstream lines(list);
  for (std::string name, value; std::getline(lines, name, '\t') && std::getline(lines, value);) {
    const auto part = parts.find(name);
    if (own < 0 && part != parts.end() && part->second != value) own = static_cast<int64_t>(names.size());
    names.push_back(name);
  }
  team_->gather(std::as_writable_bytes(std::span(differing)));
  for (size_t process = 1; process < differing.size(); ++process)
    if (differing[process] >= 0)
      fail(TN_INVALID, SubjectName{"team"}, "process ", team_->rank_of(static_cast<int64_t>(process)), " has another ",
           names[static_cast<size_t>(differing[process])], " than process 0, which may compute other bits");
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
      fail(TN_INTERNAL, SubjectName{name}, "the values of \"", name, "\" in process ", team_->rank_of(process),
           " are not those of process 0 after ", set.updates(), " updates: a memory, a kernel or a line is faulty");
    }
}

namespace {

// An error for other processes: its message, a zero byte, its component. Its subject may be the number of an exception
// that the application keeps in its process, and is left out.
std::string packed(const Error& error) { return error.message() + '\0' + error.component(); }

Error unpacked(tn_status code, const std::string& text) {
  const size_t end = text.find('\0');
  return {code, text.substr(0, end), text.substr(end + 1), "team"};
}

}  // namespace

// Throws the error that a process has told of in all of them.
void Agreement::throw_failure(int64_t process, const Failure& failure, const std::optional<Error>& own) const {
  std::string text_of_it =
      process == team_->rank() ? packed(*own) : std::string(static_cast<size_t>(failure.length), '\0');
  team_->broadcast(std::as_writable_bytes(std::span(text_of_it)), process);
  const Error error = process == team_->rank() ? *own : unpacked(static_cast<tn_status>(failure.status), text_of_it);
  throw error.with_context(text("process ", team_->rank_of(process)));
}

void Agreement::require_success(const std::optional<Error>& own) const {
  std::vector<Failure> all(static_cast<size_t>(team_->processes()));
  if (own) all[static_cast<size_t>(team_->rank())] = {own->code(), static_cast<int64_t>(packed(*own).size())};
  team_->gather(std::as_writable_bytes(std::span(all)));
  for (size_t process = 0; process < all.size(); ++process)
    if (all[process].status != TN_OK) throw_failure(static_cast<int64_t>(process), all[process], own);
}

bool Agreement::all(bool own) const {
  if (team_ == nullptr) return own;
  const std::vector<std::string> answers = texts_of_all(own ? "1" : "0");
  return std::all_of(answers.begin(), answers.end(), [](const std::string& answer) { return answer == "1"; });
}

std::vector<std::string> Agreement::texts_of_all(const std::string& own) const {
  if (team_ == nullptr) return {own};
  const std::string all = gathered(own);
  std::vector<std::string> texts;
  for (size_t at = 0; at < all.size(); at += own.size()) texts.push_back(all.substr(at, own.size()));
  return texts;
}

std::vector<MinibatchReport> Agreement::reports_of_all(const MinibatchReport& own) const {
  const Failure failure =
      own.error ? Failure{own.error->code(), static_cast<int64_t>(packed(*own.error).size())} : Failure{};
  const std::vector<int64_t> head = {failure.status, failure.length, own.samples, own.count};
  const size_t length = head.size() + own.sizes.size();
  std::vector<int64_t> all(length * static_cast<size_t>(team_->processes()));
  const auto numbers_of = [&](int64_t process) { return all.begin() + process * static_cast<int64_t>(length); };
  std::copy(own.sizes.begin(), own.sizes.end(), std::copy(head.begin(), head.end(), numbers_of(team_->rank())));
  team_->gather(std::as_writable_bytes(std::span(all)));
  for (int64_t process = 0; process < team_->processes(); ++process) {
    const auto from = numbers_of(process);
    if (from[0] != TN_OK) throw_failure(process, {from[0], from[1]}, own.error);
  }
  std::vector<MinibatchReport> reports;
  for (int64_t process = 0; process < team_->processes(); ++process) {
    const auto from = numbers_of(process);
    reports.push_back({from[2], from[3], {from + 4, from + static_cast<int64_t>(length)}, {}});
    if (from[2] != all[2])
      fail(TN_INVALID, SubjectName{"team"}, "process ", process, " has read a minibatch of ", from[2],
           " samples, process 0 one of ", all[2], ": their data differ");
  }
  return reports;
}

}  // namespace tenon::host
