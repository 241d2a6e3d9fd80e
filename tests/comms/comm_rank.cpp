// One process of a test of communicators: comm_rank PLUGIN CASE [RANKS]. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <tenon/plugin.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/comms/contract.h"

namespace tenon_tests {

namespace {

constexpr int32_t kLost = 200;  // the exit code of an abort

std::map<int, void (*)(int)> handlers() {
  std::map<int, void (*)(int)> all;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0) all[signal] = action.sa_handler;
  }
  return all;
}

const tn_comm_type& engine(const char* file) {
  void* plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) throw std::runtime_error(dlerror());
  return *reinterpret_cast<tn_entry>(dlsym(plugin, TN_ENTRY_NAME))()->comms[0];
}

// As its launcher says.
std::string own_rank() {
  for (const char* variable : {"PMI_RANK", "OMPI_COMM_WORLD_RANK"})
    if (const char* text = std::getenv(variable); text != nullptr) return text;
  return "0";
}

// The last rank stops itself; the others notice, and rank 0 ends the world.
void run_stopped(Rank& rank) {
  const tn_comm_world world = rank.world();
  meet(rank);
  if (world.rank == world.ranks - 1) raise(SIGSTOP);
  std::vector<int32_t> values(1);
  const uint64_t request = rank.receive(world.ranks - 1, 4, values);
  if (!rank.until([&] { return rank.has_lost(world.ranks - 1); }))
    throw std::runtime_error("the stopped rank is not lost");
  if (rank.wait(request) != TN_IO) throw std::runtime_error("a receive from a lost rank did not end with TN_IO");
  if (rank.wait(rank.send(world.ranks - 1, 4, values)) != TN_IO)
    throw std::runtime_error("a send to a lost rank did not end with TN_IO");
  if (world.rank == 0) rank.abort(kLost);
  rank.until([] { return false; });
}

int run(const char* file, const std::string& name, int32_t ranks) {
  const std::map<int, void (*)(int)> before = handlers();
  const tn_comm_type& type = engine(file);
  auto opening = std::make_unique<Opening>(type, -1, ranks);
  opening->open.silence_ms = name == "stopped" ? 3000 : 30'000;
  if (name == "epoch" && own_rank() == "1") opening->open.epoch = 7;
  Rank rank(std::move(opening));
  if (handlers() != before) throw std::runtime_error("open has changed signal handlers");
  if (std::getenv("OMPI_MCA_opal_signal") != nullptr || std::getenv("UCX_MEM_EVENTS") != nullptr)
    throw std::runtime_error("open has changed the environment");
  if (name == "contract") check_contract(rank);
  if (name == "stopped") run_stopped(rank);
  if (name == "abort" && rank.world().rank == 0) rank.abort(kLost);
  if (name == "abort") rank.until([] { return false; });
  if (name == "leave") _exit(0);  // without close
  rank.close(20 * kSecond);
  if (name != "contract") return 0;
  try {
    const Rank second(std::make_unique<Opening>(type, -1, ranks));
  } catch (const std::runtime_error& error) {
    return std::string(error.what()).find("before") == std::string::npos ? 1 : 0;
  }
  throw std::runtime_error("a second open in a process");
}

}  // namespace

}  // namespace tenon_tests

int main(int count, char** words) {
  try {
    if (count < 3) throw std::runtime_error("comm_rank PLUGIN CASE [RANKS]");
    return tenon_tests::run(words[1], words[2], count > 3 ? std::atoi(words[3]) : -1);
  } catch (const std::exception& error) {
    std::cout << "comm_rank: " << error.what() << std::endl;
    usleep(300'000);  // MPICH's launcher may drop what processes wrote that end before they begin with MPI
    return 3;
  }
}
