// Wrong calls of one function of the public API. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/host/api/misuse/world.h"

namespace tenon_tests {

// Makes a call wrong in one way after the other, by changing one of the variables that it reads, and back. Every wrong
// call must be refused with a message that names what is wrong, with any error buffer, and change nothing.
class Misuse {
 public:
  // other: a second host with the same objects. call: reads its arguments from variables each time.
  Misuse(const World& world, const World& other, std::function<tn_status(tn_error*)> call)
      : world_(world), other_(other), call_(std::move(call)), state_(world.state()), other_state_(other.state()) {}

  // A variable into which the call writes its result.
  template <typename T>
  void result(T& variable) {
    results_.emplace_back(reinterpret_cast<const char*>(&variable), sizeof variable);
  }
  template <typename T>
  void result(std::vector<T>& variable) {
    results_.emplace_back(reinterpret_cast<const char*>(variable.data()), variable.size() * sizeof(T));
  }

  // The call as the variables are now. name: must be in the message.
  void refused(const std::string& what, const std::string& name, tn_status status = TN_MISUSE) {
    SCOPED_TRACE(name + ": " + what);
    const std::string before = results();
    tn_error error = {}, unset = {};
    error.size = sizeof error;
    EXPECT_EQ(call_(&error), status) << error.message;
    EXPECT_EQ(error.code, status);
    EXPECT_THAT(std::string(error.message), testing::HasSubstr(name));
    if (!subject_.empty()) {
      EXPECT_EQ(error.subject, subject_);
    }
    EXPECT_EQ(call_(nullptr), status);
    EXPECT_EQ(call_(&unset), status);
    EXPECT_EQ(unset.code, TN_OK);
    EXPECT_STREQ(unset.message, "");
    EXPECT_EQ(results(), before);
  }

  template <typename T>
  void with(T& variable, std::type_identity_t<T> wrong, const std::string& what, const std::string& name,
            tn_status status = TN_MISUSE) {
    const T right = std::exchange(variable, wrong);
    refused(what, name, status);
    variable = right;
  }

  template <typename T>
  void null(T*& variable, const std::string& name) {
    subject_ = name;
    with(variable, nullptr, "null", name);
    subject_.clear();
  }

  // name: the handle's kind, or the list that holds it.
  template <typename Handle>
  void handle(Handle& variable, const std::string& name, bool may_be_zero = false) {
    if (!may_be_zero) with(variable, {}, "zeroed", name);
    const auto released = world_.make<Handle>();
    world_.release(released);
    with(variable, released, "released", name);
    const auto live = world_.make<Handle>();  // in the place of the released one
    with(variable, released, "released, its place in use", name);
    world_.release(live);
    const auto foreign = other_.make<Handle>();
    with(variable, foreign, "of another host", name);
    other_.release(foreign);
    with(variable, {1U << 30, live.generation}, "beyond all handles", name);
    if constexpr (std::is_same_v<Handle, tn_layer>)
      with(variable, {world_.reader.index, world_.reader.generation}, "of another kind", name);
    else
      with(variable, {world_.cost.index, world_.cost.generation}, "of another kind", name);
  }

  // A pointer to a struct that begins with its size.
  template <typename Struct>
  void sized(Struct*& variable, const std::string& name) {
    auto& room = const_cast<std::remove_const_t<Struct>&>(*variable);
    for (const uint32_t size : {0U, 3U, 1U << 20})
      with(room.size, size, "size is " + std::to_string(size), name + ".size");
    if constexpr (std::is_const_v<Struct>) {
      struct {
        std::remove_const_t<Struct> known;
        uint64_t later;
      } newer = {room, 1};
      newer.known.size = sizeof newer;
      with(variable, &newer.known, "with a member of a later version", name, TN_UNSUPPORTED);
    }
  }

  // A pointer to `count` elements: null, and elements of zeros.
  template <typename Element>
  void list(Element*& variable, uint32_t& count, const std::string& name, bool may_be_zero = false) {
    Element zero[1] = {};
    const uint32_t right = std::exchange(count, std::max(count, 1U));
    null(variable, name);
    count = 1;
    if constexpr (std::is_const_v<Element>)
      if (!may_be_zero) with(variable, zero, "of an element of zeros", name + "[0]");
    count = right;
  }
  template <typename Handle>
  void handles(const Handle*& variable, uint32_t& count, const std::string& name) {
    Handle element = {};
    const Handle* const right = std::exchange(variable, &element);
    const uint32_t right_count = std::exchange(count, 1U);
    handle(element, name + "[0]", true);
    variable = right;
    count = right_count;
  }

  // After all wrong calls: nothing has changed, and the right call works.
  void accepted() {
    EXPECT_EQ(world_.state(), state_);
    EXPECT_EQ(other_.state(), other_state_);
    tn_error error = {};
    error.size = sizeof error;
    EXPECT_EQ(call_(&error), TN_OK) << error.message;
  }

 private:
  [[nodiscard]] std::string results() const {
    std::string all;
    for (const auto& [data, size] : results_) all.append(data, size);
    return all;
  }

  const World& world_;
  const World& other_;
  const std::function<tn_status(tn_error*)> call_;
  const std::string state_, other_state_;
  std::string subject_;  // "" or that of the next refusal
  std::vector<std::pair<const char*, size_t>> results_;
};

// The wrong calls of one function.
struct MisuseCase {
  const char* function;
  void (*run)(const World& world, const World& other);
};
const std::vector<MisuseCase>& misuse_cases();  // of all functions of the headers; generated

}  // namespace tenon_tests
