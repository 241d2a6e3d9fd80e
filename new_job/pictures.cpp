// SPDX-License-Identifier: Apache-2.0
#include "new_job/pictures.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>

#include "base/text.h"
#include "file.h"
#include "host/cli/cli.h"
#include "new_job/job_text.h"
#include "new_job/recipe.h"
#include "vocabulary.h"

namespace tenon::new_job {

namespace {

namespace fs = std::filesystem;
using cli::Failure;

struct PictureSize {
  int64_t width = 0, height = 0;
  bool colour = true;
};

struct ClassFolder {
  std::string name;
  std::vector<fs::path> files;
};

uint64_t big_endian(const std::string& bytes, size_t at, size_t count) {
  uint64_t number = 0;
  for (size_t i = 0; i < count; ++i) number = number << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return number;
}

// Returns the size that the first bytes of a PNG state: its chunk IHDR comes first.
std::optional<PictureSize> png_size(const std::string& bytes) {
  constexpr size_t kHeader = 26;
  if (bytes.size() < kHeader || bytes.compare(0, 8, "\x89PNG\r\n\x1A\n") != 0) return {};
  const uint64_t colour_type = big_endian(bytes, 25, 1);
  return PictureSize{static_cast<int64_t>(big_endian(bytes, 16, 4)), static_cast<int64_t>(big_endian(bytes, 20, 4)),
                     colour_type != 0 && colour_type != 4};
}

// Returns the size that a JPEG states in its segment SOF, which follows segments of other kinds.
std::optional<PictureSize> jpeg_size(const std::string& bytes) {
  if (bytes.size() < 4 || bytes.compare(0, 2, "\xFF\xD8") != 0) return {};
  for (size_t at = 2; at + 10 <= bytes.size();) {
    if (big_endian(bytes, at, 1) != 0xFF) return {};
    const uint64_t marker = big_endian(bytes, at + 1, 1);
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame)
      return PictureSize{static_cast<int64_t>(big_endian(bytes, at + 7, 2)),
                         static_cast<int64_t>(big_endian(bytes, at + 5, 2)), big_endian(bytes, at + 9, 1) > 1};
    at += marker == 0xFF ? 1 : 2 + big_endian(bytes, at + 2, 2);
  }
  return {};
}

std::optional<PictureSize> size_of(const fs::path& path) {
  constexpr size_t kMost = 1 << 18;  // bytes in which a header lies, behind a preview in the EXIF data
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kMost, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  const std::optional<PictureSize> png = png_size(bytes);
  return png ? png : jpeg_size(bytes);
}

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

bool is_hidden(const fs::path& path) { return path.filename().string().front() == '.'; }

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  if (error) throw Failure(cli::kIo, folder.string() + ": cannot list it: " + error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Adds the pictures of a folder and of those below it, as the reader images finds them.
void add_pictures(const fs::path& folder, std::vector<fs::path>& files) {
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code unknown;
    if (!is_hidden(entry) && fs::symlink_status(entry, unknown).type() == fs::file_type::directory)
      add_pictures(entry, files);
    if (is_picture(entry) && fs::is_regular_file(entry, unknown)) files.push_back(entry);
  }
}

std::vector<ClassFolder> classes_of(const fs::path& folder) {
  std::set<std::string> names;
  size_t loose = 0;
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code unknown;
    if (is_hidden(entry)) continue;
    if (fs::is_directory(entry, unknown)) names.insert(entry.filename().string());
    loose += is_picture(entry) ? 1 : 0;
  }
  std::vector<ClassFolder> classes;
  for (const std::string& name : files::in_order(names)) {
    ClassFolder folder_of_class{name, {}};
    add_pictures(folder / name, folder_of_class.files);
    if (!folder_of_class.files.empty()) classes.push_back(std::move(folder_of_class));
  }
  if (classes.size() >= 2) return classes;
  const std::string loosely =
      loose == 0 ? "" : " and " + counted(static_cast<int64_t>(loose), "picture") + " outside of folders";
  const std::string has =
      classes.empty() ? "no folder with pictures" : "pictures in one folder, " + files::quoted(classes[0].name);
  throw Failure(cli::kBadData, folder.string() + ": has " + has + loosely +
                                   "; expected a folder of JPEG or PNG files for each class, at least two");
}

// Returns the middle of the sizes of some pictures, spread over all.
PictureSize usual_size(const std::vector<ClassFolder>& classes, const std::string& folder) {
  constexpr size_t kMost = 300;
  std::vector<fs::path> files;
  for (const ClassFolder& each : classes) files.insert(files.end(), each.files.begin(), each.files.end());
  const size_t step = std::max<size_t>(1, files.size() / kMost);
  std::vector<int64_t> widths, heights;
  bool colour = false;
  for (size_t i = 0; i < files.size(); i += step) {
    const std::optional<PictureSize> size = size_of(files[i]);
    if (!size || size->width < 1 || size->height < 1) continue;
    widths.push_back(size->width);
    heights.push_back(size->height);
    colour = colour || size->colour;
  }
  if (widths.empty())
    throw Failure(cli::kBadData, folder + ": none of its files is a JPEG or PNG, whatever their names are");
  std::sort(widths.begin(), widths.end());
  std::sort(heights.begin(), heights.end());
  return {widths[widths.size() / 2], heights[heights.size() / 2], colour};
}

// Returns the side of the square that the model gets.
int64_t side_of(const PictureSize& usual) {
  const int64_t smaller = std::min(usual.width, usual.height);
  if (smaller < 48) return 32;
  return smaller < 120 ? 64 : 96;
}

Recipe recipe_of_pictures(int64_t pictures) {
  Recipe recipe;
  recipe.batch = pictures < 1000 ? 16 : 64;
  recipe.passes = std::clamp(int64_t{200'000} / std::max(pictures, int64_t{1}), int64_t{12}, int64_t{60});
  recipe.patience = std::max(recipe.passes / 3, int64_t{5});
  recipe.learning_rate = 0.003;
  recipe.weight_decay = 0.01;
  return recipe;
}

void write_readers(JobText& job, const Request& request, const std::vector<ClassFolder>& classes,
                   const PictureSize& usual, const Recipe& recipe) {
  const int64_t side = side_of(usual);
  const bool roomy = side > 32;
  job.line();
  job.line("[reader.train]");
  job.key("type", "\"images\"");
  job.key("folder", toml_text(request.path_in_job(request.data.front())));
  std::vector<std::string> names;
  for (const ClassFolder& each : classes) names.push_back(each.name);
  job.comment("The classes: the folders that have pictures, in the order of their numbers.");
  job.key("classes", toml_texts(names));
  job.comment("A picture is scaled and cropped to this height and width; they are " + std::to_string(usual.height) +
              " x " + std::to_string(usual.width) + " in the middle. A larger size shows more and takes more time.");
  job.key("size", "[" + std::to_string(side) + ", " + std::to_string(side) + "]");
  if (!usual.colour) job.line("channels = 1                    # the pictures are grey");
  if (roomy) {
    job.line("crop = \"random\"                 # in each pass another part of the picture");
    job.line("cover = 1.15");
  }
  job.key("batch", std::to_string(recipe.batch));
  job.key("shuffle", "true");
  job.comment(
      "Random changes, so that the network does not learn pictures by heart. Mirrored pictures must mean the "
      "same: without flip for letters and digits.");
  std::string augment = usual.colour ? "flip = true, brightness = 0.2, contrast = 0.2, saturation = 0.2"
                                     : "brightness = 0.2, contrast = 0.2";
  if (!roomy) augment = "pad = 3, " + augment;
  job.key("augment.image", "{ " + augment + " }");
  write_split(job, request, "pictures");
  if (roomy) job.key("crop", "\"centre\"");
}

void write_layers(JobText& job, const std::vector<ClassFolder>& classes, int64_t side, int64_t pictures) {
  job.layer("Each channel with mean 0 and deviation 1; the key fit finds both in the training data.", "pixels",
            "standardize", {"image"});
  std::string input = "pixels";
  const int64_t groups = side == 32 ? 3 : 4;
  const int64_t first = side == 32 ? 16 : 8;
  for (int64_t i = 0; i < groups; ++i) {
    const std::string filters = std::to_string(first << i), name = "group" + std::to_string(i + 1);
    job.layer(i == 0 ? "Two convolutions with batch normalisation, then the largest of each 2 x 2 places." : "", name,
              "img_conv_group", {input},
              {{"filters", "[" + filters + ", " + filters + "]"}, {"batch_norm", "true"}, {"pool_kernel", "2"}});
    input = name;
  }
  job.layer("", "hidden", "fc", {input}, {{"size", "128"}, {"bias", "false"}});
  job.layer("", "x", "batch_norm", {"hidden"}, {{"act", "\"relu\""}, {"drop_rate", "0.3"}});
  job.layer("", "score", "fc", {"x"}, {{"size", std::to_string(classes.size())}});
  job.layer("", "cost", "cross_entropy", {"score", "label"}, {{"from_logits", "true"}});
  job.layer("The probabilities of the classes, and the number of the most probable one; tenon infer prints its name.",
            "prediction", "softmax", {"score"});
  job.layer("", "class", "argmax", {"score"});
  const auto largest = std::max_element(classes.begin(), classes.end(), [](const ClassFolder& a, const ClassFolder& b) {
    return a.files.size() < b.files.size();
  });
  job.layer("Guessing " + files::quoted(largest->name) + " for every picture would be right in " +
                per_cent(static_cast<int64_t>(largest->files.size()), pictures) + ".",
            "accuracy", "accuracy", {"score", "label"});
}

}  // namespace

Written job_for_pictures(const Request& request) {
  const std::string& folder = request.data.front();
  if (!request.target.empty() || !request.task.empty() || !request.left_out.empty())
    throw Failure(cli::kUsage, folder +
                                   " is a folder of pictures, whose classes are its folders: --target, --task and "
                                   "--leave-out are for tables");
  const std::vector<ClassFolder> classes = classes_of(folder);
  const PictureSize usual = usual_size(classes, folder);
  int64_t pictures = 0;
  for (const ClassFolder& each : classes) pictures += static_cast<int64_t>(each.files.size());
  const auto held_out = static_cast<int64_t>(std::lround(request.hold_out * static_cast<double>(pictures)));
  if (held_out < 1 || held_out >= pictures)
    throw Failure(cli::kUsage, "--hold-out: " + shown(request.hold_out) + " of " + counted(pictures, "picture") +
                                   " leaves none for tests or none for the training");
  const Recipe recipe = recipe_of_pictures(pictures - held_out);
  const std::string summary =
      counted(pictures, "picture") + " of " + std::to_string(classes.size()) + " classes in folders";
  JobText job;
  job.comment(cli::plain(summary) + ". Written by `tenon new job`; change what you know better (docs/tables.md).");
  job.line("#   tenon train " + request.name() + ".toml");
  job.line("#   tenon test " + request.name() + ".toml                  # on the pictures that are held out");
  job.line("#   tenon infer " + request.name() +
           ".toml --data FOLDER   # any pictures; --with file prints their names");
  job.key("passes", std::to_string(recipe.passes));
  job.key("seed", std::to_string(request.seed));
  job.key("save", toml_text(request.name() + ".safetensors"));
  job.line("fit = [\"pixels\"]");
  job.line("outputs = [\"cost\", \"accuracy\", \"prediction\", \"class\"]");
  write_readers(job, request, classes, usual, recipe);
  write_layers(job, classes, side_of(usual), pictures);
  write_training(job, recipe, pictures - held_out);
  return {job.text(), summary};
}

}  // namespace tenon::new_job
