#include <cstdio>
#include <string>
#include <tenon/tenon.hpp>

int main() {
  const tenon::Host host;
  try {
    (void)host.layer("fc", {host.data({"x", TN_F32, {4}})}, {{"size", -1}}, "hidden");
  } catch (const tenon::Error& error) {
    std::printf("%s\n", error.what());  // layer "hidden" (fc): attribute "size": expected an integer of at least 1, got -1
    return error.component() == "layer \"hidden\" (fc)" && error.subject() == "size" ? 0 : 1;
  }
  return 1;
}
