/* Tenon SDK for C++17, a draft: communicators. SPDX-License-Identifier: MIT
 *
 * A communicator is a class; comm_type<T>() makes its C table, with failures and with the events that wait.
 *
 *   class Sockets {
 *    public:
 *     static void describe(tn::CommDescription& d);   // shown by help and checks
 *     // Connects all ranks. `events` is for the object, on the thread of its calls and as long as it lives.
 *     Sockets(const tn::CommOpen& open, tn::CommEvents& events);
 *     void world(tn_comm_world& world) const;         // everything but size and the traits of the description
 *     uint64_t send(const tn_comm_message& message);  // begins a transfer; its number, not 0
 *     uint64_t receive(const tn_comm_message& message);
 *     // Lets messages move, and waits at most timeout_us until there are events. Any call may add any number.
 *     void progress(int64_t timeout_us);
 *     void wake() noexcept;                           // on any thread
 *     void close(int64_t timeout_us) noexcept;        // leaves the world; the destructor follows
 *     // optional
 *     void abort(int32_t exit_code) noexcept;         // likewise; without it close(0)
 *     static const void* extension(const char* id) noexcept;  // further tables by id, or null
 *   };
 *
 *   plugin.comm(tn::comm_type<Sockets>());
 *
 * Each function that is not noexcept may throw: tn::Failure with a code of tenon/draft/comm.h, such as TN_IO with the
 * missing ranks. */
#ifndef TENON_DRAFT_COMM_HPP
#define TENON_DRAFT_COMM_HPP

#include <tenon/draft/comm.h>

#include <deque>
#include <string>
#include <string_view>
#include <tenon/attribute.hpp>
#include <type_traits>
#include <utility>

namespace tn {

// Filled by describe. Strings are literals.
class CommDescription {
 public:
  CommDescription() { table_.size = sizeof table_; }
  CommDescription(const CommDescription&) = delete;
  CommDescription& operator=(const CommDescription&) = delete;

  void type(const char* name, const char* doc) {
    table_.type = name;
    table_.doc = doc;
  }
  void attribute(const Attribute& attribute) { attributes_.add(attribute); }
  // TN_COMM_*, of every object.
  void traits(uint32_t traits) { table_.traits = traits; }

  const tn_comm_description* get() {
    table_.attributes_count = attributes_.count();
    table_.attributes = attributes_.data();
    return &table_;
  }

 private:
  detail::AttributeList<64> attributes_;
  tn_comm_description table_ = {};
};

// The arguments of a communicator's constructor. Borrowed until the constructor returns, unless stated otherwise.
class CommOpen {
 public:
  explicit CommOpen(const tn_comm_open& open) : open_(open) {}

  Attributes attributes() const { return Attributes(open_.attributes); }
  // -1: as the launcher of the processes says.
  int32_t rank() const { return open_.rank; }
  int32_t ranks() const { return open_.ranks; }
  uint32_t epoch() const { return open_.epoch; }
  // "": the launcher connects the ranks.
  std::string address() const { return open_.address == nullptr ? "" : open_.address; }
  // "": the choice of the communicator.
  std::string listen() const { return open_.listen == nullptr ? "" : open_.listen; }
  // "": none.
  std::string_view secret() const {
    return open_.secret == nullptr ? std::string_view()
                                   : std::string_view(reinterpret_cast<const char*>(open_.secret), open_.secret_bytes);
  }
  int32_t deadline_ms() const { return open_.deadline_ms; }
  int32_t silence_ms() const { return open_.silence_ms; }
  // Throws TN_CANCELLED if the host no longer waits for the constructor.
  void check_cancelled() const {
    if (open_.cancel != nullptr && *open_.cancel != 0) throw Failure(TN_CANCELLED, "", "was cancelled");
  }
  // Valid as long as the communicator.
  const tn_services* services() const { return open_.services; }
  const tn_comm_open* get() const { return &open_; }

 private:
  const tn_comm_open& open_;
};

// The events that progress has not returned yet.
class CommEvents {
 public:
  // A request has ended: TN_OK, TN_IO or TN_BAD_DATA.
  void done(uint64_t request, int32_t peer, tn_status status) {
    waiting_.push_back({TN_COMM_DONE, peer, request, status, 0});
  }
  void lost(int32_t peer) { waiting_.push_back({TN_COMM_LOST, peer, 0, TN_OK, 0}); }
  void returned(int32_t peer) { waiting_.push_back({TN_COMM_RETURNED, peer, 0, TN_OK, 0}); }
  void woken() { waiting_.push_back({TN_COMM_WOKEN, 0, 0, TN_OK, 0}); }
  bool empty() const { return waiting_.empty(); }

  // Moves at most `capacity` events, the oldest first, to `to`; their number.
  uint32_t take(tn_comm_event* to, uint32_t capacity) {
    uint32_t count = 0;
    for (; count < capacity && !waiting_.empty(); ++count, waiting_.pop_front()) to[count] = waiting_.front();
    return count;
  }

 private:
  std::deque<tn_comm_event> waiting_;
};

namespace detail {

// Description and table of a communicator; immutable once made.
template <typename T>
class CommTable {
 public:
  CommTable() {
    static_assert(noexcept(std::declval<T&>().wake())&& noexcept(std::declval<T&>().close(int64_t{})),
                  "wake and close cannot report failures");
    T::describe(description_);
    table_.size = sizeof table_;
    table_.draft = TN_COMM_DRAFT;
    table_.description = description_.get();
    table_.open = [](const tn_comm_open* open, void** comm) {
      return guarded(open->errors, [&] { *comm = new Instance(*open); });
    };
    table_.world = [](void* self, tn_comm_world* world) {
      world->traits = instance().table_.description->traits;
      return guarded(instance_of(self).errors, [&] { std::as_const(instance_of(self).comm).world(*world); });
    };
    table_.send = [](void* self, const tn_comm_message* message, uint64_t* request) {
      return guarded(instance_of(self).errors, [&] { *request = instance_of(self).comm.send(*message); });
    };
    table_.receive = [](void* self, const tn_comm_message* message, uint64_t* request) {
      return guarded(instance_of(self).errors, [&] { *request = instance_of(self).comm.receive(*message); });
    };
    table_.progress = &progress;
    table_.wake = [](void* self) { instance_of(self).comm.wake(); };
    table_.abort = &abort;
    table_.close = [](void* self, int64_t timeout_us) {
      instance_of(self).comm.close(timeout_us);
      delete &instance_of(self);
    };
    if constexpr (HasExtension<T>::value)
      table_.extension = [](void* /*user*/, const char* id) { return T::extension(id); };
  }
  const tn_comm_type* get() const { return &table_; }
  static const CommTable& instance() {
    static const CommTable table;
    return table;
  }

 private:
  struct Instance {
    explicit Instance(const tn_comm_open& open) : errors(open.errors), comm(CommOpen(open), events) {}
    const tn_errors* errors;
    CommEvents events;
    T comm;
  };
  template <typename C, typename = void>
  struct Aborts : std::false_type {};
  template <typename C>
  struct Aborts<C, std::void_t<decltype(std::declval<C&>().abort(int32_t{}))>> : std::true_type {};

  static Instance& instance_of(void* self) { return *static_cast<Instance*>(self); }
  static tn_status progress(void* self, int64_t timeout_us, tn_comm_event* events, uint32_t capacity, uint32_t* count) {
    Instance& instance = instance_of(self);
    *count = 0;
    return guarded(instance.errors, [&] {
      instance.comm.progress(instance.events.empty() ? timeout_us : 0);
      *count = instance.events.take(events, capacity);
    });
  }
  static void abort(void* self, int32_t exit_code) {
    if constexpr (Aborts<T>::value) {
      static_assert(noexcept(std::declval<T&>().abort(exit_code)), "abort cannot report failures");
      instance_of(self).comm.abort(exit_code);
    } else {
      static_cast<void>(exit_code);
      instance_of(self).comm.close(0);
    }
    delete &instance_of(self);
  }

  CommDescription description_;
  tn_comm_type table_ = {};
};

}  // namespace detail

// The C table of a communicator, made at the first call; valid while the plugin is mapped.
template <typename T>
const tn_comm_type* comm_type() {
  return detail::CommTable<T>::instance().get();
}

}  // namespace tn
#endif
