// Which thread is inside which function of a plugin, and whether the rules of <tenon/base.h> on thread tags are kept.
//
// A host that checks has one ThreadTags; elsewhere the pointer to it is null, and every check is one branch. Nothing is
// kept per thread: a call of a plugin is an object on the caller's stack, in a list of the host, and holds the thread's
// id. SPDX-License-Identifier: Apache-2.0
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
#include "host/plugins/services.h"

namespace tenon {

class LentUse;
class ThreadTags;

// Where a component comes from. Each component carries it, so a call site has the tags at hand.
struct Origin {
  std::string plugin;          // id
  ThreadTags* tags = nullptr;  // null: nothing is checked
};

enum class Tag : uint8_t { kLoad, kSetup, kRun, kIo, kAny };

// A function of a plugin, as the SDK's header declares it.
struct TaggedFunction {
  Tag tag;
  const char* name;
  const void* instance = nullptr;  // [run]: the binding, [io]: the reader; there is one call at a time for each
};

// What the `self` of a callback points to, and the table of callbacks itself. Where tags are checked it outlives the
// loan, so that a plugin that goes on using it is found out instead of touching what is gone.
struct Lent {
  ThreadTags* tags = nullptr;
  void* object = nullptr;  // what the callbacks work on; null: the loan is over
  std::thread::id thread;  // the only one that may call; none: any may
  const char* name = "";   // of the table: "planner"
  std::string to;          // whom it was lent to
  Lent* next = nullptr;    // among those whose loan is over
  alignas(std::max_align_t) std::byte table[512];
};

class ThreadTags {
 public:
  // A call of a plugin's function, from construction to destruction. `plugin` and `who` must outlive it.
  class Call {
   public:
    Call(ThreadTags& tags, const std::string& plugin, const std::string& who, const TaggedFunction& function) noexcept;
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Throws what was found out since the last check: TN_MISUSE when the call may not begin now, TN_PLUGIN_FAULT for
    // what the function did. What is never asked for waits for ThreadTags::check.
    void check();

   private:
    friend class LentUse;
    friend class ThreadTags;
    explicit Call(Call& run) noexcept;  // a task of `run`, on any thread
    [[nodiscard]] std::string name() const;

    ThreadTags& tags_;
    const std::string& plugin_;
    const std::string& who_;
    const TaggedFunction function_;
    const std::thread::id thread_ = std::this_thread::get_id();
    Call* const run_ = nullptr;  // of a task
    Call* outer_ = nullptr;      // the call that began before this one, on any thread
    int callbacks_ = 0;          // callbacks in which it is at present: there the host may call plugins again
    tn_status code_ = TN_OK;     // the first fault
    std::string message_;
  };

  // `log` is told of faults that no call could be ended for.
  explicit ThreadTags(LogFunction log) : log_(std::move(log)) {}
  ThreadTags(const ThreadTags&) = delete;
  ThreadTags& operator=(const ThreadTags&) = delete;

  // A service is called that belongs inside calls with these tags; null, and a fault, where it is not in one.
  Call* expect(std::initializer_list<Tag> allowed, const char* service) noexcept;
  // The table that plugins get in place of the pool's: for_each does nothing outside [run].
  const tn_parallel* guard(const tn_parallel& pool);
  // Throws the first fault that no call could be ended for: it came in a destructor, or on a thread of the plugin's
  // own between two calls.
  void check();

 private:
  template <typename Table>
  friend class Loan;
  friend class LentUse;

  Lent& lend(void* object, const char* name, const std::string& to, bool any_thread);
  void take_back(Lent& lent) noexcept;
  // These need the lock. The last two give it back.
  [[nodiscard]] Call* newest(std::thread::id thread) const;
  void refuse_overlap(Call& call) const;
  void blame(std::unique_lock<std::mutex>& lock, const std::string& what) noexcept;
  void keep(std::unique_lock<std::mutex>& lock, tn_status code, const std::string& message) noexcept;

  LogFunction log_;
  std::mutex mutex_;
  Call* calls_ = nullptr;  // newest first
  tn_status code_ = TN_OK;
  std::string message_;
  std::deque<Lent> lent_;
  struct Over {  // loans that are over, in that order
    Lent* oldest = nullptr;
    Lent* newest = nullptr;
    size_t count = 0;
  };
  std::map<std::string, Over> over_;  // by the name of the table: a place is used again by the same kind of table only
  const tn_parallel* pool_ = nullptr;
  tn_parallel parallel_ = {};
};

// Inside a handler: what it caught came out of a plugin's function, which may not throw. TN_PLUGIN_FAULT.
[[noreturn]] void fail_foreign(const Origin& by, const std::string& who, const TaggedFunction& as);

// Calls a plugin's function under its tag. Throws TN_PLUGIN_FAULT naming component, function and tag when it broke a
// rule on the way, whatever it answered; then it has run, and what it made must be freed. Likewise when it threw, but
// std::bad_alloc comes out as it is. Throws TN_MISUSE, without calling it, when it may not be called now.
template <typename Result, typename... Parameters, typename... Arguments>
Result call_plugin(const Origin& by, const std::string& who, const TaggedFunction& as,
                   Result (*function)(Parameters...), Arguments... arguments) try {
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
} catch (const Error&) {  // the host's own
  throw;
} catch (const std::bad_alloc&) {
  throw;
} catch (...) {
  fail_foreign(by, who, as);
}

// The same for destructors: calls in any case, and leaves what it finds out to ThreadTags::check.
template <typename... Parameters, typename... Arguments>
void free_by_plugin(const Origin& by, const std::string& who, const TaggedFunction& as, void (*function)(Parameters...),
                    Arguments... arguments) {
  if (by.tags == nullptr) return function(arguments...);
  const ThreadTags::Call call(*by.tags, by.plugin, who, as);
  function(arguments...);
}

// A table of callbacks while a plugin may use it. Its `size` and `self` are set; `object` is what LentUse gives back.
template <typename Table>
class Loan {
 public:
  // name: of the table; to: whom it is lent to; both for the message.
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
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  [[nodiscard]] Table* get() const { return table_; }
  Table* operator->() const { return table_; }

 private:
  Lent here_;  // where nothing is checked
  Lent& lent_;
  Table* table_;
};

// One callback at work. object() is null where the plugin may not call it now; that is a fault already.
class LentUse {
 public:
  explicit LentUse(void* self) noexcept;
  ~LentUse();
  LentUse(const LentUse&) = delete;
  LentUse& operator=(const LentUse&) = delete;

  template <typename Object>
  [[nodiscard]] Object* object() const {
    return static_cast<Object*>(object_);
  }

 private:
  const Lent* lent_;  // null: what the plugin gave back is
  void* object_ = nullptr;
  ThreadTags::Call* call_ = nullptr;
  std::unique_lock<std::mutex> lock_;  // held where any thread may call, so that the loan does not end meanwhile
};

}  // namespace tenon
