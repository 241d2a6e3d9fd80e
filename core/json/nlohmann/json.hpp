// nlohmann's JSON with two functions replaced that fail badly if memory runs out, and two that are compiled once.
// SPDX-License-Identifier: Apache-2.0
//
// This folder precedes the library's in the include path, so that every include of nlohmann/json.hpp is this file. All
// of it is in a namespace of its own (own_namespace.hpp), so that no function of the library has two definitions in a
// program that uses the library beside an archive of Tenon.
//
// destroy: the library's first moves the descendants of a value into a vector, so that deep values do not recurse. If
// that vector cannot be allocated, the process ends, since an exception cannot leave a destructor. The replacement
// destroys values in place. It recurses, which is safe because the readers of foreign JSON (model files, manifests of
// plugins) limit its depth.
// Constructor from a list in braces: the library's leaks its elements if it fails, because the destructor of an
// incomplete value does not run. The replacement first delegates to another constructor, so that the value is complete.
// parse, dump: as the library has them, but in core/json/text.cpp alone: each takes the compiler longer than what most
// sources do with JSON beside it.
#pragma once

// The macros come before the library reads them.
// clang-format off
#include "own_namespace.hpp"

#include_next <nlohmann/json.hpp>
// clang-format on

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

template <>
template <>
nlohmann::json nlohmann::json::parse(std::string&&, parser_callback_t, bool, bool);
template <>
template <>
nlohmann::json nlohmann::json::parse(std::string&, parser_callback_t, bool, bool);
template <>
template <>
nlohmann::json nlohmann::json::parse(const std::string&, parser_callback_t, bool, bool);
template <>
std::string nlohmann::json::dump(int, char, bool, error_handler_t) const;
