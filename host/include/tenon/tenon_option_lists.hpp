// Tenon's C++ API: options in C form. Include <tenon/tenon.hpp>. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_OPTION_LISTS_HPP
#define TENON_TENON_OPTION_LISTS_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tenon/tenon_base.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {
namespace detail {

// Owns the lists and structs that a struct of options in C form points to. An empty list is null.
class OptionLists {
 public:
  template <typename Element>
  void set(const Element*& to, uint32_t& count, std::vector<Element> elements) {
    const auto list = std::make_shared<const std::vector<Element>>(std::move(elements));
    to = list->empty() ? nullptr : list->data();
    count = count_of(list->size());
    owned_.push_back(list);
  }
  // Each element and part is converted by the function `fill` of its type.
  template <typename Element, typename From>
  void set_each(const Element*& to, uint32_t& count, const std::vector<From>& from) {
    std::vector<Element> elements(from.size());
    for (size_t i = 0; i < from.size(); ++i) fill(elements[i], from[i], *this);
    set(to, count, std::move(elements));
  }
  template <typename Part, typename From>
  void set(const Part*& to, const std::optional<From>& from) {
    to = nullptr;
    if (!from) return;
    const auto part = std::make_shared<Part>();
    fill(*part, *from, *this);
    to = part.get();
    owned_.push_back(part);
  }

 private:
  std::vector<std::shared_ptr<const void>> owned_;
};

// Pairs of slot and data layer in C form, borrowed.
inline std::vector<tn_feeding> c_feeding(const std::vector<std::pair<std::string, std::string>>& pairs,
                                         const char* what) {
  std::vector<tn_feeding> result;
  for (const auto& [slot, layer] : pairs) result.push_back({c_text(slot, what), c_text(layer, what)});
  return result;
}

}  // namespace detail
}  // namespace v0
}  // namespace tenon
#endif
