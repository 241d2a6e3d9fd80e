// Threads with small stacks. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace tenon_tests {

// Runs work on a thread with a stack of so many bytes, and returns the message of what it throws, or "". Threads that
// it starts have such stacks, too.
inline std::string on_a_stack(size_t bytes, const std::function<void()>& work) {
  pthread_attr_t usual, small;
  EXPECT_EQ(pthread_getattr_default_np(&usual), 0);
  EXPECT_EQ(pthread_attr_init(&small), 0);
  EXPECT_EQ(pthread_attr_setstacksize(&small, bytes), 0);
  EXPECT_EQ(pthread_setattr_default_np(&small), 0);
  std::pair<const std::function<void()>*, std::string> run = {&work, ""};
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    auto& given = *static_cast<std::pair<const std::function<void()>*, std::string>*>(argument);
    try {
      (*given.first)();
    } catch (const std::exception& error) {
      given.second = error.what();
    }
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, nullptr, body, &run), 0);
  pthread_join(thread, nullptr);
  pthread_setattr_default_np(&usual);
  pthread_attr_destroy(&small);
  pthread_attr_destroy(&usual);
  return run.second;
}

}  // namespace tenon_tests
