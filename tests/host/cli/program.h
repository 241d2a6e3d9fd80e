// Runs the built program in a folder of its own, on small data that a perceptron can learn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/child.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

struct Outcome {
  int exit = -1;  // 128 + n if signal n ended the program, as in a shell
  std::string out, error;
};

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    // A shell starts background jobs with SIGINT ignored, and the program would inherit that.
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    write_images("train", 60);
    write_images("test", 21);
    write("job.toml", job());
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream file(path(name), std::ios::binary);
    file << bytes;
    ASSERT_TRUE(file.flush()) << name;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Runs a script of the shell in the folder; "$TENON" is the program.
  [[nodiscard]] Outcome shell(const std::string& script) const {
    write("script", script);
    const std::string command =
        "cd '" + folder_.string() + "' && TENON='" + tenon_tests::program() + "' sh script >stdout 2>stderr </dev/null";
    const int exit = tenon_tests::shell(command).code();
    return {exit, read("stdout"), read("stderr")};
  }
  // Runs the program; `arguments` are quoted for the shell where necessary.
  [[nodiscard]] Outcome run(const std::string& arguments) const { return shell("exec \"$TENON\" " + arguments); }

  // Writes 4 x 4 images and their labels: class c has bright pixels in row c. wrong_label: of image 10; 0: none.
  void write_images(const std::string& name, uint32_t count, uint8_t wrong_label = 0) const {
    std::string images = header({count, 4, 4}), labels = header({count});
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t label = i % 3;
      for (uint32_t pixel = 0; pixel < 16; ++pixel)
        images += static_cast<char>(pixel / 4 == label ? 200 + (i + pixel) % 50 : (7 * i + pixel) % 40);
      labels += static_cast<char>(wrong_label != 0 && i == 10 ? wrong_label : label);
    }
    write(name + "-images", images);
    write(name + "-labels", labels);
  }

  static std::string job() {
    return R"(passes = 4
seed = 3
save = "model.safetensors"

[[layer]]
name = "hidden"
type = "fc"
inputs = ["pixel"]
size = 8
act = "relu"

[[layer]]
name = "score"
type = "fc"
inputs = ["hidden"]
size = 3

[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["score", "label"]
from_logits = true

[[layer]]
name = "accuracy"
type = "accuracy"
inputs = ["score", "label"]

[[layer]]
name = "prediction"
type = "softmax"
inputs = ["score"]

[reader.train]
type = "idx"
files = ["train-images", "train-labels"]
batch = 8
shuffle = true
slots.image = { layer = "pixel", scale = 0.00392156862745098 }

[reader.test]
type = "idx"
files = ["test-images", "test-labels"]

[updater]
type = "adam"
learning_rate = 0.05
)";
  }
  // Writes the job with `from` replaced as job.toml.
  void change(const std::string& from, const std::string& to) const {
    std::string text = job();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write("job.toml", text.replace(at, from.size(), to));
  }

 private:
  static std::string header(const std::vector<uint32_t>& shape) {
    std::string result{'\0', '\0', '\x08', static_cast<char>(shape.size())};
    for (const uint32_t extent : shape)
      for (int shift = 24; shift >= 0; shift -= 8) result += static_cast<char>(extent >> shift & 0xff);
    return result;
  }

  const tenon_tests::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

}  // namespace tenon_tests
