// What the structs that a host lends lead to: lead(loans, copy) makes the pointers of a copy lead to copies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>

#include "check/watch/loans.h"

namespace tenon::check {

// The table of a type that the plugin under check offers. Functions of tables get nothing that leads to the kit, so it
// is a static variable: one for each type of table of the one component that the process checks.
template <typename Table>
struct PluginTable {
  static inline Table table;
  template <typename... Arguments>
  static const Table& table_of(const Arguments&...) {
    return table;
  }
};
// A plugin has many kernels; `user` of their sites leads to them.
struct LentKernel {
  const tn_kernel* inner;
  tn_kernel table;
};
template <>
struct PluginTable<tn_kernel> {
  template <typename... Rest>
  static const tn_kernel& table_of(const tn_kernel_site* site, const Rest&...) {
    return *static_cast<const LentKernel*>(site->user)->inner;
  }
};

// What the functions that replace some of the host's need of the call that they are in, on this thread.
struct LentCall {
  void* reader = nullptr;
  Loans* loans = nullptr;  // of lower
  decltype(tn_builder::spec) spec = nullptr;
  decltype(tn_update_recorder::state) state = nullptr;
  decltype(tn_update_recorder::program) program = nullptr;
};
inline thread_local LentCall lent_call;

// Blames what came with a version that the host does not have.
inline void blame_newer(const std::string& what, int minor) {
  if (lender().minor < minor)
    blame_lent(what + ", which came with version 0." + std::to_string(minor) +
               " of the plugin interface; the plugin says that it runs on hosts of 0." +
               std::to_string(lender().minor));
}

template <typename Struct>
void lead(Loans&, Struct&) {}  // leads to nothing that may grow

inline void lead(Loans& loans, tn_attributes& copy) { loans.replace_list(copy.declared, copy.count); }
inline void lead(Loans& loans, tn_planner& copy) {
  loans.replace(copy.errors, copy.attributes);
  loans.replace_list(copy.inputs, copy.inputs_count);
}
inline void lead(Loans& loans, tn_expander& copy) {
  loans.replace(copy.errors, copy.attributes);
  loans.replace_list(copy.inputs, copy.inputs_count);
}
inline void lead(Loans& loans, tn_number_declarer& copy) {
  loans.replace(copy.errors, copy.attributes);
  loans.replace_list(copy.inputs, copy.inputs_count);
}
inline void lead(Loans& loans, tn_stepper& copy) { loans.replace(copy.expander); }
inline void lead(Loans& loans, tn_migration& copy) { loans.replace(copy.errors); }
inline void lead(Loans& loans, tn_finalizer& copy) { loans.replace(copy.attributes, copy.errors); }
inline void lead(Loans& loans, tn_builder& copy) {
  loans.replace(copy.errors);
  lent_call.loans = &loans;
  lent_call.spec = copy.spec;
  copy.spec = [](void* self, tn_ref value) { return lent_call.loans->pass(lent_call.spec(self, value)); };
}
inline void lead(Loans& loans, tn_update_recorder& copy) {
  loans.replace(copy.errors, copy.attributes);
  lent_call.state = copy.state;
  lent_call.program = copy.program;
  copy.state = [](void* self, const tn_state* state) {
    if (state->extent == TN_PER_COLUMN) blame_newer("record declares a state per column", 3);
    return lent_call.state(self, state);
  };
  copy.program = [](void* self, const tn_update* update) {
    if (update->grain == TN_GRAIN_MATRIX) blame_newer("record gives the grain of a matrix", 3);
    return lent_call.program(self, update);
  };
}

inline void lead(Loans& loans, tn_kernel_site& copy) {
  loans.replace(copy.attributes, copy.fusion, copy.device, copy.services, copy.errors);
  loans.replace_list(copy.inputs, copy.inputs_count);
  loans.replace_list(copy.outputs, copy.outputs_count);
  loans.replace_list(copy.parameters, copy.parameters_count);
  loans.replace_list(copy.buffers, copy.buffers_count);
  loans.replace_list(copy.carried, copy.carried_count);
  if (copy.user != nullptr) copy.user = static_cast<const LentKernel*>(copy.user)->inner->user;
}
inline void lead(Loans& loans, tn_fusion_site& copy) { loans.replace_list(copy.layers, copy.layers_count); }
inline void lead(Loans& loans, tn_execution& copy) { loans.replace(copy.parallel, copy.errors); }
inline void lead(Loans& loans, tn_call& copy) {
  loans.replace_list(copy.inputs, copy.inputs_count);
  const tn_tensor* const* outputs = copy.outputs;  // whose structs the call does not write
  loans.replace_list(outputs, copy.outputs_count);
  copy.outputs = const_cast<tn_tensor* const*>(outputs);
}
inline void lead(Loans& loans, tn_tensor& copy) {
  if (copy.storage == TN_ROW_SPARSE) copy.part = loans.pass(static_cast<const tn_row_sparse*>(copy.part));
  if (copy.storage == TN_RAGGED) copy.part = loans.pass(static_cast<const tn_ragged*>(copy.part));
  if (copy.storage == TN_CSR) copy.part = loans.pass(static_cast<const tn_csr*>(copy.part));
}

// The services of the host, behind those that are lent.
inline const void* lent_service(void* self, const char* id) {
  const auto& host = *static_cast<const tn_services*>(self);
  const void* const table = host.extension(host.self, id);
  if (std::strcmp(id, TN_LOG) == 0) return Loans::keep(static_cast<const tn_log*>(table));
  if (std::strcmp(id, TN_MEMORY) == 0) return Loans::keep(static_cast<const tn_memory*>(table));
  if (std::strcmp(id, TN_OPTIONS) == 0)
    return lender().minor < 3 ? nullptr : Loans::keep(static_cast<const tn_options*>(table));
  return table;
}
inline void lead(Loans&, tn_services& copy) {
  static std::deque<tn_services> originals;  // as long as the copies
  copy.self = &originals.emplace_back(copy);
  copy.extension = lent_service;
  copy.abi_minor = lender().minor;
}
inline void lead(Loans&, tn_options& copy) {
  static std::deque<tn_options> originals;
  copy.self = &originals.emplace_back(copy);
  copy.of = [](void* self, const char* plugin) {
    const auto& host = *static_cast<const tn_options*>(self);
    return Loans::keep(host.of(host.self, plugin));
  };
}

inline void lead(Loans& loans, tn_reader_open& copy) {
  loans.replace(copy.services, copy.attributes);
  copy.errors = Loans::keep(copy.errors);  // until close
  loans.replace_list(copy.names, copy.names_count);
}
inline void lead(Loans& loans, tn_reader_buffers& copy) {
  const tn_reader_schema& schema = *PluginTable<tn_reader_type>::table.schema(lent_call.reader);
  loans.copy_list(copy.data, copy.slots_count);
  for (uint32_t i = 0; i < copy.slots_count; ++i)
    if (schema.slots[i]->storage != TN_DENSE)
      const_cast<void**>(copy.data)[i] = loans.lend(static_cast<tn_sequence_room*>(copy.data[i]));
}
inline void lead(Loans& loans, tn_comm_open& copy) {
  loans.replace(copy.services, copy.attributes);
  copy.errors = Loans::keep(copy.errors);  // until close
}
inline void lead(Loans& loans, tn_device_open& copy) { loans.replace(copy.services, copy.errors); }

inline void lead(Loans& loans, tn_pointwise_site& copy) { loans.replace(copy.program); }
inline void lead(Loans& loans, tn_gemm_epilogue& copy) { loans.replace(copy.gemm, copy.site); }
inline void lead(Loans& loans, tn_gather_gemm& copy) { loans.replace(copy.gemm, copy.a, copy.b); }
inline void lead(Loans& loans, tn_move& copy) { loans.replace_list(copy.parts, copy.parts_count); }
inline void lead(Loans& loans, tn_coalesce& copy) { loans.replace_list(copy.parts, copy.parts_count); }
inline void lead(Loans& loans, tn_coalesce_products& copy) { loans.replace_list(copy.parts, copy.parts_count); }
inline void lead(Loans& loans, tn_product_part& copy) { loans.replace(copy.values); }
inline void lead(Loans& loans, tn_row_sparse_update& copy) { loans.replace(copy.site); }
inline void lead(Loans& loans, tn_conv& copy) { loans.replace(copy.window); }
inline void lead(Loans& loans, tn_conv_epilogue& copy) { loans.replace(copy.conv, copy.site); }
inline void lead(Loans& loans, tn_pool& copy) { loans.replace(copy.window); }
inline void lead(Loans& loans, tn_resize_site& copy) { loans.replace(copy.resize); }

}  // namespace tenon::check
