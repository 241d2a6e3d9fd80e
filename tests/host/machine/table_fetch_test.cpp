// When the rows of tables are sent: before the update in between, or behind it. SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/table_fetch.h"

#include <set>

#include "tests/support/loop_team.h"

namespace tenon_tests {

namespace {

using namespace tenon::host;
using testing::Each;
using testing::HasSubstr;

constexpr int64_t kSteps = 6;

// Which rows of a table a process reads in a step.
using Reads = std::function<std::set<int64_t>(int64_t step, int64_t rank, size_t table)>;

// A process with its part of two tables.
class Process {
 public:
  // width: of the first table, for the others 3.
  Process(Team& team, const Reads& reads, int64_t width = 3)
      : team_(team),
        reads_(reads),
        set_(parameters_of(team)),
        owners_(&team, *set_),
        tables_(tables_of(*set_, width)),
        fetch_(owners_, tables_) {}

  void ask(int64_t step) {
    TableIds ids(2);
    if (team_.rank() < team_.trainers())
      for (size_t i = 0; i < 2; ++i)
        for (const int64_t id : reads_(step, team_.rank(), i)) ids[i].push_back(id);
    fetch_.ask(ids);
  }
  // Makes `version` the value of each element of each owned row, of rows that nobody reads, too.
  void update(int64_t version) {
    for (const MachineTable& table : tables_) {
      const ParameterEntry& entry = set_->owned()->entries()[table.owned];
      if (entry.count > 0) std::fill_n(set_->owned()->change(entry), entry.count, static_cast<float>(version));
    }
  }
  void fetch() { fetch_.fetch(); }
  void recall() { fetch_.recall(); }
  [[nodiscard]] bool is_asked() const { return fetch_.is_asked(); }

  // Expects of each row the version that early(table, row) says: the last one, or that before.
  void expect(int64_t step, const std::function<bool(size_t table, int64_t row)>& early) const {
    for (size_t i = 0; i < 2; ++i) {
      const TableRows& rows = fetch_.rows()[i];
      const auto width = static_cast<size_t>(tables_[i].width);
      for (size_t place = 0; place < rows.ids.size(); ++place) {
        const auto version = static_cast<float>(early(i, rows.ids[place]) ? step - 1 : step);
        EXPECT_THAT(std::vector<float>(rows.values.begin() + static_cast<std::ptrdiff_t>(place * width),
                                       rows.values.begin() + static_cast<std::ptrdiff_t>((place + 1) * width)),
                    Each(version))
            << "step " << step << ", row " << rows.ids[place] << " of table " << i << ", process " << team_.rank();
      }
    }
  }

 private:
  static std::shared_ptr<ParameterSet> parameters_of(const Team& team) {
    std::vector<ParameterDeclaration> declarations(2);
    declarations[0].name = "items.weight", declarations[0].shape = {600, 3};
    declarations[1].name = "users.weight", declarations[1].shape = {40, 5};  // of some owners no rows
    return ParameterSet::create(declarations, 1, system_allocator(),
                                {{"items.weight", "users.weight"}, owned_blocks(&team, team.rank())});
  }

  static std::vector<MachineTable> tables_of(const ParameterSet& set, int64_t width) {
    std::vector<MachineTable> tables;
    for (const ParameterEntry& entry : set.entries())
      tables.push_back({tables.size(), set.owned()->index(entry.name), kNoValue, entry.shape[0], entry.shape[1], {}});
    tables[0].width = width;
    return tables;
  }

  Team& team_;
  const Reads& reads_;
  const std::shared_ptr<ParameterSet> set_;
  const TableOwners owners_;
  const std::vector<MachineTable> tables_;
  TableFetch fetch_;
};

// Half of the rows of a step are read in the next one, too, by this process or by another one.
std::set<int64_t> overlapping(int64_t step, int64_t rank, size_t table) {
  std::set<int64_t> rows;
  const int64_t height = table == 0 ? 600 : 40;
  for (int64_t i = 0; i < 30; ++i) rows.insert((i * 37 + (step + rank + i % 2) / 2 * 11 + step * (i % 2) * 5) % height);
  return rows;
}

struct Mix {
  int32_t ranks, servers;
};
constexpr Mix kMixes[] = {{2, 0}, {3, 0}, {4, 1}, {4, 2}};

void in_teams(const std::function<void(Team&)>& work) {
  for (const auto& [ranks, servers] : kMixes) {
    LoopTeam team(ranks, disordered(static_cast<uint64_t>(ranks)));
    EXPECT_THAT(team.run(work, servers), Each("")) << ranks << " processes, servers: " << servers;
  }
}

// Whether a process has read the row in a step.
bool is_read(const Reads& reads, const Team& team, int64_t step, size_t table, int64_t row) {
  for (int64_t rank = 0; rank < team.trainers(); ++rank)
    if (reads(step, rank, table).contains(row)) return true;
  return false;
}

void expect_rows_ahead(const Reads& reads) {
  in_teams([&](Team& team) {
    Process process(team, reads);
    process.ask(0);
    for (int64_t step = 0; step < kSteps; ++step) {
      process.update(step);
      if (step + 1 < kSteps) process.ask(step + 1);
      process.fetch();
      process.expect(
          step, [&](size_t table, int64_t row) { return step > 0 && !is_read(reads, team, step - 1, table, row); });
    }
    EXPECT_FALSE(process.is_asked());
  });
}

TEST(TableFetch, RowsThatNobodyReadsBeforeAreSentBeforeTheUpdateAndOthersBehindIt) { expect_rows_ahead(overlapping); }

TEST(TableFetch, AllRowsAreEarlyIfNoneRepeats) {
  expect_rows_ahead([](int64_t step, int64_t rank, size_t table) {
    return table == 1 ? std::set<int64_t>{} : std::set<int64_t>{step * 80 + rank, step * 80 + 31, step * 80 + 79};
  });
}

TEST(TableFetch, NoRowIsEarlyIfAllRepeat) {
  expect_rows_ahead([](int64_t, int64_t rank, size_t table) {
    return table == 0 ? std::set<int64_t>{3, 300 + rank, 599} : std::set<int64_t>{rank, 39};
  });
}

TEST(TableFetch, RowsThatAreAskedForWhenTheyAreNeededAreFetchedAtOnce) {
  const Reads reads = overlapping;
  in_teams([&](Team& team) {
    Process process(team, reads);
    for (int64_t step = 0; step < kSteps; ++step) {
      process.update(step);
      process.ask(step);
      process.fetch();
      process.expect(step, [](size_t, int64_t) { return false; });
    }
  });
}

TEST(TableFetch, RecalledRowsAreFetchedAgain) {
  const Reads reads = overlapping;
  in_teams([&](Team& team) {
    Process process(team, reads);
    process.ask(0);
    for (int64_t step = 0; step < kSteps; ++step) {
      process.update(step);
      if (step % 2 == 0) process.recall();
      if (step + 1 < kSteps) process.ask(step + 1);
      process.fetch();
      process.expect(step, [&](size_t table, int64_t row) {
        return step % 2 == 1 && !is_read(reads, team, step - 1, table, row);
      });
    }
  });
}

// ---- what another job would send

TEST(TableFetch, RowsThatAnOwnerDoesNotHaveAreRefused) {
  const Reads reads = [](int64_t, int64_t rank, size_t table) {
    return rank == 1 && table == 0 ? std::set<int64_t>{599 + 256} : std::set<int64_t>{};
  };
  LoopTeam team(2, disordered());
  const std::vector<std::string> errors = team.run([&](Team& each) {
    Process process(each, reads);
    process.ask(0);
    process.fetch();
  });
  EXPECT_THAT(errors[0], HasSubstr("process 1 asks for row 855 of table \"items.weight\" of 600 rows"));
}

TEST(TableFetch, MoreEarlyBytesThanWereAskedForAreRefused) {
  const Reads reads = [](int64_t step, int64_t, size_t table) {
    return step == 1 && table == 0 ? std::set<int64_t>{0, 599} : std::set<int64_t>{};
  };
  LoopTeam team(2, disordered());
  const std::vector<std::string> errors = team.run([&](Team& each) {
    Process process(each, reads, each.rank() == 0 ? 4 : 3);
    process.ask(0);
    process.ask(1);
    process.fetch();
  });
  EXPECT_THAT(errors[1], HasSubstr("process 0 announces 34 bytes; expected at most 26"));
}

}  // namespace

}  // namespace tenon_tests
