// SPDX-License-Identifier: Apache-2.0
#include "check/bench/device_cases.h"

#include <algorithm>

#include "check/bench/layer_bench.h"
#include "check/cases/fault.h"
#include "check/definitions/statements.h"

namespace tenon::check {

namespace {

// Whether the device refuses the programs of a case as what it does not offer.
bool is_unsupported(const Subject& subject, const LayerCase& device_case) {
  try {
    const Bench bench(subject.host(), subject.type, device_case, subject.seed);
    (void)bench.machine(TN_F32, false);
  } catch (const Error& error) {
    return error.code() == TN_UNSUPPORTED;
  }
  return false;
}

// Whether the provider computes a call of a case in fp32 or fp64. Else `reason` is why it does not, if it was asked.
bool is_provided(const Subject& subject, const LayerCase& device_case, std::string& reason) try {
  const Bench bench(subject.host(), subject.type, device_case, subject.seed);
  for (const tn_dtype compute : {TN_F32, TN_F64}) {
    const json plan = json::parse(bench.machine(compute, true).plan());
    for (const json& call : plan.at("calls")) {
      if (call.at("kernel") == subject.shown) return true;
      for (const json& other : call.value("passed_over", json::array()))
        if (other.at("kernel") == subject.shown) reason = other.at("reason");
    }
  }
  return false;
} catch (const Error& error) {
  reason = error.what();
  return error.code() != TN_UNSUPPORTED;  // the checks show the fault
}

// Whether hosts ask providers for a table that a statement needs.
bool is_asked(const std::string& table) {
  if (table == TN_PACKED_GEMM) return false;  // of the device alone
  for (size_t i = 0; i < statements_count(); ++i)
    if (!is_offered(i, [&](const std::string& other) { return other != table; })) return true;
  return false;
}

// Leaves the cases with a call of the provider. Throws Skip if there are none, as of one for large shapes alone.
void keep_provided(const Subject& subject, std::vector<LayerCase>& cases) {
  const std::string table = subject.described.at("id");
  if (!is_asked(table)) throw Fault("no host asks a provider for the table " + table);
  std::string reason = "the device's own table, or another provider, computes them";
  const auto is_left_out = [&](const LayerCase& device_case) { return !is_provided(subject, device_case, reason); };
  cases.erase(std::remove_if(cases.begin(), cases.end(), is_left_out), cases.end());
  if (cases.empty()) throw Skip("it computes no case of the kit: " + reason);
}

}  // namespace

std::vector<LayerCase> device_cases(const Subject& subject) {
  std::vector<LayerCase> result;
  for (size_t i = 0; i < statements_count(); ++i) {
    if (!is_offered(i, [&](const std::string& table) { return subject.offers(table); })) continue;
    LayerCase device_case = statement_case(i);
    device_case.device = subject.device;
    if (draws(i) && is_unsupported(subject, device_case)) continue;
    result.push_back(std::move(device_case));
  }
  if (result.empty()) throw Skip("the device lists no table whose primitives have a plain statement");
  try {
    const Bench bench(subject.host(), subject.type, result.front(), subject.seed);
    (void)bench.machine(TN_F32, false);
  } catch (const Error& error) {
    if (error.code() == TN_PLUGIN_FAULT || error.code() == TN_INTERNAL) throw;
    throw Skip(std::string("machines do not run on it here: ") + error.what());
  }
  if (subject.kind == "provider" && !subject.serves_rows()) keep_provided(subject, result);
  return result;
}

}  // namespace tenon::check
