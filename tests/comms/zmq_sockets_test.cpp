// The owners of sockets of libzmq in the communicator zmq. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "process/child.h"
#include "sockets.h"
#include "tests/support/temporary_folder.h"

namespace {

using tenon_zmq::Context;
using tenon_zmq::Message;
using tenon_zmq::next_event;
using tenon_zmq::Socket;

// A closed socket lives on as long as it has something to send, and fails to connect meanwhile: an event that nobody
// receives would stop the thread of the context, and with it all other sockets.
void close_amid_events(const std::string& folder) {
  Context context(1, 10);
  Socket dealer(context, ZMQ_DEALER);
  Socket monitor = dealer.monitor(context, ZMQ_EVENT_ALL);
  dealer.linger(1000);
  dealer.set(ZMQ_RECONNECT_IVL, 10);
  dealer.connect("ipc://" + folder + "/nowhere");
  dealer.send(Message("late"));
  while (next_event(monitor) == 0) std::this_thread::yield();
  dealer.close();
  monitor.close();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  Socket router(context, ZMQ_ROUTER), other(context, ZMQ_DEALER);
  if (!router.bind("ipc://" + folder + "/somewhere")) std::abort();
  other.connect("ipc://" + folder + "/somewhere");
  other.send(Message("a message"));
  Message received;
  while (!router.receive(received)) std::this_thread::yield();
}

TEST(ZmqSockets, AClosedSocketHasNoEventsAnyMore) {
  const tenon_tests::TemporaryFolder folder;
  constexpr unsigned kPatience = 30;  // seconds
  const auto end = tenon::process::run_child([&](int) { close_amid_events(folder.path().string()); }, kPatience);
  EXPECT_TRUE(end.well()) << end.how();
}

}  // namespace
