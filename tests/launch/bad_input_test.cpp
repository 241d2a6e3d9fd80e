// The table of docs/launching.md of what is refused: each row is done, and must have the message and exit code that the
// page states. SPDX-License-Identifier: Apache-2.0

#include <map>
#include <optional>
#include <tenon/tenon.hpp>

#include "host/cli/cli.h"
#include "tests/launch/launch.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;

struct Row {
  std::string deed, message;  // "..." in a message stands for anything
  int exit = 0;
};

// Returns the texts between the bars of a line of a table, without the marks of code.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|') {
      const size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
      cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end + 1 - begin));
      cell.clear();
    } else if (line[i] != '`') {
      cell += line[i];
    }
  }
  return cells;
}

// The rows of the table below the heading.
std::vector<Row> rows_of_page() {
  std::ifstream page(source_folder() + "/docs/launching.md");
  std::vector<Row> rows;
  bool is_there = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("## ", 0) == 0) is_there = line == "## What is refused";
    if (!is_there || line.rfind('|', 0) != 0 || line.rfind("|---", 0) == 0) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() == 3 && cells[2] != "code") rows.push_back({cells[0], cells[1], std::atoi(cells[2].c_str())});
  }
  return rows;
}

// Whether the parts of a message between "..." are in the text, in this order.
bool says(const std::string& text, const std::string& message) {
  size_t at = 0;
  for (size_t begin = 0; begin <= message.size();) {
    const size_t end = std::min(message.find("...", begin), message.size());
    const std::string part = message.substr(begin, end - begin);
    if ((at = text.find(part, at)) == std::string::npos) return false;
    at += part.size();
    begin = end + 3;
  }
  return true;
}

// Copies a folder by links, but for one file, which gets a byte more.
void copy_folder(const fs::path& from, const fs::path& to, const fs::path& changed) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from)) {
    const fs::path inner = entry.path().lexically_relative(from);
    if (entry.is_directory())
      fs::create_directories(to / inner);
    else if (inner == changed)
      fs::copy_file(entry.path(), to / inner);
    else if (entry.path().extension() == ".so")
      fs::create_symlink(entry.path(), to / inner);
  }
  std::ofstream(to / changed, std::ios::app) << ' ';
}

// Stands for ssh: nodes that cannot be used, and machines that have something else.
constexpr const char* kSsh = R"(#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
unknown) echo "ssh: Could not resolve hostname unknown: Name or service not known" >&2; exit 255 ;;
closed) echo "ann@closed: Permission denied (publickey)." >&2; exit 255 ;;
bare) echo "sh: 1: exec: tenon-launch: not found" >&2; exit 127 ;;
older) echo '{"hello":{"version":"0.0.9","host":"older","cores":1}}'; cat >/dev/null; exit 0 ;;
127.0.0.2) export TENON_PLUGIN_PATH="$TEST_FOLDER/rebuilt" ;;
127.0.0.3) exec unshare $TEST_UNSHARE sh -c 'mount --bind "$TEST_FOLDER/cpuinfo" /proc/cpuinfo; exec sh -c "$1"' - "$3" ;;
127.0.0.4) exec unshare $TEST_UNSHARE sh -c 'mount -t tmpfs none "$TEST_FOLDER/ck"; exec sh -c "$1"' - "$3" ;;
esac
exec sh -c "$3"
)";

class LaunchBadInput : public LaunchTest {
 protected:
  using Deed = std::function<std::optional<Outcome>()>;  // empty: this machine does not allow it

  void SetUp() override {
    LaunchTest::SetUp();
    unsetenv("TENON_PROGRAM");
    std::string text = job();
    text.replace(text.find("passes = 4"), 10, "passes = 150\nshards = 4\nthreads = 1");
    job_ = text + "\n[checkpoint]\nfolder = \"ck\"\nevery_batches = 10\n";
    write("job.toml", job_);
    EXPECT_EQ(run("train job.toml --quiet --set save=one.safetensors --set checkpoint.folder=one").exit, 0);
    fs::create_directory(path("bin"));
    write("bin/ssh", kSsh);
    fs::permissions(path("bin/ssh"), fs::perms::owner_all);
    before_ = std::getenv("PATH");
    setenv("PATH", (path("bin") + ":" + before_).c_str(), 1);
    setenv("TEST_FOLDER", fs::path(path(".")).parent_path().c_str(), 1);
    setenv("TEST_UNSHARE", geteuid() == 0 ? "-m" : "-Urm", 1);
  }
  void TearDown() override { setenv("PATH", before_.c_str(), 1); }

  [[nodiscard]] bool trained() const { return read("model.safetensors") == read("one.safetensors"); }
  void forget() const {
    write("job.toml", job_);
    for (const char* const name : {"ck", "model.safetensors", "output"}) fs::remove_all(path(name));
  }
  static bool has_machines() { return tenon_tests::shell("unshare $TEST_UNSHARE true 2>/dev/null").well(); }
  static bool has_comm(const std::string& type) { return fs::exists(plugin_folder() + "/comms/" + type + ".so"); }

  [[nodiscard]] Deed options(const std::string& arguments) const {
    return [this, arguments] { return launch(arguments); };
  }
  [[nodiscard]] Deed variables(const std::string& variables, const std::string& arguments) const {
    return [this, variables, arguments] { return shell("export " + variables + "; exec $TENON " + arguments); };
  }

  // Stops one of two processes, so that their training waits; does something else; the training then starts again.
  [[nodiscard]] Outcome meanwhile(const std::function<Outcome()>& work) const {
    Child child = begin("--processes 2 --silence 6");
    EXPECT_TRUE(comes([&] { return has_checkpoint(); })) << read("output");
    send("1", SIGSTOP);
    Outcome outcome = work();
    const int exit = exit_of(child);
    if (outcome.exit < 0) return {exit, "", read("output")};
    EXPECT_EQ(exit, 0) << read("output");
    EXPECT_TRUE(trained()) << "the refused start has changed the training";
    return outcome;
  }
  [[nodiscard]] Outcome with_another_build() const {
    fs::create_directory(path("rebuilt"));
    copy_folder(plugin_folder(), path("rebuilt"), "layers/fc.so");
    return launch("--nodes 127.0.0.1,127.0.0.2");
  }
  [[nodiscard]] std::optional<Outcome> with_another_processor() const {
    if (!has_machines()) return std::nullopt;
    write("cpuinfo", "vendor_id : OtherVendor\nflags : sse2\n");
    return launch("--nodes 127.0.0.1,127.0.0.3");
  }
  [[nodiscard]] std::optional<Outcome> with_a_folder_of_its_own() const {
    if (!has_machines()) return std::nullopt;
    EXPECT_EQ(run("train job.toml --quiet --passes 3 --no-save").exit, 0);
    return launch("--nodes 127.0.0.1,127.0.0.4 --resume");
  }
  [[nodiscard]] Outcome with_a_taken_port() const {
    const TakenPort taken;
    return launch("--nodes here,there --address here:" + taken.text());
  }
  // Two processes of epoch 3 train; another one wants to be one of them before the second is there.
  [[nodiscard]] std::optional<Outcome> stranger(const std::string& secret, uint32_t epoch) const {
    if (!has_comm("zmq")) return std::nullopt;
    write("secret", "the secret of this training, 32 B");
    write("other", "some other secret of enough bytes");
    for (const char* const name : {"secret", "other"}) fs::permissions(path(name), fs::perms::owner_read);
    const std::string address = "ipc://" + path("team");
    const auto begin_process = [&](const std::string& rank) {
      return Child([&] {
        const std::string script = "cd '" + path(".") + "'; export TENON_TEAM_RANK=" + rank +
                                   " TENON_TEAM_PROCESSES=2 TENON_TEAM_COMM=zmq TENON_TEAM_EPOCH=3 "
                                   "TENON_TEAM_SECRET='" +
                                   path("secret") + "' TENON_TEAM_ADDRESS='" + address + "'; exec '" +
                                   tenon_tests::program() + "' train job.toml --quiet >output" + rank +
                                   " 2>&1 </dev/null";
        become({"/bin/sh", "-c", script});
      });
    };
    Child first = begin_process("0");
    EXPECT_TRUE(comes([&] { return fs::exists(path("team")); }));
    Outcome outcome;
    try {
      const tenon::Host host({1, {plugin_folder()}, nullptr, {}});
      tenon::TeamOptions options;
      options.comm = "zmq", options.address = address, options.secret = path(secret);
      options.rank = 1, options.processes = 2, options.epoch = epoch, options.deadline_seconds = 2;
      (void)host.join(options);
      outcome.exit = 0;
    } catch (const tenon::Error& error) {
      outcome = {tenon::cli::exit_code(error.code()), "", error.what()};
    }
    Child second = begin_process("1");
    EXPECT_EQ(exit_of(second), 0) << read("output1");
    EXPECT_EQ(exit_of(first), 0) << read("output0");
    EXPECT_TRUE(trained()) << "the stranger has changed the training";
    return outcome;
  }

  [[nodiscard]] std::map<std::string, Deed> deeds() const {
    return {
        {"--processes 0", options("--processes 0")},
        {"--processes -1", options("--processes -1")},
        {"--processes 1000000", options("--processes 1000000")},
        {"--servers -1", options("--processes 2 --servers=-1")},
        {"--servers 2 with two processes of --nodes", options("--nodes here,there --servers 2")},
        {"--servers 1 for a job without tables", options("--processes 2 --servers 1")},
        {"--servers 1 for a process alone", [this] { return run("train job.toml --servers 1"); }},
        {"more processes than shards", options("--processes 5")},
        {"--processes inside of mpiexec", variables("PMI_SIZE=4 PMI_RANK=0", "train job.toml --processes 2")},
        {"processes that the MPI of another launcher started",
         [this]() -> std::optional<Outcome> {
           if (!has_comm("openmpi")) return std::nullopt;
           return shell("export OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0; exec $TENON train job.toml");
         }},
        {"an unknown node", options("--nodes here,unknown")},
        {"a node that refuses the key", options("--nodes here,closed")},
        {"a node without tenon", options("--nodes here,bare")},
        {"a node with another version of tenon", options("--nodes here,older")},
        {"a node with another build of a plugin", [this] { return with_another_build(); }},
        {"a node with a processor of another kind", [this] { return with_another_processor(); }},
        {"a node that does not share the folder of checkpoints", [this] { return with_a_folder_of_its_own(); }},
        {"a port that is taken", [this] { return with_a_taken_port(); }},
        {"a job that runs already", [this] { return meanwhile([this] { return launch("--processes 2"); }); }},
        {"a job that was edited since it began",
         [this] {
           return meanwhile([this] {
             write("job.toml", job_ + "keep = 2\n");
             return Outcome{};
           });
         }},
        {"a process with another secret", [this] { return stranger("other", 3); }},
        {"a process of an older epoch", [this] { return stranger("secret", 2); }},
    };
  }

 private:
  std::string job_, before_;
};

TEST_F(LaunchBadInput, IsRefusedAsThePageSays) {
  const std::vector<Row> rows = rows_of_page();
  std::map<std::string, Deed> left = deeds();
  for (const Row& row : rows) {
    const auto deed = left.extract(row.deed);
    ASSERT_FALSE(deed.empty()) << "nothing does what the row says: " << row.deed;
    forget();
    const std::optional<Outcome> outcome = deed.mapped()();
    if (!outcome) continue;
    EXPECT_EQ(outcome->exit, row.exit) << row.deed << ": " << outcome->error;
    EXPECT_TRUE(says(outcome->error, row.message)) << row.deed << ": " << outcome->error;
    for (const char* const rank : {"0", "1"}) EXPECT_TRUE(comes([&] { return process(rank) == 0; })) << row.deed;
  }
  for (const auto& [deed, work] : left) ADD_FAILURE() << "the page has no row: " << deed;
}

}  // namespace

}  // namespace tenon_tests
