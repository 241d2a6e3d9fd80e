// The interpreter lock between Python and the threads of the library. Once the interpreter begins to end, no thread of
// the library enters it any more: Python would end such a thread inside of the library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon_python {

namespace nb = nanobind;

// Holds the interpreter lock, on any thread. Throws tenon::Error, TN_CANCELLED, when the interpreter is ending.
class Entered {
 public:
  Entered();
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  ~Entered();

 private:
  PyGILState_STATE state_;
};

// Gives up the interpreter lock of the present thread. Its end takes the lock again; on a thread other than the main
// one it never returns when the interpreter is ending.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released();

 private:
  PyThreadState* state_;
};

// Calls `work` without the interpreter lock.
template <typename Work>
decltype(auto) unlocked(Work work) {
  const Released released;
  return work();
}

// The same on a thread that may not hold the lock, such as one that ends an object.
template <typename Work>
void without_lock(Work work) {
  if (PyGILState_Check() == 0) return work();
  unlocked(work);
}

// A call of a method without the interpreter lock: the method may wait for a thread that needs it.
template <typename Class, typename Result, typename... Arguments>
auto released(Result (Class::*method)(Arguments...) const) {
  return [method](const Class& self, Arguments... arguments) -> Result {
    return unlocked([&]() -> Result { return (self.*method)(std::forward<Arguments>(arguments)...); });
  };
}

// Python objects that any thread may drop. They are dropped at the latest when the interpreter begins to end, so that
// one that refers to its own keeper does not outlive it.
class Held {
 public:
  explicit Held(std::vector<nb::object> objects);
  explicit Held(nb::object object) : Held(std::vector<nb::object>{std::move(object)}) {}
  Held(Held&& other) noexcept = default;
  Held& operator=(Held&& other) noexcept = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() = default;
  // Returns the first object. Throws tenon::Error, TN_CANCELLED, after the objects were dropped.
  [[nodiscard]] const nb::object& get() const;

 private:
  friend void end_interpreter();
  struct Node {
    explicit Node(std::vector<nb::object> of);
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node();
    std::vector<nb::object> objects;
    Node *before = nullptr, *after = nullptr;
  };
  std::unique_ptr<Node> node_;
};

// Exceptions of Python that cannot pass through the interface of plugins: an error of the library takes the place of
// each and has its name as the subject. Both need the interpreter lock.
//
// Keeps an exception and returns its name.
[[nodiscard]] std::string keep_exception(nb::object exception);
// Returns the exception of that name and forgets it; an invalid object if there is none.
[[nodiscard]] nb::object take_exception(const std::string& name);

// Keeps the threads of the library out of the interpreter from now on, waits up to a second for those inside, and drops
// what is held. Called by atexit, with the interpreter lock.
void end_interpreter();

void bind_interpreter(nb::module_& module);

}  // namespace tenon_python
