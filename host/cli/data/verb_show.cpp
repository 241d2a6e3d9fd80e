// tenon data show: the samples of a job's reader, as a contact sheet or as a table. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/console.h"
#include "host/cli/data/sample_text.h"
#include "host/cli/numbers.h"
#include "host/cli/options.h"
#include "host/cli/table.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

constexpr int64_t kRows = 10, kPictures = 64;  // samples, if --count is not given
constexpr int64_t kMostSamples = 4096, kNotGiven = -1;

struct ShowArguments {
  std::string file, reader = "train", slot;
  int64_t count = kNotGiven;
};

// Calls `show` with the arrays and the number in them of each of the first `count` samples of a pass. Returns how many
// there were.
int64_t for_samples(const OpenReader& open, int64_t count,
                    const std::function<void(const std::vector<Array>& arrays, int64_t sample)>& show) {
  int64_t done = 0;
  while (done < count) {
    const std::vector<Array> arrays = open.reader.next();
    if (arrays.empty()) break;
    for (int64_t sample = 0; sample < samples_of(arrays[0]) && done < count; ++sample, ++done) show(arrays, sample);
  }
  return done;
}

// The slot whose images are shown.
size_t image_slot(const std::vector<ShownSlot>& slots, const ShowArguments& given) {
  std::vector<std::string> all, images;
  for (const ShownSlot& slot : slots) {
    all.push_back(slot.slot().name);
    if (slot.is_image()) images.push_back(slot.slot().name);
  }
  const std::string what = "[reader." + given.reader + "]";
  if (!given.slot.empty()) {
    const auto found = std::find(all.begin(), all.end(), given.slot);
    if (found == all.end())
      throw Failure(kUsage,
                    "--slot " + given.slot + ": " + what + " has no such slot" + base::suggestion(given.slot, all));
    const auto number = static_cast<size_t>(found - all.begin());
    if (!slots[number].is_image())
      throw Failure(kUsage,
                    "--slot " + given.slot + ": expected a slot of images, got " + to_string(slots[number].slot()));
    return number;
  }
  if (images.empty())
    throw Failure(kUsage, "--output " + given.file + ": " + what + " has no slot of images; its slots are " +
                              base::listed(all) + "; without --output they are printed as a table");
  return static_cast<size_t>(std::find(all.begin(), all.end(), images.front()) - all.begin());
}

int64_t write_sheet(const OpenReader& open, const std::vector<ShownSlot>& slots, const ShowArguments& given) {
  const size_t image = image_slot(slots, given);
  std::vector<Captioned> pictures;
  const int64_t count = for_samples(open, given.count == kNotGiven ? kPictures : given.count,
                                    [&](const std::vector<Array>& arrays, int64_t sample) {
                                      std::string caption;
                                      for (size_t i = 0; i < slots.size(); ++i)
                                        if (slots[i].is_number())
                                          base::append(caption, slots[i].text(arrays[i], sample));
                                      pictures.push_back({slots[image].picture(arrays[image], sample), caption});
                                    });
  if (count == 0) return 0;
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  write_png(sheet_of(pictures, columns), given.file);
  std::cout << plain(given.file + ": " + std::to_string(count) + " samples of slot \"" + slots[image].slot().name +
                     "\", " + to_string(slots[image].slot()))
            << "\n";
  return count;
}

int64_t print_table(const OpenReader& open, const std::vector<ShownSlot>& slots, int64_t count) {
  std::vector<std::string> headings = {">sample"}, types = {""};
  for (const ShownSlot& slot : slots) {
    headings.push_back(slot.slot().name);
    types.push_back(to_string(slot.slot()));
  }
  Table table(headings);
  table.row(types);
  int64_t number = 0;
  for_samples(open, count, [&](const std::vector<Array>& arrays, int64_t sample) {
    std::vector<std::string> cells = {std::to_string(number++)};
    for (size_t i = 0; i < slots.size(); ++i) cells.push_back(slots[i].text(arrays[i], sample));
    table.row(cells);
  });
  if (number > 0) table.print(std::cout, output_width());
  return number;
}

void check(const Options& options, const ShowArguments& given) {
  if (given.count != kNotGiven && (given.count < 1 || given.count > kMostSamples))
    options.fail("--count: expected 1 to " + std::to_string(kMostSamples) + ", got " + std::to_string(given.count));
  const std::string ending = ".png";
  const bool png = given.file.size() > ending.size() && given.file.ends_with(ending);
  if (!given.file.empty() && !png) options.fail("--output: expected a name that ends with .png, got " + given.file);
  if (given.file.empty() && !given.slot.empty()) options.fail("--slot is for --output");
}

}  // namespace

int run_data_show(const Arguments& arguments) {
  JobOptions common;
  ShowArguments given;
  Options options("data show", {"JOB.toml"},
                  "Shows samples as the model will see them: in the order of the job, with its random changes. With\n"
                  "--output it writes a grid of images with their labels; without it, it prints a table of all slots.");
  namespace po = boost::program_options;
  options.list.add_options()("output,o", po::value(&given.file)->value_name("FILE.png"),
                             "write a grid of images to this file")(
      "count", po::value(&given.count)->value_name("N"), "how many samples; default: 64 images, or 10 lines")(
      "reader", po::value(&given.reader)->value_name("NAME"), "train (default) or test: the reader of the samples")(
      "slot", po::value(&given.slot)->value_name("NAME"), "the slot of the images; default: the first that has images");
  common.add_seed_to(options);
  common.add_to(options);
  if (!options.parse(arguments)) return kDone;
  check(options, given);
  const Job job = common.load(options, options.operand(0));
  const Host host = common.host(job);
  JobReader reader = reader_of(job, given.reader);
  reader.prefetch = 0;
  const bool test = given.reader == "test";
  std::vector<Names> known;  // a test reader numbers its names like that of the training
  if (test && job.train) known = names_of(*job.train, open_reader(host, job, *job.train, true, {}, true));
  const OpenReader open = open_reader(host, job, reader, test, known);
  const std::vector<ShownSlot> slots = shown_slots(reader, open);
  require_samples(reader, given.file.empty() ? print_table(open, slots, given.count == kNotGiven ? kRows : given.count)
                                             : write_sheet(open, slots, given));
  return kDone;
}

}  // namespace tenon::cli
