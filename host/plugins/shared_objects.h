// The objects that kernels and providers of a plugin share on a device: tn_shared. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/plugins/thread_tags.h"

namespace tenon::host {

// An open object, which its destructor closes.
class SharedObject : base::NotCopied {
 public:
  SharedObject(Origin by, const tn_shared& shared, std::string who);
  ~SharedObject();

  // Opens it. Throws what the plugin reports.
  void open(const tn_services* services, const tn_device* device);
  [[nodiscard]] void* get() const { return object_; }
  [[nodiscard]] bool is_one_at_a_time() const { return (shared_.flags & TN_SHARED_ONE_AT_A_TIME) != 0; }
  // Held while a function runs that gets the object, or a binding made with it. A thread that needs the lock of [setup]
  // calls, too, takes that first.
  [[nodiscard]] std::unique_lock<std::mutex> enter() {
    return is_one_at_a_time() ? std::unique_lock(entered_) : std::unique_lock<std::mutex>();
  }

 private:
  const Origin by_;
  const tn_shared shared_;
  const std::string who_;
  void* object_ = nullptr;
  bool is_open_ = false;
  std::mutex entered_;
};

// Those of one device.
class SharedObjects : base::NotCopied {
 public:
  // device: borrowed; who: its name in messages.
  SharedObjects(const Services& services, const tn_device* device, std::string who)
      : services_(services), device_(device), who_(std::move(who)) {}

  // Returns the object of a kernel or provider of the plugin `by`; opens it at the first call. Null for null. If it
  // does not open with TN_UNSUPPORTED, all later calls throw that, too.
  std::shared_ptr<SharedObject> get(const Origin& by, const tn_shared* shared);
  // Closes all objects of the device; those of streams are closed with their last binding.
  void clear() { of_device_.clear(); }

  // While it lives, get() on this thread returns the objects of one stream, and they stay open.
  class Stream : base::NotCopied {
   public:
    // of: who orders the calls of the stream.
    Stream(SharedObjects& objects, const void* of);
    ~Stream();

   private:
    friend class SharedObjects;
    SharedObjects& objects_;
    const void* const of_;
    Stream* outer_ = nullptr;
    std::vector<std::shared_ptr<SharedObject>> open_;
  };

 private:
  const Services& services_;
  const tn_device* device_;
  std::string who_;
  std::recursive_mutex mutex_;
  std::map<const tn_shared*, std::shared_ptr<SharedObject>> of_device_;
  std::map<std::pair<const tn_shared*, const void*>, std::weak_ptr<SharedObject>> of_streams_;
  std::map<const tn_shared*, std::string> refusals_;  // of those that returned TN_UNSUPPORTED
  std::map<std::thread::id, Stream*> streams_;        // for which the threads prepare calls
};

}  // namespace tenon::host
