// The public C API: values of parameters for several threads. SPDX-License-Identifier: Apache-2.0
#include <dlpack/dlpack.h>
#include <tenon/tenon_dlpack.h>
#include <tenon/tenon_lease.h>

#include <cstring>
#include <functional>
#include <type_traits>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

bool is_writing(int32_t mode) {
  if (mode != TN_LEASE_READ && mode != TN_LEASE_WRITE)
    fail(TN_INVALID, SubjectName{"mode"}, "mode is ", mode, "; expected TN_LEASE_READ or TN_LEASE_WRITE");
  return mode == TN_LEASE_WRITE;
}

// A view, its lease, and whether the lease lets write.
struct Leased {
  std::shared_ptr<Lease> lease;
  ArrayView view;
  bool is_writable = false;
};

// A DLPack tensor, of either form, its shape and its lease.
template <typename Tensor>
struct Exported {
  explicit Exported(const Leased& leased) : shape(leased.view.shape), lease(leased.lease) {
    const ArrayView& view = leased.view;
    tensor.dl_tensor.data = const_cast<void*>(view.data);
    tensor.dl_tensor.device = {kDLCPU, 0};
    tensor.dl_tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dl_tensor.dtype = dlpack_type(view.dtype);
    tensor.dl_tensor.shape = shape.data();
    tensor.manager_ctx = this;
    tensor.deleter = [](Tensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
    if constexpr (std::is_same_v<Tensor, DLManagedTensorVersioned>) {
      tensor.version = {1, 0};
      tensor.flags = leased.is_writable ? 0 : kReadOnly;
    }
  }

  static constexpr uint64_t kReadOnly = 1;

  std::vector<int64_t> shape;
  std::shared_ptr<Lease> lease;
  Tensor tensor = {};
};

Leased lease_parameter(Host& host, tn_parameters parameters, const char* name, int32_t mode) {
  const std::shared_ptr<HeldParameters> held = host.parameters.at(parameters);
  const ParameterEntry& entry = held->set->find(api::string(name, "name"));
  const bool is_writable = is_writing(mode);
  auto lease = std::make_shared<SetLease>(held, entry, is_writable);
  return {std::move(lease), {entry.dtype, entry.shape, held->set->values(entry)}, is_writable};
}

Leased lease_output(Host& host, tn_machine machine, tn_layer layer) {
  const std::shared_ptr<HeldMachine> held = host.machines.at(machine);
  const Use use(held->mark, "machine");
  const ArrayView view = held->machine->output(host.layers.at(layer));
  return {std::make_shared<OutputLease>(held), view};
}

void give(Host& host, const Leased& leased, tn_lease* lease, tn_array* values) {
  const tn_array array = api::array(leased.view);
  *lease = host.leases.add<tn_lease>(leased.lease);
  *values = array;
}

template <typename Tensor>
tn_status give_dlpack(tn_host* host, Tensor** tensor, tn_error* error, const std::function<Leased(Host&)>& lease) {
  return api::call(host, error, [&](Host& owner) {
    Tensor*& exported = api::required(tensor, "tensor");
    const Leased leased = lease(owner);
    if (leased.view.storage != TN_DENSE)
      fail(TN_UNSUPPORTED, "DLPack has dense tensors only; this one is ", storage_name(leased.view.storage));
    exported = &(new Exported<Tensor>(leased))->tensor;
  });
}

void give_names_to(tn_names_sink sink, void* user, std::vector<SlotNames> names) {
  const NamesTable table(std::move(names));
  sink(user, table.data(), table.size());
}

}  // namespace

tn_status tn_parameters_read_names(tn_host* host, tn_parameters parameters, tn_names_sink sink, void* user,
                                   tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(sink, "sink");
    give_names_to(sink, user, api::names_of(*owner.parameters.at(parameters)));
  });
}

tn_status tn_reader_read_names(tn_host* host, tn_reader reader, tn_names_sink sink, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(sink, "sink");
    give_names_to(sink, user, api::names_of(*owner.readers.at(reader)));
  });
}

tn_status tn_parameters_read(tn_host* host, tn_parameters parameters, const char* name, void* values, uint64_t* bytes,
                             tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const ParameterEntry& entry = held->set->find(api::string(name, "name"));
    held->set->require_values(entry);
    const uint64_t room = api::required(bytes, "bytes"), needed = entry.count * sizeof(float);
    if (room < needed) {
      *bytes = needed;
      fail(TN_NEED_CAPACITY, SubjectName{entry.name}, "parameter \"", entry.name, "\" has ", needed,
           " bytes; there is room for ", room);
    }
    if (needed > 0) {
      api::required(static_cast<char*>(values), "values");
      const SetRead read(held->gate);
      std::memcpy(values, held->set->values(entry), needed);
    }
    *bytes = needed;
  });
}

tn_status tn_parameters_lease(tn_host* host, tn_parameters parameters, const char* name, int32_t mode, tn_lease* lease,
                              tn_array* values, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(lease, "lease");
    api::required(values, "values");
    give(owner, lease_parameter(owner, parameters, name, mode), lease, values);
  });
}

tn_status tn_machine_lease(tn_host* host, tn_machine machine, tn_layer layer, tn_lease* lease, tn_array* values,
                           tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(lease, "lease");
    api::required(values, "values");
    give(owner, lease_output(owner, machine, layer), lease, values);
  });
}

tn_status tn_lease_release(tn_host* host, tn_lease lease, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.leases.take(lease); });
}

tn_status tn_parameters_dlpack(tn_host* host, tn_parameters parameters, const char* name, int32_t mode,
                               DLManagedTensor** tensor, tn_error* error) {
  return give_dlpack(host, tensor, error, [&](Host& owner) { return lease_parameter(owner, parameters, name, mode); });
}

tn_status tn_parameters_dlpack_versioned(tn_host* host, tn_parameters parameters, const char* name, int32_t mode,
                                         DLManagedTensorVersioned** tensor, tn_error* error) {
  return give_dlpack(host, tensor, error, [&](Host& owner) { return lease_parameter(owner, parameters, name, mode); });
}

tn_status tn_machine_dlpack(tn_host* host, tn_machine machine, tn_layer layer, DLManagedTensor** tensor,
                            tn_error* error) {
  return give_dlpack(host, tensor, error, [&](Host& owner) { return lease_output(owner, machine, layer); });
}

tn_status tn_machine_dlpack_versioned(tn_host* host, tn_machine machine, tn_layer layer,
                                      DLManagedTensorVersioned** tensor, tn_error* error) {
  return give_dlpack(host, tensor, error, [&](Host& owner) { return lease_output(owner, machine, layer); });
}
