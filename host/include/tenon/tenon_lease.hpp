// Tenon's public API for C++17 and later: values of parameters for applications with several threads.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_LEASE_HPP
#define TENON_TENON_LEASE_HPP

#include <tenon/tenon_lease.h>

#include <cstdint>
#include <string>
#include <tenon/tenon_model.hpp>
#include <vector>

namespace tenon {
inline namespace v0 {

// Returns a copy of the values of a parameter, row-major; between two steps if another thread trains the set.
inline std::vector<float> read(const Parameters& parameters, const std::string& name) {
  const char* const of = detail::c_text(name, "name");
  std::vector<float> values;
  uint64_t bytes = 0;
  const auto copy = [&](tn_error* error) {
    return tn_parameters_read(parameters.host(), parameters.handle(), of, values.data(), &bytes, error);
  };
  detail::checked([&](tn_error* error) {
    const tn_status status = copy(error);  // asks for the size
    return status == TN_NEED_CAPACITY ? tn_status{TN_OK} : status;
  });
  values.resize(bytes / sizeof(float));
  detail::checked(copy);
  return values;
}

// A view of the values of a parameter, or of an output of a machine, until the last copy of this object ends, as
// tn_parameters_lease and tn_machine_lease document it.
class Lease : public detail::Owned<tn_lease, tn_lease_release> {
 public:
  using Owned::Owned;
  // mode: TN_LEASE_READ or TN_LEASE_WRITE
  Lease(const Parameters& parameters, const std::string& name, int32_t mode) : Owned(parameters.host_ref()) {
    make([&](tn_lease* handle) {
      tn_array array = {};
      detail::checked([&](tn_error* error) {
        return tn_parameters_lease(host(), parameters.handle(), detail::c_text(name, "name"), mode, handle, &array,
                                   error);
      });
      values_ = detail::array_from(array);
    });
  }
  // An output of the last forward.
  Lease(const Machine& machine, const Layer& layer) : Owned(machine.host_ref()) {
    make([&](tn_lease* handle) {
      tn_array array = {};
      detail::checked([&](tn_error* error) {
        return tn_machine_lease(host(), machine.handle(), layer.handle(), handle, &array, error);
      });
      values_ = detail::array_from(array);
    });
  }
  // Row-major. Written through `data` only with TN_LEASE_WRITE.
  [[nodiscard]] const Array& values() const { return values_; }

 private:
  Array values_;
};

}  // namespace v0
}  // namespace tenon
#endif
