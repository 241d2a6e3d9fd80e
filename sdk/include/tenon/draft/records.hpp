/* Tenon SDK for C++17, a draft: the records of a reader's data. SPDX-License-Identifier: MIT
 *
 *   class Lines : public tn::Records<Lines> {
 *    public:
 *     int64_t records() const;              // with those that are left out
 *     int64_t record(int64_t index) const;  // of sample `index` of this shard
 *     // optional; throws TN_NOT_FOUND without such a column
 *     std::string_view text(int64_t index, const std::string& column);
 *     ...
 *   };
 */
#ifndef TENON_DRAFT_RECORDS_HPP
#define TENON_DRAFT_RECORDS_HPP

#include <tenon/draft/records.h>

#include <cstring>
#include <string>
#include <string_view>
#include <tenon/reader.hpp>
#include <type_traits>
#include <utility>

namespace tn {

// The base of a reader type T with the functions above. A type with extensions of its own calls `extension` in its own
// function for other ids.
template <typename T>
struct Records {
  static const void* extension(const char* id) noexcept {
    static constexpr tn_records kTable = {sizeof(tn_records), TN_RECORDS_DRAFT, &count, &record_of, &text_of};
    return std::strcmp(id, TN_RECORDS) == 0 ? &kTable : nullptr;
  }

 private:
  using Instance = detail::ReaderInstance<T>;
  template <typename R, typename = void>
  struct HasTexts : std::false_type {};
  template <typename R>
  struct HasTexts<R, std::void_t<decltype(std::declval<R&>().text(int64_t{}, std::string()))>> : std::true_type {};

  static T& reader(void* self) { return static_cast<Instance*>(self)->reader(); }
  static int64_t count(void* self) { return std::as_const(reader(self)).records(); }
  static int64_t record_of(void* self, int64_t index) { return std::as_const(reader(self)).record(index); }
  static tn_status text_of(void* self, int64_t index, const char* column, tn_text* text) {
    return guarded(static_cast<Instance*>(self)->errors(), [&] {
      if constexpr (HasTexts<T>::value) {
        const std::string_view view = reader(self).text(index, column);
        *text = {view.data(), view.size()};
      } else {
        (void)index, (void)text;
        throw Failure(TN_NOT_FOUND, column, "the data has no columns of text");
      }
    });
  }
};

}  // namespace tn
#endif
