// The core of the device "cpu": descriptor, memory, copies, streams. SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>

#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

TEST(Cpu, DescribesItself) {
  const DeviceUnderTest device;
  const tn_plugin& plugin = *device.plugin();
  EXPECT_STREQ(plugin.id, "tenon.cpu");
  ASSERT_EQ(plugin.devices_count, 1U);
  EXPECT_EQ(plugin.layers_count + plugin.kernels_count + plugin.updaters_count + plugin.readers_count, 0U);
  const tn_device_description& description = *device.type()->description;
  EXPECT_STREQ(description.kind, "cpu");
  EXPECT_EQ(description.dlpack_type, kDLCPU);
  for (const char* const* id = description.tables; *id != nullptr; ++id)
    EXPECT_NE(device.type()->extension(nullptr, *id), nullptr) << *id;
  EXPECT_EQ(device.type()->extension(nullptr, "tenon.pointwise/2"), nullptr);
  EXPECT_EQ(device.type()->count(nullptr, device.errors()), 1);
}

// An id is "tenon.<name>/<revision>".
TEST(Cpu, OffersTheTableOfEachFileOfPrimitives) {
  std::set<std::string> files, tables;
  for (const auto& file : std::filesystem::directory_iterator(source_folder() + "/plugins/devices/cpu/primitives"))
    if (file.path().extension() == ".cpp") files.insert("tenon." + file.path().stem().string());
  const DeviceUnderTest device;
  for (const char* const* id = device.type()->description->tables; *id != nullptr; ++id)
    tables.insert(std::string(*id).substr(0, std::string(*id).find('/')));
  EXPECT_EQ(tables, files);
  EXPECT_TRUE(tables.count("tenon.gemm"));
}

TEST(Cpu, HasOnlyDeviceZero) {
  DeviceUnderTest device;
  void* other = nullptr;
  const tn_device_open open = {sizeof open, 1, device.services(), device.errors(), nullptr};
  EXPECT_EQ(device.type()->open(&open, &other), TN_NOT_FOUND);
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(device.port, "index");
}

TEST(Cpu, PropertiesGoAsFarAsTheStructThatIsGiven) {
  const DeviceUnderTest device;
  tn_device_properties properties = {};
  properties.size = sizeof properties;
  ASSERT_EQ(device.type()->properties(device.device(), device.errors(), &properties), TN_OK);
  EXPECT_EQ(properties.host_memory, 1U);
  EXPECT_NE(properties.name[0], '\0');
  EXPECT_GT(properties.memory_bytes, uint64_t{1} << 20);
  tn_device_properties old = {};
  old.size = offsetof(tn_device_properties, memory_bytes);
  ASSERT_EQ(device.type()->properties(device.device(), device.errors(), &old), TN_OK);
  EXPECT_EQ(old.memory_bytes, 0U);
  EXPECT_STREQ(old.name, properties.name);
}

TEST(Cpu, MemoryIsTheHostsAndCounted) {
  DeviceUnderTest device;
  for (const uint64_t bytes : {0, 1, 1000, 1 << 20}) {
    void* memory = device.type()->allocate(device.device(), device.errors(), bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
    EXPECT_EQ(device.allocated().at(memory), std::max<uint64_t>(bytes, 1));
    device.type()->release(device.device(), memory, bytes);
  }
  EXPECT_TRUE(device.allocated().empty());
  device.refuse_memory = true;
  EXPECT_EQ(device.type()->allocate(device.device(), device.errors(), 12345), nullptr);
  EXPECT_EQ(device.code, TN_OUT_OF_MEMORY);
  EXPECT_NE(device.message.find("12345"), std::string::npos);
}

TEST(Cpu, CopiesAndFillsInStreamsAndEvents) {
  const DeviceUnderTest device;
  const tn_device_type& type = *device.type();
  void *stream = nullptr, *event = nullptr;
  ASSERT_EQ(type.stream_create(device.device(), device.errors(), &stream), TN_OK);
  ASSERT_EQ(type.event_create(device.device(), device.errors(), &event), TN_OK);
  EXPECT_NE(stream, nullptr);
  Guarded a(1000), b(1000);
  EXPECT_EQ(type.fill(device.device(), device.errors(), stream, a.data(), 7, 1000), TN_OK);
  const tn_copy most = {sizeof most, TN_COPY_TO_HOST, stream, b.data(), a.data(), 999};
  EXPECT_EQ(type.copy(device.device(), device.errors(), &most), TN_OK);
  EXPECT_EQ(type.event_record(device.device(), device.errors(), event, stream), TN_OK);
  EXPECT_EQ(type.event_wait(device.device(), device.errors(), event, nullptr), TN_OK);
  EXPECT_EQ(type.stream_wait(device.device(), device.errors(), stream), TN_OK);
  EXPECT_EQ(b.data()[998], 7);
  EXPECT_EQ(b.data()[999], 0xcd);
  EXPECT_TRUE(a.intact() && b.intact());
  const tn_copy nothing = {sizeof nothing, TN_COPY_ON_DEVICE, nullptr, nullptr, nullptr, 0};
  EXPECT_EQ(type.copy(device.device(), device.errors(), &nothing), TN_OK);
  type.event_destroy(device.device(), event);
  type.stream_destroy(device.device(), stream);
}

// open fails with a message if the host lacks the memory service.
TEST(Cpu, NeedsTheHostsMemory) {
  DeviceUnderTest device;
  const tn_services services = {sizeof services, TN_ABI_MAJOR, TN_ABI_MINOR, nullptr,
                                [](void*, const char*) -> const void* { return nullptr; }};
  void* other = nullptr;
  const tn_device_open open = {sizeof open, 0, &services, device.errors(), nullptr};
  EXPECT_EQ(device.type()->open(&open, &other), TN_UNSUPPORTED);
  EXPECT_NE(device.message.find("tenon.memory/1"), std::string::npos);
}

}  // namespace
}  // namespace tenon_tests
