// One rank of a communicator, as tests use it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/comm.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon_tests {

constexpr int64_t kSecond = 1'000'000;  // microseconds

// The arguments of open, with the defaults of the attributes, and what the engine reported last.
struct Opening {
  Opening(const tn_comm_type& engine, int32_t rank, int32_t ranks) : type(engine) {
    errors = {sizeof errors, 0, &message,
              [](void* self, const tn_error_report* report) { *static_cast<std::string*>(self) = report->message; }};
    for (uint32_t i = 0; i < type.description->attributes_count; ++i)
      values.push_back(type.description->attributes[i]->initial);
    attributes = {sizeof attributes, type.description->attributes_count, type.description->attributes, values.data()};
    open.size = sizeof open;
    open.rank = rank;
    open.ranks = ranks;
    open.services = &services;
    open.errors = &errors;
    open.attributes = &attributes;
    open.deadline_ms = 60'000;
    open.user = type.user;
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  void set(const std::string& attribute, int64_t value) {
    for (uint32_t i = 0; i < attributes.count; ++i)
      if (attributes.declared[i]->name == attribute) values[i].as.i = value;
  }
  void address(std::string text) {
    place = std::move(text);
    open.address = place.c_str();
  }
  void secret(std::string text) {
    words = std::move(text);
    open.secret = reinterpret_cast<const uint8_t*>(words.data());
    open.secret_bytes = static_cast<uint32_t>(words.size());
  }

  const tn_comm_type& type;
  std::string message;
  std::string place;
  std::string words;
  std::vector<tn_value> values;
  tn_errors errors{};
  tn_services services{sizeof(tn_services), 0, TN_ABI_MINOR, nullptr,
                       [](void*, const char*) -> const void* { return nullptr; }};
  tn_attributes attributes{};
  tn_comm_open open{};
};

// Throws std::runtime_error where the engine fails.
class Rank {
 public:
  explicit Rank(std::unique_ptr<Opening> opening) : type_(opening->type), opening_(std::move(opening)) {
    check(type_.open(&opening_->open, &comm));
  }
  ~Rank() {
    if (comm != nullptr) type_.close(comm, kSecond);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const std::string& message() const { return opening_->message; }
  tn_comm_world world() const {
    tn_comm_world described{};
    described.size = sizeof described;
    check(type_.world(comm, &described));
    return described;
  }
  tn_status try_transfer(bool send, int32_t peer, uint32_t channel, void* data, uint64_t bytes, uint64_t* request) {
    const tn_comm_message message = {sizeof message, peer, channel, 0, data, bytes};
    return (send ? type_.send : type_.receive)(comm, &message, request);
  }
  uint64_t transfer(bool send, int32_t peer, uint32_t channel, void* data, uint64_t bytes) {
    uint64_t request = 0;
    check(try_transfer(send, peer, channel, data, bytes, &request));
    if (request == 0) throw std::runtime_error("a request has the number 0");
    return request;
  }
  template <typename T>
  uint64_t send(int32_t peer, uint32_t channel, std::vector<T>& values) {
    values.reserve(1);  // not null even for 0 bytes
    return transfer(true, peer, channel, values.data(), values.size() * sizeof(T));
  }
  template <typename T>
  uint64_t receive(int32_t peer, uint32_t channel, std::vector<T>& values) {
    values.reserve(1);
    return transfer(false, peer, channel, values.data(), values.size() * sizeof(T));
  }
  tn_status progress(int64_t timeout_us) {
    tn_comm_event events[3];
    uint32_t count = 0;
    const tn_status status = type_.progress(comm, timeout_us, events, 3, &count);
    for (uint32_t i = 0; i < count && status == TN_OK; ++i) {
      if (events[i].kind == TN_COMM_DONE) {
        done[events[i].request] = events[i].status;
        order.push_back(events[i].request);
      }
      if (events[i].kind == TN_COMM_LOST) lost.push_back(events[i].peer);
      if (events[i].kind == TN_COMM_WOKEN) ++woken;
    }
    return status;
  }
  // Lets messages move until the condition holds, for at most 60 s; returns whether it does.
  bool until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition())
      if (progress(kSecond / 10) != TN_OK || std::chrono::steady_clock::now() > deadline) return false;
    return true;
  }
  tn_status wait(uint64_t request) {
    return until([&] { return done.count(request) != 0; }) ? done[request] : TN_INTERNAL;
  }
  bool has_lost(int32_t peer) const { return std::find(lost.begin(), lost.end(), peer) != lost.end(); }
  void wake() const { type_.wake(comm); }
  void abort(int32_t code) { type_.abort(std::exchange(comm, nullptr), code); }
  void close(int64_t timeout_us = kSecond) { type_.close(std::exchange(comm, nullptr), timeout_us); }

  void* comm = nullptr;
  std::map<uint64_t, tn_status> done;
  std::vector<uint64_t> order;  // of requests by their ends
  std::vector<int32_t> lost;
  int woken = 0;

 private:
  void check(tn_status status) const {
    if (status != TN_OK) throw std::runtime_error("status " + std::to_string(status) + ": " + message());
  }

  const tn_comm_type& type_;
  std::unique_ptr<Opening> opening_;
};

}  // namespace tenon_tests
