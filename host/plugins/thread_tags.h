// Tracks which thread is inside which function of a plugin, and checks the thread tags of <tenon/base.h>.
//
// A host with checking has one ThreadTags; otherwise the pointer to it is null, and every check is one branch. There is
// no thread-local state: a call of a plugin is an object on the caller's stack, linked into a list of the host, and
// holds the thread's id. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <type_traits>

#include "core/error.h"
#include "core/plugin_call.h"
#include "host/plugins/services.h"

namespace tenon::host {

using namespace core;

class LoanUse;
class ThreadTags;

// The plugin of a component. Each component carries it, so that call sites have the tags.
struct Origin {
  std::string plugin;                     // id
  ThreadTags* tags = nullptr;             // null if checking is off
  std::string version = {};               // of the plugin
  std::recursive_mutex* setup = nullptr;  // of the registry: held by [setup] calls, one at a time per host; or null
  uint16_t built = 0;                     // the minor version of the interface that the plugin was built with
};

enum class Tag : uint8_t { kLoad, kSetup, kRun, kIo, kComm, kAny };
// Returns the tag as headers write it: "[run]".
[[nodiscard]] constexpr const char* tag_text(Tag tag) {
  constexpr const char* kTexts[] = {"[load]", "[setup]", "[run]", "[io]", "[comm]", "[any]"};
  return kTexts[static_cast<size_t>(tag)];
}

// A function of a plugin, as the SDK's header declares it.
struct TaggedFunction {
  Tag tag;
  const char* name;
  // [run]: the binding, [io]: the reader, [comm]: who holds the communicator; each allows one call at a time.
  const void* instance = nullptr;
};

// The record of a loan: a callback table that a plugin may use for a limited time, and the target of its `self`. If
// checking is on, the record outlives the loan, so that a later use by the plugin is reported and touches no freed
// memory.
struct LoanedTable {
  ThreadTags* tags = nullptr;
  void* object = nullptr;       // target of the callbacks; null: the loan has ended
  std::thread::id thread;       // the only thread that may call; empty: any thread
  const char* name = "";        // of the table: "planner"
  std::string to;               // the component that borrows it
  LoanedTable* next = nullptr;  // in the list of ended loans
  alignas(std::max_align_t) std::byte table[512];
};

// The checks of one host. Thread-safe.
class ThreadTags : base::NotCopied {
 public:
  // A call of a plugin's function, from construction to destruction. `plugin` and `who` must outlive it.
  class Call : base::NotCopied {
   public:
    Call(ThreadTags& tags, const std::string& plugin, const std::string& who, const TaggedFunction& function) noexcept;
    ~Call();

    // Throws the first fault since the last check: TN_MISUSE if the call may not begin now, TN_PLUGIN_FAULT if the
    // function broke a rule. The destructor leaves an unchecked fault to ThreadTags::check.
    void check();

   private:
    friend class LoanUse;
    friend class ThreadTags;
    explicit Call(Call& run) noexcept;  // a task of `run`, on any thread
    [[nodiscard]] std::string name() const;

    ThreadTags& tags_;
    const std::string& plugin_;
    const std::string& who_;
    const TaggedFunction function_;
    const std::thread::id thread_ = std::this_thread::get_id();
    Call* const run_ = nullptr;  // of a task: the call that started it
    Call* outer_ = nullptr;      // the call that began before this one, on any thread
    int callbacks_ = 0;          // running callbacks of this call, in which the host may call plugins
    tn_status code_ = TN_OK;     // the first fault
    std::string message_;
  };

  // `log` receives the faults that no call throws.
  explicit ThreadTags(LogFunction log) : log_(std::move(log)) {}

  // Returns the call in which `service` is called. If that has none of the `allowed` tags, or there is no such call,
  // records a fault and returns null.
  Call* expect(std::initializer_list<Tag> allowed, const char* service) noexcept;
  // Returns the table that plugins get in place of `pool`: its functions do nothing outside [run]. Call it before any
  // other thread uses the host.
  const tn_parallel* guard(const tn_parallel& pool);
  // Throws the first fault that no call has thrown: one in a destructor, or on a thread of the plugin's own between two
  // calls.
  void check();

 private:
  template <typename Table>
  friend class Loan;
  friend class LoanUse;

  LoanedTable& lend(void* object, const char* name, const std::string& to, bool any_thread);
  void take_back(LoanedTable& lent) noexcept;
  // Call these with mutex_ locked. The last two unlock it.
  [[nodiscard]] Call* newest(std::thread::id thread) const;
  void refuse_overlap(Call& call) const;
  void blame(std::unique_lock<std::mutex>& lock, const std::string& what) noexcept;
  void keep(std::unique_lock<std::mutex>& lock, tn_status code, const std::string& message) noexcept;

  LogFunction log_;
  std::mutex mutex_;
  Call* calls_ = nullptr;  // newest first
  tn_status code_ = TN_OK;
  std::string message_;
  std::deque<LoanedTable> lent_;
  struct EndedLoans {  // in the order in which they ended
    LoanedTable* oldest = nullptr;
    LoanedTable* newest = nullptr;
    size_t count = 0;
  };
  std::map<std::string, EndedLoans> over_;  // by the name of the table: only the same kind of table reuses a record
  struct Guarded {
    ThreadTags* tags;
    const tn_parallel* pool;
    tn_parallel table;
  };
  std::deque<Guarded> guarded_;
};

// The record of a call while it runs; borrows `by` and `who`.
[[nodiscard]] inline PluginCall record_of(const Origin& by, const std::string& who, const TaggedFunction& as) {
  return {by.plugin.c_str(), who.c_str(), as.name, tag_text(as.tag)};
}

// Passes on the exception that is handled if it is an Error, one of the host's own, or std::bad_alloc; throws
// TN_PLUGIN_FAULT for any other, which a plugin's function threw. Call it inside a catch block.
[[noreturn]] void fail_foreign(const Origin& by, const std::string& who, const TaggedFunction& as);

// Held during a [setup] call; else empty. Recursive, since the host makes such calls inside callbacks of others.
using SetupLock = std::unique_lock<std::recursive_mutex>;
inline SetupLock lock_setup(const Origin& by, const TaggedFunction& as) {
  return as.tag == Tag::kSetup && by.setup != nullptr ? SetupLock(*by.setup) : SetupLock();
}

// Calls a plugin's function under its tag and returns its result. Throws TN_PLUGIN_FAULT, naming component, function
// and tag, if the function broke a rule, whatever it returned: it has run, and objects that it made must be freed. Also
// throws TN_PLUGIN_FAULT if the function threw, but passes on std::bad_alloc. Throws TN_MISUSE, without calling the
// function, if it may not be called now.
template <typename Result, typename... Parameters, typename... Arguments>
Result call_plugin(const Origin& by, const std::string& who, const TaggedFunction& as,
                   Result (*function)(Parameters...), Arguments... arguments) try {
  const PluginCall record = record_of(by, who, as);
  const PluginCallMark mark(&record);
  const SetupLock lock = lock_setup(by, as);
  if (by.tags == nullptr) return function(arguments...);
  ThreadTags::Call call(*by.tags, by.plugin, who, as);
  call.check();
  if constexpr (std::is_void_v<Result>) {
    function(arguments...);
    call.check();
  } else {
    const Result result = function(arguments...);
    call.check();
    return result;
  }
} catch (...) {
  fail_foreign(by, who, as);
}

// The same for destructors: always calls the function, and leaves faults to ThreadTags::check.
template <typename... Parameters, typename... Arguments>
void free_by_plugin(const Origin& by, const std::string& who, const TaggedFunction& as, void (*function)(Parameters...),
                    Arguments... arguments) {
  const PluginCall record = record_of(by, who, as);
  const PluginCallMark mark(&record);
  const SetupLock lock = lock_setup(by, as);
  if (by.tags == nullptr) return function(arguments...);
  const ThreadTags::Call call(*by.tags, by.plugin, who, as);
  function(arguments...);
}

// A callback table that a plugin may use while the Loan lives. Sets `size` and `self` of the table; `object` is what
// LoanUse::object() returns.
template <typename Table>
class Loan : base::NotCopied {
 public:
  // name: the table's; to: the component that borrows it; both for messages. any_thread: callable from any thread, not
  // from the constructing one alone.
  Loan(ThreadTags* tags, void* object, const char* name, const std::string& to, bool any_thread = false)
      : lent_(tags == nullptr ? here_ : tags->lend(object, name, to, any_thread)),
        table_(new (static_cast<void*>(lent_.table)) Table()) {
    static_assert(sizeof(Table) <= sizeof here_.table && std::is_trivially_destructible_v<Table>);
    lent_.object = object;
    table_->size = sizeof(Table);
    table_->self = &lent_;
  }
  ~Loan() {
    if (lent_.tags != nullptr) lent_.tags->take_back(lent_);
  }

  [[nodiscard]] Table* get() const { return table_; }
  Table* operator->() const { return table_; }

 private:
  LoanedTable here_;  // the record if checking is off
  LoanedTable& lent_;
  Table* table_;
};

// A callback that runs. object() is null if the plugin may not call it now; the fault is recorded already.
class LoanUse : base::NotCopied {
 public:
  explicit LoanUse(void* self) noexcept;
  ~LoanUse();

  template <typename Object>
  [[nodiscard]] Object* object() const {
    return static_cast<Object*>(object_);
  }

 private:
  const LoanedTable* lent_;  // null if the plugin passed null
  void* object_ = nullptr;
  ThreadTags::Call* call_ = nullptr;
  std::unique_lock<std::mutex> lock_;  // held if any thread may call, so that the loan does not end meanwhile
};

}  // namespace tenon::host
