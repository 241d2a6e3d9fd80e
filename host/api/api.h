// Helpers of the public C API: exceptions to statuses, conversions. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon.h>
#include <tenon/tenon_updater.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "host/api/host/call_gate.h"
#include "host/api/host/host.h"

// What the pointer of an application points to. It outlives the host for a while, for calls that come too late.
struct tn_host {
  explicit tn_host(const tenon::host::HostOptions& options) : host(std::make_unique<tenon::host::Host>(options)) {}

  // What tn_host_destroy does.
  void end() noexcept;
  // Frees the host if a call in flight has destroyed it and no call is in flight any more.
  void end_if_last() noexcept;

  tenon::host::CallGate gate;
  std::unique_ptr<tenon::host::Host> host;  // null when it is freed

 private:
  void free() noexcept;

  std::mutex last_mutex_;
  std::atomic<bool> by_call_{false};  // destroyed within a call
  std::atomic<bool> alone_{false};    // destroyed in a forked child, which lacks the other threads
  std::atomic<bool> claimed_{false};  // a thread frees the host, or has
  std::atomic<bool> freed_{false};
};

namespace tenon::host::api {

// Fills as much of *error (may be null) as its size allows, and returns the code.
tn_status set_error(tn_error* error, tn_status code, const char* message, const char* component = "",
                    const char* subject = "") noexcept;

// Calls `work`; turns an exception into a status. An exception of any other type than Error and std::bad_alloc is a
// defect of the host, TN_INTERNAL: call_plugin has turned those of plugins into Error.
template <typename Work>
tn_status guarded(tn_error* error, Work&& work) noexcept {
  try {
    work();
    return TN_OK;
  } catch (const Error& failure) {
    return set_error(error, failure.code(), failure.what(), failure.component().c_str(), failure.subject().c_str());
  } catch (const std::bad_alloc&) {
    return set_error(error, TN_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& failure) {
    return set_error(error, TN_INTERNAL, failure.what());
  } catch (...) {
    return set_error(error, TN_INTERNAL, "an exception of unknown type");
  }
}

// A call in flight, for which the end of the host waits.
class CallInFlight : base::NotCopied {
 public:
  explicit CallInFlight(tn_host& host) : host_(host), counter_(host.gate.enter()) {}
  ~CallInFlight() {
    if (counter_ == nullptr || host_.gate.leave(counter_)) host_.end_if_last();
  }

  // False if the host is destroyed, or is about to be.
  [[nodiscard]] bool is_entered() const { return counter_ != nullptr; }

 private:
  tn_host& host_;
  CallGate::Counter* const counter_;
};

// Makes one call on a host: refuses a null or destroyed host and a forked process, turns exceptions into a status.
template <typename Work>
tn_status call(tn_host* host, tn_error* error, Work&& work) noexcept {
  if (host == nullptr) return set_error(error, TN_MISUSE, "the host is null", "", "host");
  const CallInFlight call(*host);
  if (!call.is_entered()) return set_error(error, TN_MISUSE, "the host was destroyed", "", "host");
  return guarded(error, [&] {
    Host& owner = *host->host;
    owner.require_own_process();
    work(owner);
    if (owner.tags) owner.tags->check();
  });
}

// Calls on one machine, updater or reader: one at a time, but a handler may use the updater of its training. `work`
// gets the host and the object.
template <typename Work>
tn_status call_machine(tn_host* host, tn_machine machine, tn_error* error, Work&& work) noexcept {
  return call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldMachine> held = owner.machines.at(machine);
    const Use use(held->mark, "machine");
    work(owner, *held);
  });
}
template <typename Work>
tn_status call_updater(tn_host* host, tn_updater updater, tn_error* error, Work&& work) noexcept {
  return call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldUpdater> held = owner.updaters.at(updater);
    const Use use(held->mark, "updater", Reentry::kAllowed);
    work(owner, *held->updater);
  });
}
template <typename Work>
tn_status call_reader(tn_host* host, tn_reader reader, tn_error* error, Work&& work,
                      Reentry reentry = Reentry::kRefused) noexcept {
  return call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldReader> held = owner.readers.at(reader);
    const Use use(held->mark, "reader", reentry);
    work(owner, *held);
  });
}

// Returns *pointer. If it is null, throws TN_MISUSE naming the argument.
template <typename T>
T& required(T* pointer, const char* argument) {
  if (pointer == nullptr) fail(TN_MISUSE, SubjectName{argument}, argument, " is null");
  return *pointer;
}
// The same for element `index` of a list.
template <typename T>
T& required(T* pointer, const char* list, size_t index) {
  if (pointer == nullptr) fail(TN_MISUSE, SubjectName{list}, list, "[", index, "] is null");
  return *pointer;
}
// Calls `work`, which reads element `index` of a list, and adds the element to its errors.
template <typename Work>
void naming(const char* list, size_t index, Work&& work) try {
  work();
} catch (const Error& error) {
  const Error named = error.with_context(text(list, "[", index, "]"));
  throw Error(named.code(), named.message(), named.component(), list);
}
// Copies a struct that begins with its size. An application built with older headers passes a smaller struct: the
// missing fields become zero. One built with newer headers passes a larger struct: the additional fields must be zero,
// because this version cannot do what they ask for.
template <typename T>
T sized(const T* pointer, const char* argument) {
  constexpr uint32_t kMost = 4096;
  const uint32_t size = required(pointer, argument).size;
  if (size < sizeof(uint32_t) || size > kMost)
    fail(TN_MISUSE, SubjectName{argument}, argument, ".size is ", size, "; it was not set");
  T result = {};
  std::memcpy(static_cast<void*>(&result), pointer, std::min<size_t>(size, sizeof(T)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(pointer);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i] != 0)
      fail(TN_UNSUPPORTED, SubjectName{argument}, argument, " sets a field that this version does not know (byte ", i,
           " of ", size, ")");
  result.size = sizeof(T);
  return result;
}
// Copies a result into the caller's struct, as far as its size allows.
template <typename T>
void give(T* to, const char* argument, T made) {
  constexpr uint32_t kMost = 4096;
  const uint32_t size = required(to, argument).size;
  if (size < sizeof(uint32_t) || size > kMost)
    fail(TN_MISUSE, SubjectName{argument}, argument, ".size is ", size, "; it was not set");
  made.size = std::min<uint32_t>(size, sizeof(T));  // what is filled, for TN_HAS
  std::memcpy(static_cast<void*>(to), &made, made.size);
}
std::vector<std::string> strings(const char* const* texts, uint32_t count, const char* argument);
std::string string(const char* text, const char* argument);  // TN_MISUSE for null
bool channels_first(uint32_t layout, const char* argument);  // of TN_CHANNELS_*; throws TN_INVALID for another number
// The same for an element of a list, or a member of it.
std::string string(const char* text, const char* list, size_t index, const char* member = "");
Values values(const tn_named_value* attributes, uint32_t count, const char* argument);
// Copies lists of names. TN_MISUSE for a null list or one without a slot; an empty list becomes null names.
std::vector<SlotNames> names(const tn_names* const* names, uint32_t count, const char* argument);
// Returns the names of a set and of a reader, those with names of integers first: applications of 0.3 expect such
// lists.
std::vector<SlotNames> names_of(HeldParameters& parameters);
std::vector<SlotNames> names_of(const HeldReader& reader);
// Lends names to the application; they are valid until the host lends names again.
void give_names(Host& host, std::vector<SlotNames> known, const tn_names* const** names, uint32_t* count);
// Writes a text in one piece. TN_MISUSE for a null `write`.
void give_text(tn_write write, void* user, const std::string& text);
// Calls `sink` with cost, samples and metrics.
void give_measured(const TestResult& measured, tn_metrics_sink sink, void* user);
// Return the layers of handles. For layer_outputs a zeroed handle is an absent input; for outputs it is TN_MISUSE.
std::vector<LayerOutput> outputs(Host& host, const tn_layer* layers, uint32_t count, const char* argument);
std::vector<LayerOutput> layer_outputs(Host& host, const tn_layer* layers, uint32_t count, const char* argument);
tn_array array(const ArrayView& view);
// who: the owner of the array, for messages; subject: its name, "" if unknown. TN_UNSUPPORTED for memory of a device.
ArrayView view(const tn_array& array, const std::function<std::string()>& who, const std::string& subject = {});
std::vector<NamedArray> named_arrays(const tn_feed* feeds, uint32_t count, const char* argument);  // by data layer
UnknownFeeds unknown_feeds(uint32_t flags);    // of TN_FORWARD_*; throws TN_UNSUPPORTED for others
std::string device_kind(const char* request);  // null, "": "cpu"
// Returns the devices of a machine: those of the list or, if it is empty, the one device.
std::vector<std::shared_ptr<Device>> devices(Host& host, const char* device, const char* const* devices,
                                             uint32_t count);
// Takes over a member `compute`: a type, or float32 and the precision of products.
void read_compute(tn_dtype compute, MachineOptions* options);
nlohmann::json describe(const Reader& reader);  // as in tn_reader_describe, without whole_reason
// Updates parameters of a machine in a call of its own: those in `used` that the parts of this step have left, and ends
// the step, or only `part`, a part of it. Within the rule of an updater of the application (StepGradients::rule) it
// updates what that is to update, and the training ends the step.
void update(Host& host, Updater& updater, tn_machine machine, const UsedNames& used);
void update_part(Host& host, Updater& updater, tn_machine machine, const std::vector<std::string>& part);
// Updates and ends a step in a call that has entered the gate for writing.
void end_step(Updater& updater, Machine& machine, const UsedNames& used);

}  // namespace tenon::host::api
