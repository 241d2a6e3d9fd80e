// nlohmann's JSON without what goes wrong in it where memory ends. This folder comes before the library's in the
// include path, so that no file can include the one without the other.
//
// Its destructor moves all that hangs below a value into a vector first, so that deep values do not recurse; where that
// vector gets no memory, the process ends, since no exception leaves a destructor. Here values go as they lie, one
// inside the other. That recurses, which is sound because whatever reads JSON that it was given bounds its depth: model
// files, notes of plugins. And its constructor of a list in braces leaks what it has made when it fails: a value that
// is not complete is not destroyed. Here it is complete from the first.
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

template <>
inline nlohmann::json::basic_json(initializer_list_t parts, bool deduce, value_t wanted) : basic_json(nullptr) {
  const bool members = std::all_of(parts.begin(), parts.end(), [](const auto& part) {
    return part->is_array() && part->size() == 2 && (*part)[0].is_string();
  });
  if (!deduce && wanted == value_t::object && !members)
    throw type_error::create(301, "cannot create object from initializer list", nullptr);
  const bool object = deduce ? members : wanted == value_t::object;
  basic_json made(object ? value_t::object : value_t::array);
  for (const auto& part : parts) {
    basic_json one = part.moved_or_copied();
    if (object)
      made.get_ref<object_t&>().emplace(std::move(one[0].get_ref<string_t&>()), std::move(one[1]));
    else
      made.get_ref<array_t&>().push_back(std::move(one));
  }
  swap(made);
}
