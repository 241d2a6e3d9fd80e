// nlohmann's JSON with a destructor that needs no memory. The library's own moves all that hangs below a value into a
// vector first, so that deep values do not recurse; where that vector gets no memory, the process ends, since no
// exception leaves a destructor. Here values go as they lie, one inside the other. That recurses, which is sound
// because whatever reads JSON that it was given bounds its depth: model files, notes of plugins. This folder comes
// before the library's in the include path, so that no file can include the one without the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include_next <nlohmann/json.hpp>

template <>
inline void nlohmann::json::json_value::destroy(value_t type) {
  const auto drop = [](auto* held) {
    std::allocator<std::remove_pointer_t<decltype(held)>> allocator;
    using Traits = std::allocator_traits<decltype(allocator)>;
    Traits::destroy(allocator, held);
    Traits::deallocate(allocator, held, 1);
  };
  if (type == value_t::object) drop(object);
  if (type == value_t::array) drop(array);
  if (type == value_t::string) drop(string);
  if (type == value_t::binary) drop(binary);
}
