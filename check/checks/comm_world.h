// Ranks in processes of their own, for the checks of communicators. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "check/checks/check_list.h"
#include "check/watch/open_comm.h"

namespace tenon::check {

struct SharedRank;
struct SharedWorld;

// One process of a world: a rank, or a stranger behind them. The moments are numbers that the work gives them: the
// processes count who has reached which, without the communicator.
class Rank : base::NotCopied {
 public:
  static constexpr int kMoments = 8;

  Rank(const Subject& subject, const CommValues& values, SharedWorld& shared, int32_t number, CommPlace place,
       std::string other_address);
  ~Rank();

  [[nodiscard]] int32_t number() const { return number_; }
  [[nodiscard]] int32_t ranks() const { return place_.ranks; }
  // Its own place, for open; and an address that nobody has.
  [[nodiscard]] const CommPlace& place() const { return place_; }
  [[nodiscard]] const std::string& other_address() const { return other_address_; }
  [[nodiscard]] OpenComm& comm() { return *comm_; }
  [[nodiscard]] OpenComm& opened() {
    comm_->open(place_);
    return *comm_;
  }
  // A further object of the process.
  [[nodiscard]] std::unique_ptr<OpenComm> another() const;
  // Throws Fault with the text unless `good`; counts the comparison.
  void expect(bool good, const std::string& text);
  void reach(int moment);
  // Waits until so many processes have reached the moment; by meet, which reaches it, the communicator makes progress
  // meanwhile.
  void await(int moment, int32_t count);
  void meet(int moment, int32_t count);
  // The process may end from now on.
  void may_end();
  [[noreturn]] void die();
  // Stops the process, until the end of the world.
  void stand_still();

 private:
  const Subject& subject_;
  const CommValues& values_;
  SharedWorld& shared_;
  SharedRank& own_;
  int32_t number_;
  CommPlace place_;
  std::string other_address_;
  std::unique_ptr<OpenComm> comm_;
};

class CommWorld : base::NotCopied {
 public:
  // attributes: a JSON object. Throws Skip if a launcher would have to start so many ranks.
  CommWorld(Context& context, int32_t ranks, const json& attributes);
  CommWorld(Context& context, int32_t ranks);  // with the attributes of the first case

  // How long an object of another rank may be silent, in ms; 0: for ever.
  void silence(int32_t milliseconds) { silence_ms_ = milliseconds; }
  // Does the work in a process for each rank, and in so many strangers with further numbers, with a new address. Throws
  // the first Fault, Skip if one of them does, and Fault if a process ends by itself or not at all.
  void run(const std::function<void(Rank&)>& work, int32_t strangers = 0);
  // The traits of the description.
  [[nodiscard]] uint32_t traits() const;

 private:
  [[nodiscard]] std::string scheme();
  void report(const SharedWorld& shared, int32_t processes, const std::function<std::string(int32_t)>& end_of);

  Context& context_;
  const int32_t ranks_;
  const PluginValues values_;
  std::string scheme_;  // of addresses; "": a launcher connects the ranks
  int32_t silence_ms_ = 0;
};

// 2; 1 where a launcher would have to connect two ranks.
[[nodiscard]] int32_t ranks_of(Context& context);

// The attributes of the author's cases; {} without any.
[[nodiscard]] std::vector<json> comm_attributes(const Context& context);

}  // namespace tenon::check
