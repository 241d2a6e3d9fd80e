// The public C API: values of parameters for several threads. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_lease.h>

#include <cstring>

#include "host/api/api.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

bool is_writing(int32_t mode) {
  if (mode != TN_LEASE_READ && mode != TN_LEASE_WRITE)
    fail(TN_INVALID, SubjectName{"mode"}, "mode is ", mode, "; expected TN_LEASE_READ or TN_LEASE_WRITE");
  return mode == TN_LEASE_WRITE;
}

// A DLPack tensor, its shape and its lease.
struct Exported {
  Exported(std::shared_ptr<HeldParameters> of, const ParameterEntry& entry, bool writing)
      : shape(entry.shape), lease(of, writing) {
    tensor.dl_tensor.data = of->set->data(entry);
    tensor.dl_tensor.device = {kDLCPU, 0};
    tensor.dl_tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dl_tensor.dtype = {kDLFloat, 32, 1};
    tensor.dl_tensor.shape = shape.data();
    tensor.manager_ctx = this;
    tensor.deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
  }

  std::vector<int64_t> shape;
  Lease lease;
  DLManagedTensor tensor = {};
};

}  // namespace

tn_status tn_parameters_read(tn_host* host, tn_parameters parameters, const char* name, void* values, uint64_t* bytes,
                             tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const ParameterEntry& entry = held->set->find(api::string(name, "name"));
    const uint64_t room = api::required(bytes, "bytes"), needed = entry.count * sizeof(float);
    if (room < needed) {
      *bytes = needed;
      fail(TN_NEED_CAPACITY, SubjectName{entry.name}, "parameter \"", entry.name, "\" has ", needed,
           " bytes; there is room for ", room);
    }
    if (needed > 0) {
      api::required(static_cast<char*>(values), "values");
      const SetRead read(held->gate);
      std::memcpy(values, held->set->data(entry), needed);
    }
    *bytes = needed;
  });
}

tn_status tn_parameters_lease(tn_host* host, tn_parameters parameters, const char* name, int32_t mode, tn_lease* lease,
                              tn_array* values, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(lease, "lease");
    api::required(values, "values");
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const ParameterEntry& entry = held->set->find(api::string(name, "name"));
    const tn_array view = api::array({entry.dtype, entry.shape, held->set->data(entry)});
    *lease = it.leases.add<tn_lease>(std::make_shared<Lease>(held, is_writing(mode)));
    *values = view;
  });
}

tn_status tn_lease_release(tn_host* host, tn_lease lease, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.leases.take(lease); });
}

tn_status tn_parameters_dlpack(tn_host* host, tn_parameters parameters, const char* name, int32_t mode,
                               DLManagedTensor** tensor, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(tensor, "tensor");
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const ParameterEntry& entry = held->set->find(api::string(name, "name"));
    *tensor = &(new Exported(held, entry, is_writing(mode)))->tensor;
  });
}
