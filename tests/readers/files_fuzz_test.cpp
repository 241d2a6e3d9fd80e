// Damaged data files and options through the readers: whatever can be opened gives the same samples in order, by number
// and from any position, or the same errors. tests/support/fuzz/trials.h has the settings.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tenon/tenon_plugins.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/support/fashion.h"
#include "tests/support/fuzz/trials.h"
#include "tests/support/npy_files.h"
#include "tests/support/picture_files.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Strings = std::vector<std::string>;

// A file that a reader reads with these attributes, and the other files that it needs.
struct Source {
  const char* type;
  std::string file;
  Bytes sound;
  Attributes attributes;
  std::vector<std::pair<std::string, Bytes>> others = {};
};

std::vector<Source> csv_sources() {
  const Bytes people = "age,income,city,label\n31,1.5,Rome,0\n22,-2e3,\"Os\"\"lo\",1\n45,0.25,Rome,2\n38,2,Oslo,1\n";
  const Bytes visits = "visitor,page,seconds,bought\nann,shoes,30,1\nann,cart,12.5,1\nbob,shoes,4,0\neve,hats,8,0\n";
  return {
      {"csv", "f.csv", people, {{"files", Strings{"f.csv"}}}},
      {"csv",
       "f.csv",
       people,
       {{"files", Strings{"f.csv"}}, {"columns", Strings{"x = age, income: f32", "city: category", "label: i32 < 3"}}}},
      {"csv",
       "f.csv",
       people,
       {{"files", Strings{"f.csv", "g.csv"}},
        {"columns", Strings{"city: category(cities.txt)", "x = *: f64"}},
        {"missing", "value"},
        {"missing_texts", Strings{"NA"}},
        {"unknown_category", true}},
       {{"g.csv", "label,city,income,age\n1,Rome,NA,3\n,Paris,2,4\n"}, {"cities.txt", "Rome\nOslo\n"}}},
      {"csv",
       "f.csv",
       "1;2;x\n3;4;y\n\n5;6;z\n",
       {{"files", Strings{"f.csv"}},
        {"header", false},
        {"delimiter", ";"},
        {"missing", "skip"},
        {"columns", Strings{"v = c0..c1: i16", "c2: category"}}}},
      {"csv",
       "f.csv",
       visits,
       {{"files", Strings{"f.csv"}},
        {"sequence_by", "visitor"},
        {"per_sequence", Strings{"bought"}},
        {"columns", Strings{"page: category", "time = seconds: f32", "bought: i32 < 2"}}}},
      {"csv",
       "f.csv",
       "title\n#\"x\nwhen;pay;tags;text\n2024-01-31T10:00Z;1.050,5;1|2;Good film\n;;;\n2023-02-28;7;;\"a\n\"\n",
       {{"files", Strings{"*.csv"}},
        {"delimiter", ";"},
        {"decimal", ","},
        {"thousands", "."},
        {"comment", "#"},
        {"skip_lines", int64_t{1}},
        {"columns", Strings{"when: date year weekday hour missing 0 indicator", "pay: missing mean indicator",
                            "tags: i32 < 9 list(|)", "text: words lower"}}}},
      {"csv",
       "f.csv",
       "k,d,p,g,t\n1,01.02.2020,1 2,a b,xy\n1,03.04.2021,3 4,b,y\n2,,,,\n",
       {{"files", Strings{"f.csv"}},
        {"sequence_by", "k"},
        {"columns", Strings{"d: date(%d.%m.%Y) missing 0", "p: f32 list size 2 missing -1", "g: category list",
                            "t: characters"}}}},
      {"csv",
       "f.csv",
       "1::a|b::Toy story::5\n2::::\"Heat\"::4.5\n3::b::Toys::1\n",
       {{"files", Strings{"f.csv"}},
        {"header", false},
        {"delimiter", "::"},
        {"columns", Strings{"c1: category list(|) multihot", "c2: words lower grams 2 buckets 9", "c3: f32",
                            "c0: category least 2"}}}},
      {"csv",
       "f.csv",
       "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects  VBZ\tO\n \nPeter NNP B-PER\n\" \" O\n. . I-PER\n",
       {{"files", Strings{"f.csv", "f.csv"}},
        {"header", false},
        {"delimiter", "blanks"},
        {"quotes", false},
        {"sentences", true},
        {"comment", "-DOCSTART-"},
        {"columns", Strings{"c2: category chunks", "c0: characters grams 2", "c1: category"}}}},
      {"csv",
       "f.csv",
       "shop,day,v,w\nA,2024-01-01,1,x\nB,2024-01-01,2,y\nA,2024-01-02,,x\nA,2024-01-04,4,\nB,2024-01-02,5,y\n",
       {{"files", Strings{"f.csv"}},
        {"window", int64_t{2}},
        {"group_by", "shop"},
        {"order_by", "day"},
        {"step", "1d"},
        {"masks", true},
        {"targets", Strings{"next = v"}},
        {"columns", Strings{"x = v..v: f32", "w: category"}}}}};
}

std::vector<Source> text_sources() {
  const Bytes lines = "good\tI liked it, it was good\nbad\tI left early\n\ngood\tCaf\xc3\xa9 and ...\n";
  return {{"text", "f.txt", lines, {{"files", Strings{"f.txt"}}}},
          {"text",
           "f.txt",
           lines,
           {{"files", Strings{"f.txt"}}, {"labelled", true}, {"split", "words"}, {"lower_case", true}, {"end", "<e>"}}},
          {"text",
           "f.txt",
           lines,
           {{"files", Strings{"f.txt"}},
            {"split", "characters"},
            {"window", 3},
            {"names", Strings{"a", "b"}},
            {"encoding", "latin1"}}},
          {"text",
           "words.txt",
           "I\nit\nliked\n<unk>\n",
           {{"files", Strings{"g.txt"}}, {"vocabulary", "words.txt"}, {"keep_empty", true}, {"begin", "I"}},
           {{"g.txt", lines}}},
          {"text",
           "f.txt",
           "__label__a __label__b I liked it\nso-so\n __label__b I left\n",
           {{"files", Strings{"f.txt"}}, {"label_prefix", "__label__"}, {"label_separator", " "}, {"ngrams", 2}}},
          {"libsvm", "f.svm", "1 1:0.5 3:-2e3\n0 2:1\n\n1 # note\n", {{"files", Strings{"f.svm"}}}},
          {"libsvm",
           "f.svm",
           "0 0:1 4:2\n1 3:7\n",
           {{"files", Strings{"f.svm"}}, {"first_id", 0}, {"width", 5}, {"classes", 2}}},
          {"libsvm",
           "f.svm",
           "2 qid:1 1:0.5\n0 qid:1 2:1\n1 qid:4 1:3 2:1\n",
           {{"files", Strings{"f.svm"}}, {"lists", true}, {"width", 2}}},
          {"libsvm",
           "f.svm",
           "2 qid:1 1:0.5 7:1\n0 qid:1 2:1\n1 qid:4\n",
           {{"files", Strings{"f.svm"}}, {"sparse_lists", true}}}};
}

std::vector<Source> array_sources() {
  const Bytes images = Bytes{0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2} + "abcdefghijkl";
  const Bytes labels = Bytes{0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 2};
  const Bytes floats = npy(header("<f4", "(3, 2)"), values_of(std::vector<float>{1, 2.5F, -3, 4, 5, 6}));
  const Bytes bytes = npy(header("|u1", "(3,)"), "\1\2\3", 2);
  const Bytes halves = npy(header(">f2", "(3, 1, 2)"), "abcdefghijkl", 3);
  const Bytes archive = zip({{"x.npy", floats, true}, {"y.npy", bytes}});
  const std::vector<std::pair<std::string, Bytes>> y = {{"y.npy", bytes}};
  const Strings two = {"i", "l"};
  return {{"idx", "i", images, {{"files", two}}, {{"l", labels}}},
          {"idx", "l", labels, {{"files", two}, {"classes", std::vector<int64_t>{0, 3}}}, {{"i", images}}},
          {"npy", "x.npy", floats, {{"files", Strings{"x.npy", "y.npy"}}}, y},
          {"npy", "x.npy", halves, {{"files", Strings{"x.npy", "y.npy"}}, {"nan", "allow"}}, y},
          {"npy", "x.npy", bytes, {{"files", Strings{"x.npy"}}, {"classes", std::vector<int64_t>{4}}}},
          {"npy", "x.npz", archive, {{"files", Strings{"x.npz"}}}},
          {"npy", "x.npz", archive, {{"files", Strings{"x.npz"}}, {"members", Strings{"y"}}, {"names", Strings{"z"}}}}};
}

std::vector<Source> image_sources() {
  Pixels colours(48), greys(16);
  for (size_t i = 0; i < colours.size(); ++i) colours[i] = static_cast<uint8_t>(5 * i);
  for (size_t i = 0; i < greys.size(); ++i) greys[i] = static_cast<uint8_t>(255 - 9 * i);
  const std::vector<std::pair<std::string, Bytes>> others = {{"b/1.png", png(4, 4, greys)},
                                                             {"b/2.jpg", jpeg(4, 4, greys)}};
  const std::vector<int64_t> size = {3, 5};
  const Attributes plain = {{"folder", "."}, {"size", size}}, bounded = {{"folder", "."},
                                                                         {"size", size},
                                                                         {"channels", 1},
                                                                         {"most_pixels", 100'000},
                                                                         {"orientation", "upright"}};
  const std::vector<uint32_t> numbers(colours.begin(), colours.end()), entries = {0, 1, 2, 3, 3, 2, 1, 0};
  const Pixels entry_bytes(entries.begin(), entries.end()), four(colours.begin(), colours.begin() + 12);
  const Bytes turned = exif(6);
  const GifKind interlaced = {.left = 1, .interlaced = true, .transparent = 2};
  const BmpKind palette = {.bits = 4, .palette = {0xFF0000, 0xFF00, 0xFF, 0x808080}};
  const BmpKind masks = {.bits = 16, .top_down = true, .compression = 3, .masks = {0xF800, 0x7E0, 0x1F, 0}};
  return {{"images", "a/1.gif", gif(4, 2, entry_bytes, four, interlaced), bounded, others},
          {"images", "a/1.webp", webp_with_exif(4, 3, colours, turned), bounded, others},
          {"images", "a/1.webp", webp_animation(6, 6, 2, 2, 4, 3, {colours, colours}), bounded, others},
          {"images", "a/1.bmp", bmp(4, 2, entries, palette), bounded, others},
          {"images", "a/1.bmp", bmp(4, 2, entries, masks), plain, others},
          {"images", "a/1.tif", tiff(4, 4, numbers, {.compression = 8, .orientation = 5}), bounded, others},
          {"images", "a/1.tif", tiff(4, 4, numbers, {.big_endian = true, .separate = true, .tile = 16}), plain, others},
          {"images", "a/1.tif",
           tiff(2, 4, numbers, {.bits = 16, .photometric = 1, .rows = 1, .compression = 32773, .extras = {2, 0}}),
           bounded, others},
          {"images", "a/1.jpg", jpeg_with_exif(inks_jpeg(4, 3, colours), turned), bounded, others},
          {"images", "a/1.png", png_with_chunk(png(4, 4, colours), "eXIf", turned), bounded, others},
          {"images", "a/1.png", png(4, 4, colours), plain, others},
          {"images", "a/1.jpg", jpeg(4, 4, colours), plain, others},
          {"images",
           "a/1.png",
           png(4, 4, greys),
           {{"folder", "."}, {"size", size}, {"channels", 1}, {"crop", "random"}, {"classes", Strings{"b", "a"}}},
           others},
          {"images",
           "a/1.jpg",
           jpeg(4, 4, greys),
           {{"folder", "."}, {"size", size}, {"crop", "none"}, {"most_pixels", 1000}},
           others}};
}

class FilesFuzz : public testing::Test {
 protected:
  void put(const std::string& name, const Bytes& bytes) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.file(name), std::ios::binary) << bytes;
  }
  [[nodiscard]] Reader open(const Source& source, const std::vector<Names>& names = {}) const {
    return host_.reader(source.type, source.attributes, folder_.path().string(), 0, 1, names, 7);
  }

  // The bytes of all values of a sample or minibatch; `fault` says what is wrong with them.
  static Bytes bytes_of(const std::vector<Array>& values, const std::vector<DataOptions>& slots, std::string& fault) {
    Bytes bytes;
    for (size_t i = 0; i < values.size(); ++i) {
      const Array& array = values[i];
      int64_t count = array.storage == TN_CSR ? array.offsets[0][array.samples] : array.count();
      for (size_t level = 0; level < 2; ++level)
        if (array.offsets[level] != nullptr) {
          const int64_t lists = level == 0 ? array.samples : array.offsets[0][array.samples];
          bytes.append(reinterpret_cast<const char*>(array.offsets[level]), static_cast<size_t>(lists + 1) * 8);
        }
      if (array.ids != nullptr) bytes.append(reinterpret_cast<const char*>(array.ids), static_cast<size_t>(count) * 8);
      for (int64_t k = 0; array.ids != nullptr && k < count; ++k)
        if (array.ids[k] < 0 || array.ids[k] >= array.shape.at(1)) fault = "an id beyond the width";
      const size_t size = static_cast<size_t>(count) * tn_dtype_bytes(array.dtype);
      if (array.data != nullptr) bytes.append(static_cast<const char*>(array.data), size);
      if (array.dtype == TN_I32 && slots[i].index_limit >= 0)
        for (int64_t k = 0; k < count; ++k)
          if (const int32_t value = static_cast<const int32_t*>(array.data)[k];
              value < 0 || value >= slots[i].index_limit)
            fault = "a number beyond the limit of its slot";
    }
    return bytes;
  }

  // A pass: where each sample or error was found, and its bytes or message.
  using Pass = std::vector<std::pair<int64_t, Bytes>>;
  static std::optional<Bytes> next(const Reader& reader, const std::vector<DataOptions>& slots, std::string& fault) {
    try {
      const std::vector<Array> values = reader.next();
      if (values.empty()) return std::nullopt;
      return bytes_of(values, slots, fault);
    } catch (const Error& error) {
      if (std::string wrong = refused(error, {TN_BAD_DATA}).fault; !wrong.empty()) fault = wrong;
      return "error: " + std::string(error.what());
    }
  }
  static Pass pass_of(const Reader& reader, const std::vector<DataOptions>& slots, std::string& fault) {
    Pass pass;
    while (fault.empty()) {
      const int64_t at = reader.position().samples;
      const std::optional<Bytes> bytes = next(reader, slots, fault);
      if (!bytes) break;
      pass.emplace_back(at, *bytes);
      if (pass.size() > 1000000) fault = "a pass that does not end";
      if (!fault.empty()) break;
      if (reader.position().samples <= at && at > 0) fault = "the reader stays at " + std::to_string(at);
    }
    return pass;
  }

  // What differs between the ways to read; empty if nothing does.
  [[nodiscard]] std::string reading_fault(const Source& source, const std::vector<Names>& names, Draw& draw) const {
    std::string fault;
    const Reader reader = open(source, names);
    const std::vector<DataOptions> slots = tenon::slots(reader);
    for (const DataOptions& slot : slots) (void)host_.data(slot);
    (void)reader.names();
    const Pass pass = pass_of(reader, slots, fault);
    if (!fault.empty() || pass.empty()) return fault;
    for (int k = 0; k < 3; ++k) {
      const auto& [at, bytes] = draw.one_of(pass);
      reader.seek({0, at});
      if (next(reader, slots, fault) != bytes) return "another sample after a seek to " + std::to_string(at) + fault;
    }
    Reader other = open(source, names);
    if (other.describe() != reader.describe()) return "another schema: " + other.describe();
    Pass mixed = pass_of(std::move(other).shuffle(draw.below(100)), slots, fault), sorted = pass;
    const auto sort = [](Pass& all) {
      for (auto& each : all) each.first = 0;
      std::sort(all.begin(), all.end());
    };
    sort(mixed);
    sort(sorted);
    if (mixed == sorted) return fault;
    for (const auto& [list, name] : {std::pair{&sorted, "in order"}, {&mixed, "by number"}}) {
      fault += std::string("; ") + name + ":";
      for (const auto& [place, bytes] : *list) fault += " " + (bytes.starts_with("error") ? bytes : "sample");
    }
    return "other samples by number than in order" + fault;
  }

  [[nodiscard]] Ending read(Source source, const Bytes& bytes, Draw& draw) const {
    std::vector<Names> names;
    if (draw.once_in(4)) {  // as data for a model that was trained with the sound file
      put(source.file, source.sound);
      names = open(source).names();
    }
    put(source.file, bytes);
    for (Attribute& attribute : source.attributes)  // now and then options that nobody wrote
      if (const auto* const texts = std::get_if<Strings>(&attribute.value.held());
          texts != nullptr && attribute.name != "files" && draw.once_in(6)) {
        Strings changed = *texts;
        std::string& text = changed[draw.below(changed.size())];
        text = mutated_text(draw, text, "x = *: f32");
        std::erase(text, '\0');  // which C cannot pass
        attribute.value = changed;
      }
    try {
      return {true, reading_fault(source, names, draw)};
    } catch (const Error& error) {
      return refused(error, {TN_BAD_DATA, TN_INVALID, TN_NOT_FOUND, TN_UNSUPPORTED, TN_IO});
    }
  }

  // Reads damaged forms of the files of these sources; text: of lines.
  void run(const char* kind, uint64_t count, const std::vector<Source>& sources, bool text) {
    Trials trials(kind, count);
    const auto make = [&](Draw& draw) {
      const Source &source = sources[draw.below(sources.size())], &other = draw.one_of(sources);
      const bool packed = draw.once_in(5), late = draw.once_in(2);
      const bool archive = draw.once_in(2);
      const auto pack = [&](const Bytes& content) { return archive ? zip({{"f", content, true}}) : gzip(content); };
      Bytes bytes = packed && late ? pack(source.sound) : source.sound;
      bytes =
          text && !(packed && late) ? mutated_text(draw, bytes, other.sound) : mutated_bytes(draw, bytes, other.sound);
      return packed && !late ? pack(bytes) : bytes;
    };
    const auto check = [&](const Bytes& bytes, Draw& draw) {
      // The first number of a seed chose the source.
      Draw again(draw.seed());
      const Source& source = sources[again.below(sources.size())];
      std::filesystem::remove_all(folder_.path());
      for (const auto& [name, content] : source.others) put(name, content);
      return read(source, bytes, draw);
    };
    for (const Source& source : sources) {
      Draw draw(1);
      for (const auto& [name, content] : source.others) put(name, content);
      put(source.file, source.sound);
      ASSERT_EQ(reading_fault(source, {}, draw), "") << source.file;
      std::filesystem::remove_all(folder_.path());
    }
    trials.run(make, check, 50);
  }

  const TemporaryFolder folder_;
  const Host host_ = make_host(2);
};

TEST_F(FilesFuzz, Csv) { run("csv", 500, csv_sources(), true); }
TEST_F(FilesFuzz, Texts) { run("text", 500, text_sources(), true); }
TEST_F(FilesFuzz, Arrays) { run("array", 500, array_sources(), false); }
TEST_F(FilesFuzz, Images) { run("image", 500, image_sources(), false); }

}  // namespace
}  // namespace tenon_tests
