// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/shared_objects.h"

#include "core/error.h"
#include "host/plugins/error_sink.h"

namespace tenon::host {

SharedObject::SharedObject(Origin by, const tn_shared& shared, std::string who)
    : by_(std::move(by)), shared_(shared), who_(std::move(who)) {}

SharedObject::~SharedObject() {
  if (is_open_ && shared_.close != nullptr) free_by_plugin(by_, who_, {Tag::kSetup, "close"}, shared_.close, object_);
}

void SharedObject::open(const tn_services* services, const tn_device* device) {
  ErrorSink sink(who_, by_.tags);
  const tn_status opened =
      call_plugin(by_, who_, {Tag::kSetup, "open"}, shared_.open, services, sink.get(), device, shared_.user, &object_);
  is_open_ = opened == TN_OK;
  sink.check(opened);
}

std::shared_ptr<SharedObject> SharedObjects::get(const Origin& by, const tn_shared* shared) {
  if (shared == nullptr) return nullptr;
  const SetupLock setup = lock_setup(by, {Tag::kSetup, "open"});
  const std::lock_guard lock(mutex_);
  const std::string who = "plugin \"" + by.plugin + "\" on " + who_;
  if (const auto known = refusals_.find(shared); known != refusals_.end())
    throw Error(TN_UNSUPPORTED, known->second, who);
  constexpr uint32_t kKnown = TN_SHARED_ONE_AT_A_TIME | TN_SHARED_PER_STREAM;
  if (!TN_HAS(shared, tn_shared, user) || shared->open == nullptr || (shared->flags & ~kKnown) != 0)
    fail(TN_PLUGIN_FAULT, who, ": its tn_shared is too short, has no open, or flags that this host does not know");
  const auto stream = streams_.find(std::this_thread::get_id());
  const bool of_stream = (shared->flags & TN_SHARED_PER_STREAM) != 0 && stream != streams_.end();
  std::shared_ptr<SharedObject> found;
  if (of_stream)
    found = of_streams_[{shared, stream->second->of_}].lock();
  else if (const auto known = of_device_.find(shared); known != of_device_.end())
    found = known->second;
  if (found == nullptr) {
    found = std::make_shared<SharedObject>(by, *shared, who);
    try {
      found->open(services_.tables(by), device_);
    } catch (const Error& error) {
      if (error.code() == TN_UNSUPPORTED) refusals_.emplace(shared, error.what());
      throw;
    }
    if (of_stream)
      of_streams_[{shared, stream->second->of_}] = found;
    else
      of_device_.emplace(shared, found);
  }
  if (of_stream) stream->second->open_.push_back(found);
  return found;
}

SharedObjects::Stream::Stream(SharedObjects& objects, const void* of) : objects_(objects), of_(of) {
  const std::lock_guard lock(objects_.mutex_);
  Stream*& present = objects_.streams_[std::this_thread::get_id()];
  outer_ = present;
  present = this;
}

SharedObjects::Stream::~Stream() {
  const std::lock_guard lock(objects_.mutex_);
  if (outer_ == nullptr)
    objects_.streams_.erase(std::this_thread::get_id());
  else
    objects_.streams_[std::this_thread::get_id()] = outer_;
  std::erase_if(objects_.of_streams_, [](const auto& each) { return each.second.expired(); });
}

}  // namespace tenon::host
