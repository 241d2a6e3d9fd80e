// SPDX-License-Identifier: Apache-2.0
#include "new_job/pictures.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tenon/plugin.hpp>

#include "file.h"
#include "folders.h"
#include "header.h"
#include "host/cli/cli.h"
#include "new_job/job_text.h"
#include "new_job/recipe.h"

namespace tenon::new_job {

namespace {

using cli::Failure;

// The sides of pictures, as they lie or stand.
struct Sides {
  int64_t shorter = 0, longer = 0;
  bool colour = true;
};

struct ClassFolder {
  std::string name;
  std::vector<std::string> files;
};

// Returns the size of a picture as its file stores it; nothing if it is not one of those that the reader images reads.
std::optional<images::StoredSize> size_of(const std::string& path) {
  constexpr uint64_t kMost = uint64_t{1} << 28;
  const files::File file(path);
  std::vector<uint8_t> bytes;
  // Most headers are in front, or behind a preview in the EXIF data; that of a TIFF file may be at its end.
  for (const uint64_t beginning : {uint64_t{1} << 18, kMost}) {
    bytes.resize(static_cast<size_t>(std::min(beginning, file.bytes())));
    bytes.resize(file.read(0, bytes.data(), bytes.size()));
    if (const std::optional<images::StoredSize> size = images::stored_size(bytes)) return size;
    if (file.bytes() <= beginning) return {};
  }
  return {};
}

std::vector<ClassFolder> classes_of(const std::string& folder) {
  images::Folders folders(folder, nullptr);
  std::vector<ClassFolder> classes;
  for (const std::string& name : folders.classes()) {
    if (!files::is_utf8(name))
      throw Failure(cli::kBadData, folder + ": the name of its folder " + files::quoted(name) + " is not UTF-8");
    ClassFolder folder_of_class{name, folders.images_of(name)};
    if (!folder_of_class.files.empty()) classes.push_back(std::move(folder_of_class));
  }
  if (classes.size() >= 2) return classes;
  const auto loose = static_cast<int64_t>(folders.images_beside().size());
  const std::string has =
      classes.empty() ? "no folder with pictures" : "pictures in one folder, " + files::quoted(classes[0].name);
  const std::string skipped = folders.skipped();
  throw Failure(cli::kBadData, folder + ": has " + has +
                                   (loose == 0 ? "" : " and " + counted(loose, "picture") + " outside of folders") +
                                   "; expected a folder of pictures for each class, at least two" +
                                   (skipped.empty() ? "" : "\n" + skipped));
}

// Returns the middle of the sides of some pictures, spread over all.
Sides usual_sides(const std::vector<ClassFolder>& classes, const std::string& folder) {
  constexpr size_t kMost = 300;
  std::vector<std::string> files;
  for (const ClassFolder& each : classes) files.insert(files.end(), each.files.begin(), each.files.end());
  const size_t step = std::max<size_t>(1, files.size() / kMost);
  std::vector<int64_t> shorter, longer;
  bool colour = false;
  for (size_t i = 0; i < files.size(); i += step) {
    const std::optional<images::StoredSize> size = size_of(files[i]);
    if (!size) continue;
    shorter.push_back(std::min(size->width, size->height));
    longer.push_back(std::max(size->width, size->height));
    colour = colour || size->colour;
  }
  if (shorter.empty())
    throw Failure(cli::kBadData, folder +
                                     ": none of its files is a JPEG, PNG, GIF, WebP, BMP or TIFF, whatever their "
                                     "names are");
  std::sort(shorter.begin(), shorter.end());
  std::sort(longer.begin(), longer.end());
  return {shorter[shorter.size() / 2], longer[longer.size() / 2], colour};
}

// Returns the side of the square that the model gets.
int64_t side_of(const Sides& usual) {
  if (usual.shorter < 48) return 32;
  return usual.shorter < 120 ? 64 : 96;
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

void write_readers(JobText& job, const Request& request, const std::vector<ClassFolder>& classes, const Sides& usual,
                   const Recipe& recipe) {
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
  job.comment("A picture is scaled and cropped to this height and width; the median of their sides is " +
              std::to_string(usual.shorter) + " and " + std::to_string(usual.longer) +
              ". A larger size shows more and takes more time.");
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
  const Sides usual = usual_sides(classes, folder);
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
