// SPDX-License-Identifier: Apache-2.0
#include "cluster/members.h"

namespace tenon::cluster {

namespace {

constexpr int kDeepest = 100;

const json& nothing() {
  static const json null;
  return null;
}

const json& no_entries() {
  static const json empty = json::array();
  return empty;
}

}  // namespace

json parse_json(std::string_view text) {
  const auto is_shallow = [](int depth, json::parse_event_t, const json&) { return depth <= kDeepest; };
  json value = json::parse(text, is_shallow, false);
  return value.is_discarded() ? json() : value;
}

const json& member_of(const json& object, const char* key) {
  if (!object.is_object()) return nothing();
  const auto member = object.find(key);
  return member == object.end() ? nothing() : *member;
}

const json& member_of(const json& object, const char* key, const char* key_in_it) {
  return member_of(member_of(object, key), key_in_it);
}

std::string text_of(const json& object, const char* key) {
  const json& member = member_of(object, key);
  return member.is_string() ? member.get<std::string>() : "";
}

std::string text_of(const json& object, const char* key, const char* key_in_it) {
  return text_of(member_of(object, key), key_in_it);
}

int64_t number_of(const json& object, const char* key, int64_t otherwise) {
  const json& member = member_of(object, key);
  return member.is_number_integer() ? member.get<int64_t>() : otherwise;
}

const json& list_of(const json& object, const char* key) {
  const json& member = member_of(object, key);
  return member.is_array() ? member : no_entries();
}

}  // namespace tenon::cluster
