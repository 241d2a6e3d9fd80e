// Reads the quotas of control groups where the kernel says that they are: /proc/self/cgroup has the groups of the
// process as paths in their hierarchies, /proc/self/mountinfo the folders in which (parts of) these hierarchies are
// mounted. SPDX-License-Identifier: Apache-2.0
#include "base/usable_cores.h"

#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace tenon::base {

namespace {

namespace fs = std::filesystem;

// Returns the text of a file, "" if it cannot be read. Files of the kernel do not state their size.
std::string text_of(const fs::path& path) {
  constexpr size_t kMost = size_t{1} << 24;
  std::string result;
  const Descriptor file(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  char part[4096];
  for (ssize_t got = 1; file.get() >= 0 && got > 0 && result.size() < kMost;) {
    got = uninterrupted([&] { return ::read(file.get(), part, sizeof part); });
    if (got > 0) result.append(part, static_cast<size_t>(got));
  }
  return result;
}

std::vector<std::string_view> parts_of(std::string_view text, char between) {
  std::vector<std::string_view> result;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(between, begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

bool holds(const std::vector<std::string_view>& parts, std::string_view part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

// Returns a path of mountinfo, in which "\040" is a space.
fs::path unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t code = 0;
    const bool escapes = text[i] == '\\' && i + 3 < text.size() &&
                         std::from_chars(&text[i + 1], &text[i + 4], code, 8).ptr == &text[i + 4];
    result += escapes ? static_cast<char>(code) : text[i];
    if (escapes) i += 3;
  }
  return result;
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value <= 0) return std::nullopt;  // "max", -1: no quota
  return value;
}

// Microseconds of all cores together in each period.
struct Quota {
  int64_t quota, period;
  fs::path file;  // that states it
  [[nodiscard]] double share() const { return static_cast<double>(quota) / static_cast<double>(period); }
  [[nodiscard]] int64_t cores() const { return (quota - 1) / period + 1; }
};

// Finds the smallest quota of the groups of a process.
class QuotaSearch {
 public:
  explicit QuotaSearch(const fs::path& root) : root_(root), mounts_(text_of(root / "proc/self/mountinfo")) {
    const std::string groups = text_of(root / "proc/self/cgroup");
    for (const std::string_view line : parts_of(groups, '\n')) {
      const size_t first = line.find(':'), second = line.find(':', first + 1);  // "4:cpu,cpuacct:/path"
      if (first == std::string_view::npos || second == std::string_view::npos) continue;
      const std::string_view controllers = line.substr(first + 1, second - first - 1);
      const bool unified = controllers.empty();
      if (unified || holds(parts_of(controllers, ','), "cpu")) visit_group(line.substr(second + 1), unified);
    }
  }

  [[nodiscard]] const std::optional<Quota>& smallest() const { return smallest_; }

 private:
  // Visits each mount of the hierarchy in which the group is: "36 35 0:31 /root /point options - cgroup2 source
  // options".
  void visit_group(const fs::path& group, bool unified) {
    for (const std::string_view line : parts_of(mounts_, '\n')) {
      const std::vector<std::string_view> fields = parts_of(line, ' ');
      const auto dash = std::find(fields.begin(), fields.end(), "-");
      if (fields.size() < 5 || fields.end() - dash < 4) continue;
      if (dash[1] != (unified ? "cgroup2" : "cgroup")) continue;
      if (!unified && !holds(parts_of(dash[3], ','), "cpu")) continue;
      visit_mount(unescaped(fields[3]), unescaped(fields[4]), group, unified);
    }
  }

  // Reads the quotas from the group up to the mounted one.
  void visit_mount(const fs::path& mounted, const fs::path& point, const fs::path& group, bool unified) {
    fs::path inner = group.lexically_relative(mounted);
    if (inner.empty() || *inner.begin() == "..") return;  // another part of the hierarchy is mounted
    if (inner == ".") inner.clear();
    for (;; inner = inner.parent_path()) {
      const fs::path folder = root_ / point.relative_path() / inner;
      if (unified)
        add_unified(folder / "cpu.max");
      else
        add(text_of(folder / "cpu.cfs_quota_us"), text_of(folder / "cpu.cfs_period_us"), folder / "cpu.cfs_quota_us");
      if (inner.empty()) return;
    }
  }

  void add_unified(const fs::path& file) {
    const std::string text = text_of(file);  // "150000 100000" or "max 100000"
    const size_t space = text.find(' ');
    if (space != std::string::npos) add(text.substr(0, space), text.substr(space + 1), file);
  }

  void add(std::string_view quota, std::string_view period, const fs::path& file) {
    const auto microseconds = number_of(quota), length = number_of(period);
    if (!microseconds || !length) return;
    const Quota candidate{*microseconds, *length, file};
    if (!smallest_ || candidate.share() < smallest_->share()) smallest_ = candidate;
  }

  const fs::path root_;
  const std::string mounts_;
  std::optional<Quota> smallest_;
};

std::string counted(int64_t cores) { return std::to_string(cores) + (cores == 1 ? " core" : " cores"); }

}  // namespace

int32_t cores_of_affinity() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int32_t>(std::thread::hardware_concurrency()));
}

UsableCores usable_cores(const fs::path& root, int32_t affine) {
  const QuotaSearch search(root);
  const std::optional<Quota>& quota = search.smallest();
  if (!quota || quota->cores() >= affine) return {affine, "the affinity of the process has " + counted(affine)};
  return {static_cast<int32_t>(quota->cores()),
          quota->file.string() + " allows the time of " + brief(quota->share(), 3) +
              (quota->share() == 1 ? " core" : " cores") + ", the affinity of the process " + counted(affine)};
}

}  // namespace tenon::base
