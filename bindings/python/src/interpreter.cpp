// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <tenon/tenon.hpp>
#include <thread>

namespace tenon_python {

namespace {

constexpr std::chrono::seconds kPatience(1);

// One for the interpreter, as is the lock that it guards. Entering takes no mutex, which a child process after fork()
// could find locked by a thread that it does not have.
struct Gate {
  std::atomic<int> inside = 0;  // threads that hold the interpreter lock for the library, or wait for it
  std::atomic<bool> closed = false;
  std::atomic<std::thread::id> closer;
  std::timed_mutex held_mutex;
  void* held = nullptr;  // the first node of what is held
};
Gate gate;

bool is_closer() { return gate.closer.load() == std::this_thread::get_id(); }

// Returns whether the present thread may take the interpreter lock. The one that ends the interpreter may while
// functions of atexit run.
bool enter() {
  ++gate.inside;
  if (!gate.closed || (is_closer() && Py_IsInitialized() != 0)) return true;
  --gate.inside;
  return false;
}

}  // namespace

Entered::Entered() {
  if (!enter()) throw tenon::Error(TN_CANCELLED, "the interpreter is ending", "python");
  state_ = PyGILState_Ensure();
}

Entered::~Entered() {
  PyGILState_Release(state_);
  --gate.inside;
}

Released::~Released() {
  const bool entered = enter();
  while (!entered && !is_closer()) pause();
  PyEval_RestoreThread(state_);
  if (entered) --gate.inside;
}

Held::Held(std::vector<nb::object> objects) : node_(std::make_unique<Node>(std::move(objects))) {}

const nb::object& Held::get() const {
  if (node_->objects.empty()) throw tenon::Error(TN_CANCELLED, "the interpreter is ending", "python");
  return node_->objects.front();
}

Held::Node::Node(std::vector<nb::object> of) : objects(std::move(of)) {
  const std::lock_guard lock(gate.held_mutex);
  after = static_cast<Node*>(gate.held);  // NOLINT(cppcoreguidelines-prefer-member-initializer): under the lock
  if (after != nullptr) after->before = this;
  gate.held = this;
}

Held::Node::~Node() {
  {
    const std::lock_guard lock(gate.held_mutex);
    if (before != nullptr) before->after = after;
    if (after != nullptr) after->before = before;
    if (gate.held == this) gate.held = after;
  }
  if (PyGILState_Check() != 0) return;
  if (enter()) {
    const PyGILState_STATE state = PyGILState_Ensure();
    objects.clear();
    PyGILState_Release(state);
    --gate.inside;
    return;
  }
  for (nb::object& object : objects) object.release();  // the interpreter is ending, or ended
}

namespace {

// One for the interpreter, since calls on any host translate their errors alike. The lock of the interpreter guards it.
struct Exceptions {
  std::map<uint64_t, Held> kept;
  uint64_t last = 0;
};
Exceptions exceptions;

std::string exception_name(uint64_t number) { return "python exception " + std::to_string(number); }

}  // namespace

std::string keep_exception(nb::object exception) {
  constexpr size_t kMost = 64;  // those of errors that the library dropped stay here
  // Dropped last, since the end of an object may run a program.
  const auto oldest = exceptions.kept.size() < kMost ? decltype(exceptions.kept)::node_type()
                                                     : exceptions.kept.extract(exceptions.kept.begin());
  exceptions.kept.emplace(++exceptions.last, Held(std::move(exception)));
  return exception_name(exceptions.last);
}

nb::object take_exception(const std::string& name) {
  for (auto it = exceptions.kept.begin(); it != exceptions.kept.end(); ++it) {
    if (exception_name(it->first) != name) continue;
    const auto taken = exceptions.kept.extract(it);
    return taken.mapped().get();
  }
  return {};
}

void end_interpreter() {
  gate.closer = std::this_thread::get_id();
  gate.closed = true;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  {
    // Not Released, whose end asks the gate.
    const nb::gil_scoped_release released;
    while (gate.inside != 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::vector<nb::object> dropped;
  if (gate.inside == 0 && gate.held_mutex.try_lock_for(kPatience)) {
    for (auto* node = static_cast<Held::Node*>(gate.held); node != nullptr; node = node->after) {
      for (nb::object& object : node->objects) dropped.push_back(std::move(object));
      node->objects.clear();
    }
    gate.held_mutex.unlock();
  }
}

void bind_interpreter(nb::module_& module) {
  // An object that refers to the library, kept by a thread that never ends, is no defect worth a message.
  nb::set_leak_warnings(false);
  module.def("end_interpreter", end_interpreter);
  nb::module_::import_("atexit").attr("register")(module.attr("end_interpreter"));
}

}  // namespace tenon_python
