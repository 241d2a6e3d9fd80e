// Devices as the host and kernels use them: tables of other sizes, providers, shared objects, work that fails late.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/device_host.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <tenon/kernel.hpp>
#include <tenon/layer.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::HasSubstr;

const tn_device_type& cpu() {
  const std::string path = plugin_folder() + "/devices/cpu.so";
  static void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return *reinterpret_cast<tn_entry>(dlsym(library, TN_ENTRY_NAME))()->devices[0];
}

// A device of another kind that passes its work on to the cpu's functions; tests replace some of them.
class WrappedCpu {
 public:
  explicit WrappedCpu(const char* kind) : type(cpu()), plugin(bare_plugin("tenon.test.wrapped")) {
    description = *type.description;
    description.kind = kind;
    type.description = &description;
    plugin.devices = devices_;
    plugin.devices_count = 1;
  }
  WrappedCpu(const WrappedCpu&) = delete;
  WrappedCpu& operator=(const WrappedCpu&) = delete;

  tn_device_description description = {};
  tn_device_type type;
  tn_plugin plugin;

 private:
  const tn_device_type* devices_[1] = {&type};
};

// x [samples, inner] -> fc of `width` -> sum of squares.
struct Net {
  Net(const Host& from, const std::string& device, int64_t inner, int64_t width) : host(from) {
    DataOptions x;
    x.name = "x", x.shape = {inner};
    const Layer out = host.layer("fc", {host.data(x)}, {{"size", width}}, "fc");
    cost = host.layer("should_be_true", {host.layer("fc", {out}, {{"size", 1}}, "last")}, {}, "cost");
    parameters = host.parameters({cost}, 1);
    MachineOptions options;
    options.max_samples = 4;
    options.training = true;
    options.device = device;
    machine = host.machine(parameters, {cost}, options);
    values.assign(static_cast<size_t>(4 * inner), 0.25F);
    feeds = {{"x", {TN_F32, {4, inner}, values.data()}}};
  }
  [[nodiscard]] std::vector<std::string> kernels(const std::string& call) const {
    std::vector<std::string> names;
    const json plan = json::parse(machine.plan());
    for (const json& each : plan.at("calls"))
      if (each.at("call") == call) names.push_back(each.at("kernel"));
    return names;
  }

  const Host& host;
  Layer cost;
  Parameters parameters;
  Machine machine;
  std::vector<float> values;
  std::vector<Feed> feeds;
};

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return tn_status_text(error.code()) + std::string(": ") + error.what();
  }
  return "";
}

// S10: a table ends earlier than that of 0.2; what lies behind it is not read.
TEST(DeviceTables, ShortOnesAreNotReadBehindTheirEnd) {
  WrappedCpu wrapped("short");
  wrapped.type.extension = [](void*, const char* id) -> const void* {
    static const struct {
      uint32_t size, opset;
      uint64_t behind[4];
    } table = {8, TN_OPSET, {0x4141414141414141, 0x4141414141414141, 0x4141414141414141, 0x4141414141414141}};
    return std::strcmp(id, TN_POINTWISE) == 0 ? &table : cpu().extension(nullptr, id);
  };
  const Host host({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&wrapped.plugin);
  EXPECT_THAT(
      message_of([&] { const Net net(host, "short", 3, 2); }),
      HasSubstr("device \"short\": table \"tenon.pointwise/1\" of tenon.test.wrapped states a size of 8 bytes"));
}

TEST(DeviceTables, UnsoundSizesAreTheDevicesFault) {
  WrappedCpu wrapped("odd");
  wrapped.type.extension = [](void*, const char* id) -> const void* {
    static const uint32_t table[4] = {3, 0, 0, 0};
    return std::strcmp(id, TN_POINTWISE) == 0 ? table : cpu().extension(nullptr, id);
  };
  const Host host({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&wrapped.plugin);
  EXPECT_THAT(message_of([&] { const Net net(host, "odd", 3, 2); }), HasSubstr("states a size of 3 bytes"));
}

// A device without memory of the host that lends a table of its own beside those of the cpu, of any size, with any of
// its functions missing. None of them may be called: they are no functions.
class LendingOddly : public WrappedCpu {
 public:
  LendingOddly(const char* id, uint32_t bytes, uint32_t size, size_t missing) : WrappedCpu("oddly") {
    lent_id = id;
    lent.assign(bytes / sizeof(uint64_t), 0x4141414141414141);
    lent[0] = size;
    lent[1 + missing] = 0;
    type.properties = [](void*, const tn_errors*, tn_device_properties*) -> tn_status { return TN_OK; };
    type.extension = [](void* user, const char* asked) -> const void* {
      return lent_id == asked ? lent.data() : cpu().extension(user, asked);
    };
  }

 private:
  static inline std::string lent_id;
  static inline std::vector<uint64_t> lent;
};

TEST(DeviceTables, WithoutAFunctionAreNotUsed) {
  for (const auto& [id, bytes] : {std::pair<const char*, uint32_t>{TN_HOST_MEMORY, sizeof(tn_host_memory_table)},
                                  {TN_CAPTURE, sizeof(tn_capture_table)},
                                  {TN_PACKED_GEMM, sizeof(tn_packed_gemm_table)},
                                  {TN_GATHER_GEMM, sizeof(tn_gather_gemm_table)},
                                  {TN_GEMM_EPILOGUE, sizeof(tn_gemm_epilogue_table)}}) {
    const size_t functions = bytes / sizeof(uint64_t) - (std::strcmp(id, TN_PACKED_GEMM) == 0 ? 2 : 1);
    for (size_t missing = 0; missing < functions; ++missing) {
      SCOPED_TRACE(std::string(id) + " without function " + std::to_string(missing));
      LendingOddly oddly(id, bytes, bytes, missing);
      const Host host({1, {plugin_folder()}, nullptr, {}});
      host.add_plugin(&oddly.plugin);
      const Net net(host, "oddly", 3, 2), near(host, "cpu", 3, 2);
      for (int step = 0; step < 3; ++step)
        for (const Net* each : {&net, &near}) {
          each->machine.forward(each->feeds);
          each->machine.backward();
        }
      EXPECT_EQ(net.machine.cost(), near.machine.cost());
    }
    for (uint32_t size = 0; size < bytes; size += 4) {
      SCOPED_TRACE(std::string(id) + " of " + std::to_string(size) + " bytes");
      LendingOddly oddly(id, bytes, size, 0);
      const Host host({1, {plugin_folder()}, nullptr, {}});
      host.add_plugin(&oddly.plugin);
      const auto trains = [&] {
        const Net net(host, "oddly", 3, 2);
        net.machine.forward(net.feeds);
      };
      const bool is_asked = std::strcmp(id, TN_HOST_MEMORY) == 0 || std::strcmp(id, TN_CAPTURE) == 0;
      const std::string message = message_of(trains);  // "": the net has no call of the table
      if (is_asked || !message.empty()) {
        EXPECT_THAT(message, HasSubstr("of tenon.test.wrapped states a size of " + std::to_string(size)));
      }
    }
  }
}

// ---- late failures

// Makes copies fail after they have been enqueued: the next function with an error sink reports it.
class LateDevice : public WrappedCpu {
 public:
  LateDevice() : WrappedCpu("late") {
    armed = false;
    failed = 0;
    type.properties = [](void*, const tn_errors*, tn_device_properties*) -> tn_status {
      return TN_OK;
    };  // no memory of the host
    type.copy = [](void* device, const tn_errors* errors, const tn_copy* copy) -> tn_status {
      if (const tn_status status = earlier(errors); status != TN_OK) return status;
      if (armed) failed = copy->bytes;
      return cpu().copy(device, errors, copy);
    };
    type.stream_wait = [](void*, const tn_errors* errors, void*) -> tn_status { return earlier(errors); };
  }
  static bool armed;
  static uint64_t failed;  // bytes of the copy whose failure has not been reported; 0: none

 private:
  static tn_status earlier(const tn_errors* errors) {
    if (failed == 0) return TN_OK;
    const std::string text = "a copy of " + std::to_string(failed) + " bytes was lost on the way";
    failed = 0;
    return tn_fail(errors, TN_IO, nullptr, text.c_str());
  }
};
bool LateDevice::armed = false;
uint64_t LateDevice::failed = 0;

TEST(LateFailures, TheirTextArrives) {
  LateDevice late;
  const Host host({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&late.plugin);
  const Net net(host, "late", 3, 2);
  const Updater updater = host.updater("sgd", {{"learning_rate", 0.1}});
  const auto step = [&] {
    net.machine.forward(net.feeds);
    net.machine.backward();
    updater.update(net.machine);
  };
  step();
  LateDevice::armed = true;
  EXPECT_THAT(message_of(step), testing::MatchesRegex(".*device \"late\": a copy of [0-9]+ bytes was lost on the way"));
  LateDevice::armed = false;
  EXPECT_EQ(message_of(step), "") << "it is reported once";
}

// ---- memory for copies

// Lends memory for copies, and counts the copies that use other memory of the host.
class LendingDevice : public WrappedCpu {
 public:
  LendingDevice() : WrappedCpu("lending") {
    lent.clear();
    inside = outside = 0;
    type.properties = [](void*, const tn_errors*, tn_device_properties*) -> tn_status {
      return TN_OK;
    };  // no memory of the host
    type.extension = [](void* user, const char* id) -> const void* {
      return std::strcmp(id, TN_HOST_MEMORY) == 0 ? &kLending : cpu().extension(user, id);
    };
    type.copy = [](void* device, const tn_errors* errors, const tn_copy* copy) -> tn_status {
      if (copy->kind != TN_COPY_ON_DEVICE) count(copy->kind == TN_COPY_TO_DEVICE ? copy->from : copy->to, copy->bytes);
      return cpu().copy(device, errors, copy);
    };
  }
  static std::map<const std::byte*, uint64_t> lent;  // bytes by address
  static int inside, outside;                        // copies

 private:
  static void* allocate(void* device, const tn_errors* errors, uint64_t bytes) {
    void* const made = cpu().allocate(device, errors, bytes);
    lent.emplace(static_cast<const std::byte*>(made), bytes);
    return made;
  }
  static void release(void* device, void* memory, uint64_t bytes) {
    EXPECT_EQ(lent.at(static_cast<const std::byte*>(memory)), bytes);
    lent.erase(static_cast<const std::byte*>(memory));
    cpu().release(device, memory, bytes);
  }
  static void count(const void* at, uint64_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(at);
    auto block = lent.upper_bound(begin);
    const bool within = block != lent.begin() && (--block, begin + bytes <= block->first + block->second);
    ++(within ? inside : outside);
  }
  static constexpr tn_host_memory_table kLending = {sizeof(tn_host_memory_table), 0, &allocate, &release};
};
std::map<const std::byte*, uint64_t> LendingDevice::lent;
int LendingDevice::inside = 0;
int LendingDevice::outside = 0;

TEST(MemoryForCopies, IsThatOfTheDevice) {
  LendingDevice lending;
  {
    const Host host({1, {plugin_folder()}, nullptr, {}});
    host.add_plugin(&lending.plugin);
    const Net net(host, "lending", 1024, 1100);  // a weight of more than 4 MiB
    net.machine.forward(net.feeds);
    net.machine.backward();
    host.updater("sgd", {{"learning_rate", 0.1}}).update(net.machine);
    EXPECT_EQ(net.parameters.get("fc.weight").count(), 1024 * 1100);
    const Net near(host, "cpu", 1024, 1100);
    near.machine.forward(near.feeds);
    net.machine.forward(net.feeds);
    EXPECT_NE(net.machine.cost(), near.machine.cost()) << "the update did not arrive";
    EXPECT_GT(LendingDevice::inside, 5);
    EXPECT_EQ(LendingDevice::outside, 0);
    EXPECT_FALSE(LendingDevice::lent.empty());
  }
  EXPECT_TRUE(LendingDevice::lent.empty()) << "memory was not released";
}

// ---- providers and shared objects

// Counts the shared objects of the provider and of kernels.
struct Counts {
  int asked = 0, opened = 0, open = 0, products = 0;
  bool refuses = false;
};
Counts counts;

tn_status open_shared(const tn_services*, const tn_errors* errors, const tn_device* device, void* user, void** shared) {
  if (std::strcmp(device->kind, "cpu") != 0 || device->index != 0 || user != &counts)
    return tn_fail(errors, TN_INVALID, nullptr, "another device or user");
  ++counts.asked;
  if (counts.refuses) return tn_fail(errors, TN_UNSUPPORTED, nullptr, "the library is too old");
  const auto* table = static_cast<const tn_gemm_table*>(device->table(device->self, TN_GEMM, sizeof(tn_gemm_table)));
  if (table == nullptr || table->prepare == nullptr || device->table(device->self, "tenon.none/1", 8) != nullptr)
    return tn_fail(errors, TN_INVALID, nullptr, "the tables of the device are not those of the cpu");
  ++counts.opened, ++counts.open;
  *shared = new std::pair<const tn_device*, const tn_gemm_table*>(device, table);
  return TN_OK;
}
void close_shared(void* shared) {
  --counts.open;
  delete static_cast<std::pair<const tn_device*, const tn_gemm_table*>*>(shared);
}
const tn_shared kShared = {sizeof kShared, 0, open_shared, close_shared, &counts};

// Takes products with an inner side of at least 64 and at least 32 columns; has the cpu's table compute them.
tn_status prepare_long(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                       tn_prepared* prepared) {
  if (gemm->k.symbol != TN_SYMBOL_NONE || gemm->k.offset < 64 || gemm->n.offset < 32)
    return tn_fail(errors, TN_UNSUPPORTED, nullptr, "a short or narrow product");
  const auto& [cpu_device, table] = *static_cast<std::pair<const tn_device*, const tn_gemm_table*>*>(device);
  ++counts.products;
  return table->prepare(cpu_device->instance, services, errors, gemm, prepared);
}
const tn_gemm_table kLongProducts = {sizeof kLongProducts, 0, prepare_long};
const tn_provider kProvider = {sizeof kProvider, 5, "cpu", TN_GEMM, "long_products", &kLongProducts, &kShared};

// A layer whose kernel needs the shared object.
struct Sharing {
  static void describe(tn::LayerDescription& d) {
    d.type("test_sharing", "out = in.");
    d.input("in", "any shape");
    d.output("out", "the shape of in");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
};
class SharingKernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("test_sharing", "cpu", "sharing", 1);
    d.shared(&kShared);
  }
  static bool supports(const tn::KernelSite& site, int32_t&) { return site->shared == nullptr; }
  SharingKernel(const tn::KernelSite& site, int32_t direction) : from_(direction == TN_BACKWARD ? 2 : 0) {
    if (site->shared == nullptr) throw tn::Failure(TN_INVALID, "", "no shared object");
  }
  void run(const tn::Call& call) const {
    std::memcpy(call.out<float>(0), call.in<float>(from_),
                sizeof(float) * static_cast<size_t>(call.output(0)->dl.shape[0] * call.output(0)->dl.shape[1]));
  }

 private:
  uint32_t from_;
};

class Sharers {
 public:
  Sharers() : plugin(bare_plugin("tenon.test.provider")) {
    plugin.layers = layers_;
    plugin.layers_count = 1;
    plugin.kernels = kernels_;
    plugin.kernels_count = 1;
    plugin.providers = providers_;
    plugin.providers_count = 1;
    counts = {};
  }
  tn_plugin plugin;

 private:
  const tn_layer_type* layers_[1] = {tn::layer_type<Sharing>()};
  const tn_kernel* kernels_[1] = {tn::kernel<SharingKernel>()};
  const tn_provider* providers_[1] = {&kProvider};
};

TEST(Providers, ReplaceTheDevicesTableForTheCallsTheyTake) {
  const Sharers sharers;
  const Host host({1, {plugin_folder()}, nullptr, {}}), plain({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&sharers.plugin);
  const Net small(host, "cpu", 8, 40), large(host, "cpu", 70, 40), expected(plain, "cpu", 70, 40);
  EXPECT_THAT(small.kernels("gemm"), testing::Each("tenon.cpu"));
  EXPECT_THAT(large.kernels("gemm"), testing::Contains("long_products"));
  EXPECT_THAT(large.kernels("gemm"), testing::Contains("tenon.cpu")) << "the last layer has one column";
  large.machine.forward(large.feeds);
  expected.machine.forward(expected.feeds);
  EXPECT_NEAR(large.machine.cost(), expected.machine.cost(), 1e-5);
  EXPECT_EQ(counts.opened, 1);
}

TEST(Providers, ShareOneObjectPerDeviceWithKernels) {
  const Sharers sharers;
  {
    const Host one({1, {plugin_folder()}, nullptr, {}}), two({1, {plugin_folder()}, nullptr, {}});
    for (const Host* host : {&one, &two}) {
      host->add_plugin(&sharers.plugin);
      DataOptions x;
      x.name = "x", x.shape = {3};
      Layer last = host->data(x);
      for (int i = 0; i < 3; ++i) last = host->layer("test_sharing", {last}, {}, "sharing" + std::to_string(i));
      MachineOptions options;
      options.max_samples = 2;
      const Machine machine = host->machine(host->parameters({last}, 1), {last}, options);
      const float values[] = {1, 2, 3, 4, 5, 6};
      machine.forward({{"x", {TN_F32, {2, 3}, values}}});
      EXPECT_EQ(static_cast<const float*>(machine.output(last).data)[5], 6);
    }
    EXPECT_EQ(counts.opened, 2) << "one for each host";
    EXPECT_EQ(counts.open, 2);
  }
  EXPECT_EQ(counts.open, 0) << "closed with the devices";
}

// An object that cannot be made here is asked for once; the device's own table takes its place.
TEST(Providers, ArePassedOverWithoutTheirSharedObject) {
  const Sharers sharers;
  const Host host({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&sharers.plugin);
  counts.refuses = true;
  const Net net(host, "cpu", 70, 40);
  EXPECT_THAT(net.kernels("gemm"), testing::Each("tenon.cpu"));
  EXPECT_EQ(counts.asked, 1);
  DataOptions x;
  x.name = "y", x.shape = {3};
  const Layer sharing = host.layer("test_sharing", {host.data(x)}, {}, "sharing");
  EXPECT_THAT(message_of([&] { (void)host.machine(host.parameters({sharing}, 1), {sharing}, {}); }),
              testing::AllOf(HasSubstr("layer \"sharing\" (test_sharing)"), HasSubstr("kernel \"sharing\""),
                             HasSubstr("the library is too old")));
}

TEST(Providers, WithATableOfAnUnsoundSizeAreRefused) {
  for (const uint32_t size : {4U, 8U, 20U, 0x7ffffff8U}) {
    const tn_gemm_table table = {size, 0, prepare_long};
    const tn_provider odd = {sizeof odd, 5, "cpu", TN_GEMM, "odd", &table, nullptr};
    const tn_provider* const list[] = {&odd};
    tn_plugin plugin = bare_plugin("tenon.test.odd");
    plugin.providers = list;
    plugin.providers_count = 1;
    const Host host({1, {plugin_folder()}, nullptr, {}});
    EXPECT_THAT(message_of([&] { host.add_plugin(&plugin); }),
                HasSubstr("provider \"odd\": its table states a size of " + std::to_string(size) + " bytes"));
    const Net net(host, "cpu", 3, 2);
  }
}

}  // namespace

}  // namespace tenon_tests
