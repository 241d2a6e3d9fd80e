// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/thread_tags.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tenon::host {

namespace {

// The number of ended loans of one kind of table whose records are kept; then the oldest record is reused.
constexpr size_t kRemembered = 1024;

using Task = void (*)(void* argument, int64_t index, int32_t worker);
using PhaseTask = void (*)(void* argument, int32_t phase, int64_t index, int32_t worker);

// The argument of a checked region: each of its tasks becomes a Call that belongs to `run`.
template <typename Any>
struct Tasks {
  ThreadTags::Call& run;
  Any task;
  void* argument;
};

}  // namespace

// ---- calls

ThreadTags::Call::Call(ThreadTags& tags, const std::string& plugin, const std::string& who,
                       const TaggedFunction& function) noexcept
    : tags_(tags), plugin_(plugin), who_(who), function_(function) {
  const std::lock_guard lock(tags_.mutex_);
  tags_.refuse_overlap(*this);
  outer_ = std::exchange(tags_.calls_, this);
}

ThreadTags::Call::Call(Call& run) noexcept
    : tags_(run.tags_), plugin_(run.plugin_), who_(run.who_), function_(run.function_), run_(&run) {
  const std::lock_guard lock(tags_.mutex_);
  outer_ = std::exchange(tags_.calls_, this);
}

ThreadTags::Call::~Call() {
  std::unique_lock lock(tags_.mutex_);
  Call** at = &tags_.calls_;
  while (*at != this) at = &(*at)->outer_;
  *at = outer_;
  if (code_ != TN_OK) tags_.keep(lock, code_, message_);
}

void ThreadTags::Call::check() {
  const std::lock_guard lock(tags_.mutex_);
  if (code_ == TN_OK) return;
  std::string who = who_;  // before the fault is cleared: the copy may throw
  throw Error(std::exchange(code_, tn_status{TN_OK}), std::exchange(message_, {}), std::move(who));
}

std::string ThreadTags::Call::name() const {
  return text(who_, " of plugin \"", plugin_, "\": ", function_.name, " ", tag_text(function_.tag));
}

void fail_foreign(const Origin& by, const std::string& who, const TaggedFunction& as) {
  const auto fault = [&](const auto&... what) {
    return Error(
        TN_PLUGIN_FAULT,
        text(who, " of plugin \"", by.plugin, "\": ", as.name, " ", tag_text(as.tag), " threw an exception", what...),
        who);
  };
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    throw fault(": ", thrown.what());
  } catch (...) {
    throw fault(" of unknown type");
  }
}

ThreadTags::Call* ThreadTags::newest(std::thread::id thread) const {
  Call* call = calls_;
  while (call != nullptr && call->thread_ != thread) call = call->outer_;
  return call;
}

// Sets TN_MISUSE in `call` if it may not begin now. [setup]: one call at a time per host, except calls that the host
// makes inside a callback. [run], [io] and [comm]: one call at a time per instance. No call may begin inside [run]. The
// host itself keeps these rules; an application breaks them by calling the host from a plugin's function or a log
// function.
void ThreadTags::refuse_overlap(Call& call) const {
  const Tag tag = call.function_.tag;
  if (tag == Tag::kAny || tag == Tag::kLoad) return;
  const Call* const inside = newest(call.thread_);
  for (const Call* other = calls_; other != nullptr; other = other->outer_) {
    const bool same = other->function_.tag == tag;
    const bool overlaps = tag == Tag::kSetup ? same && (other->thread_ != call.thread_ || other->callbacks_ == 0)
                                             : same && other->function_.instance == call.function_.instance;
    if (!overlaps && !(other == inside && other->function_.tag == Tag::kRun)) continue;
    call.code_ = TN_MISUSE;
    try {
      call.message_ = text(call.name(), " was to be called before ", other->name(),
                           " returned; nothing that a plugin's function calls may call the host");
    } catch (...) {  // the code remains
    }
    return;
  }
}

// ---- faults

void ThreadTags::blame(std::unique_lock<std::mutex>& lock, const std::string& what) noexcept try {
  Call* at = newest(std::this_thread::get_id());
  const bool own = at != nullptr;
  if (!own) at = calls_;
  if (at != nullptr && at->run_ != nullptr) at = at->run_;
  if (at == nullptr) return keep(lock, TN_PLUGIN_FAULT, "a thread that is in no call from the host " + what);
  if (at->code_ == TN_OK) {
    at->code_ = TN_PLUGIN_FAULT;
    at->message_ =
        own ? at->name() + " " + what : "during " + at->name() + ", a thread that is in no call from the host " + what;
  }
  lock.unlock();
} catch (...) {  // the code remains if it was set
}

void ThreadTags::keep(std::unique_lock<std::mutex>& lock, tn_status code, const std::string& message) noexcept try {
  if (code_ == TN_OK) {
    code_ = code;
    message_ = message;
  }
  lock.unlock();
  if (log_) log_(3, message.c_str());
} catch (...) {  // a log line may be lost
}

void ThreadTags::check() {
  const std::lock_guard lock(mutex_);
  if (code_ != TN_OK) throw Error(std::exchange(code_, tn_status{TN_OK}), std::exchange(message_, {}));
}

// ---- services

ThreadTags::Call* ThreadTags::expect(std::initializer_list<Tag> allowed, const char* service) noexcept try {
  std::unique_lock lock(mutex_);
  Call* const call = newest(std::this_thread::get_id());
  if (call != nullptr && std::find(allowed.begin(), allowed.end(), call->function_.tag) != allowed.end()) return call;
  std::string tags;
  for (const Tag& tag : allowed) {
    const bool last = &tag == allowed.end() - 1;
    if (!tags.empty()) tags += last ? " and " : ", ";
    tags += tag_text(tag);
  }
  blame(lock, text("called ", service, ", which is allowed inside ", tags, " only"));
  return nullptr;
} catch (...) {
  return nullptr;
}

const tn_parallel* ThreadTags::guard(const tn_parallel& pool) {
  Guarded& guarded = guarded_.emplace_back(Guarded{this, &pool, pool});
  guarded.table.self = &guarded;
  guarded.table.for_each = [](void* self, int64_t count, Task task, void* argument) {
    const auto& given = *static_cast<const Guarded*>(self);
    Call* const call = given.tags->expect({Tag::kRun}, "parallel->for_each");
    if (call == nullptr) return;
    Tasks<Task> tasks{call->run_ == nullptr ? *call : *call->run_, task, argument};
    given.pool->for_each(
        given.pool->self, count,
        [](void* all, int64_t index, int32_t worker) {
          const auto& checked = *static_cast<const Tasks<Task>*>(all);
          const Call here(checked.run);
          checked.task(checked.argument, index, worker);
        },
        &tasks);
  };
  guarded.table.phases = [](void* self, int32_t count, const int64_t* sizes, PhaseTask task, void* argument) {
    const auto& given = *static_cast<const Guarded*>(self);
    Call* const call = given.tags->expect({Tag::kRun}, "parallel->phases");
    if (call == nullptr) return;
    Tasks<PhaseTask> tasks{call->run_ == nullptr ? *call : *call->run_, task, argument};
    given.pool->phases(
        given.pool->self, count, sizes,
        [](void* all, int32_t phase, int64_t index, int32_t worker) {
          const auto& checked = *static_cast<const Tasks<PhaseTask>*>(all);
          const Call here(checked.run);
          checked.task(checked.argument, phase, index, worker);
        },
        &tasks);
  };
  return &guarded.table;
}

// ---- loans

LoanedTable& ThreadTags::lend(void* object, const char* name, const std::string& to, bool any_thread) {
  const std::lock_guard lock(mutex_);
  EndedLoans& over = over_[name];
  LoanedTable* lent = over.oldest;
  if (over.count < kRemembered) {
    lent = &lent_.emplace_back();
  } else {
    over.oldest = lent->next;
    --over.count;
  }
  lent->tags = this;
  lent->object = object;
  lent->thread = any_thread ? std::thread::id() : std::this_thread::get_id();
  lent->name = name;
  lent->to = to;
  lent->next = nullptr;
  return *lent;
}

void ThreadTags::take_back(LoanedTable& lent) noexcept {
  const std::lock_guard lock(mutex_);
  lent.object = nullptr;
  EndedLoans& over = over_.find(lent.name)->second;  // lend() has added it
  if (over.count == 0)
    over.oldest = &lent;
  else
    over.newest->next = &lent;
  over.newest = &lent;
  ++over.count;
}

LoanUse::LoanUse(void* self) noexcept : lent_(static_cast<const LoanedTable*>(self)) {
  if (lent_ == nullptr) return;
  if (lent_->tags == nullptr) {
    object_ = lent_->object;
    return;
  }
  std::unique_lock lock(lent_->tags->mutex_);
  const bool anywhere = lent_->thread == std::thread::id();
  if (lent_->object != nullptr && (anywhere || lent_->thread == std::this_thread::get_id())) {
    object_ = lent_->object;
    call_ = lent_->tags->newest(std::this_thread::get_id());
    if (anywhere)
      lock_ = std::move(lock);
    else if (call_ != nullptr)
      ++call_->callbacks_;
    return;
  }
  try {
    const char* const reason = lent_->object == nullptr ? " and has been taken back" : " for another thread";
    lent_->tags->blame(lock, text("used the ", lent_->name, " that was lent to ", lent_->to, reason));
  } catch (...) {  // no memory for a message; the callback still fails
  }
}

LoanUse::~LoanUse() {
  if (lent_ == nullptr || lent_->tags == nullptr || lock_.owns_lock() || call_ == nullptr) return;
  const std::lock_guard lock(lent_->tags->mutex_);
  --call_->callbacks_;
}

}  // namespace tenon::host
