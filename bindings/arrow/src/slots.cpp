// SPDX-License-Identifier: Apache-2.0
#include "slots.h"

#include <tenon/tenon_topology.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/text.h"

namespace tenon_arrow {

namespace {

// The data layers of outputs, as handles that its end releases.
class DataLayers {
 public:
  DataLayers(tn_host* host, const tn_layer* outputs, uint32_t outputs_count) : host_(host) {
    uint32_t count = 16;
    tenon::detail::checked([&](tn_error* error) {
      tn_status status = TN_NEED_CAPACITY;
      while (status == TN_NEED_CAPACITY) {
        layers_.resize(count);
        status = tn_topology_data(host, outputs, outputs_count, layers_.data(), &count, error);
      }
      count = status == TN_OK ? count : 0;
      return status;
    });
    layers_.resize(count);
  }
  DataLayers(const DataLayers&) = delete;
  DataLayers& operator=(const DataLayers&) = delete;
  ~DataLayers() {
    for (const tn_layer layer : layers_) tn_layer_release(host_, layer, nullptr);
  }
  [[nodiscard]] const std::vector<tn_layer>& list() const { return layers_; }

 private:
  tn_host* host_;
  std::vector<tn_layer> layers_;
};

}  // namespace

std::vector<Slot> slots_of(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_parameters parameters) {
  std::vector<tenon::Names> name_lists;
  if (parameters.index != 0 || parameters.generation != 0)
    tenon::detail::checked([&](tn_error* error) {
      const tn_names* const* lists = nullptr;
      uint32_t count = 0;
      const tn_status status = tn_parameters_names(host, parameters, &lists, &count, error);
      if (status == TN_OK) name_lists = tenon::detail::names_from(lists, count);
      return status;
    });
  const DataLayers layers(host, outputs, outputs_count);
  std::vector<Slot> result;
  for (const tn_layer layer : layers.list()) {
    tn_data_options data = {};
    data.size = sizeof data;
    tenon::detail::checked([&](tn_error* error) { return tn_data_inspect(host, layer, &data, error); });
    Slot& slot = result.emplace_back();
    slot.name = data.name;
    slot.form = {data.dtype == TN_COMPUTE ? TN_F32 : data.dtype,
                 {data.shape, data.shape + data.rank},
                 data.storage,
                 std::max(data.levels, 1u),
                 data.index_limit};
    for (tenon::Names& names : name_lists)
      if (names.slot == slot.name && !names.texts.empty()) slot.names = std::move(names.texts);
  }
  return result;
}

std::vector<Samples> samples_of(const Column& table, const std::vector<Slot>& slots, int64_t first) {
  if (!table.is_table()) refuse_table("is one column; expected a struct of columns, as a record batch is");
  const auto columns = columns_of(table);
  std::vector<Samples> result;
  for (const Slot& slot : slots) {
    const auto column =
        std::find_if(columns.begin(), columns.end(), [&](const auto& each) { return each.first == slot.name; });
    if (column == columns.end()) {
      std::vector<std::string> column_names;
      for (const auto& each : columns) column_names.push_back(each.first);
      throw Error(
          TN_NOT_FOUND,
          "the table of Arrow has no column \"" + slot.name + "\"" + tenon::base::suggestion(slot.name, column_names),
          "data", slot.name);
    }
    result.push_back(
        samples_of(column->second, slot.form, slot.names ? &*slot.names : nullptr, place_of(slot.name, first)));
  }
  return result;
}

tn_status report(tn_status code, const char* message, const std::string& component, const std::string& subject,
                 tn_error* error) noexcept {
  if (error == nullptr) return code;
  const auto fill = [&](char* to, size_t at, size_t room, std::string_view text) {
    if (error->size < at + room) return;
    to[text.copy(to, room - 1)] = '\0';
  };
  if (TN_HAS(error, tn_error, code)) error->code = code;
  fill(error->message, offsetof(tn_error, message), sizeof error->message, message);
  fill(error->component, offsetof(tn_error, component), sizeof error->component, component);
  fill(error->subject, offsetof(tn_error, subject), sizeof error->subject, subject);
  return code;
}

}  // namespace tenon_arrow
