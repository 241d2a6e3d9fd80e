// The plugins of tests/museum: this host trains with those of every version that it promises to run, and refuses older
// ones with the reason. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kMuseum = fs::path(tenon_tests::source_folder()) / "tests/museum";
const fs::path kBuilt = fs::path(tenon_tests::test_plugin_folder()) / "museum";  // from the present sources

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The plugins below a folder, without those of folders in it.
std::vector<fs::path> plugins_in(const fs::path& folder) {
  std::vector<fs::path> result;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".so") result.push_back(entry.path());
  std::sort(result.begin(), result.end());
  return result;
}

// A line of tests/sdk/abi_history.txt.
struct Version {
  std::string number;
  bool refused, released;
};

std::vector<Version> versions() {
  std::ifstream file(fs::path(tenon_tests::source_folder()) / "tests/sdk/abi_history.txt");
  const std::regex form(R"((\d+\.\d+) (refused|[0-9a-f]{16})( released)?)");
  std::vector<Version> result;
  for (std::string line; std::getline(file, line);)
    if (std::smatch match; std::regex_match(line, match, form))
      result.push_back({match[1], match[2] == "refused", match[3].matched});
  return result;
}

// ---- what every exhibit of interface 0.2 and later does

constexpr int kSamples = 8, kPasses = 40;
constexpr double kRate = 0.1, kKeep = 0.5;

// The weights of museum.scale after the training below, computed from the formulas in fp64.
std::vector<double> expected_weights(double keep) {
  double weight[2] = {0.25, 0.25}, velocity[2] = {0, 0};
  for (int pass = 0; pass < kPasses; ++pass) {
    double gradient[2] = {0, 0};
    for (int i = 0; i < kSamples; ++i) {
      const double at = static_cast<double>(i) / kSamples, x[2] = {at, 1 - at};
      const double y[2] = {3 * x[0] + 0.5, 0.5 - 2 * x[1]};
      for (int c = 0; c < 2; ++c) gradient[c] += 2 * (weight[c] * x[c] + 0.5 - y[c]) * x[c] / kSamples;
    }
    for (int c = 0; c < 2; ++c) {
      velocity[c] = keep * velocity[c] + gradient[c];
      weight[c] -= kRate * velocity[c];
    }
  }
  return {weight[0], weight[1]};
}

// Trains with the exhibits of a folder: all samples in one minibatch, one update for each pass.
std::vector<double> trained_weights(const fs::path& folder, bool native, bool momentum) {
  const Host host(HostOptions{2, {folder.string(), tenon_tests::plugin_folder()}, nullptr, {}, TN_CHECK_ON});
  DataOptions x, y;
  x.name = "x";
  y.name = "y";
  x.shape = y.shape = {2};
  const Layer scale = host.layer("museum.scale", {host.data(x)}, {{"native", native}}, "scale");
  const Layer cost = host.layer("museum.distance", {scale, host.data(y)}, {}, "cost");
  TrainOptions options;
  options.outputs = {cost};
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = momentum ? host.updater("museum.momentum", {{"learning_rate", kRate}, {"keep", kKeep}})
                             : host.updater("museum.descent", {{"learning_rate", kRate}});
  options.reader = host.reader("museum.line", {{"samples", int64_t{kSamples}}}).batch(kSamples);
  options.passes = kPasses;
  MachineOptions machine;
  machine.training = true;
  machine.max_samples = kSamples;
  const json plan = json::parse(host.machine(options.parameters, options.outputs, machine).plan());
  const json& calls = plan.at("calls");
  EXPECT_EQ(
      std::any_of(calls.begin(), calls.end(), [](const json& call) { return call.at("kernel") == "museum_scale"; }),
      native)
      << plan;
  train(options);
  const auto* const weight = static_cast<const float*>(options.parameters.get("scale.weight").data);
  return {weight[0], weight[1]};
}

void expect_trains(const fs::path& folder) {
  for (const bool native : {false, true})
    for (const bool momentum : {false, true}) {
      const std::vector<double> expected = expected_weights(momentum ? kKeep : 0);
      const std::vector<double> weights = trained_weights(folder, native, momentum);
      for (size_t c = 0; c < 2; ++c)
        EXPECT_NEAR(weights[c], expected[c], 1e-5) << folder << " native " << native << " momentum " << momentum;
    }
}

TEST(Museum, HasEveryVersionOnce) {
  const std::vector<Version> all = versions();
  ASSERT_GE(all.size(), 2U);
  EXPECT_EQ(all.front().number, "0.1");
  EXPECT_EQ(all.back().number, std::to_string(TN_ABI_MAJOR) + "." + std::to_string(TN_ABI_MINOR));
  for (const Version& version : all) {
    SCOPED_TRACE(version.number);
    size_t sources = 0;
    ASSERT_TRUE(fs::is_directory(kMuseum / version.number));
    for (const auto& entry : fs::directory_iterator(kMuseum / version.number))
      sources += entry.path().extension() == ".c" || entry.path().extension() == ".cpp" ? 1 : 0;
    EXPECT_GE(sources, 2U) << "a plugin in C and one in C++";
    const size_t plugins = plugins_in(kMuseum / version.number).size();
    if (version.refused || version.released) {
      EXPECT_EQ(plugins, sources) << "tests/museum/make makes them when the version is released";
    }
    for (const fs::path& file : plugins_in(kMuseum / version.number)) EXPECT_LT(fs::file_size(file), 64U << 10) << file;
  }
}

TEST(Museum, PresentSourcesTrain) {
  const fs::path folder = kBuilt / versions().back().number;
  ASSERT_EQ(plugins_in(folder / "layers").size(), 4U);
  expect_trains(folder);
}

// A plugin that uses what a version appended requires that version; hosts before it refuse it.
TEST(Museum, PresentSourcesUseWhatWasAppended) {
  const std::string present = versions().back().number;
  const Host host(HostOptions{1, {(kBuilt / present).string(), plugin_folder()}, nullptr, {}, TN_CHECK_ON});
  size_t found = 0;
  int newest = 0;
  for (const json& plugin : json::parse(host.plugins())) {
    const json& manifest = plugin.at("manifest");
    if (!manifest.at("id").get<std::string>().starts_with("tenon.museum.")) continue;
    newest = std::max(newest, manifest.at("abi").at("required").get<int>());
    ++found;
  }
  EXPECT_EQ(found, 4U);
  EXPECT_EQ(newest, TN_ABI_MINOR);
  DataOptions a, b, label;
  a.name = "a", b.name = "b", label.name = "label", label.dtype = TN_I32;
  a.shape = b.shape = {2};
  const Layer cost = host.layer("museum.distance", {host.data(a), host.data(b), host.data(label)}, {}, "cost");
  MachineOptions options;
  options.max_samples = 3;
  const Machine machine = host.machine(host.parameters({cost}, 1), {cost}, options);
  const float zeros[6] = {};
  const auto run = [&](std::vector<int32_t> labels) {
    machine.forward(
        {{"a", {TN_F32, {3, 2}, zeros}}, {"b", {TN_F32, {3, 2}, zeros}}, {"label", {TN_I32, {3}, labels.data()}}});
  };
  run({0, -1, 1});
  EXPECT_THAT(
      [&] {
        run({0, -2, 1});
      },
      testing::ThrowsMessage<Error>(HasSubstr("sample 1 of the minibatch is -2; layer \"cost\" needs 0 to 1, or -1")));
}

// The reader says its columns, takes over those of a model, leaves out a slot that is not needed, and counts records.
TEST(Museum, PresentSourcesReadWhatAModelNeeds) {
  const Host host(
      HostOptions{1, {(kBuilt / versions().back().number).string(), plugin_folder()}, nullptr, {}, TN_CHECK_ON});
  const Attributes four{{"samples", 4}};
  std::vector<Names> known = host.reader("museum.line", four).names();
  ASSERT_EQ(known.at(0).slot, "x");
  EXPECT_THAT(known[0].columns, testing::ElementsAre("at", "rest"));
  std::swap(known[0].columns[0], known[0].columns[1]);
  const Reader all = host.reader("museum.line", four, {}, 0, 1, known);
  EXPECT_EQ(slots(all).size(), 2U);
  const Reader turned =
      host.reader("museum.line", four, {}, 0, 1, known, 0, false, std::vector<std::string>{"x"}).batch(4);
  EXPECT_EQ(slots(turned).size(), 1U);
  const auto* const x = static_cast<const float*>(turned.next().at(0).data);
  EXPECT_THAT(std::vector<float>(x, x + 4), testing::ElementsAre(1, 0, 0.75, 0.25));
  EXPECT_EQ(turned.record(3), 6);
  EXPECT_EQ(turned.left_out(), 4);
  EXPECT_EQ(turned.text(3, "number"), "6");
  EXPECT_THAT([&] { (void)turned.text(0, "name"); }, testing::ThrowsMessage<Error>(HasSubstr("unknown column")));
}

// Of images whose elements ascend, maxima are at the ends of their windows.
TEST(Museum, PresentSourcesComputeImages) {
  const Host host(
      HostOptions{1, {(kBuilt / versions().back().number).string(), plugin_folder()}, nullptr, {}, TN_CHECK_ON});
  const Layer images = host.layer("museum.images", {host.data({"x", TN_F32, {4, 4, 1}})}, {}, "images");
  const Layer cost = host.layer("sum_cost", {images}, {}, "cost");
  MachineOptions options;
  options.training = true;
  const Machine machine = host.machine(host.parameters({images, cost}, 1), {images, cost}, options);
  float x[4][4];
  for (int i = 0; i < 16; ++i) x[i / 4][i % 4] = static_cast<float>(i * i);
  machine.forward({{"x", {TN_F32, {1, 4, 4, 1}, x}}});
  machine.backward();
  const auto* const made = static_cast<const float*>(machine.output(images).data);
  const auto* const gradient = static_cast<const float*>(machine.gradient("images.weight").data);
  float expected_gradient[4] = {};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int row = i / 2 + 1, column = j / 2 + 1;
      EXPECT_FLOAT_EQ(made[i * 4 + j],
                      0.25F * (x[row][column] + x[row][column + 1] + x[row + 1][column] + x[row + 1][column + 1]));
      for (int k = 0; k < 4; ++k) expected_gradient[k] += x[row + k / 2][column + k % 2];
    }
  for (int k = 0; k < 4; ++k) EXPECT_FLOAT_EQ(gradient[k], expected_gradient[k]);
}

TEST(Museum, PresentSourcesScanSequences) {
  const Host host(
      HostOptions{1, {(kBuilt / versions().back().number).string(), plugin_folder()}, nullptr, {}, TN_CHECK_ON});
  DataOptions x;
  x.name = "x", x.shape = {1}, x.storage = TN_RAGGED;
  const Layer sums = host.layer("museum.sums", {host.data(x)}, {}, "sums");
  const Layer cost = host.layer("sum_cost", {sums}, {}, "cost");
  MachineOptions options;
  options.training = true, options.max_samples = 3;
  const Machine machine = host.machine(host.parameters({sums, cost}, 1), {sums, sums.output(1), cost}, options);
  const float rows[] = {1, 2, 3, 4};
  const int64_t offsets[] = {0, 3, 3, 4};
  machine.forward({{"x", Array::sequences(TN_F32, {4, 1}, rows, 3, offsets)}});
  machine.backward();
  const auto values = [](const Array& array) {
    const auto* const first = static_cast<const float*>(array.data);
    return std::vector<float>(first, first + array.count());
  };
  EXPECT_THAT(values(machine.output(sums)), testing::ElementsAre(1.5, 1.25, 0.75, 1));
  EXPECT_THAT(values(machine.output(sums.output(1))), testing::ElementsAre(1.5, 0, 1));
  EXPECT_THAT(values(machine.gradient("sums.weight")), testing::ElementsAre((6 + 5 + 3 + 4) / 4.0F));
}

TEST(Museum, VersionsThatThisHostPromisesToRunTrain) {
  for (const Version& version : versions())
    if (!version.refused && !plugins_in(kMuseum / version.number).empty()) expect_trains(kMuseum / version.number);
}

bool is_mapped(const fs::path& path) { return content("/proc/self/maps").find(path.string()) != std::string::npos; }

// Returns the message of a call that must fail with TN_REFUSED.
template <typename Ask>
std::string refusal(Ask ask) {
  try {
    ask();
  } catch (const tenon::Error& error) {
    EXPECT_EQ(error.code(), TN_REFUSED) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

TEST(Museum, Interface01IsRefused) {
  const Host host(HostOptions{1, {(kMuseum / "0.1").string()}, nullptr, {}});
  const json all = json::parse(host.plugins());
  ASSERT_EQ(all.size(), 3U);
  for (const json& entry : all) {
    const std::string file = entry["file"];
    EXPECT_EQ(entry["status"], "refused") << file;
    EXPECT_THAT(entry["reason"].get<std::string>(),
                AllOf(HasSubstr(file), HasSubstr("it was built with version 0.1 of the plugin interface; this host "
                                                 "offers version 0.4 and accepts plugins built with 0.2 or later; "
                                                 "rebuild the plugin with the SDK of this Tenon")));
    EXPECT_FALSE(is_mapped(file)) << file;
  }
  for (const std::string& message :
       {refusal([&] { (void)host.layer("test_scale", {}); }), refusal([&] { (void)host.layer("example.swish", {}); }),
        refusal([&] { (void)host.updater("sgd", {}); })})
    EXPECT_THAT(message, AllOf(HasSubstr("built with version 0.1"), HasSubstr("offers version 0.4")));
}

}  // namespace
}  // namespace tenon_tests
