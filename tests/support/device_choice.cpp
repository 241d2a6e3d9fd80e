// Runs the machines of a test on another device: with TENON_TEST_DEVICE=far in the environment a test that asks its
// host for "cpu" gets the test device "far", and native kernels for "cpu" run there, too; with TENON_TEST_DEVICE=cuda
// it gets the device "cuda", which has no such kernels. The linker puts these functions in the place of Host::device
// and Registry::add (--wrap). SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <tenon/plugin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "host/api/host/host.h"
#include "tests/support/far_kernels.h"
#include "tests/support/paths.h"

using tenon::host::Device;
using tenon::host::Host;
using tenon::host::Registry;

// The functions themselves, and what is called in their place.
extern "C" {
std::shared_ptr<Device> __real__ZN5tenon4host4Host6deviceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    Host*, const std::string&);
std::shared_ptr<Device> __wrap__ZN5tenon4host4Host6deviceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    Host*, const std::string&);
void __real__ZN5tenon4host8Registry3addERK9tn_plugin(Registry*, const tn_plugin&);
void __wrap__ZN5tenon4host8Registry3addERK9tn_plugin(Registry*, const tn_plugin&);
}

namespace {

const char* chosen() { return std::getenv("TENON_TEST_DEVICE"); }
bool is_far() { return chosen() != nullptr && std::strcmp(chosen(), "far") == 0; }

const tn_plugin* plugin_of(const std::filesystem::path& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<tn_entry>(dlsym(library, TN_ENTRY_NAME))();
}

void add_kernels(Registry* registry, const tn_plugin& plugin) {
  if (const tn_plugin* const kernels = tenon_tests::far_kernels(plugin))
    __real__ZN5tenon4host8Registry3addERK9tn_plugin(registry, *kernels);
}

// Adds the device, and to far kernels for the layers that come with Tenon.
void add_device(Registry* registry, const std::string& kind) {
  const std::string folder = is_far() ? tenon_tests::test_plugin_folder() : tenon_tests::plugin_folder();
  __real__ZN5tenon4host8Registry3addERK9tn_plugin(registry, *plugin_of(folder + "/devices/" + kind + ".so"));
  if (!is_far()) return;
  for (const auto& entry : std::filesystem::directory_iterator(tenon_tests::plugin_folder() + "/layers"))
    add_kernels(registry, *plugin_of(entry.path()));
}

}  // namespace

std::shared_ptr<Device> __wrap__ZN5tenon4host4Host6deviceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    Host* host, const std::string& name) {
  const auto device = [host](const std::string& of) {
    return __real__ZN5tenon4host4Host6deviceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(host, of);
  };
  const std::string near = "cpu", number = name.substr(std::min(name.size(), near.size()));
  if (chosen() == nullptr || name != near + number || (!number.empty() && number[0] != ':')) return device(name);
  const auto lock = host->registry.setup();  // of threads that find no device, one adds it
  try {
    return device(chosen() + number);
  } catch (const tenon::core::Error& error) {
    if (error.code() != TN_NOT_FOUND) throw;
  }
  add_device(&host->registry, chosen());
  return device(chosen() + number);
}

void __wrap__ZN5tenon4host8Registry3addERK9tn_plugin(Registry* registry, const tn_plugin& plugin) {
  __real__ZN5tenon4host8Registry3addERK9tn_plugin(registry, plugin);
  if (is_far()) add_kernels(registry, plugin);
}
