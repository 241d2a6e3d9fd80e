// Copies of what a host lends to a plugin, with the sizes that the structs have in another host, each right before a
// page that cannot be accessed. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/comm.h>
#include <tenon/draft/numbers.h>
#include <tenon/plugin.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "check/watch/other_host.h"

namespace tenon::check {

enum LentNumber : int {
#define TENON_LENT(name) kLent_##name,
#include "check/watch/lent_structs.h"
#undef TENON_LENT
  kLentCount
};
template <typename Struct>
inline constexpr int kLentNumber = -1;
#define TENON_LENT(name) \
  template <>            \
  inline constexpr int kLentNumber<name> = kLent_##name;
#include "check/watch/lent_structs.h"
#undef TENON_LENT

// The copies for one call.
class Loans {
 public:
  Loans() = default;
  ~Loans() { end(); }
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  // An argument as the plugin gets it: pointers to the structs of the list lead to copies, and so on in them. Services
  // and devices outlive a call.
  template <typename Argument>
  Argument pass(Argument argument) {
    if constexpr (std::is_pointer_v<Argument>) {
      using Struct = std::remove_cv_t<std::remove_pointer_t<Argument>>;
      if constexpr (std::is_same_v<Struct, tn_services> || std::is_same_v<Struct, tn_device>)
        return keep(argument);
      else if constexpr (kLentNumber<Struct> >= 0)
        return lend(argument);
    }
    return argument;
  }
  template <typename... Pointers>
  void replace(Pointers&... pointers) {
    ((pointers = pass(pointers)), ...);
  }
  // A list of pointers, any of which may be null.
  template <typename Struct>
  void replace_list(Struct* const*& list, uint32_t count) {
    if (list == nullptr) return;
    const auto copy = std::make_shared<std::vector<Struct*>>(list, list + count);
    for (Struct*& each : *copy) each = lend(each);
    lists_.push_back(copy);
    list = copy->data();
  }
  void copy_list(void* const*& list, uint32_t count) {
    const auto copy = std::make_shared<std::vector<void*>>(list, list + count);
    lists_.push_back(copy);
    list = copy->data();
  }
  // What is not const is written back at the end.
  template <typename Lent>
  Lent* lend(Lent* original) {
    using Struct = std::remove_const_t<Lent>;
    if (original == nullptr) return nullptr;
    Struct copy = {};
    std::memcpy(&copy, original, std::min<size_t>(original->size, sizeof copy));
    lead(*this, copy);  // lent_arguments.h
    void* written = nullptr;
    if constexpr (!std::is_const_v<Lent>) written = original;
    void* const result = add(kLentNumber<Struct>, &copy, original->size, written);
    return result == nullptr ? original : static_cast<Lent*>(result);
  }
  // The same for what outlives the call; once for each struct and host.
  template <typename Struct>
  static const Struct* keep(const Struct* original) {
    if (original == nullptr) return nullptr;
    const std::lock_guard<std::recursive_mutex> lock(kept_lock());
    const std::string key = key_of(original, original->size);
    if (const void* const earlier = kept_copy(key)) return static_cast<const Struct*>(earlier);
    const Struct* const result = forever().lend(original);
    set_kept(key, result);
    return result;
  }
  // Looks whether memory behind the structs was written, writes results back and ends the use of the copies.
  void end();
  // Looks at those that outlive calls.
  static void check_kept();

 private:
  struct Loan {
    int slot;
    uint32_t bytes;  // of the struct
    void* original;  // null: is not written back
  };

  void* add(int number, const void* copy, uint32_t stated, void* original);
  static void check(const Loan& loan);
  static std::recursive_mutex& kept_lock();
  static Loans& forever();
  static std::string key_of(const void* original, uint32_t bytes);
  static const void* kept_copy(const std::string& key);
  static void set_kept(const std::string& key, const void* copy);

  std::vector<Loan> loans_;
  std::vector<std::shared_ptr<void>> lists_;
};

// The host for which structs are lent.
[[nodiscard]] const OtherHost& lender();
void blame_lent(const std::string& fault);

}  // namespace tenon::check
