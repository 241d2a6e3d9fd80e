// Runs the machines of a test on another device: with TENON_TEST_DEVICE=far in the environment a test that asks its
// host for "cpu" gets the test device "far". The linker puts this function in the place of Host::device (--wrap).
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <tenon/plugin.h>

#include <cstdlib>
#include <stdexcept>

#include "host/api/host.h"
#include "tests/support/paths.h"

using tenon::host::Device;
using tenon::host::Host;

extern "C" {
// Host::device(const std::string&) itself, and what is called in its place.
std::shared_ptr<Device> __real__ZN5tenon4host4Host6deviceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    Host*, const std::string&);
std::shared_ptr<Device> __wrap__ZN5tenon4host4Host6deviceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    Host* host, const std::string& kind) {
  const auto device = [host](const std::string& of) {
    return __real__ZN5tenon4host4Host6deviceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(host, of);
  };
  const char* const chosen = std::getenv("TENON_TEST_DEVICE");
  if (chosen == nullptr || kind != "cpu") return device(kind);
  try {
    return device(chosen);
  } catch (const tenon::core::Error& error) {
    if (error.code() != TN_NOT_FOUND) throw;  // its plugin is not in the folders of this host
  }
  const std::string path = tenon_tests::test_plugin_folder() + "/devices/" + chosen + ".so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  host->registry.add(*reinterpret_cast<tn_entry>(dlsym(library, TN_ENTRY_NAME))());
  return device(chosen);
}
}
