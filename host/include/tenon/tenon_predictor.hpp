// Tenon's public API for C++17 and later: predictions by any number of threads. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_PREDICTOR_HPP
#define TENON_TENON_PREDICTOR_HPP

#include <tenon/tenon_predictor.h>

#include <cstdint>
#include <string>
#include <tenon/tenon_model.hpp>
#include <vector>

namespace tenon {
inline namespace v0 {

// A snapshot of parameters. Any number of threads may use one object.
class Predictor : public detail::Owned<tn_predictor, tn_predictor_release> {
 public:
  using Owned::Owned;
  Predictor(const Parameters& parameters, const Layers& outputs, const PredictorOptions& options = {})
      : Owned(parameters.host_ref()) {
    tn_predictor_options given = {};
    detail::OptionLists lists;
    detail::fill(given, options, lists);
    const std::vector<tn_layer> list = detail::handles(outputs);
    make([&](tn_predictor* handle) {
      detail::checked([&](tn_error* error) {
        return tn_predictor_create(host(), parameters.handle(), list.data(), detail::count_of(list.size()), &given,
                                   handle, error);
      });
    });
  }

  // Calls use(const std::vector<Array>&) once with the outputs, which are borrowed during that call, and passes on its
  // exceptions.
  template <typename Use>
  void predict(const std::vector<Feed>& feeds, Use&& use) const {
    std::vector<tn_feed> list;
    for (const Feed& feed : feeds)
      list.push_back({detail::c_text(feed.name, "the name of a feed"), detail::c_array(feed.values)});
    detail::collect<void, const tn_array*, uint32_t>(
        [&](const tn_array* outputs, uint32_t count) {
          const std::vector<Array> arrays = detail::arrays_from(outputs, count);
          use(arrays);
        },
        [&](auto take, void* user, tn_error* error) {
          return tn_predictor_predict(host(), handle(), list.data(), detail::count_of(list.size()), take, user, error);
        });
  }

  // Takes the present values; predictions that begin later use them.
  void refresh(const Parameters& parameters) const {
    detail::checked(
        [&](tn_error* error) { return tn_predictor_refresh(host(), handle(), parameters.handle(), error); });
  }
};

}  // namespace v0
}  // namespace tenon
#endif
