// The reader "images": a folder with one folder of image files for each class.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/philox.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <tenon/draft/records.hpp>
#include <tenon/plugin.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "decode.h"
#include "file.h"
#include "fit.h"
#include "folders.h"
#include "vocabulary.h"

namespace tenon::images {

namespace {

enum class Crop { kNone, kCentre, kRandom };

std::string without_slash(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

// The names of the channels of a sample, which a model keeps if it was trained with upright images. The versions that
// did not turn images gave no names.
std::vector<std::string_view> channel_names(int64_t channels) {
  if (channels == 1) return {"grey"};
  return {"red", "green", "blue"};
}

// Whether images are turned by their orientation: as the attribute says, else as the model was trained.
bool is_upright(const tn::ReaderOpen& open) {
  if (open.attributes().has("orientation")) return std::string(open.attributes().text("orientation")) == "upright";
  const bool trained = open.dtype("image") != 0;
  return !trained || !open.columns("image").empty();
}

// The memory of one thread that reads an image.
struct Tools {
  Fitter fitter;
  std::vector<uint8_t> bytes;  // of the file
  Image image;
};

// Tools for any number of threads, made when they are needed and kept.
class ToolBox {
 public:
  // Tools of the box, which get back into it at the end.
  class Borrowed {
   public:
    explicit Borrowed(ToolBox& box) : box_(box), tools_(box.take()) {}
    ~Borrowed() { box_.give_back(std::move(tools_)); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Tools& operator*() const { return *tools_; }

   private:
    ToolBox& box_;
    std::unique_ptr<Tools> tools_;
  };

 private:
  std::unique_ptr<Tools> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!kept_.empty()) {
        std::unique_ptr<Tools> tools = std::move(kept_.back());
        kept_.pop_back();
        return tools;
      }
    }
    return std::make_unique<Tools>();
  }
  // Frees the tools if memory has run out.
  void give_back(std::unique_ptr<Tools> tools) noexcept try {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(tools));
  } catch (const std::bad_alloc&) {
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Tools>> kept_;
};

class Images : public tn::Records<Images> {
 public:
  static void describe(tn::ReaderDescription& d);
  explicit Images(const tn::ReaderOpen& open);

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return static_cast<int64_t>(files_.size()); }
  void read(int64_t index, tn::Samples& to) const;
  static constexpr bool parallel_reads = true;
  [[nodiscard]] int64_t records() const { return all_; }
  [[nodiscard]] int64_t record(int64_t index) const { return shard_.sample(index); }
  // "file": the path of an image within the folder.
  [[nodiscard]] std::string_view text(int64_t index, const std::string& column) const {
    if (column != "file")
      throw tn::Failure(TN_NOT_FOUND, column, "the data has no column " + files::quoted(column) + "; known: file");
    return std::string_view(files_[static_cast<size_t>(index)].path).substr(folder_.size() + 1);
  }

 private:
  struct LabelledFile {
    std::string path;
    int32_t label;
  };

  void find_files(const tn::ReaderOpen& open, Folders& folders);
  void find_unlabelled(const tn::ReaderOpen& open, Folders& folders);
  void add_files(std::vector<std::string> paths, int32_t label);
  void load(const std::string& path, std::vector<uint8_t>& bytes) const;
  void decode(const std::string& path, Tools& tools) const;
  void warn(const std::string& message) const;
  // The size to which an image is scaled before the sample is cut out of it.
  [[nodiscard]] std::pair<double, double> scaled_size(int width, int height) const;

  tn::Shard shard_;
  std::string folder_;
  bool labelled_;    // the label is needed
  int64_t all_ = 0;  // files, of all shards
  Target target_;
  Crop crop_ = Crop::kCentre;
  double cover_;
  uint64_t seed_;
  uint64_t most_file_bytes_;
  bool upright_;
  Decoder decoder_;
  const tn_services* services_;
  mutable std::atomic<bool> told_orientation_;  // or the attribute states it
  mutable ToolBox tools_;
  files::Vocabulary classes_;
  std::vector<LabelledFile> files_;  // of this shard
  std::vector<tn::ReaderSlot> slots_;
};

void Images::describe(tn::ReaderDescription& d) {
  d.type("images", "image files, one folder for each class, as bytes of one size; slots \"image\" and \"label\"");
  d.attribute(tn::string_attribute("folder").required().doc("the folder that holds one folder for each class"));
  d.attribute(tn::strings_attribute("classes").doc(
      "the names of the class folders in the order of their numbers; without it all there are, sorted"));
  d.attribute(tn::ints_attribute("size").required().at_least(1).at_most(65535).doc("[height, width] of a sample"));
  d.attribute(tn::int_attribute("channels", 3).at_least(1).at_most(3).doc("3: red, green, blue; 1: grey"));
  d.attribute(
      tn::string_attribute("crop", "centre")
          .one_of({"none", "centre", "random"})
          .doc("which part of an image a sample is, once the image covers the size; none: all of it, stretched"));
  d.attribute(tn::float_attribute("cover", 1)
                  .at_least(1)
                  .at_most(100)
                  .doc("how much larger than the size an image becomes before it is cut: 1.15 for some room"));
  d.attribute(
      tn::string_attribute("orientation")
          .one_of({"upright", "stored"})
          .doc("upright: an image is turned as the EXIF data of its file says; stored: it is not; without it as "
               "the model was trained, else upright"));
  d.attribute(tn::int_attribute("seed").at_least(0).doc(
      "chance depends on it, on the pass and on the sample alone; default: the seed that the reader is opened with"));
  d.attribute(tn::int_attribute("most_pixels", int64_t{1} << 26)
                  .at_least(1)
                  .at_most(int64_t{1} << 30)
                  .doc("a larger image is refused"));
  d.attribute(tn::int_attribute("most_file_bytes", int64_t{1} << 28).at_least(1).doc("a larger file is refused"));
}

Images::Images(const tn::ReaderOpen& open)
    : shard_(open.shard()),
      folder_(without_slash(open.path(open.attributes().text("folder")))),
      labelled_(open.needed("label")),
      cover_(open.attributes().number("cover")),
      seed_(open.attributes().has("seed") ? static_cast<uint64_t>(open.attributes().integer("seed")) : open.seed()),
      most_file_bytes_(static_cast<uint64_t>(open.attributes().integer("most_file_bytes"))),
      upright_(is_upright(open)),
      decoder_(static_cast<int>(open.attributes().integer("channels")), open.attributes().integer("most_pixels"),
               upright_),
      services_(open.get()->services),
      told_orientation_(open.attributes().has("orientation")) {
  const tn::Attributes attributes = open.attributes();
  const std::vector<int64_t> size = attributes.integers("size");
  const int64_t channels = attributes.integer("channels");
  if (size.size() != 2)
    throw tn::Failure(TN_INVALID, "size", "expected [height, width], got " + std::to_string(size.size()) + " numbers");
  if (channels == 2) throw tn::Failure(TN_INVALID, "channels", "expected 1 or 3");
  target_ = {static_cast<int>(size[1]), static_cast<int>(size[0])};
  const std::string crop = attributes.text("crop");
  crop_ = crop == "none" ? Crop::kNone : crop == "random" ? Crop::kRandom : Crop::kCentre;
  Folders folders(folder_, open.cancel());
  labelled_ ? find_files(open, folders) : find_unlabelled(open, folders);
  slots_[0].shape = {size[0], size[1], channels};
  if (upright_)
    slots_[0].names = std::make_shared<const tn::Names>(std::vector<std::string_view>(), channel_names(channels));
  if (const std::string skipped = folders.skipped(); !skipped.empty() && !open.schema_alone() && shard_.number == 0)
    warn(skipped);
}

void Images::warn(const std::string& message) const {
  const auto* const log = static_cast<const tn_log*>(services_->extension(services_->self, TN_LOG));
  constexpr int32_t kWarning = 2;
  if (log != nullptr) log->write(log->self, kWarning, message.c_str());
}

void Images::add_files(std::vector<std::string> paths, int32_t label) {
  for (std::string& path : paths)
    if (shard_.has(all_++)) files_.push_back({std::move(path), label});
}

// Finds the images of all folders, whatever their names, and those beside the folders. Without any of the latter, the
// folders of the attribute "classes" are as in find_files if they are all there.
void Images::find_unlabelled(const tn::ReaderOpen& open, Folders& folders) {
  const std::vector<std::string> present = folders.classes();
  std::vector<std::string> names = present;
  if (open.attributes().has("classes")) names = open.attributes().texts("classes");
  const auto is_there = [&](const std::string& name) {
    return std::find(present.begin(), present.end(), name) != present.end();
  };
  if (!std::all_of(names.begin(), names.end(), is_there)) names = present;
  std::vector<std::string> beside = folders.images_beside();
  if (!beside.empty()) names = present;
  add_files(std::move(beside), -1);
  for (const std::string& name : names) add_files(folders.images_of(name), -1);
  slots_.push_back({"image", TN_U8});
}

void Images::find_files(const tn::ReaderOpen& open, Folders& folders) {
  const std::string& folder = folder_;
  const bool given = open.attributes().has("classes");
  const std::vector<std::string> names = given ? open.attributes().texts("classes") : folders.classes();
  if (names.empty()) throw tn::Failure(TN_BAD_DATA, folder, "holds no class folders");
  for (size_t i = given ? 0 : folders.images_beside().size(); i > 0; --i) folders.skip("beside the class folders");
  classes_ = files::Vocabulary(open.names("label"));
  const bool learned = classes_.size() > 0;
  if (learned && given) classes_.require_known(names, "classes");
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (name->empty() || std::find(names.begin(), name, *name) != name)
      throw tn::Failure(TN_INVALID, "classes", "empty or duplicate class \"" + *name + "\"");
    if (!files::is_utf8(*name))
      throw tn::Failure(TN_BAD_DATA, folder, "the name of the class folder " + files::quoted(*name) + " is not UTF-8");
    if (!learned) classes_.add(*name);
    std::vector<std::string> paths = folders.images_of(*name);
    const int32_t label = classes_.find(*name);
    if (label < 0 && !paths.empty())
      throw tn::Failure(TN_BAD_DATA, folder, "the class folder " + classes_.not_known(*name));
    add_files(std::move(paths), label);
  }
  slots_.push_back({"image", TN_U8});
  slots_.push_back({"label", TN_I32, {}, classes_.size()});
  slots_.back().names = classes_.names();
}

void Images::load(const std::string& path, std::vector<uint8_t>& bytes) const {
  const files::File file(path);
  if (file.bytes() > most_file_bytes_)
    throw BadImage{std::to_string(file.bytes()) + " bytes; at most " + std::to_string(most_file_bytes_) + " are read"};
  bytes.resize(static_cast<size_t>(file.bytes()));
  bytes.resize(file.read(0, bytes.data(), bytes.size()));
}

void Images::decode(const std::string& path, Tools& tools) const {
  const auto enough = [&](int width, int height) -> std::pair<int, int> { return scaled_size(width, height); };
  try {
    load(path, tools.bytes);
    decoder_.decode(tools.bytes, enough, tools.image);
  } catch (const BadImage& bad) {
    throw tn::Failure(TN_BAD_DATA, path, bad.why);
  } catch (const NoDecoder& absent) {
    throw tn::Failure(TN_UNSUPPORTED, path, absent.why);
  } catch (const tn::Failure& failure) {
    if (failure.code() != TN_NOT_FOUND && failure.code() != TN_INVALID) throw;  // TN_INVALID: not a file any more
    throw tn::Failure(TN_BAD_DATA, path, "was removed after the folder was listed");
  }
  if (tools.image.orientation == 1 || told_orientation_.exchange(true)) return;
  warn(folder_ + (upright_
                      ? ": images are turned as the EXIF orientation in their files says; orientation = \"stored\" "
                        "reads them as they are stored"
                      : ": images are read as they are stored, like those that the model was trained with, though "
                        "the EXIF orientation in their files differs; orientation = \"upright\" turns them"));
}

std::pair<double, double> Images::scaled_size(int width, int height) const {
  const double across = target_.width * cover_, down = target_.height * cover_;
  if (crop_ == Crop::kNone) return {target_.width, target_.height};
  const double scale = std::max(across / width, down / height);
  return {std::max(width * scale, across), std::max(height * scale, down)};
}

void Images::read(int64_t index, tn::Samples& to) const {
  const LabelledFile& it = files_[static_cast<size_t>(index)];
  const ToolBox::Borrowed borrowed(tools_);
  Tools& tools = *borrowed;
  decode(it.path, tools);
  Image& image = tools.image;
  Place place;
  std::tie(place.scaled_width, place.scaled_height) = scaled_size(image.full_width, image.full_height);
  const double room_across = place.scaled_width - target_.width, room_down = place.scaled_height - target_.height;
  uint32_t chance[4];
  tn_philox(seed_, static_cast<uint64_t>(to.pass()), static_cast<uint64_t>(shard_.sample(index)), chance);
  const bool random = crop_ == Crop::kRandom;
  place.left = room_across * (random ? chance[0] * 0x1p-32 : 0.5);
  place.top = room_down * (random ? chance[1] * 0x1p-32 : 0.5);
  tools.fitter.fit(image, place, target_, to.dense<uint8_t>(0));
  if (labelled_) *to.dense<int32_t>(1) = it.label;
}

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.images", "0.1.0", "reads folders of JPEG, PNG, GIF, WebP, BMP and TIFF files", "Apache-2.0");
  plugin.library("libturbojpeg.so.0", "install libturbojpeg (Debian: libturbojpeg0)");
  plugin.library("libpng16.so.16", "install libpng (Debian: libpng16-16)");
  plugin.reader<Images>();
}

}  // namespace

}  // namespace tenon::images

const tn_plugin* tenon_plugin() { return tn::entry<tenon::images::describe>(); }
