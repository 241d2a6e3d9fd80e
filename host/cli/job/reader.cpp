// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/reader.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "host/cli/cli.h"
#include "host/cli/job/component.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

void read_schema(OpenReader& open) {
  const json schema = json::parse(open.reader.describe());
  open.samples = schema.at("samples").get<int64_t>();
  open.batch = schema.at("batch").get<int64_t>();
  open.whole_reason = schema.at("whole_reason").get<std::string>();
  for (const json& entry : schema.at("slots")) open.slots.push_back(slot_of(entry));
  for (const Names& names : open.reader.names())
    for (Slot& slot : open.slots) slot.named = slot.named || (names.count > 0 && slot.name == names.slot);
}

const Slot* find(const std::vector<Slot>& slots, const std::string& name) {
  const auto found = std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.name == name; });
  return found == slots.end() ? nullptr : &*found;
}

// Refuses keys that have no effect on a slot of this kind.
void check_use(const JobReader& reader, const JobSlot& use, const Slot& slot) {
  const auto refuse = [&](const char* keys, const char* needed) {
    throw Failure(kBadConfig, use.place + ": [reader." + reader.name + "]: slot \"" + use.slot + "\": " + keys +
                                  " for " + needed + ", but the slot holds " + to_string(slot));
  };
  if ((use.scale != 1 || use.offset != 0) && slot.dtype.find("float") != std::string::npos)
    refuse("scale and offset are", "integers");
  if (!use.sequence.empty() && slot.storage != TN_RAGGED) refuse("key \"sequence\" is", "sequences");
}

// Connects slots to data layers as the job says. [reader.test] may lack slots that it takes over from [reader.train],
// such as labels.
void use_slots(const JobReader& reader, const Needed& needed, OpenReader& open) {
  for (const JobSlot& use : reader.slots) {
    const Slot* slot = find(open.slots, use.slot);
    const bool wanted = !needed || std::find(needed->begin(), needed->end(), use.layer) != needed->end();
    if (slot == nullptr && reader.own_slots && wanted)
      throw Failure(kBadConfig, use.place + ": [reader." + reader.name + "]: the reader has no slot \"" + use.slot +
                                    "\"" + base::suggestion(use.slot, names_of(open.slots)));
    if (slot == nullptr) continue;
    check_use(reader, use, *slot);
    if (use.slot != use.layer) open.feeding.emplace_back(use.slot, use.layer);
  }
}

// Returns the job's entry for a slot; without one the slot feeds the data layer of its name.
std::string before(const JobSource& source, const std::string& slot) {
  if (source.choose.empty()) return slot;
  for (const auto& [old, chosen] : source.choose)
    if (chosen == slot) return old;
  return "";
}

// Returns the slot of a reader that feeds a data layer, "" if none does.
std::string slot_for(const JobReader& reader, const std::string& layer) {
  for (const JobSlot& use : reader.slots)
    if (use.layer == layer) return use.slot;
  return use_of(reader, layer).layer == layer ? layer : "";
}

// The same for the slot of a source, as its type calls it.
std::string slot_for(const JobReader& reader, const JobSource& source, const std::string& layer) {
  std::string slot = slot_for(reader, layer);
  if (&source != &reader) slot = before(reader, slot);
  return before(source, slot);
}

// Turns names by data layer into names by slot of a source, for the data layers that its slots feed.
std::vector<Names> names_for(const JobReader& reader, const JobSource& source, const std::vector<Names>& known) {
  std::vector<Names> result;
  for (Names names : known) {
    names.slot = slot_for(reader, source, names.slot);
    if (!names.slot.empty()) result.push_back(std::move(names));
  }
  return result;
}

// The same for the data layers that are needed.
Needed slots_for(const JobReader& reader, const JobSource& source, const Needed& layers) {
  if (!layers) return {};
  std::vector<std::string> result;
  for (const std::string& layer : *layers)
    if (std::string slot = slot_for(reader, source, layer); !slot.empty()) result.push_back(std::move(slot));
  return result;
}

// Chooses slots of a reader. Those that are not needed may be missing.
Reader chosen(Reader samples, std::vector<std::pair<std::string, std::string>> choose, const Needed& needed) {
  if (needed) {
    std::vector<std::string> slots;
    const json schema = json::parse(samples.describe());
    for (const json& slot : schema.at("slots")) slots.push_back(slot.at("name"));
    const auto missing = [&](const auto& entry) {
      const bool wanted = std::find(needed->begin(), needed->end(), entry.first) != needed->end();
      return !wanted && std::find(slots.begin(), slots.end(), entry.first) == slots.end();
    };
    const auto left = std::remove_if(choose.begin(), choose.end(), missing);
    if (left == choose.begin()) return samples;
    choose.erase(left, choose.end());
  }
  return std::move(samples).choose(choose);
}

// A division and random changes are those of the whole data, so that they do not depend on shards.
bool shards_later(const JobReader& reader) { return reader.shards > 1 && (reader.split || !reader.augments.empty()); }

// Returns the part of the samples that the job asks for, with changed images.
Reader prepared(Reader samples, const Job& job, const JobReader& reader, bool in_order, const Needed& needed) {
  if (reader.split) {
    const JobSplit& split = *reader.split;
    samples = std::move(samples).split(split.fraction, static_cast<uint64_t>(split.seed), split.held_out);
  }
  for (const JobAugment& augment : reader.augments) {
    AugmentOptions options = augment.options;
    options.seed = static_cast<uint64_t>(job.seed);
    const JobSlot use = use_of(reader, options.slot);
    if (needed && std::find(needed->begin(), needed->end(), use.layer) == needed->end()) continue;
    if (in_order) {
      options.flip = false;
      options.centre = true;
      options.brightness = options.contrast = options.saturation = 0;
    }
    try {
      samples = std::move(samples).augment(options);
    } catch (const Error& error) {
      throw Failure(exit_code(error.code()), augment.place + ": [reader." + reader.name + "]: " + error.what());
    }
  }
  return shards_later(reader) ? std::move(samples).shard(reader.shard, reader.shards) : std::move(samples);
}

Reader open_source(const Host& host, const Job& job, const JobReader& reader, const JobSource& source,
                   const std::vector<Names>& known, bool schema_alone, const Needed& needed) {
  const bool whole = shards_later(reader);
  const Needed slots = slots_for(reader, source, needed);
  Reader opened =
      host.reader(source.type, source.attributes, job.directory, whole ? 0 : static_cast<uint32_t>(reader.shard),
                  whole ? 1 : static_cast<uint32_t>(reader.shards), names_for(reader, source, known),
                  static_cast<uint64_t>(job.seed), schema_alone, slots);
  return source.choose.empty() ? std::move(opened) : chosen(std::move(opened), source.choose, slots);
}

Reader open_parts(const Host& host, const Job& job, const JobReader& reader, const std::string& what,
                  const std::vector<Names>& known, bool schema_alone, const Needed& needed) {
  std::vector<Reader> parts;
  const auto unused = [&](const JobSource& part) {  // it chooses no slot that is needed
    const Needed slots = slots_for(reader, part, needed);
    return reader.join == "compose" && slots && slots->empty();
  };
  const bool all_unused = std::all_of(reader.parts.begin(), reader.parts.end(), unused);
  for (const JobSource& part : reader.parts) {
    if (unused(part) && !all_unused) continue;
    try {
      parts.push_back(open_source(host, job, reader, part, known, schema_alone, needed));
    } catch (const Error& error) {
      rethrow_at(error, host,
                 {"reader",
                  part,
                  what + ": part " + std::to_string(&part - reader.parts.data() + 1),
                  {"type", "choose"},
                  "reader \"" + part.type + "\""});
    }
  }
  Reader joined = reader.join == "chain"        ? chain(std::move(parts))
                  : reader.join == "interleave" ? interleave(std::move(parts))
                                                : compose(std::move(parts));
  if (reader.choose.empty()) return joined;
  Needed slots;
  if (needed) slots.emplace();
  for (const std::string& layer : needed.value_or(std::vector<std::string>()))
    slots->push_back(before(reader, slot_for(reader, layer)));
  return chosen(std::move(joined), reader.choose, slots);
}

// Returns a reader of the only part that makes slots that are needed; of parts with the same slots, the first.
JobReader with_part(const JobReader& reader, const std::vector<std::string>& needed) {
  const auto makes_needed = [&](const JobSource& part) { return !slots_for(reader, part, needed)->empty(); };
  const auto part = std::find_if(reader.parts.begin(), reader.parts.end(), makes_needed);
  const bool alone = reader.join != "compose" || std::count_if(part, reader.parts.end(), makes_needed) == 1;
  if (part == reader.parts.end() || !alone || (!reader.choose.empty() && !part->choose.empty()))
    throw Failure(kUsage, "--data: [reader." + reader.name + "] has several parts; say by --set or in a job of its " +
                              "own which files each of them reads");
  JobReader result = reader;
  static_cast<JobSource&>(result) = *part;
  if (part->choose.empty()) result.choose = reader.choose;
  result.parts.clear();
  return result;
}

Reader in_minibatches(Reader samples, const Job& job, const JobReader& reader, bool in_order) {
  if (in_order || !reader.bucket) return std::move(samples).batch(reader.batch, reader.drop_last && !in_order);
  BucketOptions options;
  options.slot = reader.bucket->slot;
  options.window = reader.bucket->window;
  options.samples = reader.batch;
  options.rows = reader.bucket->rows;
  options.seed = static_cast<uint64_t>(job.seed);
  return std::move(samples).bucket(options);
}

}  // namespace

JobSlot use_of(const JobReader& reader, const std::string& slot) {
  for (const JobSlot& use : reader.slots)
    if (use.slot == slot) return use;
  JobSlot result;
  result.slot = result.layer = slot;
  return result;
}

// Returns the name of a slot before `choose`, "" if `choose` drops it.
OpenReader open_reader(const Host& host, const Job& job, const JobReader& reader, bool in_order,
                       const std::vector<Names>& known, bool schema_alone, const Needed& needed) {
  OpenReader open;
  const std::string what = "[reader." + reader.name + "]";
  try {
    Reader samples = reader.parts.empty() ? open_source(host, job, reader, reader, known, schema_alone, needed)
                                          : open_parts(host, job, reader, what, known, schema_alone, needed);
    samples = prepared(std::move(samples), job, reader, in_order, needed);
    if (reader.first_n) samples = std::move(samples).first_n(*reader.first_n);
    if (reader.shuffle && !in_order)
      samples = std::move(samples).shuffle(static_cast<uint64_t>(job.seed), reader.shuffle_buffer);
    open.reader = in_minibatches(std::move(samples), job, reader, in_order);
    if (reader.prefetch > 0) open.reader = std::move(open.reader).buffered(reader.prefetch);
    read_schema(open);
    use_slots(reader, needed, open);
  } catch (const Error& error) {
    std::vector<std::string> keys{"type", "part", "join", "choose"};
    keys.insert(keys.end(), std::begin(kReaderKeys), std::end(kReaderKeys));
    rethrow_at(error, host, {"reader", reader, what, keys, "reader \"" + reader.type + "\""});
  }
  return open;
}

JobReader with_data(const Host& host, const JobReader& reader, const std::vector<std::string>& data,
                    const std::vector<std::string>& needed) {
  JobReader result = reader.parts.empty() ? reader : with_part(reader, needed);
  const json type = json::parse(host.describe_type("reader", result.type));
  const json* place = nullptr;  // the attribute that says where the data is
  for (const char* const name : kDataPlaces)
    for (const json& attribute : type.at("attributes"))
      if (place == nullptr && attribute.at("name") == name) place = &attribute;
  if (place == nullptr)
    throw Failure(kUsage, "--data: reader \"" + result.type + "\" has no attribute for files; use --set");
  const auto name = place->at("name").get<std::string>();
  const bool several = place->at("kind").get<int32_t>() == TN_ATTR_STRINGS;
  if (!several && data.size() != 1)
    throw Failure(
        kUsage, "--data: reader \"" + result.type + "\" has one \"" + name + "\"; got " + std::to_string(data.size()));
  std::vector<std::string> paths;
  for (const std::string& path : data)  // "-" is standard input, to readers that take it
    paths.push_back(path == "-" ? path : std::filesystem::absolute(path).string());
  std::erase_if(result.attributes, [&](const Attribute& attribute) { return attribute.name == name; });
  result.attributes.push_back(several ? Attribute{name, paths} : Attribute{name, paths.front()});
  result.split.reset();
  result.first_n.reset();
  result.shard = 0;
  result.shards = 1;
  return result;
}

std::vector<Names> names_of(const JobReader& reader, const OpenReader& open) {
  std::vector<Names> result = open.reader.names();
  for (Names& names : result) names.slot = use_of(reader, names.slot).layer;
  return result;
}

void require_samples(const JobReader& reader, int64_t samples) {
  if (samples == 0)
    throw Failure(kBadData, reader.place + ": [reader." + reader.name +
                                "] gave no samples: its data is empty, or shards or drop_last leave nothing of it");
}

const JobReader& reader_of(const Job& job, const std::string& name) {
  if (name == "train" && job.train) return *job.train;
  if (name == "test" && job.test) return *job.test;
  throw Failure(kBadConfig, job.path + ": the job has no [reader." + name + "]");
}

}  // namespace tenon::cli
