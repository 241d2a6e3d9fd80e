// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/version.h"

#include <algorithm>
#include <array>

namespace tenon::host {

namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_zeros(std::string_view number) {
  const size_t first = number.find_first_not_of('0');
  return first == std::string_view::npos ? number.substr(0, 0) : number.substr(first);
}

// Numbers may have any length.
std::strong_ordering compare_parts(std::string_view a, std::string_view b) {
  if (is_number(a) != is_number(b)) return is_number(a) ? std::strong_ordering::less : std::strong_ordering::greater;
  if (!is_number(a)) return a <=> b;
  a = without_zeros(a);
  b = without_zeros(b);
  if (const auto order = a.size() <=> b.size(); std::is_neq(order)) return order;
  return a <=> b;
}

std::string_view take_part(std::string_view& text) {
  const size_t dot = std::min(text.find('.'), text.size());
  const std::string_view part = text.substr(0, dot);
  text.remove_prefix(std::min(dot + 1, text.size()));
  return part;
}

// missing: what a list that ends early has instead of a part.
std::strong_ordering compare_lists(std::string_view a, std::string_view b, std::string_view missing) {
  while (!a.empty() || !b.empty()) {
    const std::string_view left = a.empty() ? missing : take_part(a);
    const std::string_view right = b.empty() ? missing : take_part(b);
    if (left.empty() != right.empty()) return left.empty() ? std::strong_ordering::less : std::strong_ordering::greater;
    if (const auto order = compare_parts(left, right); std::is_neq(order)) return order;
  }
  return std::strong_ordering::equal;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Returns the version without what follows "+", and its pre-release.
std::pair<std::string_view, std::string_view> parts_of(std::string_view version) {
  version = version.substr(0, version.find('+'));
  const size_t dash = std::min(version.find('-'), version.size());
  return {version.substr(0, dash), version.substr(std::min(dash + 1, version.size()))};
}

}  // namespace

std::strong_ordering compare_versions(std::string_view a, std::string_view b) {
  const auto [left, left_before] = parts_of(a);
  const auto [right, right_before] = parts_of(b);
  if (const auto order = compare_lists(left, right, "0"); std::is_neq(order)) return order;
  if (left_before.empty() != right_before.empty())
    return left_before.empty() ? std::strong_ordering::greater : std::strong_ordering::less;
  return compare_lists(left_before, right_before, "");
}

VersionInterval::VersionInterval(const std::string& given) : text_(given) {
  constexpr std::array<std::string_view, 5> kSigns = {">=", "<=", ">", "<", "="};
  std::string_view rest = given;
  do {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view bound = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    std::string_view sign = "=";
    for (const std::string_view each : kSigns)
      if (bound.starts_with(each)) {
        sign = each;
        bound = trimmed(bound.substr(each.size()));
        break;
      }
    if (!is_version(bound))
      fail(TN_BAD_CONFIG, "expected bounds such as \">=0.1, <0.3\", or one version, got \"", given, "\"");
    bounds_.push_back({std::string(sign), std::string(bound)});
  } while (!rest.empty());
}

bool VersionInterval::is_version(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
           c == '+' || c == '_';
  });
}

bool VersionInterval::contains(std::string_view version) const {
  return std::all_of(bounds_.begin(), bounds_.end(), [&](const Bound& bound) {
    const auto order = compare_versions(version, bound.version);
    if (bound.sign == ">=") return std::is_gteq(order);
    if (bound.sign == "<=") return std::is_lteq(order);
    if (bound.sign == ">") return std::is_gt(order);
    if (bound.sign == "<") return std::is_lt(order);
    return std::is_eq(order);
  });
}

}  // namespace tenon::host
