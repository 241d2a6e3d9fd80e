// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/include.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include "base/files.h"
#include "host/cli/cli.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostIncludes = 16;  // of files that include each other
constexpr size_t kMostFiles = 256;    // of a job

// Adds the keys of `from` to `to`: tables are joined, lists of tables concatenated, and no key may be in both.
void merge(Node& to, Node&& from, const std::string& prefix) {
  auto& members = *to.get<Node::Members>();
  for (auto& [key, node] : *from.get<Node::Members>()) {
    const auto [at, added] = members.try_emplace(key, std::move(node));
    if (added) continue;
    Node& there = at->second;
    if (there.is_table() && node.is_table() && !there.is_inline && !node.is_inline) {
      merge(there, std::move(node), prefix + key + ".");
    } else if (there.is_list_of_tables() && node.is_list_of_tables()) {
      auto& more = *node.get<Node::List>();
      there.get<Node::List>()->insert(there.get<Node::List>()->end(), std::move_iterator(more.begin()),
                                      std::move_iterator(more.end()));
    } else {
      throw Failure(kBadConfig, node.place + ": key \"" + prefix + key + "\" is given at " + there.place + " already");
    }
  }
}

// Reads the files of one job.
class Inclusion {
 public:
  Inclusion(const std::string& job, std::vector<JobFile>* files, const std::vector<JobFile>* included)
      : job_(job), files_(files), included_(included) {}

  // Returns the file joined with those that it includes, in the order in which it names them.
  Node load(std::string_view text, const std::string& path) {
    bytes_ += text.size();
    files_->push_back({path, std::string(text)});
    Node own = parse_toml(text, path);
    auto& members = *own.get<Node::Members>();
    auto include = members.extract("include");
    if (include.empty()) return own;
    const Node& table = include.mapped();
    if (!table.is_table())
      throw Failure(kBadConfig,
                    table.place + ": key \"include\": expected a table with the key \"files\", got " + kind_of(table));
    Section section(table, "[include]");
    if (!section.strings("files")) section.missing("files");
    section.finish();
    const Node& files = *section.find("files");
    Node result;
    result.place = own.place;
    if (const auto* list = files.get<Node::List>())
      for (const Node& file : *list) add(result, file, path, section);
    else
      add(result, files, path, section);
    merge(result, std::move(own), "");
    return result;
  }

 private:
  struct Open {
    fs::path file;
    std::string path;  // as messages name it
  };

  // Adds the file that the text `name` of the file `user` names, unless it was added before.
  void add(Node& to, const Node& name, const std::string& user, const Section& section) {
    const std::string path = (base::folder_of(user) / *name.get<std::string>()).lexically_normal().string();
    if (open_.empty()) open_.push_back({canonical(job_, name, section), job_});
    Open next{canonical(path, name, section), path};
    const fs::path root = canonical(base::folder_of(job_).string(), name, section);
    if (std::mismatch(root.begin(), root.end(), next.file.begin(), next.file.end()).first != root.end())
      section.fail(name.place, "\"" + path + "\" is outside of the folder of the job, " + root.string());
    const auto begin = std::find_if(open_.begin(), open_.end(), [&](const Open& one) { return one.file == next.file; });
    if (begin != open_.end()) {
      std::string cycle;
      for (auto each = begin; each != open_.end(); ++each) cycle += "\"" + each->path + "\" includes ";
      section.fail(name.place, "the files form a cycle: " + cycle + "\"" + path + "\"");
    }
    if (!done_.insert(next.file).second) return;
    if (open_.size() > kMostIncludes)
      section.fail(name.place, "files include each other more than " + std::to_string(kMostIncludes) + " deep");
    if (done_.size() > kMostFiles)
      section.fail(name.place, "the job has more than " + std::to_string(kMostFiles) + " files");
    std::string text;
    try {
      text = read(next.file, path);
    } catch (const Failure& failure) {
      throw Failure(failure.exit(), name.place + ": [include]: " + failure.what());
    }
    if (bytes_ + text.size() > kLargestJob)
      section.fail(name.place, "with \"" + path + "\" the files of the job are larger than " +
                                   std::to_string(kLargestJob) + " bytes");
    open_.push_back(std::move(next));
    Node included = load(text, path);
    open_.pop_back();
    merge(to, std::move(included), "");
  }

  // The path without symbolic links.
  static fs::path canonical(const std::string& path, const Node& name, const Section& section) {
    std::error_code error;
    fs::path result = fs::weakly_canonical(fs::absolute(path, error), error);
    if (error) section.fail(name.place, "cannot open \"" + path + "\": " + error.message());
    return result;
  }

  // file: what is read, after all links were followed; path: its name in messages.
  [[nodiscard]] std::string read(const fs::path& file, const std::string& path) const {
    if (included_ != nullptr) {
      const auto at =
          std::find_if(included_->begin(), included_->end(), [&](const JobFile& one) { return one.path == path; });
      if (at == included_->end()) throw Failure(kNotFound, "there is no text of \"" + path + "\"");
      return at->text;
    }
    std::error_code error;
    return read_job_file(fs::exists(file, error) ? file.string() : path, path);
  }

  const std::string& job_;
  std::vector<JobFile>* const files_;
  const std::vector<JobFile>* const included_;  // null: those on disk
  size_t bytes_ = 0;
  std::set<fs::path> done_;
  std::vector<Open> open_;  // files that are being read, each included by the one before
};

}  // namespace

std::string read_job_file(const std::string& path, const std::string& name) {
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  // A pipe that has a name might block, and a device never end. One that the program was started with has no name: its
  // link leads to no file.
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::canonical(path, none).empty())
    throw Failure(kIo, "the job file \"" + name + "\" is not a regular file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const auto io_failure = [&path](const char* verb) {
    const int code = errno;
    const std::string reason = code == 0 ? "" : ": " + std::generic_category().message(code);
    return Failure(code == ENOENT || code == ENOTDIR ? kNotFound : kIo,
                   std::string("cannot ") + verb + " the job file \"" + path + "\"" + reason);
  };
  if (!file) throw io_failure("open");
  std::string text(kLargestJob + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) throw io_failure("read");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kLargestJob)
    throw Failure(kBadConfig, path + ": larger than " + std::to_string(kLargestJob) + " bytes; this is not a job file");
  return text;
}

Node parse_with_includes(std::string_view text, const std::string& path, std::vector<JobFile>* files,
                         const std::vector<JobFile>* included) {
  return Inclusion(path, files, included).load(text, path);
}

}  // namespace tenon::cli
