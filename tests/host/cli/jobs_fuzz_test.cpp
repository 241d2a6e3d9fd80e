// Damaged job files, arguments of --set, plugin sets and signatures: each is refused with a message, or is a job that
// can be planned, a set that a host takes. Nothing is trained. tests/support/fuzz/trials.h has the settings.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/cli/cli.h"
#include "host/cli/job/job.h"
#include "host/cli/job/reader.h"
#include "host/cli/planning.h"
#include "tests/support/fuzz/source_files.h"
#include "tests/support/fuzz/trials.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// A job, and the folder with its data; empty: it has none here.
struct SoundJob {
  std::string text;
  fs::path folder;
};

// The blocks of TOML on the pages.
std::vector<std::string> page_blocks() {
  std::vector<std::string> blocks;
  for (const std::string& page : source_files("docs", ".md"))
    for (size_t at = 0; (at = page.find("\n```toml\n", at)) != std::string::npos;) {
      const size_t begin = at + 9, end = page.find("\n```", begin);
      blocks.push_back(page.substr(begin, end + 1 - begin));
      at = end;
    }
  return blocks;
}

std::vector<SoundJob> sound_jobs() {
  std::vector<SoundJob> jobs;
  for (const fs::path& path : source_paths("tests/museum/files", "job.toml"))
    for (int twice = 0; twice < 4; ++twice) jobs.push_back({file_bytes(path), path.parent_path()});
  for (const fs::path& path : source_paths("examples", ".toml")) jobs.push_back({file_bytes(path), {}});
  for (const std::string& block : page_blocks()) jobs.push_back({block, {}});
  return jobs;
}

class JobsFuzz : public testing::Test {
 protected:
  // Reads and plans the job that lies in the folder.
  [[nodiscard]] Ending plan(const std::string& path, const std::vector<std::string>& sets) const {
    try {
      const Job job = load_job(path, sets);
      const json plan = plan_job(host_, job, reader_of(job, "train"), true);
      if (plan.dump().empty()) return {true, "an empty plan"};
      return {true, {}};
    } catch (const Failure& failure) {
      return refused(failure.what(), failure.exit(), {kUsage, kBadData, kNotFound, kIo, kBadConfig, kRefused});
    } catch (const Error& error) {
      return refused(error, {TN_INVALID, TN_NOT_FOUND, TN_UNSUPPORTED, TN_BAD_DATA, TN_BAD_CONFIG, TN_REFUSED, TN_IO});
    }
  }

  const TemporaryFolder folder_;
  const Host host_{HostOptions{2, {plugin_folder()}, nullptr, {}}};
};

TEST_F(JobsFuzz, Jobs) {
  Trials trials("job", 300);
  const std::vector<SoundJob> jobs = sound_jobs();
  const auto make = [&](Draw& draw) {
    const SoundJob &job = jobs[draw.below(jobs.size())], &other = draw.one_of(jobs);
    return draw.once_in(8) ? job.text : mutated_text(draw, job.text, other.text);
  };
  const auto check = [&](const std::string& text, Draw& draw) {
    if (text.find("save_voc") != std::string::npos) return Ending{};  // a reader would write a file of this name
    Draw again(draw.seed());
    const SoundJob& job = jobs[again.below(jobs.size())];
    fs::remove_all(folder_.path());
    if (job.folder.empty())
      fs::create_directories(folder_.path());
    else
      fs::copy(job.folder, folder_.path());
    put(folder_.file("job.toml"), text);
    const char* const sets[] = {"layer.hidden.size=3",
                                "passes=2",
                                "reader.train.batch = 7",
                                "seed = 1",
                                "outputs=[]",
                                "reader.train.slots.image={layer=\"x\",scale=1}"};
    std::vector<std::string> set;
    if (text == job.text || draw.once_in(8)) set = {mutated_text(draw, draw.one_of(sets), jobs[0].text)};
    return plan(folder_.file("job.toml"), set);
  };
  trials.run(make, check, 20);
}

class SetsFuzz : public testing::Test {
 protected:
  SetsFuzz() {
    const Host host{HostOptions{1, {plugin_folder()}, nullptr, {}}};
    const Layer x = host.data({"x", TN_F32, {2}});
    (void)host.layer("fc", {x}, {{"size", 1}});
    locked_ = host.lock_plugins(folder_.path().string());
    fs::copy(plugin_folder() + "/layers/fc.so", folder_.file("fc.so"));
    create_plugin_key(folder_.file("key"), folder_.file("key.pub"));
    sign_plugin(folder_.file("fc.so"), folder_.file("key"));
    const std::string key = file_bytes(folder_.file("key.pub"));
    const size_t digits = key.find_last_of("0123456789abcdef");
    listed_ = "mode = \"allow\"\ninstalled = false\nfolders = [\".\"]\n\n[[key]]\nname = \"release\"\npublic = \"" +
              key.substr(digits - 63, 64) +
              "\"\n\n[[plugin]]\nid = \"tenon.fc\"\nversion = \">=0.0.1, <9\"\nfile = \"fc.so\"\nsigned_by = "
              "[\"release\"]\nsystem = [\"libc.so.6\"]\noptions = { }\n\n[[plugin]]\nid = \"org.app\"\napplication = "
              "true\n";
  }
  [[nodiscard]] Ending use(const std::string& text) const {
    const std::string path = folder_.file("set.toml");
    put(path, text);
    try {
      HostOptions options;
      options.threads = 1;
      options.plugin_set = path;
      options.installed_plugins = false;
      (void)json::parse(Host(options).plugins());
      (void)json::parse(verify_plugin_set(path));
    } catch (const Error& error) {
      return refused(error, {TN_BAD_CONFIG, TN_NOT_FOUND, TN_REFUSED, TN_IO});
    }
    return {true, {}};
  }

  const TemporaryFolder folder_;
  std::string locked_, listed_;
};

TEST_F(SetsFuzz, PluginSets) {
  ASSERT_TRUE(use(locked_).accepted);
  ASSERT_TRUE(use(listed_).accepted);
  Trials trials("set", 250);
  trials.run(
      [&](Draw& draw) {
        const bool locked = draw.once_in(2);
        return mutated_text(draw, locked ? locked_ : listed_, locked ? listed_ : locked_);
      },
      [&](const std::string& text, Draw& /*draw*/) { return use(text); }, 50);
}

// A file, its signature or the key is damaged: what verifies then is as it was signed.
TEST_F(SetsFuzz, Signatures) {
  Trials trials("signature", 200);
  const char* const names[] = {"fc.so.sig", "key.pub", "fc.so"};
  std::map<std::string, std::string> sound;
  for (const char* name : names) sound[name] = file_bytes(folder_.file(name));
  const auto make = [&](Draw& draw) {
    const char* const name = names[draw.below(3)];
    return mutated_bytes(draw, sound[name], sound[draw.one_of(names)]);
  };
  const auto check = [&](const std::string& bytes, Draw& draw) {
    Draw again(draw.seed());
    const std::string name = names[again.below(3)];
    put(folder_.file(name), bytes);
    Ending ending = {true, {}};
    try {
      verify_plugin(folder_.file("fc.so"), folder_.file("key.pub"));
      if (bytes != sound[name]) ending.fault = "another file verifies";
    } catch (const Error& error) {
      ending = refused(error, {TN_REFUSED, TN_BAD_DATA, TN_BAD_CONFIG, TN_INVALID});
    }
    put(folder_.file(name), sound[name]);
    return ending;
  };
  trials.run(make, check, 10);
}

}  // namespace
}  // namespace tenon_tests
