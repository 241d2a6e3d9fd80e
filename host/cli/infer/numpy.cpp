// Predictions as files of NumPy, version 1 of the format. SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "base/text.h"
#include "host/cli/cli.h"
#include "host/cli/infer/output_file.h"
#include "host/cli/infer/predictions.h"
#include "host/cli/numbers.h"

namespace tenon::cli {

namespace {

// The element types that NumPy has, with the bytes of an element.
struct ElementType {
  const char* name;
  int64_t bytes;
};

ElementType type_of(tn_dtype dtype, const std::string& layer) {
  static const std::map<tn_dtype, ElementType> types = {
      {TN_F32, {"<f4", 4}}, {TN_F64, {"<f8", 8}}, {TN_F16, {"<f2", 2}}, {TN_I8, {"|i1", 1}},
      {TN_I16, {"<i2", 2}}, {TN_I32, {"<i4", 4}}, {TN_I64, {"<i8", 8}}, {TN_U8, {"|u1", 1}},
      {TN_U16, {"<u2", 2}}, {TN_U32, {"<u4", 4}}, {TN_BOOL, {"|b1", 1}}};
  const auto type = types.find(dtype);
  if (type == types.end())
    throw Failure(kUsage, "--format npy: layer \"" + layer + "\" has elements of a type that NumPy lacks");
  return type->second;
}

// An array that grows by samples. Its header is written anew when their number is known.
class ArrayFile {
 public:
  explicit ArrayFile(const std::string& path) : file_(path) {}

  void append(const Array& array, const std::string& layer) {
    const ElementType type = type_of(array.dtype, layer);
    if (samples_ == 0) {
      type_ = type.name;
      shape_ = array.shape;
      write_header(INT64_MAX);
    }
    file_.stream().write(static_cast<const char*>(array.data), array.count() * type.bytes);
    samples_ += array.shape.at(0);
  }
  void finish() {
    file_.stream().seekp(0);
    write_header(samples_);
    file_.finish();
  }

 private:
  // The header has room for any number of samples, so that its length does not change.
  void write_header(int64_t samples) {
    constexpr size_t kPrefix = 10, kAligned = 64;
    const auto text = [&](int64_t count) {
      std::string sizes = std::to_string(count) + ",";
      for (size_t i = 1; i < shape_.size(); ++i) sizes += (i == 1 ? " " : ", ") + std::to_string(shape_[i]);
      return "{'descr': '" + type_ + "', 'fortran_order': False, 'shape': (" + sizes + "), }";
    };
    const size_t length = (kPrefix + text(INT64_MAX).size() + kAligned) / kAligned * kAligned - kPrefix;
    std::string header = text(samples);
    header.resize(length - 1, ' ');
    file_.stream() << std::string("\x93NUMPY\x01\0", 8) << static_cast<char>(length & 0xff)
                   << static_cast<char>(length >> 8) << header << "\n";
  }

  OutputFile file_;
  std::string type_ = "<f4";
  std::vector<int64_t> shape_ = {0};
  int64_t samples_ = 0;
};

class NumpyWriter : public PredictionWriter {
 public:
  NumpyWriter(PredictionForm predictions, const std::string& path)
      : PredictionWriter(std::move(predictions)), stem_(path.substr(0, path.size() - kEnding.size())) {
    const bool alone = form().names.size() == 1;
    for (const std::string& name : form().names) {
      if (name.find('/') != std::string::npos && !alone)
        throw Failure(kUsage, "--format npy: a file cannot have the name of layer \"" + name + "\"");
      files_.push_back(std::make_unique<ArrayFile>(alone ? path : stem_ + "." + name + std::string(kEnding)));
    }
  }
  void finish() override {
    for (const auto& file : files_) file->finish();
    if (next_record() == samples()) return;
    ArrayFile numbers(stem_ + ".sample" + std::string(kEnding));
    numbers.append({TN_I64, {samples()}, records_.data()}, "sample");
    numbers.finish();
  }
  static constexpr std::string_view kEnding = ".npy";

 private:
  void write_samples(const std::vector<Array>& outputs, const std::vector<int64_t>& records) override {
    for (size_t i = 0; i < files_.size(); ++i) {
      if (outputs.at(i).storage != TN_DENSE)
        throw Failure(
            kUsage, "--format npy: layer \"" + form().names[i] + "\" has sequences, which are not an array; use json");
      files_[i]->append(outputs[i], form().names[i]);
    }
    records_.insert(records_.end(), records.begin(), records.end());
  }

  const std::string stem_;
  std::vector<std::unique_ptr<ArrayFile>> files_;
  std::vector<int64_t> records_;
};

}  // namespace

std::unique_ptr<PredictionWriter> numpy_writer(PredictionForm form, const std::string& path) {
  if (path.size() <= NumpyWriter::kEnding.size() ||
      path.substr(path.size() - NumpyWriter::kEnding.size()) != NumpyWriter::kEnding)
    throw Failure(kUsage, "--format npy: expected --output-file NAME.npy, got \"" + path + "\"");
  return std::make_unique<NumpyWriter>(std::move(form), path);
}

}  // namespace tenon::cli
