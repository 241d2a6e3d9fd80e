// The public C API: readers. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/shape.h"
#include "host/api/api.h"
#include "host/api/application.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

using nlohmann::json;

tn_reader hold(Host& host, std::shared_ptr<Reader> reader, json steps) {
  return host.readers.add<tn_reader>(std::make_shared<HeldReader>(std::move(reader), std::move(steps), host.allocator));
}

// Puts a wrapper around a reader; the old handle becomes stale. step: describes the wrapper; null: the samples are the
// same without it.
template <typename Wrap>
void wrap(Host& host, tn_reader of, tn_reader* reader, const json& step, Wrap&& wrapper) {
  api::required(reader, "reader");
  const std::shared_ptr<HeldReader> held = host.readers.at(of);
  const Use use(held->mark, "reader");
  json steps = held->steps;
  if (!step.is_null()) steps.push_back(step);
  const tn_reader made = hold(host, wrapper(held->reader), std::move(steps));
  host.readers.take(of);
  *reader = made;
}

// The same around several readers. name: of the wrapper.
template <typename Join>
void join(Host& host, const tn_reader* of, uint32_t count, tn_reader* reader, const char* name, Join&& joiner) {
  api::required(reader, "reader");
  if (count > 0) api::required(of, "of");
  Readers readers;
  std::vector<std::shared_ptr<HeldReader>> joined;
  std::vector<std::unique_ptr<Use>> uses;
  json parts = json::array();
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t j = 0; j < i; ++j)
      if (of[j].index == of[i].index)
        fail(TN_MISUSE, SubjectName{"of"}, "of[", j, "] and of[", i, "] are the same reader");
    api::naming("of", i, [&] {
      joined.push_back(host.readers.at(of[i]));
      uses.push_back(std::make_unique<Use>(joined.back()->mark, "reader"));
      readers.push_back(joined.back()->reader);
      parts.push_back(joined.back()->steps);
    });
  }
  const tn_reader made = hold(host, joiner(std::move(readers)), json::array({{{name, std::move(parts)}}}));
  for (uint32_t i = 0; i < count; ++i) host.readers.take(of[i]);
  *reader = made;
}

// Calls a function of the application that fills arrays; turns its failure into an Error.
template <typename Call>
void borrow(const char* who, std::vector<ArrayView>& values, Call&& call) {
  std::vector<tn_array> arrays;
  for (const ArrayView& value : values) arrays.push_back(api::array(value));
  api::call_application(who, [&](tn_error* error) { return call(arrays.data(), error); });
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = api::view(arrays[i], [&] { return text(who, ": slot ", i + 1); });
}

// Copies options.slots.
std::vector<Slot> slots_of(const tn_slot* const* slots, uint32_t count, const char* who) {
  if (count > 0) api::required(slots, "options.slots");
  for (uint32_t i = 0; i < count; ++i) api::required(slots[i], "options.slots", i);
  return adopt_slots(slots, count, TN_INVALID, who);
}

Source source_of(const tn_source_options& request, const std::shared_ptr<api::User>& user) {
  static constexpr char kWho[] = "the application's reader";
  Source source;
  source.slots = slots_of(request.slots, request.slots_count, kWho);
  source.size = request.samples;
  if (request.next != nullptr)
    source.next = [request, user](int64_t most, std::vector<ArrayView>& values) {
      int64_t count = 0;
      borrow(kWho, values,
             [&](tn_array* arrays, tn_error* error) { return request.next(user->get(), most, arrays, &count, error); });
      return count;
    };
  if (request.read_at != nullptr)
    source.read_at = [request, user](const int64_t* indices, int64_t count, std::vector<ArrayView>& values) {
      borrow(kWho, values, [&](tn_array* arrays, tn_error* error) {
        return request.read_at(user->get(), indices, count, arrays, error);
      });
    };
  if (request.seek != nullptr)
    source.seek = [request, user](int64_t pass, int64_t position) {
      std::vector<ArrayView> none;
      borrow(kWho, none, [&](tn_array*, tn_error* error) { return request.seek(user->get(), pass, position, error); });
    };
  return source;
}

}  // namespace

json api::describe(const Reader& reader) {
  json slots = json::array();
  for (const Slot& slot : reader.slots())
    slots.push_back({{"name", slot.name},
                     {"dtype", dtype_name(slot.dtype)},
                     {"shape", slot.shape},
                     {"index_limit", slot.index_limit},
                     {"storage", storage_name(slot.storage)},
                     {"levels", slot.levels}});
  return {{"samples", reader.size()}, {"batch", reader.batch()}, {"slots", slots}};
}

tn_status tn_reader_create(tn_host* host, const tn_reader_options* options, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_reader_options request = api::sized(options, "options");
    check_unused(request.reserved, "options.reserved");
    api::required(reader, "reader");
    if ((request.flags & ~uint32_t{TN_READER_SCHEMA}) != 0)
      fail(TN_UNSUPPORTED, SubjectName{"options.flags"}, "options.flags is ", request.flags,
           "; known: TN_READER_SCHEMA");
    std::vector<SlotNames> names = api::names(request.names, request.names_count, "options.names");
    std::erase_if(names, [](const SlotNames& known) { return known.names == nullptr; });
    const ReaderType& type = owner.registry.reader(api::string(request.type, "options.type"));
    const Values attributes = api::values(request.attributes, request.attributes_count, "options.attributes");
    const uint32_t shards = std::max(request.shards, 1U);
    json step = {{"type", type.description.type},
                 {"plugin", {{"id", type.plugin}, {"version", type.version}}},
                 {"attributes", json::object()},
                 {"shard", request.shard},
                 {"shards", shards},
                 {"seed", request.seed}};
    for (const auto& [name, value] : attributes) step["attributes"][name] = to_json(value);
    ReaderSettings settings;
    if (request.directory != nullptr) settings.directory = request.directory;
    settings.shard = request.shard;
    settings.shards = shards;
    settings.names = std::move(names);
    settings.seed = request.seed;
    settings.threads = owner.pool.parallel();
    settings.schema_alone = (request.flags & TN_READER_SCHEMA) != 0;
    if (request.needed != nullptr || request.needed_count > 0)
      settings.needed = api::strings(request.needed, request.needed_count, "options.needed");
    *reader = hold(owner, open_reader(type, attributes, owner.services.tables(type), settings),
                   json::array({std::move(step)}));
  });
}

tn_status tn_reader_create_from(tn_host* host, const tn_source_options* options, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_source_options request = api::sized(options, "options");
    api::required(reader, "reader");
    const auto user = std::make_shared<api::User>(request.user, request.release);
    *reader = hold(owner, open_source(source_of(request, user)), json::array({{{"type", "of the application"}}}));
    user->use();
  });
}

// ---- wrappers

tn_status tn_reader_shuffle(tn_host* host, tn_reader of, int64_t buffer, uint64_t seed, tn_reader* reader,
                            tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    wrap(owner, of, reader, {{"shuffle", {{"buffer", buffer}, {"seed", seed}}}},
         [&](const auto& inner) { return shuffle(inner, buffer, seed, owner.allocator); });
  });
}

tn_status tn_reader_first_n(tn_host* host, tn_reader of, int64_t samples, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    wrap(owner, of, reader, {{"first_n", samples}},
         [&](const auto& inner) { return first_n(inner, samples, owner.allocator); });
  });
}

tn_status tn_reader_shard(tn_host* host, tn_reader of, int64_t shard, int64_t shards, tn_reader* reader,
                          tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    wrap(owner, of, reader, {{"shard", shard}, {"shards", shards}},
         [&](const auto& inner) { return tenon::host::shard(inner, shard, shards, owner.allocator); });
  });
}

tn_status tn_reader_split(tn_host* host, tn_reader of, double fraction, uint64_t seed, int32_t held_out,
                          tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    wrap(owner, of, reader, {{"split", fraction}, {"seed", seed}, {"held_out", held_out != 0}}, [&](const auto& inner) {
      return split(inner, {fraction, seed, held_out != 0}, owner.allocator);
    });
  });
}

tn_status tn_reader_augment(tn_host* host, tn_reader of, const tn_augment_options* options, tn_reader* reader,
                            tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_augment_options request = api::sized(options, "options");
    AugmentOptions wanted;
    wanted.slot = api::string(request.slot, "options.slot");
    wanted.channels_first = api::channels_first(request.layout, "options.layout");
    wanted.pad = request.pad;
    wanted.height = request.height;
    wanted.width = request.width;
    wanted.flip = request.flip != 0;
    wanted.centre = request.centre != 0;
    wanted.brightness = request.brightness;
    wanted.contrast = request.contrast;
    wanted.saturation = request.saturation;
    wanted.seed = request.seed;
    const json step = {{"augment", wanted.slot},
                       {"channels_first", wanted.channels_first},
                       {"pad", wanted.pad},
                       {"size", {wanted.height, wanted.width}},
                       {"flip", wanted.flip},
                       {"centre", wanted.centre},
                       {"colours", {wanted.brightness, wanted.contrast, wanted.saturation}},
                       {"seed", wanted.seed}};
    wrap(owner, of, reader, step,
         [&](const auto& inner) { return augment(inner, wanted, *owner.pool.parallel(), owner.allocator); });
  });
}

tn_status tn_reader_chain(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    join(owner, of, of_count, reader, "chain", [&](Readers inner) { return chain(std::move(inner), owner.allocator); });
  });
}

tn_status tn_reader_interleave(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader,
                               tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    join(owner, of, of_count, reader, "interleave",
         [&](Readers inner) { return interleave(std::move(inner), owner.allocator); });
  });
}

tn_status tn_reader_compose(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    join(owner, of, of_count, reader, "compose",
         [&](Readers inner) { return compose(std::move(inner), owner.allocator); });
  });
}

tn_status tn_reader_choose(tn_host* host, tn_reader of, const char* const* slots, const char* const* names,
                           uint32_t slots_count, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::vector<std::string> old = api::strings(slots, slots_count, "slots");
    const std::vector<std::string> request = names == nullptr ? old : api::strings(names, slots_count, "names");
    std::vector<ChosenSlot> chosen;
    for (size_t i = 0; i < old.size(); ++i) chosen.push_back({old[i], request[i]});
    wrap(owner, of, reader, {{"choose", old}, {"names", request}},
         [&](const auto& inner) { return choose(inner, chosen, owner.allocator); });
  });
}

tn_status tn_reader_map(tn_host* host, tn_reader of, const tn_map_options* options, tn_reader* reader,
                        tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_map_options request = api::sized(options, "options");
    api::required(request.map, "options.map");
    const auto user = std::make_shared<api::User>(request.user, request.release);
    const auto function = [request, user](const std::vector<ArrayView>& from, int64_t samples,
                                          std::vector<ArrayView>& to) {
      std::vector<tn_array> inputs;
      for (const ArrayView& view : from) inputs.push_back(api::array(view));
      borrow("map", to, [&](tn_array* outputs, tn_error* why) {
        return request.map(user->get(), inputs.data(), static_cast<uint32_t>(inputs.size()), samples, outputs,
                           static_cast<uint32_t>(to.size()), why);
      });
    };
    wrap(owner, of, reader, {{"map", "of the application"}}, [&](const auto& inner) {
      return map(inner, slots_of(request.slots, request.slots_count, "map"), function, owner.allocator);
    });
    user->use();
  });
}

tn_status tn_reader_batch(tn_host* host, tn_reader of, int64_t samples, int32_t drop_last, tn_reader* reader,
                          tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    wrap(owner, of, reader, {{"batch", samples}, {"drop_last", drop_last != 0}},
         [&](const auto& inner) { return batch(inner, samples, drop_last != 0, owner.allocator); });
  });
}

tn_status tn_reader_bucket(tn_host* host, tn_reader of, const tn_bucket_options* options, tn_reader* reader,
                           tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_bucket_options request = api::sized(options, "options");
    const BucketOptions wanted = {api::string(request.slot, "options.slot"), request.window, request.samples,
                                  request.rows, request.seed};
    const json step = {{"bucket", wanted.slot},
                       {"window", wanted.window},
                       {"samples", wanted.samples},
                       {"rows", wanted.rows},
                       {"seed", wanted.seed}};
    wrap(owner, of, reader, step, [&](const auto& inner) { return bucket(inner, wanted, owner.allocator); });
  });
}

tn_status tn_reader_buffered(tn_host* host, tn_reader of, int64_t minibatches, tn_reader* reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    wrap(owner, of, reader, nullptr, [&](const auto& inner) { return buffered(inner, minibatches, owner.allocator); });
  });
}

// ---- use

tn_status tn_reader_describe(tn_host* host, tn_reader reader, tn_write write, void* user, tn_error* error) {
  const auto describe = [&](Host&, const HeldReader& held) {
    json described = api::describe(*held.reader);
    described["whole_reason"] = held.reader->whole_reason();
    api::give_text(write, user, described.dump());
  };
  return api::call_reader(host, reader, error, describe, Reentry::kAllowed);
}

tn_status tn_reader_slots_count(tn_host* host, tn_reader reader, uint32_t* count, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(count, "count") = static_cast<uint32_t>(owner.readers.at(reader)->reader->slots().size());
  });
}

tn_status tn_reader_slot(tn_host* host, tn_reader reader, uint32_t number, tn_data_options* options, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldReader> held = owner.readers.at(reader);
    const std::vector<Slot>& slots = held->reader->slots();
    if (number >= slots.size()) fail(TN_NOT_FOUND, "the reader has no slot ", number, "; it has ", slots.size());
    const Slot& slot = slots[number];
    tn_data_options made = {};
    made.dtype = slot.dtype;
    made.name = slot.name.c_str();
    made.shape = slot.shape.data();
    made.rank = static_cast<int32_t>(slot.shape.size());
    made.index_limit = slot.index_limit;
    made.scale = 1;
    made.storage = slot.storage;
    made.levels = slot.levels;
    api::give(options, "options", made);
  });
}

tn_status tn_reader_names(tn_host* host, tn_reader reader, const tn_names* const** names, uint32_t* count,
                          tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::give_names(owner, api::names_of(*owner.readers.at(reader)), names, count);
  });
}

tn_status tn_reader_check(tn_host* host, tn_reader reader, tn_parameters parameters, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldReader> held = owner.readers.at(reader);
    const std::shared_ptr<HeldParameters> set = owner.parameters.at(parameters);
    const SetRead read(set->gate);
    const DataNames& names = set->set->names();
    for (const Slot& slot : held->reader->slots()) require_known("the reader", slot, names, slot.name);
  });
}

tn_status tn_reader_record(tn_host* host, tn_reader reader, int64_t index, int64_t* record, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(record, "record") = owner.readers.at(reader)->reader->record(index);
  });
}

tn_status tn_reader_left_out(tn_host* host, tn_reader reader, int64_t* records, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(records, "records") = owner.readers.at(reader)->reader->left_out();
  });
}

tn_status tn_reader_text(tn_host* host, tn_reader reader, int64_t index, const char* column, tn_write write, void* user,
                         tn_error* error) {
  return api::call_reader(host, reader, error, [&](Host&, HeldReader& held) {
    api::required(write, "write");
    api::give_text(write, user, held.reader->text_of(index, api::string(column, "column")));
  });
}

tn_status tn_reader_next(tn_host* host, tn_reader reader, tn_array* values, uint32_t values_count, tn_error* error) {
  bool ended = false;
  const tn_status status = api::call_reader(host, reader, error, [&](Host&, HeldReader& held) {
    const size_t slots = held.reader->slots().size();
    if (values_count != slots)
      fail(TN_INVALID, SubjectName{"values_count"}, "values_count is ", values_count, "; the reader has ", slots,
           " slots");
    api::required(values, "values");
    held.minibatch.clear();
    ended = held.reader->next(held.minibatch, std::max<int64_t>(held.reader->batch(), 1)) == 0;
    for (size_t i = 0; !ended && i < slots; ++i) values[i] = api::array(held.minibatch.columns()[i].view());
  });
  return status == TN_OK && ended ? tn_status{TN_END} : status;
}

tn_status tn_reader_position(tn_host* host, tn_reader reader, int64_t* pass, int64_t* position, tn_error* error) {
  const auto position_of = [&](Host&, const HeldReader& held) {
    const ReaderPlace place = held.place.value_or(ReaderPlace{held.reader->pass(), held.reader->position()});
    api::required(pass, "pass");
    api::required(position, "position") = place.position;
    *pass = place.pass;
  };
  return api::call_reader(host, reader, error, position_of, Reentry::kAllowed);
}

tn_status tn_reader_seek(tn_host* host, tn_reader reader, int64_t pass, int64_t position, tn_error* error) {
  return api::call_reader(host, reader, error,
                          [&](Host&, const HeldReader& held) { held.reader->seek(pass, position); });
}

tn_status tn_reader_release(tn_host* host, tn_reader reader, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.readers.take(reader); });
}
