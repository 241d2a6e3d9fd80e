// SPDX-License-Identifier: Apache-2.0
#include "core/files/model_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text.h"
#include "core/checked.h"

namespace tenon::core {

namespace {

using Json = nlohmann::json;

// Element types of safetensors 0.8.
struct ElementType {
  const char* name;
  uint32_t bits;
  tn_dtype dtype;  // TN_COMPUTE if Tenon lacks the type: the tensor can be listed, not loaded
};
constexpr ElementType kTypes[] = {{"F32", 32, TN_F32},
                                  {"F64", 64, TN_F64},
                                  {"F16", 16, TN_F16},
                                  {"BF16", 16, TN_BF16},
                                  {"I8", 8, TN_I8},
                                  {"I16", 16, TN_I16},
                                  {"I32", 32, TN_I32},
                                  {"I64", 64, TN_I64},
                                  {"U8", 8, TN_U8},
                                  {"U16", 16, TN_U16},
                                  {"U32", 32, TN_U32},
                                  {"U64", 64, TN_COMPUTE},
                                  {"BOOL", 8, TN_BOOL},
                                  {"C64", 64, TN_COMPUTE},
                                  {"F8_E4M3", 8, TN_COMPUTE},
                                  {"F8_E5M2", 8, TN_COMPUTE},
                                  {"F8_E4M3FNUZ", 8, TN_COMPUTE},
                                  {"F8_E5M2FNUZ", 8, TN_COMPUTE},
                                  {"F8_E8M0", 8, TN_COMPUTE},
                                  {"F6_E2M3", 6, TN_COMPUTE},
                                  {"F6_E3M2", 6, TN_COMPUTE},
                                  {"F4", 4, TN_COMPUTE}};

// Receives the parser's events. The grammar is flat, so the handler itself bounds the depth: anything that the
// grammar does not expect, nesting included, throws at once.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(ModelHeader& header, const std::string& file) : header_(header), file_(file) {}

  bool start_object(std::size_t) override {
    if (state_ == State::kStart) return enter(State::kTop);
    if (state_ != State::kTop) unexpected("an object");
    if (name_ == kMetadata) {
      if (metadata_seen_) bad("\"__metadata__\" is given twice");
      metadata_seen_ = true;
      return enter(State::kMetadata);
    }
    if (header_.tensors.size() == kMaxModelTensors) bad("more than ", kMaxModelTensors, " tensors");
    tensor_ = ModelTensor{};
    tensor_.name = name_;
    shape_seen_ = offsets_seen_ = false;
    offsets_.clear();
    return enter(State::kTensor);
  }

  bool key(std::string& key) override {
    switch (state_) {
      case State::kTop:
        name_ = std::move(key);
        break;
      case State::kMetadata:
        key_ = std::move(key);
        break;
      default:
        key_ = std::move(key);
        if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
          bad(tensor(), " has an unknown key ", quoted(key_), "; expected dtype, shape and data_offsets");
        if ((key_ == "dtype" && !tensor_.type.empty()) || (key_ == "shape" && shape_seen_) ||
            (key_ == "data_offsets" && offsets_seen_))
          bad(tensor(), " has ", key_, " twice");
    }
    return true;
  }

  bool string(std::string& value) override {
    if (state_ == State::kMetadata) {
      if (header_.metadata.size() >= kMaxModelMetadata) bad("more than ", kMaxModelMetadata, " metadata entries");
      if (!header_.metadata.emplace(key_, std::move(value)).second)
        bad("metadata key ", quoted(key_), " is given twice");
      return true;
    }
    if (state_ != State::kTensor || key_ != "dtype") unexpected("a string");
    const auto* found =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const ElementType& type) { return value == type.name; });
    if (found == std::end(kTypes)) bad(tensor(), " has unknown dtype ", quoted(value));
    tensor_.type = found->name;
    tensor_.dtype = found->dtype;
    bits_ = found->bits;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::kTensor || key_ == "dtype") unexpected("a list");
    if (key_ == "shape") {
      shape_seen_ = true;
      return enter(State::kShape);
    }
    offsets_seen_ = true;
    return enter(State::kOffsets);
  }

  bool number_unsigned(uint64_t value) override {
    constexpr auto kLargest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if ((state_ != State::kShape && state_ != State::kOffsets) || value > kLargest) unexpected("a number");
    if (state_ == State::kOffsets) {
      if (offsets_.size() == 2) bad(tensor(), " has more than two data_offsets");
      offsets_.push_back(value);
    } else {
      if (tensor_.shape.size() == kMaxModelRank) bad(tensor(), " has more than ", kMaxModelRank, " dimensions");
      tensor_.shape.push_back(static_cast<int64_t>(value));
    }
    return true;
  }

  bool end_array() override { return enter(State::kTensor); }

  bool end_object() override {
    if (state_ == State::kTensor) finish_tensor();
    return enter(state_ == State::kTop ? State::kEnd : State::kTop);
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { unexpected("a number"); }
  bool binary(Json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    bad("the header is not valid JSON at its byte ", position);
  }

 private:
  enum class State { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };
  static constexpr const char* kMetadata = "__metadata__";

  template <typename... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail(TN_BAD_DATA, file_, ": ", parts...);
  }
  [[nodiscard]] std::string tensor() const { return "tensor " + quoted(tensor_.name); }

  [[noreturn]] void unexpected(const char* found) const {
    switch (state_) {
      case State::kTop:
        bad(quoted(name_), " is ", found, "; expected an object");
      case State::kMetadata:
        bad("metadata entry ", quoted(key_), " is ", found, "; expected a string");
      case State::kTensor:
        bad(tensor(), ": ", key_, " is ", found, "; expected ", key_ == "dtype" ? "a string" : "a list");
      case State::kShape:
      case State::kOffsets:
        bad(tensor(), ": ", key_, " holds ", found, "; expected whole numbers from 0 to ",
            std::numeric_limits<int64_t>::max());
      default:
        bad("the header is ", found, "; expected an object");
    }
  }

  bool enter(State state) {
    state_ = state;
    return true;
  }

  void finish_tensor() {
    for (const auto& [seen, field] : {std::pair{!tensor_.type.empty(), "dtype"}, std::pair{shape_seen_, "shape"},
                                      std::pair{offsets_seen_, "data_offsets"}})
      if (!seen) bad(tensor(), " has no ", field);
    if (offsets_.size() != 2) bad(tensor(), " has ", offsets_.size(), " data_offsets; expected 2");
    if (offsets_[0] > offsets_[1])
      bad(tensor(), " ends before it begins: data_offsets [", offsets_[0], ", ", offsets_[1], "]");
    uint64_t bits = bits_;
    try {
      for (const int64_t dimension : tensor_.shape)
        bits = checked_multiply(bits, static_cast<uint64_t>(dimension), "size in bits");
    } catch (const Error& error) {
      bad(tensor(), " ", tensor_.type, " ", to_string(tensor_.shape), ": ", error.what());
    }
    if (bits % 8 != 0)
      bad(tensor(), " ", tensor_.type, " ", to_string(tensor_.shape), " is not a whole number of bytes");
    tensor_.offset = offsets_[0];
    tensor_.bytes = offsets_[1] - offsets_[0];
    if (tensor_.bytes != bits / 8)
      bad(tensor(), " ", tensor_.type, " ", to_string(tensor_.shape), " needs ", bits / 8,
          " bytes; its data_offsets give ", tensor_.bytes);
    tensor_.shape.shrink_to_fit();
    header_.tensors.push_back(std::move(tensor_));
  }

  ModelHeader& header_;
  const std::string& file_;
  State state_ = State::kStart;
  bool metadata_seen_ = false;
  std::string name_;    // the last key of the outer object
  std::string key_;     // the last key of an inner object
  ModelTensor tensor_;  // the tensor being parsed
  uint32_t bits_ = 0;   // of one element of tensor_
  bool shape_seen_ = false;
  bool offsets_seen_ = false;
  std::vector<uint64_t> offsets_;
};

void check_names(const std::vector<ModelTensor>& tensors, const std::string& file) {
  std::vector<const std::string*> names;
  names.reserve(tensors.size());
  for (const ModelTensor& tensor : tensors) names.push_back(&tensor.name);
  std::sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto twice =
      std::adjacent_find(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a == *b; });
  if (twice != names.end()) fail(TN_BAD_DATA, file, ": tensor ", quoted(**twice), " is given twice");
}

// Throws unless every byte of the data belongs to exactly one tensor. `tensors` are sorted by offset.
void check_cover(const std::vector<ModelTensor>& tensors, uint64_t data_bytes, const std::string& file) {
  uint64_t end = 0;
  for (const ModelTensor& tensor : tensors) {
    if (tensor.offset > end)
      fail(TN_BAD_DATA, file, ": bytes ", end, " to ", tensor.offset, " of the data, before tensor ",
           quoted(tensor.name), ", belong to no tensor");
    if (tensor.offset < end)
      fail(TN_BAD_DATA, file, ": tensor ", quoted(tensor.name), " begins at byte ", tensor.offset,
           " of the data, inside the one before it, which ends at ", end);
    end = tensor.offset + tensor.bytes;  // both below 2^63
    if (end > data_bytes)
      fail(TN_BAD_DATA, file, ": tensor ", quoted(tensor.name), " ends at byte ", end, " of the data; the file holds ",
           data_bytes, " bytes of data");
  }
  if (end != data_bytes)
    fail(TN_BAD_DATA, file, ": the file holds ", data_bytes, " bytes of data; its tensors take ", end);
}

std::string json_string(const std::string& value) {
  try {
    return Json(value).dump();
  } catch (const Json::exception&) {
    fail(TN_INVALID, "not valid UTF-8: ", quoted(value));
  }
}

}  // namespace

std::string element_type_name(tn_dtype dtype) {
  for (const ElementType& type : kTypes)
    if (type.dtype == dtype && dtype != TN_COMPUTE) return type.name;
  return "";
}

ModelHeader parse_model_header(const std::string& json, uint64_t data_bytes, const std::string& file) {
  // The parser stops at a NUL and accepts any white space around the object; the format allows spaces at the end only.
  if (json.empty() || json.front() != '{') fail(TN_BAD_DATA, file, ": the header does not begin with {");
  if (json[json.find_last_not_of(' ')] != '}') fail(TN_BAD_DATA, file, ": the header does not end with }");
  if (json.find('\0') != std::string::npos) fail(TN_BAD_DATA, file, ": the header holds a NUL byte");
  ModelHeader header;
  HeaderHandler handler(header, file);
  Json::sax_parse(json, &handler);
  check_names(header.tensors, file);
  std::sort(header.tensors.begin(), header.tensors.end(), [](const ModelTensor& a, const ModelTensor& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  check_cover(header.tensors, data_bytes, file);
  return header;
}

std::string canonical_json(const ModelHeader& header) {
  std::map<std::string, std::string> members;  // sorted by bytes, as std::string compares
  std::string metadata = "{";
  for (const auto& [key, value] : header.metadata)
    metadata += (metadata.size() > 1 ? "," : "") + json_string(key) + ":" + json_string(value);
  members["__metadata__"] = metadata + "}";
  for (const ModelTensor& tensor : header.tensors) {
    const std::string shape = base::joined(
        tensor.shape, [](int64_t n) { return std::to_string(n); }, ",");
    members[tensor.name] = text("{\"data_offsets\":[", tensor.offset, ",", tensor.offset + tensor.bytes,
                                "],\"dtype\":\"", tensor.type, "\",\"shape\":[", shape, "]}");
  }
  std::string json = "{";
  for (const auto& [key, value] : members) json += (json.size() > 1 ? "," : "") + json_string(key) + ":" + value;
  return json + "}";
}

std::string quoted(const std::string& name) {
  constexpr size_t kLongest = 200;
  return Json(base::beginning(name, kLongest)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tenon::core
