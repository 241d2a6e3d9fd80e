// Plans of cuDNN for the convolutions of the examples, for GPUs that are described and need not be there. Skipped
// without cuDNN 9.8 or later. SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <tenon/base.hpp>

#include "plugins/devices/cuda/dnn/conv_plan.h"
#include "tests/devices/image_case.h"
#include "tests/support/paths.h"

namespace tenon_tests {
namespace {

using namespace tenon::cuda;

// A GPU's properties as cuDNN reads them, from the data sheets of its maker.
struct Gpu {
  const char* name;
  int capability, processors, l2_cache, block_memory, driver;
  int64_t memory;
};
constexpr Gpu kGpus[] = {{"NVIDIA A100", 80, 108, 40 << 20, 166912, 13000, 40LL << 30},
                         {"NVIDIA H100", 90, 132, 50 << 20, 232448, 13000, 80LL << 30},
                         {"NVIDIA B200", 100, 148, 126 << 20, 232448, 13000, 180LL << 30}};

std::string json_of(const Gpu& gpu) {
  std::string text = "{\"deviceName\": \"" + std::string(gpu.name) +
                     "\", \"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64]";
  const std::pair<const char*, int64_t> numbers[] = {{"smVersion", 10 * gpu.capability},
                                                     {"deviceVer", 10 * gpu.capability},
                                                     {"multiProcessorCount", gpu.processors},
                                                     {"l2CacheSize", gpu.l2_cache},
                                                     {"maxSharedMemoryPerBlockOptin", gpu.block_memory},
                                                     {"totalGlobalMem", gpu.memory},
                                                     {"driverVer", gpu.driver},
                                                     {"warpSize", 32},
                                                     {"regsPerBlock", 65536},
                                                     {"maxRegistersPerSM", 65536},
                                                     {"maxCtasPerSM", 32},
                                                     {"maxThreadsPerBlock", 1024},
                                                     {"maxThreadsPerSM", 2048},
                                                     {"maxSharedMemoryPerBlock", 49152},
                                                     {"reservedSharedMemoryPerBlock", 1024},
                                                     {"smClockRateKHz", 1980000},
                                                     {"memClockRateKHz", 2619000},
                                                     {"supportCoopLaunch", 1},
                                                     {"isTccDriver", 0},
                                                     {"pciDeviceId", 0},
                                                     {"cudaDeviceId", 0}};
  for (const auto& [name, number] : numbers) text += ", \"" + std::string(name) + "\": " + std::to_string(number);
  return text + "}";
}

struct Site {
  tn_window window;
  int64_t channels, filters, groups;
};

// Reads the convolutions of the examples, which tests/bindings/python/test_example_convolutions.py lists.
std::vector<Site> sites() {
  std::ifstream file(source_folder() + "/tests/devices/example_convolutions.json");
  std::vector<Site> result;
  for (const auto& each : nlohmann::json::parse(file)) {
    tn_window window = {};
    window.size = sizeof window;
    window.rank = static_cast<int32_t>(each.at("images").size());
    const auto read = [&](const char* key, int64_t(&to)[TN_MAX_SPACE]) {
      for (size_t i = 0; i < each.at(key).size(); ++i) to[i] = each.at(key)[i];
    };
    read("images", window.images);
    read("kernel", window.kernel);
    read("stride", window.stride);
    read("dilation", window.dilation);
    read("before", window.before);
    read("after", window.after);
    result.push_back({window, each.at("channels"), each.at("filters"), each.at("groups")});
  }
  return result;
}

TEST(CudaPlans, EveryConvolutionOfTheExamples) {
  std::optional<DnnFunctions> dnn;
  try {
    dnn.emplace();
  } catch (const tn::Failure& failure) {
    GTEST_SKIP() << "no cuDNN: " << failure.what();
  }
  if (dnn->cudnnGetVersion() < 90800) GTEST_SKIP() << "cuDNN before 9.8 makes no plans without a GPU";
  for (const Gpu& gpu : kGpus) {
    Descriptor properties(*dnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    const std::string json = json_of(gpu);
    properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(json.size()),
                   json.data());
    properties.finalize();
    const DnnTarget target = {&*dnn, nullptr, &properties, gpu.capability};
    int plans = 0, adding = 0;
    uint64_t workspace = 0;
    std::set<int64_t> engines;
    for (const Site& site : sites())
      for (const int32_t op : {TN_CONV_RESULTS, TN_CONV_IMAGES, TN_CONV_WEIGHTS}) {
        SCOPED_TRACE(gpu.name + (" " + text(site.window)) + std::to_string(site.channels) + " to " +
                     std::to_string(site.filters) + " op " + std::to_string(op));
        ConvProblem problem = {op, site.window, 128, site.channels, site.filters, site.groups};
        const auto most = find_plan(target, problem, uint64_t{256} << 20);
        if (!most) {
          ADD_FAILURE() << "no plan";
          continue;
        }
        ++plans;
        workspace = std::max(workspace, most->workspace_bytes);
        engines.insert(most->engine.number);
        problem.samples = 96;  // the rest of a pass
        EXPECT_TRUE(plan_on(target, problem, most->engine, most->workspace_bytes)) << "96 samples";
        problem.adds = true;
        if (plan_on(target, problem, most->engine, most->workspace_bytes)) ++adding;
      }
    std::cout << gpu.name << ": " << plans << " plans, " << adding << " that add, on " << engines.size()
              << " engines, at most " << workspace << " bytes of workspace\n";
  }
}

}  // namespace
}  // namespace tenon_tests
