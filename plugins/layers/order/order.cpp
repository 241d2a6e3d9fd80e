// SPDX-License-Identifier: Apache-2.0
#include "axis.h"

namespace {

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.order", "0.1.0", "Sorting, positions of extremes, elements by positions, cumulative sums",
               "Apache-2.0");
  tenon::order::add_sorting(plugin);
  tenon::order::add_indexing(plugin);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
