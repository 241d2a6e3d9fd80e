// SPDX-License-Identifier: Apache-2.0
#include "check/bench/subject.h"

#include <algorithm>

#include "check/definitions/parts.h"

namespace tenon::check {

Host Subject::host(const HostChoice& choice) const {
  HostOptions options;
  options.threads = choice.threads;
  options.plugin_paths = folders;
  options.allocator = choice.allocator;
  options.check = choice.checking ? TN_CHECK_ON : TN_CHECK_OFF;
  Host host(options);
  host.add_plugin(&parts());
  return host;
}

bool Subject::offers(const std::string& table) const {
  if (!described.contains("tables")) return true;
  const json& tables = described.at("tables");
  return std::find(tables.begin(), tables.end(), table) != tables.end();
}

bool Subject::serves_rows() const {
  return kind == "provider" &&
         (described.at("id") == TN_ROW_SPARSE_TABLE || described.at("id") == TN_COALESCE_PRODUCTS);
}

}  // namespace tenon::check
