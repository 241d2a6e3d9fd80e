// Drives an exhibit of each kind, on whatever host the loader finds: kinds EXHIBITS DEVICES
// SPDX-License-Identifier: Apache-2.0
#include "drive.h"

using namespace drive;

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const Host host(HostOptions{2, {arguments[1], arguments[2]}, nullptr, [](int, const char*) {}, TN_CHECK_ON});
  for (const char* name : {"", "museum.near", "museum.far"}) {
    device = name;
    run_bodies(host, arguments[2]);
  }
  device = "";
  attempt("chosen rows", [&] { run_sequence(host, "museum.chosen"); });
  attempt("product", [&] { run_product(host); });
  attempt("reader", [&] { read_samples(host); });
}
