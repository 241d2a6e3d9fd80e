// A reader of a third party keeps what it found in the data of the training, mean and deviation of each column, in the
// model, as names of its columns, and takes it from there for other data. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Lines of two numbers and, if it is needed, a label. The numbers become (number - mean) / deviation.
class Scaled {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("vendor.scaled", "numbers in the units of the training data");
    d.attribute(tn::string_attribute("file").required().doc("the file to read"));
  }
  explicit Scaled(const tn::ReaderOpen& open) : with_label_(open.needed("label")) {
    std::ifstream file(open.path(open.attributes().text("file")));
    for (std::string line; std::getline(file, line);) {
      std::istringstream numbers(line);
      Row row;
      if (!(numbers >> row.x[0] >> row.x[1]) || (with_label_ && !(numbers >> row.label)))
        throw tn::Failure(TN_BAD_DATA, open.attributes().text("file"), "expected numbers, got " + line);
      rows_.push_back(row);
    }
    const std::vector<std::string_view> learned = open.columns("x");
    for (size_t i = 0; i < 2; ++i) learned.empty() ? measure(i) : parse(learned.at(i), i);
    for (size_t i = 0; i < 2; ++i)
      columns_.push_back("x" + std::to_string(i) + " (mean " + text(mean_[i]) + ", deviation " + text(deviation_[i]) +
                         ")");
    tn::ReaderSlot x{"x", TN_F32, {2}};
    x.names = std::make_shared<const tn::Names>(std::vector<std::string>(), columns_);
    slots_ = {x};
    if (with_label_) slots_.push_back({"label", TN_I64, {}, std::max<int64_t>(open.index_limit("label"), 2)});
  }
  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return static_cast<int64_t>(rows_.size()); }
  void read(int64_t index, tn::Samples& to) const {
    const Row& row = rows_[static_cast<size_t>(index)];
    for (size_t i = 0; i < 2; ++i) to.dense<float>(0)[i] = static_cast<float>((row.x[i] - mean_[i]) / deviation_[i]);
    if (with_label_) *to.dense<int64_t>(1) = row.label;
  }

 private:
  struct Row {
    double x[2] = {};
    int64_t label = 0;
  };

  static std::string text(double number) {
    char digits[40];
    return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
  }
  void measure(size_t i) {
    for (const Row& row : rows_) mean_[i] += row.x[i] / static_cast<double>(rows_.size());
    for (const Row& row : rows_) deviation_[i] += std::pow(row.x[i] - mean_[i], 2) / static_cast<double>(rows_.size());
    deviation_[i] = std::sqrt(deviation_[i]);
  }
  void parse(std::string_view column, size_t i) {
    const auto number_behind = [&](std::string_view word) {
      double number = 0;
      const size_t at = column.find(word);
      const char* const from = column.data() + at + word.size();
      if (at == std::string_view::npos ||
          std::from_chars(from, column.data() + column.size(), number).ec != std::errc())
        throw tn::Failure(TN_INVALID, "x", "the model has a column \"" + std::string(column) + "\" of another reader");
      return number;
    };
    mean_[i] = number_behind("(mean ");
    deviation_[i] = number_behind(", deviation ");
  }

  const bool with_label_;
  std::vector<Row> rows_;
  double mean_[2] = {}, deviation_[2] = {};
  std::vector<std::string> columns_;
  std::vector<tn::ReaderSlot> slots_;
};

void describe_scaled(tn::Plugin& plugin) {
  plugin.about("vendor.scaled", "1.0.0", "a reader of the tests", "Apache-2.0");
  plugin.reader<Scaled>();
}

class OwnStatistics : public testing::Test {
 protected:
  OwnStatistics() {
    host_.add_plugin(tn::entry<describe_scaled>());
    write("train", "1 10 0\n3 30 1\n1 10 0\n3 30 1\n");
  }
  static HostOptions options() {
    HostOptions result;
    result.plugin_paths = {plugin_folder()};
    return result;
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_.file(name)) << text; }
  [[nodiscard]] Reader open(const std::string& file, const std::vector<Names>& names = {},
                            const std::optional<std::vector<std::string>>& needed = {}) const {
    return host_.reader("vendor.scaled", {{"file", file}}, folder_.path().string(), 0, 1, names, 0, false, needed)
        .batch(10);
  }
  static std::vector<float> x_of(const Reader& reader) {
    const Array x = reader.next().at(0);
    const auto* const values = static_cast<const float*>(x.data);
    return {values, values + x.count()};
  }

  const TemporaryFolder folder_;
  const Host host_{options()};
};

TEST_F(OwnStatistics, BelongToTheModel) {
  DataOptions x, label;
  x.name = "x", x.shape = {2};
  label.name = "label", label.dtype = TN_I64, label.index_limit = 2;
  const Layer score = host_.layer("fc", {host_.data(x)}, {{"size", 2}}, "score");
  TrainOptions run;
  run.outputs = {host_.layer("cross_entropy", {score, host_.data(label)}, {{"from_logits", true}}, "cost")};
  run.parameters = host_.parameters(run.outputs, 1);
  run.updater = host_.updater("adam", {{"learning_rate", 0.1}});
  run.reader = open("train");
  run.passes = 2;
  train(run);
  run.parameters.save(run.outputs, folder_.file("model"));
  const Model model = host_.load(folder_.file("model"));
  const std::vector<Names> names = model.parameters.names();
  write("new", "3 10\n5 20\n");
  const Reader fresh = open("new", names, std::vector<std::string>{"x"});
  EXPECT_THAT(x_of(fresh), ElementsAre(1, -1, 3, 0)) << "mean 2 and deviation 1, mean 20 and deviation 10";
  EXPECT_NO_THROW(check_reader(fresh, model.parameters));
  write("labelled", "3 10 0\n5 20 0\n");
  EXPECT_THAT(x_of(open("labelled", names)), ElementsAre(1, -1, 3, 0));
  EXPECT_THAT(x_of(open("labelled")), ElementsAre(-1, -1, 1, 1)) << "without a model its own";
}

// Other data that was opened without the model is refused, not computed with other units.
TEST_F(OwnStatistics, OfOtherDataAreRefused) {
  const Reader trained = open("train");
  const Parameters parameters = [&] {
    DataOptions x;
    x.name = "x", x.shape = {2};
    return host_.parameters({host_.layer("fc", {host_.data(x)}, {{"size", 2}}, "score")}, 1);
  }();
  parameters.set_names(trained.names());
  write("other", "5 10 0\n7 30 1\n");
  try {
    check_reader(open("other"), parameters);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("column 0 is \"x0 (mean 6, deviation 1)\" and is known as \"x0 (mean 2, "
                                        "deviation 1)\""));
  }
  EXPECT_NO_THROW(check_reader(open("other", parameters.names()), parameters));
}

}  // namespace
}  // namespace tenon_tests
