// A reader of sound: WAV files (RIFF) with 16-bit samples. A sample of the reader is a window of one channel, from -1
// to 1, and the value that follows it. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <fstream>
#include <tenon/plugin.hpp>

namespace {

class Wav {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("example.wav", "WAV files with 16-bit samples: windows of sound, and the value after each");
    d.attribute(tn::strings_attribute("files").required().doc("WAV files, one after the other"));
    d.attribute(tn::int_attribute("window", 32).at_least(1).doc("values in a window"));
    d.attribute(tn::int_attribute("hop", 8).at_least(1).doc("values from the start of a window to that of the next"));
    d.attribute(tn::int_attribute("channel", 0).at_least(0).doc("which channel, from 0"));
  }

  explicit Wav(const tn::ReaderOpen& open) : window_(open.attributes().integer("window")) {
    const int64_t hop = open.attributes().integer("hop");
    int64_t number = 0;
    for (const std::string& name : open.attributes().texts("files")) {
      const std::string path = open.path(name);
      const auto begin = static_cast<int64_t>(sound_.size());
      append(path, static_cast<size_t>(open.attributes().integer("channel")));
      const int64_t last = static_cast<int64_t>(sound_.size()) - window_ - 1;
      if (last < begin) throw tn::Failure(TN_BAD_DATA, path, "has no more values than one window");
      for (int64_t start = begin; start <= last; start += hop)
        if (open.shard().has(number++)) starts_.push_back(start);
    }
    slots_ = {{"past", TN_F32, {window_}}, {"next", TN_F32, {1}}};
  }

  const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  int64_t samples() const { return static_cast<int64_t>(starts_.size()); }
  void read(int64_t index, tn::Samples& to) const {
    const float* from = sound_.data() + starts_[static_cast<size_t>(index)];
    std::copy_n(from, window_, to.dense<float>(0));
    *to.dense<float>(1) = from[window_];
  }

 private:
  // A number of `bytes` bytes, the lowest first.
  static uint32_t number(const std::string& text, size_t at, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(text[at + i])) << 8 * i;
    return value;
  }

  // Appends one channel of a file to sound_. A file is a list of chunks: 4 letters, the number of bytes, the bytes.
  void append(const std::string& path, size_t channel) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw tn::Failure(TN_NOT_FOUND, path, "cannot be opened");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (text.size() < 12 || text.compare(0, 4, "RIFF") != 0 || text.compare(8, 4, "WAVE") != 0)
      throw tn::Failure(TN_BAD_DATA, path, "is not a WAV file");
    size_t channels = 0;
    for (size_t at = 12; text.size() - at >= 8;) {
      const size_t bytes = number(text, at + 4, 4), begin = at + 8;
      if (bytes > text.size() - begin) throw tn::Failure(TN_BAD_DATA, path, "ends within a chunk");
      if (text.compare(at, 4, "fmt ") == 0 && bytes >= 16) {
        channels = number(text, begin + 2, 2);
        if (number(text, begin, 2) != 1 || number(text, begin + 14, 2) != 16)
          throw tn::Failure(TN_UNSUPPORTED, path, "must have samples of 16 bits without compression");
        if (channel >= channels)
          throw tn::Failure(TN_INVALID, "channel", path + " has " + std::to_string(channels) + " channels");
      } else if (text.compare(at, 4, "data") == 0) {
        if (channels == 0) throw tn::Failure(TN_BAD_DATA, path, "has no format before its data");
        for (size_t i = 2 * channel; i + 2 <= bytes; i += 2 * channels)
          sound_.push_back(static_cast<float>(static_cast<int16_t>(number(text, begin + i, 2))) / 32768);
      }
      at = std::min(text.size(), begin + bytes + bytes % 2);
    }
  }

  int64_t window_;
  std::vector<float> sound_;  // of all files
  std::vector<int64_t> starts_;
  std::vector<tn::ReaderSlot> slots_;
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.example.wav", "1.0.0", "Reads WAV files", "Apache-2.0");
  plugin.reader<Wav>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
