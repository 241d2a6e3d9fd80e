// The worker's end of the channel to what started it as one process of several (docs/launching.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/not_copied.h"

namespace tenon::process {

// Exit codes after which a training may be started again.
constexpr int kLostExit = 200;   // another process, or the launcher, is lost
constexpr int kStuckExit = 201;  // no step was done for too long

// Phases that the launcher knows; of others it knows the name alone.
constexpr const char* kStartPhase = "start";  // until the process has joined the others
constexpr const char* kTrainPhase = "train";  // while steps are done

// Tells the launcher twice a second, and behind the phase "start", what the training does, on a thread of its own,
// which blocks all signals but those of crashes. Each line of the channel is a JSON object:
// {"step":3,"phase":"train","call":"","waits_for":1} and, at the end, {"done":0} to the launcher; {"stop":"signal 2"}
// from it.
class Control : base::NotCopied {
 public:
  // Called on the thread of the object. They may not destroy it.
  struct Handlers {
    // signal: 2 after Ctrl-C, and so on: the training is to end as if this process had received it. 0: the team has
    // failed, and the process should end at once. Empty: sends the signal to this process, or ends it with kLostExit.
    std::function<void(const std::string& reason, int signal)> stop;
    // The launcher has ended. The process ends by itself 3 seconds later, with kLostExit. Empty: at once.
    std::function<void()> lost;
  };

  // Returns the channel that TENON_TEAM_CONTROL="fd:N" names, and takes the variable out of the environment; null
  // without it. Throws std::runtime_error if it is malformed or N is not open.
  [[nodiscard]] static std::unique_ptr<Control> from_environment(Handlers handlers = {});

  Control(base::Descriptor socket, Handlers handlers);
  // The launcher takes a process that ends without done() for lost.
  ~Control();

  // What the process does.
  struct State {
    int64_t step = 0;  // of the training, or any other number that changes with each piece of work
    // "start" until the process has joined the others, then "preparation"; "train" while steps are done, which then
    // may not take too long; else "test", "checkpoint", "save". Of processes above 0 "train" may be a test or a
    // checkpoint, too: the phase of process 0 counts.
    std::string phase = kStartPhase;
    std::string call;        // of a plugin, that takes long: "layer \"hidden\" of plugin ..."; empty: unknown
    int64_t waits_for = -1;  // the process whose bytes this one waits for; -1: none
  };
  using Change = std::function<void(State& state)>;
  void change(const Change& change);
  // refresh: is called before each line, on the thread of the object; it may not throw, nor call the object. Empty:
  // none is. Returns when the one before is not running any more.
  void set_refresh(Change refresh);
  // Says that the process is about to end with this exit code; waits at most a second. Nothing is told after it.
  void done(int code) noexcept;

 private:
  void run() noexcept;
  // Returns false if the launcher has ended.
  [[nodiscard]] bool receive();
  void handle(const std::string& line);
  void add_beat();
  // Writes what is left to be written, as far as that is possible without waiting.
  void flush() noexcept;
  void finish() noexcept;
  void leave() noexcept;

  const base::Descriptor socket_;
  base::Descriptor wake_, woken_;  // a pipe, written or closed to wake the thread
  const Handlers handlers_;
  std::mutex mutex_;
  State state_;
  Change refresh_;
  std::atomic<bool> ends_ = false;
  std::atomic<int> code_ = -1;  // of done()
  std::string received_, unsent_;
  std::thread thread_;
};

}  // namespace tenon::process
