// The plugin tenon.metrics. SPDX-License-Identifier: Apache-2.0
#include "metrics.h"

namespace {

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.metrics", "0.1.0", "Metrics of numbers, classes, decisions, chunks and sequences", "Apache-2.0");
  tenon::metrics::add_means(plugin);
  tenon::metrics::add_agreement(plugin);
  tenon::metrics::add_classes(plugin);
  tenon::metrics::add_decisions(plugin);
  tenon::metrics::add_binary(plugin);
  tenon::metrics::add_multi_label(plugin);
  tenon::metrics::add_chunks(plugin);
  tenon::metrics::add_bleu(plugin);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
