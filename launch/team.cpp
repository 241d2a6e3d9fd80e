// SPDX-License-Identifier: Apache-2.0
#include "launch/team.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "launch/texts.h"

namespace tenon::launch {

namespace {

constexpr std::chrono::milliseconds kTurn(100);
constexpr std::chrono::milliseconds kLate(500);  // a turn that took longer did not listen to the processes

// Returns a member of a line that a process may have written in any form.
template <typename Value>
std::optional<Value> member(const json& line, const char* key) {
  const auto entry = line.find(key);
  if (entry == line.end()) return std::nullopt;
  try {
    return entry->get<Value>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Team::Team(std::vector<Node> nodes, const Signals& signals, Output& output, WatchOptions watch, MeetingPlace* meeting)
    : nodes_(std::move(nodes)),
      signals_(signals),
      output_(output),
      meeting_(meeting),
      watch_options_(watch),
      links_(nodes_.size()),
      answers_(nodes_.size()),
      watch_(watch, 0) {}

Team::~Team() = default;

std::string Team::name(size_t process) const {
  return process_name(static_cast<int64_t>(process), nodes_[processes_[process].node].name);
}

void Team::connect() {
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (!links_[i] || links_[i]->has_ended()) reconnect(i);
}

void Team::reconnect(size_t node) {
  const Node& there = nodes_[node];
  links_[node].reset();
  answers_[node].reset();
  auto handle_line = [this, name = there.name](const json& line) {
    const auto at = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& each) { return each.name == name; });
    handle(static_cast<size_t>(at - nodes_.begin()), line);
  };
  links_[node] = meeting_ != nullptr && !there.is_here
                     ? std::make_unique<Link>(there, meeting_->expect(there.name), handle_line)
                     : std::make_unique<Link>(there, signals_, handle_line);
}

bool Team::has_answer() const {
  return std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link && link->hello(); });
}

void Team::remove(size_t node) {
  const auto at = static_cast<std::ptrdiff_t>(node);
  nodes_.erase(nodes_.begin() + at);
  links_.erase(links_.begin() + at);
  answers_.resize(nodes_.size());
  number_processes(nodes_);
}

void Team::prepare(const std::function<json(size_t)>& plan) {
  for (size_t i = 0; i < nodes_.size(); ++i) prepare(i, plan(i));
}

void Team::prepare(size_t node, const json& plan) {
  answers_[node].reset();
  nodes_[node].cores = member<int64_t>(*links_[node]->hello(), "cores").value_or(1);
  links_[node]->send({{"prepare", plan}});
}

void Team::start(const std::function<json(size_t)>& plan) {
  processes_.clear();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Process process;
    process.node = i;
    process.running = true;
    processes_.insert(processes_.end(), static_cast<size_t>(nodes_[i].processes), process);
    links_[i]->send({{"start", plan(i)}});
  }
  watch_ = Watch(watch_options_, processes_.size());
  watch_.begin(Clock::now());
}

void Team::start_again(size_t process, const json& plan) {
  Process& state = processes_[process];
  const size_t node = state.node;
  state = {};
  state.node = node;
  state.running = true;
  watch_.begin(process, Clock::now());
  links_[node]->send({{"start", plan}});
}

void Team::tell_all(const json& line) {
  for (const auto& link : links_)
    if (link) link->send(line);
}

void Team::kill(size_t process) {
  watch_.drop(process);
  link(processes_[process].node).send({{"kill", process}});
}

void Team::turn(const std::function<void(int signal)>& interrupted) {
  const Clock::time_point began = Clock::now();
  std::vector<Wait> waits;
  for (const auto& link : links_)
    if (link) {
      link->ping(began);
      link->add_waits(waits);
    }
  waits.push_back({signals_.descriptor(), POLLIN, [&] {
                     for (int signal = 0; (signal = signals_.next()) != 0;) interrupted(signal);
                   }});
  output_.add_waits(waits);
  if (output_.is_full() != paused_) {
    paused_ = output_.is_full();
    tell_all({{"pause", paused_}});
  }
  // While the launcher was stopped, or the processes wait for it, they are neither silent nor stuck.
  if (const auto away = began - turned_; away > kLate || paused_) watch_.forgive(away);
  turned_ = began;
  wait_for(waits, began + kTurn);
  drop_lost();
}

void Team::drop_lost() {
  for (size_t i = 0; i < processes_.size(); ++i)
    if (processes_[i].running && links_[processes_[i].node]->has_ended()) {
      processes_[i].running = false;
      watch_.drop(i);
    }
}

void Team::handle(size_t node, const json& line) {
  if (line.contains("process")) {
    handle_process(node, line);
  } else if (line.contains("prepared")) {
    answers_[node] = Answer{line["prepared"], 0, ""};
  } else if (line.contains("refused")) {
    answers_[node] = Answer{json(), member<int>(line["refused"], "code").value_or(1),
                            member<std::string>(line["refused"], "message").value_or("")};
  }
}

void Team::handle_process(size_t node, const json& line) {
  const auto process = member<size_t>(line, "process");
  if (!process || *process >= processes_.size() || processes_[*process].node != node) return;
  for (const char* const stream : {"out", "err"})
    if (const auto text = member<std::string>(line, stream))
      output_.tell(static_cast<int64_t>(*process), nodes_[node].name, stream, *text);
  if (line.contains("control")) control(*process, line["control"]);
  if (line.contains("end")) {
    processes_[*process].end = line["end"];
    processes_[*process].running = false;
    watch_.drop(*process);
  }
}

void Team::control(size_t process, const json& line) {
  if (const auto code = member<int>(line, "done")) {
    processes_[process].done = *code;
    processes_[process].done_at = Clock::now();
    watch_.drop(process);
  }
  const auto step = member<int64_t>(line, "step");
  if (!step) return;
  constexpr size_t kMostName = 400;
  const auto text = [&](const char* key) { return member<std::string>(line, key).value_or("").substr(0, kMostName); };
  const int64_t waits_for = member<int64_t>(line, "waits_for").value_or(-1);
  watch_.beat(process, {*step, text("phase"), text("call"), waits_for}, Clock::now());
}

bool Team::all_ended() const {
  return std::none_of(processes_.begin(), processes_.end(), [](const Process& process) { return process.running; });
}

void Team::finish() {
  for (const auto& link : links_)
    if (link) link->finish();
}

}  // namespace tenon::launch
