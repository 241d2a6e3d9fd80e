// A reader of TFRecord files of tf.train.Example. SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "crc32c.h"
#include "example.h"
#include "slots.h"

namespace {

using extras::FeatureKind;
using extras::SlotText;
using extras::Unfit;

// A file that is open for reading.
class File {
 public:
  explicit File(std::string path) : path_(std::move(path)), number_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status = {};
    if (number_ < 0) throw tn::Failure(errno == ENOENT ? TN_NOT_FOUND : TN_IO, path_, std::strerror(errno));
    if (::fstat(number_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(number_);
      throw tn::Failure(TN_IO, path_, "is not a file");
    }
    size_ = status.st_size;
  }
  File(File&& other) noexcept
      : path_(std::move(other.path_)), number_(std::exchange(other.number_, -1)), size_(other.size_) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int64_t size() const { return size_; }
  void read(int64_t at, char* to, int64_t count) const {
    for (int64_t done = 0; done < count;) {
      const ssize_t got = ::pread(number_, to + done, static_cast<size_t>(count - done), at + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw tn::Failure(TN_IO, path_, std::strerror(errno));
      if (got == 0) throw tn::Failure(TN_BAD_DATA, path_, "became shorter while it was read");
      done += got;
    }
  }

 private:
  std::string path_;
  int number_;
  int64_t size_ = 0;
};

class TfRecord {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("extras.tfrecord", "TFRecord files whose records are tf.train.Example");
    d.attribute(tn::strings_attribute("files").required().doc(
        "the files, one after the other; patterns such as data/*.tfrecord"));
    d.attribute(tn::strings_attribute("features")
                    .doc("slots, such as \"x: f32[28,28]\", \"words = tokens: i64 sequence\", \"image = raw: "
                         "u8[28,28]\" of bytes, "
                         "\"label: category\" of texts; default: the features of the first record, of as many numbers "
                         "as it has"));
  }

  explicit TfRecord(const tn::ReaderOpen& open) : cancel_(open.cancel()), shard_(open.shard()) {
    for (std::string& path : extras::files_of(open, "files")) files_.emplace_back(std::move(path));
    for (size_t file = 0; file < files_.size(); ++file) list_records(file);
    if (count_ == 0) throw tn::Failure(TN_BAD_DATA, files_[0].path(), "has no records");
    choose_features(open);
  }

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return static_cast<int64_t>(places_.size()); }

  void read(int64_t index, tn::Samples& to) {
    const Place& place = places_[static_cast<size_t>(index)];
    const std::string_view example = load(place);
    size_t slot = 0;
    try {
      find_features(example);
      for (; slot < features_.size(); ++slot) write(slot, to);
    } catch (const Unfit& unfit) {
      const std::string feature =
          slot < features_.size() && found_ ? ", feature \"" + features_[slot].text.sources[0] + "\"" : "";
      throw tn::Failure(TN_BAD_DATA, where(place) + feature, unfit.why);
    }
  }

 private:
  // Where the bytes of a record are.
  struct Place {
    size_t file;
    int64_t record, at, size;  // its number in the file, from 0
  };
  struct Feature {
    SlotText text;
    int64_t elements = 1;  // of a sample, or of a row of sequences
    extras::Categories categories;
    std::pair<FeatureKind, std::string_view> list;  // of the present record
  };
  static constexpr int64_t kHead = 12, kFoot = 4;  // bytes: the length and its checksum; that of the record

  [[nodiscard]] std::string where(const Place& place) const {
    return files_[place.file].path() + ", record " + std::to_string(place.record);
  }

  // Reads the lengths of all records of a file.
  void list_records(size_t number) {
    const File& file = files_[number];
    std::array<char, kHead> head = {};
    int64_t at = 0;
    for (int64_t record = 0; at < file.size(); ++record) {
      if (record % 4096 == 0) extras::check_cancelled(cancel_);
      Place place{number, record, at + kHead, 0};
      const int64_t rest = file.size() - at;
      if (rest >= kHead) file.read(at, head.data(), kHead);
      if (record == 0 && rest >= 2 && std::memcmp(head.data(), "\x1f\x8b", 2) == 0)
        throw tn::Failure(TN_UNSUPPORTED, file.path(), "is compressed with gzip; gunzip it");
      uint64_t size = 0;
      uint32_t crc = 0;
      std::memcpy(&size, head.data(), sizeof size);
      std::memcpy(&crc, head.data() + sizeof size, sizeof crc);
      if (rest >= kHead && extras::masked_crc32c(head.data(), sizeof size) != crc)
        throw tn::Failure(TN_BAD_DATA, where(place),
                          "the checksum of its length is wrong; it is not a TFRecord file, or damaged");
      if (rest < kHead + kFoot || size > static_cast<uint64_t>(rest - kHead - kFoot))
        throw tn::Failure(TN_BAD_DATA, where(place), "the file ends within it");
      place.size = static_cast<int64_t>(size);
      if (count_ == 0) first_ = place;
      if (shard_.has(count_++)) places_.push_back(place);
      at = place.at + place.size + kFoot;
    }
  }

  // Reads a record; borrowed until the next one.
  std::string_view load(const Place& place) {
    const auto size = static_cast<size_t>(place.size);
    bytes_.resize(size + kFoot);
    files_[place.file].read(place.at, bytes_.data(), place.size + kFoot);
    uint32_t crc = 0;
    std::memcpy(&crc, bytes_.data() + size, sizeof crc);
    if (extras::masked_crc32c(bytes_.data(), size) != crc)
      throw tn::Failure(TN_BAD_DATA, where(place), "its checksum is wrong: the record is damaged");
    return {bytes_.data(), size};
  }

  void choose_features(const tn::ReaderOpen& open) {
    std::vector<SlotText> texts;
    const bool declared = open.attributes().has("features");
    if (declared) texts = extras::parse_slots(open.attributes().texts("features"), "features");
    try {
      extras::each_feature(load(first_), [&](std::string_view name, std::string_view) {
        const auto same = [&](const SlotText& text) { return text.slot == name; };
        if (declared || std::any_of(texts.begin(), texts.end(), same)) return;
        SlotText& text = texts.emplace_back();
        text.slot = name;
        text.sources = {std::string(name)};
      });
    } catch (const Unfit& unfit) {
      throw tn::Failure(TN_BAD_DATA, where(first_), unfit.why);
    }
    // The order of a map is that of its writer.
    if (!declared) std::sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) { return a.slot < b.slot; });
    extras::keep_needed(texts, open);
    if (texts.empty()) throw tn::Failure(TN_BAD_DATA, where(first_), "has no features");
    for (SlotText& text : texts) {
      if (text.sources.size() > 1)
        throw tn::Failure(TN_INVALID, "features", "slot \"" + text.slot + "\" has several features; expected one");
      features_.emplace_back().text = std::move(text);
    }
    const std::string_view example = load(first_);
    for (Feature& feature : features_) find_type(open, feature, example);
    find_categories(open);
    for (const Feature& feature : features_) {
      const SlotText& text = feature.text;
      tn::ReaderSlot slot{text.slot, text.dtype, text.shape, text.limit};
      if (text.sequence) slot.storage = TN_RAGGED;
      if (text.category) slot.index_limit = static_cast<int64_t>(feature.categories.names().size());
      if (text.category) slot.names = std::make_shared<const tn::Names>(feature.categories.names());
      slots_.push_back(std::move(slot));
    }
  }

  // Finds the type of a feature that states none, from the model or the first record.
  void find_type(const tn::ReaderOpen& open, Feature& feature, std::string_view example) const {
    SlotText& text = feature.text;
    if (text.category) text.dtype = TN_I64;
    if (text.dtype == 0) {
      FeatureKind kind = FeatureKind::kNone;
      int64_t count = 0;
      try {
        extras::each_feature(example, [&](std::string_view name, std::string_view value) {
          if (name != text.sources[0]) return;
          const auto [list_kind, list] = extras::list_of(value);
          kind = list_kind;
          count = 0;
          const auto counted = [&](auto) { ++count; };
          if (kind == FeatureKind::kIntegers) extras::each_integer(list, counted);
          if (kind == FeatureKind::kFloats) extras::each_float(list, counted);
        });
      } catch (const Unfit& unfit) {
        throw tn::Failure(TN_BAD_DATA, where(first_), unfit.why);
      }
      const std::string& source = text.sources[0];
      if (kind == FeatureKind::kBytes)
        throw tn::Failure(TN_INVALID, "features",
                          "feature \"" + source + "\" has bytes; \"" + source + ": category\" or \"" + source +
                              ": u8[SIZE]\" states what they hold");
      if (kind == FeatureKind::kNone)
        throw tn::Failure(TN_BAD_DATA, where(first_),
                          "has no feature \"" + source + "\", whose type is stated nowhere");
      if (count == 0)
        throw tn::Failure(TN_INVALID, "features",
                          "feature \"" + source + "\" has no numbers in the first record; \"" + source +
                              ": f32 sequence\" states what it holds");
      text.dtype = kind == FeatureKind::kIntegers ? TN_I64 : TN_F32;
      if (count != 1) text.shape = {count};
      if (open.dtype(text.slot) != 0) {
        text.dtype = open.dtype(text.slot);
        text.shape = open.shape(text.slot);
        text.limit = open.index_limit(text.slot);
      }
    }
    feature.elements = extras::elements_of(text.slot, text.shape);
  }

  // Takes the names of the model, or those of all records.
  void find_categories(const tn::ReaderOpen& open) {
    std::vector<std::vector<std::string>> names(features_.size());
    bool searched = false;
    for (Feature& feature : features_) {
      if (!feature.text.category) continue;
      const auto names_of_model = open.names(feature.text.slot);
      feature.categories.use(names_of_model);
      searched = searched || names_of_model.empty();
    }
    if (!searched) return;
    for (size_t file = 0; file < files_.size(); ++file) {
      for (Place place{file, 0, kHead, 0}; place.at < files_[file].size(); ++place.record) {
        if (place.record % 4096 == 0) extras::check_cancelled(cancel_);
        files_[file].read(place.at - kHead, reinterpret_cast<char*>(&place.size), sizeof place.size);
        try {
          find_features(load(place));
          for (size_t i = 0; i < features_.size(); ++i)
            if (features_[i].text.category && features_[i].categories.names().empty() &&
                features_[i].list.first == FeatureKind::kBytes)
              extras::each_text(features_[i].list.second, [&](std::string_view text) { names[i].emplace_back(text); });
        } catch (const Unfit& unfit) {
          throw tn::Failure(TN_BAD_DATA, where(place), unfit.why);
        }
        for (std::vector<std::string>& list : names) make_unique(list);
        place.at += place.size + kFoot + kHead;
      }
    }
    for (size_t i = 0; i < features_.size(); ++i)
      if (features_[i].text.category && features_[i].categories.names().empty())
        features_[i].categories.find(std::move(names[i]));
  }
  // Keeps a list short while it grows.
  static void make_unique(std::vector<std::string>& list) {
    if (list.size() < 4096 || (list.size() & (list.size() - 1)) != 0) return;
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  // Finds the lists of the features of a record.
  void find_features(std::string_view example) {
    found_ = false;
    for (Feature& feature : features_) feature.list = {FeatureKind::kNone, {}};
    extras::each_feature(example, [&](std::string_view name, std::string_view value) {
      for (Feature& feature : features_)
        if (feature.text.sources[0] == name) feature.list = extras::list_of(value);
    });
    found_ = true;
  }

  void write(size_t slot, tn::Samples& to) {
    const Feature& feature = features_[slot];
    const SlotText& text = feature.text;
    const auto [kind, list] = feature.list;
    if (kind == FeatureKind::kNone && !text.sequence) throw Unfit{"is absent"};  // an empty list may be left out
    const size_t width = tn_dtype_bytes(text.dtype);
    numbers_.clear();
    int64_t count = 0;
    const auto add = [&](auto put_at) {
      numbers_.resize(numbers_.size() + width);
      put_at(numbers_.data(), count++);
    };
    if (text.category) {
      const auto refuse = [](auto) { throw Unfit{"has numbers; expected texts"}; };  // an empty list is of any kind
      if (kind == FeatureKind::kIntegers) extras::each_integer(list, refuse);
      if (kind == FeatureKind::kFloats) extras::each_float(list, refuse);
      if (kind == FeatureKind::kBytes)
        extras::each_text(list, [&](std::string_view each) {
          add([&](void* at, int64_t i) { extras::put(text.dtype, at, i, feature.categories.number(each), -1); });
        });
    } else if (kind == FeatureKind::kIntegers) {
      extras::each_integer(list, [&](int64_t each) {
        add([&](void* at, int64_t i) { extras::put(text.dtype, at, i, each, text.limit); });
      });
    } else if (kind == FeatureKind::kFloats) {
      extras::each_float(list, [&](float each) {
        add([&](void* at, int64_t i) { extras::put(text.dtype, at, i, static_cast<double>(each)); });
      });
    } else {  // numbers as they are in memory
      extras::each_text(list,
                        [&](std::string_view each) { numbers_.insert(numbers_.end(), each.begin(), each.end()); });
      if (numbers_.size() % width != 0)
        throw Unfit{"has " + std::to_string(numbers_.size()) + " bytes, which are not whole numbers"};
      count = static_cast<int64_t>(numbers_.size() / width);
      extras::check_below(text.dtype, numbers_.data(), count, text.limit);
    }
    if (text.sequence ? count % feature.elements != 0 : count != feature.elements)
      throw Unfit{"has " + std::to_string(count) + " numbers; expected " + (text.sequence ? "rows of " : "") +
                  std::to_string(feature.elements) + "; sequences are declared as \"" + text.sources[0] + ": " +
                  extras::name_of(text.dtype) + " sequence\""};
    if (text.sequence) return to.rows(slot, numbers_.data(), count / feature.elements);
    if (count > 0) std::memcpy(to.dense(slot), numbers_.data(), numbers_.size());
  }

  const volatile int32_t* cancel_;
  tn::Shard shard_;
  std::vector<File> files_;
  std::vector<Place> places_;  // of the records of the shard
  Place first_ = {};
  int64_t count_ = 0;  // of all records
  std::vector<Feature> features_;
  std::vector<tn::ReaderSlot> slots_;
  std::vector<char> bytes_;    // of the present record
  std::vector<char> numbers_;  // of the present slot
  bool found_ = false;         // the lists are those of the present record
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.tenon.extras.tfrecord", EXTRAS_VERSION, "Reads TFRecord files", "Apache-2.0");
  plugin.reader<TfRecord>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
