// The cases of a check, one after the other. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "check/cases/fault.h"
#include "check/checks/check_list.h"

namespace tenon::check {

// Calls one(element) for at most `most` elements of the list; a failure gets text(element) in front of it. Throws Skip
// with the last reason if every element was skipped.
template <typename List, typename Text, typename One>
void each(const List& list, const Text& text, const One& one, size_t most = SIZE_MAX) {
  std::string skipped = "there is no case";
  size_t ran = 0, tried = 0;
  for (const auto& element : list) {
    if (tried++ == most) break;
    const auto named = [&](const char* fault) {
      const std::string name = text(element);
      return (name.empty() ? "" : "(" + name + ") ") + fault;
    };
    try {
      one(element);
      ++ran;
    } catch (const Skip& skip) {
      skipped = skip.what();
    } catch (const Fault& fault) {
      throw Fault(named(fault.what()));
    } catch (const Error& error) {
      throw Fault(named(error.what()));
    }
  }
  if (ran == 0) throw Skip(skipped);
}

}  // namespace tenon::check
