// SPDX-License-Identifier: Apache-2.0
#include "form.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "base/utf8.h"
#include "elements.h"
#include "half.h"

namespace tenon_arrow {

namespace {

using Offsets = std::vector<int64_t>;

std::string name_of(tn_dtype dtype) {
  const char* const kinds[] = {"int", "uint", "float", "", "bfloat", "", "bool"};
  const uint32_t code = tn_dtype_code(dtype);
  if (code == 6) return "bool";
  return (code < 6 ? kinds[code] : "?") + std::to_string(tn_dtype_bits(dtype));
}

// Makes lists of equal length a dimension of their rows.
void make_even(Values& values, size_t level, const Place& place) {
  const Offsets& offsets = *values.offsets[level];
  const int64_t lists = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t size = lists > 0 ? offsets[1] - offsets[0] : 0;
  for (size_t i = 1; i + 1 < offsets.size(); ++i)
    if (offsets[i + 1] - offsets[i] != size)
      place.refuse_sample(static_cast<int64_t>(i), "has a list of " + std::to_string(offsets[i + 1] - offsets[i]) +
                                                       " numbers; expected " + std::to_string(size) +
                                                       ", as in those before");
  values.offsets.erase(values.offsets.begin() + static_cast<std::ptrdiff_t>(level));
  values.shape[0] = lists;
  if (lists > 0) values.shape.insert(values.shape.begin() + 1, size);
}

// Makes the second dimension of rows a level of lists.
void make_lists(Values& values) {
  const int64_t size = values.shape[1];
  auto offsets = std::make_shared<Offsets>();
  for (int64_t i = 0; i <= values.shape[0]; ++i) offsets->push_back(i * size);
  values.shape[0] *= size;
  values.shape.erase(values.shape.begin() + 1);
  values.offsets = {std::move(offsets)};
}

// Whether a number keeps its value, or, of a float as a float, its size.
template <typename To, typename From>
bool fits(From number) {
  if constexpr (std::is_floating_point_v<From>) {
    return std::is_floating_point_v<To> && (!std::isfinite(number) || std::isfinite(static_cast<To>(number)));
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<long double>(static_cast<To>(number)) == static_cast<long double>(number);  // both are exact
  } else {
    return std::in_range<To>(number);
  }
}

template <typename To, typename From>
Memory convert(std::span<const From> from, const Samples& samples, tn_dtype dtype, const Place& place) {
  const auto [to, memory] = new_elements<To>(static_cast<int64_t>(from.size()));
  const int64_t rows = std::max<int64_t>(samples.count(), 1);
  for (size_t i = 0; i < from.size(); ++i) {
    const bool truth = dtype == TN_BOOL && !(std::is_integral_v<From> && (from[i] == 0 || from[i] == 1));
    if (truth || !fits<To>(from[i])) {
      const std::string fault =
          "has the number " +
          (std::is_integral_v<From> ? std::to_string(from[i]) : tenon::base::brief(static_cast<double>(from[i]), 6)) +
          ", which " + name_of(dtype) + " cannot hold";
      if (samples.array.storage != TN_DENSE) place.refuse(TN_BAD_DATA, fault);
      place.refuse_sample(static_cast<int64_t>(i) / std::max<int64_t>(static_cast<int64_t>(from.size()) / rows, 1),
                          fault);
    }
    to[i] = static_cast<To>(from[i]);  // NOLINT(bugprone-signed-char-misuse): int8 is a number, too
  }
  return memory;
}

Samples sparse_of(const Values& values, int64_t width, const Place& place) {
  const Offsets& offsets = *values.offsets[0];
  const int64_t entries = values.shape[0];
  Samples keys, numbers;
  keys.array.dtype = values.dtype;
  keys.array.shape = {entries};
  keys.array.data = values.data;
  keys.memory = {values.memory};
  if (values.shape.size() > 1) place.refuse(TN_INVALID, "has vectors in lists; expected the columns of sparse vectors");
  keys = converted(std::move(keys), TN_I64, place);
  Samples result;
  result.array = tenon::Array::sparse(static_cast<int64_t>(offsets.size()) - 1, width, offsets.data(),
                                      static_cast<const int64_t*>(keys.array.data), nullptr);
  result.memory = {values.offsets[0], keys.memory[0]};
  if (values.numbers == nullptr) return result;
  numbers.array.dtype = values.numbers->dtype;
  numbers.array.shape = {entries};
  numbers.array.data = values.numbers->data;
  numbers.memory = {values.numbers->memory};
  numbers = converted(std::move(numbers), TN_F32, place);
  result.array.data = numbers.array.data;
  result.memory.push_back(numbers.memory[0]);
  return result;
}

// Gives categories, or texts, the numbers of known names.
Values numbered(const Values& categories, const std::vector<std::string>& names, const Place& place) {
  std::unordered_map<std::string_view, int64_t> number_of;
  for (const std::string& name : names) number_of.emplace(name, static_cast<int64_t>(number_of.size()));
  std::vector<int64_t> changed;
  for (const std::string& name : *categories.names) {
    const auto number = number_of.find(name);
    changed.push_back(number == number_of.end() ? -1 : number->second);
  }
  const int64_t count = categories.shape[0];
  const auto* const numbers = reinterpret_cast<const int64_t*>(categories.data);
  const auto [result, memory] = new_elements<int64_t>(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<size_t>(numbers[i]);
    result[i] = changed[number];
    if (result[i] >= 0) continue;
    const std::string& text = (*categories.names)[number];
    place.refuse_sample(i, "has the category \"" + tenon::base::readable_utf8(text) + "\", which its names lack" +
                               tenon::base::suggestion(text, names));
  }
  return {TN_I64, {count}, reinterpret_cast<const char*>(result), memory};
}

// Returns texts as categories.
Values of_texts(std::vector<std::string> texts) {
  const auto [numbers, memory] = new_elements<int64_t>(static_cast<int64_t>(texts.size()));
  for (size_t i = 0; i < texts.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  Values result{TN_I64, {static_cast<int64_t>(texts.size())}, reinterpret_cast<const char*>(numbers), memory};
  result.names = std::make_shared<const std::vector<std::string>>(std::move(texts));
  return result;
}

}  // namespace

std::string text_of(const Form& form) {
  const std::string numbers = name_of(form.dtype == 0 ? TN_F32 : form.dtype);
  if (form.storage == TN_CSR) return "sparse vectors of " + std::to_string(form.shape.at(0)) + " numbers";
  if (form.storage == TN_DENSE) return numbers + " " + tenon::base::to_string(form.shape);
  return (form.levels > 1 ? "sequences of sequences of " : "sequences of ") + numbers + " " +
         tenon::base::to_string(form.shape);
}

Samples in_form(Values values, const Form* form, const Place& place, const std::string& expected) {
  const int32_t storage = form == nullptr ? TN_DENSE : form->storage;
  if (values.offsets.empty() && storage != TN_DENSE && values.shape.size() > 1) make_lists(values);
  if (storage == TN_CSR && values.offsets.size() == 1) return sparse_of(values, form->shape.at(0), place);
  if (values.numbers != nullptr) place.refuse(TN_INVALID, "has maps; expected " + expected);
  if (storage == TN_RAGGED && form->levels < 2 && values.offsets.size() == 2) make_even(values, 1, place);
  while (storage != TN_RAGGED && !values.offsets.empty()) make_even(values, values.offsets.size() - 1, place);
  const auto size = [](const std::vector<int64_t>& shape) {
    int64_t result = 1;
    for (const int64_t extent : shape) result *= extent;
    return result;
  };
  if (form != nullptr && storage == TN_DENSE && values.shape.size() == 2 && size(form->shape) == values.shape[1]) {
    values.shape.resize(1);  // the numbers of a sample in one row
    values.shape.insert(values.shape.end(), form->shape.begin(), form->shape.end());
  }
  Samples result;
  result.array.dtype = values.dtype;
  result.array.shape = values.shape;
  result.array.data = values.data;
  result.memory = {values.memory};
  result.names = values.names;
  if (values.offsets.empty()) return result;
  result.array.storage = TN_RAGGED;
  result.array.levels = static_cast<uint32_t>(values.offsets.size());
  result.array.samples = static_cast<int64_t>(values.offsets[0]->size()) - 1;
  for (size_t i = 0; i < values.offsets.size(); ++i) {
    result.array.offsets[i] = values.offsets[i]->data();
    result.memory.push_back(values.offsets[i]);
  }
  return result;
}

Samples converted(Samples samples, tn_dtype dtype, const Place& place) {
  tenon::Array& array = samples.array;
  if (dtype == 0 || array.dtype == dtype || array.storage == TN_CSR) return samples;
  const int64_t count = array.count();
  if (array.dtype == TN_F16) {
    const auto [floats, memory] = new_elements<float>(count);
    for (int64_t i = 0; i < count; ++i) floats[i] = from_half(static_cast<const uint16_t*>(array.data)[i]);
    array.data = floats;
    array.dtype = TN_F32;
    samples.memory.push_back(memory);
    return converted(std::move(samples), dtype, place);
  }
  if (tn_dtype_code(array.dtype) == 2 && tn_dtype_code(dtype) != 2)
    place.refuse(TN_INVALID, "has " + name_of(array.dtype) + "; expected " + name_of(dtype));
  Memory memory;
  bool read = false;
  const bool written = with_elements(dtype, nullptr, 0, [&](auto none) {
    using To = typename decltype(none)::value_type;
    read = with_elements(array.dtype, array.data, static_cast<size_t>(count), [&](auto numbers) {
      memory = convert<To>(numbers, samples, dtype, place);
      array.data = std::static_pointer_cast<const std::vector<To>>(memory)->data();
    });
  });
  if (!written || !read)
    place.refuse(TN_UNSUPPORTED, "has " + name_of(array.dtype) + ", which is not converted to " + name_of(dtype));
  array.dtype = dtype;
  samples.memory[0] = memory;
  return samples;
}

Samples samples_of(const Column& column, const Form& form, const std::vector<std::string>* names, const Place& place) {
  const std::string expected = text_of(form);
  const bool texts = is_text(column.format()) && column.type->dictionary == nullptr && names != nullptr;
  Values values = texts ? of_texts(texts_of(column, place)) : values_of(column, place, expected);
  if (values.names != nullptr && names != nullptr) values = numbered(values, *names, place);
  for (const std::string& name : values.names == nullptr ? std::vector<std::string>() : *values.names)
    if (!tenon::base::is_utf8(name))
      place.refuse(TN_BAD_DATA, "has the category \"" + tenon::base::readable_utf8(name) + "\", which is not UTF-8");
  Samples samples = in_form(std::move(values), &form, place, expected);
  const bool rows = form.storage != TN_CSR && !std::equal(samples.array.shape.begin() + 1, samples.array.shape.end(),
                                                          form.shape.begin(), form.shape.end());
  const bool single =
      samples.array.storage == TN_DENSE && samples.array.shape.size() == 1 && form.shape == std::vector<int64_t>{1};
  if (single) samples.array.shape.push_back(1);
  const bool levels = samples.array.storage == TN_RAGGED && samples.array.levels != form.levels;
  if (samples.array.storage != form.storage || levels || (rows && !single && samples.count() > 0)) {
    const std::vector<int64_t> shape(samples.array.shape.begin() + 1, samples.array.shape.end());
    Form own{samples.array.dtype, shape, samples.array.storage, samples.array.levels};
    if (own.storage == TN_CSR) own.shape = {samples.array.shape[1]};
    place.refuse(TN_INVALID, "has " + text_of(own) + "; expected " + expected);
  }
  if (form.storage != TN_CSR && samples.count() == 0) {
    samples.array.shape.resize(1);
    samples.array.shape.insert(samples.array.shape.end(), form.shape.begin(), form.shape.end());
  }
  return converted(std::move(samples), form.dtype, place);
}

std::optional<Form> own_form(const ArrowSchema& type) {
  if (type.dictionary != nullptr) return Form{TN_I64};
  const std::string_view format = type.format;
  if (const tn_dtype dtype = dtype_of(format); dtype != 0) {
    const bool wide = dtype == TN_F64 || dtype == TN_F16;
    if (wide) return Form{TN_F32};
    return Form{dtype == TN_DTYPE(1, 64) ? TN_I64 : dtype};
  }
  if ((!is_list(format) && !is_fixed(format)) || format == "+m" || type.children[0]->dictionary != nullptr) return {};
  std::optional<Form> form = own_form(*type.children[0]);
  if (!form) return {};
  if (is_fixed(format)) {
    if (form->storage != TN_DENSE) return {};
    form->shape.insert(form->shape.begin(), fixed_size(format));
    return form;
  }
  if (form->storage == TN_RAGGED && form->levels == 2) return {};
  form->levels = form->storage == TN_RAGGED ? 2 : 1;
  form->storage = TN_RAGGED;
  return form;
}

}  // namespace tenon_arrow
