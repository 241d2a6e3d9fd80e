// A reader of lines of numbers: the features of a sample, then its class, from 0, with spaces between them. Empty lines
// and those that begin with # are left out. The SDK and the host derive positions, exact resuming, shuffling and
// shards. SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(4096);  // room for the manifest, if the plugin is built without CMake

namespace {

class Reader {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("example.my_plugin", "lines of numbers with spaces between them: features, then a class from 0");
    d.attribute(tn::string_attribute("file").required().doc("the file to read"));
  }

  explicit Reader(const tn::ReaderOpen& open) : with_label_(open.needed("label")) {
    // Data of a model has the width and the classes of its training; to be predicted it may lack the classes.
    if (const std::vector<int64_t> shape = open.shape("feature"); !shape.empty()) width_ = shape[0];
    classes_ = std::max<int64_t>(open.index_limit("label"), 0);
    const std::string path = open.path(open.attributes().text("file"));  // relative to the folder of the job
    std::ifstream file(path);
    if (!file) throw tn::Failure(TN_NOT_FOUND, path, "cannot be opened");
    int64_t sample = 0, number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (line.empty() || line[0] == '#') continue;
      parse(line, path + ", line " + std::to_string(number));
      if (open.shard().has(sample++)) keep();
    }
    if (file.bad()) throw tn::Failure(TN_IO, path, "cannot be read");
    if (sample == 0) throw tn::Failure(TN_BAD_DATA, path, "has no samples");
    slots_ = {{"feature", TN_F32, {width_}}};
    if (with_label_) slots_.push_back({"label", TN_I64, {}, classes_});
  }

  const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  int64_t samples() const { return static_cast<int64_t>(features_.size()) / width_; }
  void read(int64_t index, tn::Samples& to) const {
    std::copy_n(features_.data() + index * width_, width_, to.dense<float>(0));
    if (with_label_) *to.dense<int64_t>(1) = labels_[static_cast<size_t>(index)];
  }

 private:
  static constexpr double kMostClasses = 1 << 20;

  // Reads the numbers of a line into `line_`.
  void parse(const std::string& line, const std::string& place) {
    line_.clear();
    const char *at = line.data(), *const end = at + line.size();
    while (true) {
      while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) ++at;
      if (at == end) break;
      double value = 0;
      const auto [next, error] = std::from_chars(at, end, value);  // unlike strtod in every locale the same
      if (error != std::errc()) throw tn::Failure(TN_BAD_DATA, place, "expected numbers, got \"" + line + "\"");
      line_.push_back(value);
      at = next;
    }
    const auto count = static_cast<int64_t>(line_.size());
    if (width_ == 0) width_ = count - 1;
    if (!with_label_ && count == width_) return;
    if (count < 2 || count != width_ + 1)
      throw tn::Failure(TN_BAD_DATA, place,
                        "expected " + (width_ > 0 ? std::to_string(width_ + 1) : "at least 2") + " numbers, got " +
                            std::to_string(count));
    if (!with_label_) return;
    const double label = line_.back();
    if (!(label >= 0 && label < kMostClasses) || label != std::floor(label))
      throw tn::Failure(TN_BAD_DATA, place, "expected a class, a whole number from 0, at the end");
    classes_ = std::max(classes_, static_cast<int64_t>(label) + 1);
  }

  void keep() {
    for (int64_t i = 0; i < width_; ++i) features_.push_back(static_cast<float>(line_[static_cast<size_t>(i)]));
    if (with_label_) labels_.push_back(static_cast<int64_t>(line_.back()));
  }

  const bool with_label_;
  std::vector<double> line_;
  std::vector<float> features_;  // [samples, width]
  std::vector<int64_t> labels_;  // [samples]
  int64_t width_ = 0, classes_ = 0;
  std::vector<tn::ReaderSlot> slots_;
};

void describe(tn::Plugin& plugin) {
  plugin.about("example.my_plugin", "0.1.0", "Reads lines of numbers", "MIT");
  plugin.reader<Reader>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
