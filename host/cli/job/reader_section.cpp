// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/reader_section.h"

#include <cmath>
#include <iterator>

#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

constexpr int64_t kMostPrefetch = 4096;

// The key "layout" of an image.
bool channels_first(Section& section) {
  const auto layout = section.string("layout");
  if (layout && *layout != "channels_first" && *layout != "channels_last")
    section.wrong("layout", *section.find("layout"), "\"channels_first\" or \"channels_last\"");
  return layout == "channels_first";
}

JobSlot slot_of(const std::string& name, const Node& node, const std::string& what) {
  JobSlot result;
  result.place = node.place;
  result.slot = result.layer = name;
  if (const auto* layer = node.get<std::string>(); layer != nullptr && !layer->empty()) {
    result.layer = *layer;
    return result;
  }
  const std::string who = what + ": slot \"" + name + "\"";
  if (!node.is_table())
    throw Failure(kBadConfig,
                  result.place + ": " + who + ": expected the name of a data layer, or a table, got " + kind_of(node));
  Section section(node, who);
  result.layer = section.string("layer").value_or(name);
  result.scale = section.number("scale").value_or(1);
  result.offset = section.number("offset").value_or(0);
  result.sequence = section.string("sequence").value_or("");
  result.channels_first = channels_first(section);
  if (!std::isfinite(result.scale) || !std::isfinite(result.offset) || result.scale == 0)
    section.fail(result.place, "scale and offset must be finite, and scale not 0");
  section.finish();
  return result;
}

void read_slots(Section& section, const std::string& what, JobReader& to) {
  const Node* slots = section.table("slots");
  if (slots == nullptr) return;
  for (const auto& [key, value] : *slots->get<Node::Members>()) {
    JobSlot slot = slot_of(key, value, what);
    for (const JobSlot& other : to.slots)
      if (other.layer == slot.layer)
        section.fail(slot.place, "slots \"" + other.slot + "\" and \"" + slot.slot + "\" feed the same data layer \"" +
                                     slot.layer + "\"");
    to.slots.push_back(std::move(slot));
  }
}

JobAugment augment_of(const std::string& slot, const Node& node, const std::string& what, const JobReader& reader) {
  const std::string who = what + ": augment \"" + slot + "\"";
  if (!node.is_table()) throw Failure(kBadConfig, node.place + ": " + who + ": expected a table, got " + kind_of(node));
  Section section(node, who);
  JobAugment result;
  result.place = node.place;
  AugmentOptions& to = result.options;
  to.slot = slot;
  for (const JobSlot& use : reader.slots)
    if (use.slot == slot && use.channels_first) to.layout = TN_CHANNELS_FIRST;
  to.pad = section.integer("pad", 0, INT32_MAX).value_or(0);
  if (const Node* crop = section.find("crop"); crop != nullptr) {
    const auto* list = crop->get<Node::List>();
    const auto size = list == nullptr ? std::nullopt : toml_file::all<int64_t>(*list);
    if (!size || size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1)
      section.wrong("crop", *crop, "[height, width], each at least 1");
    to.height = (*size)[0];
    to.width = (*size)[1];
  }
  to.flip = section.boolean("flip").value_or(false);
  to.centre = section.boolean("centre").value_or(false);
  to.brightness = section.number("brightness").value_or(0);
  to.contrast = section.number("contrast").value_or(0);
  to.saturation = section.number("saturation").value_or(0);
  section.finish();
  return result;
}

void read_augments(Section& section, const std::string& what, JobReader& to) {
  const Node* table = section.table("augment");
  if (table == nullptr) return;
  for (const auto& [slot, node] : *table->get<Node::Members>()) to.augments.push_back(augment_of(slot, node, what, to));
}

// Reads the key "hold_out": a fraction, or a table of fraction and seed.
void read_hold_out(Section& section, JobReader& to) {
  const Node* node = section.find("hold_out");
  if (node == nullptr) return;
  JobSplit split;
  std::optional<double> fraction = toml_file::number_of(*node);
  if (node->is_table()) {
    Section table(*node, "[reader." + to.name + "]: hold_out");
    fraction = table.number("fraction");
    split.seed = table.integer("seed", 0, INT64_MAX).value_or(0);
    table.finish();
    if (!fraction) table.missing("fraction");
  }
  if (!fraction || !(*fraction > 0 && *fraction < 1))
    section.wrong("hold_out", *node, "a fraction between 0 and 1, or a table with the keys fraction and seed");
  split.fraction = *fraction;
  to.split = split;
}

// Makes `to` the part of the data of [reader.train] that its key "hold_out" holds out.
void take_held_out(Section& section, const JobReader* train, JobReader& to) {
  const Node* node = section.find("held_out");
  if (node == nullptr || !*section.boolean("held_out")) return;
  if (train == nullptr || !train->split)
    section.fail(node->place, "key \"held_out\" needs key \"hold_out\" in [reader.train], which is missing");
  for (const char* key : {"type", "part", "join", "hold_out"})
    if (const Node* other = section.find(key))
      section.fail(other->place, std::string("key \"") + key +
                                     "\" does not go with key \"held_out\": the data is that of [reader.train]");
  const bool chosen = !to.choose.empty();
  std::vector<std::pair<std::string, std::string>> choose = std::move(to.choose);
  static_cast<JobSource&>(to) = static_cast<const JobSource&>(*train);
  if (chosen) to.choose = std::move(choose);
  to.place = section.place();
  to.parts = train->parts;
  to.join = train->join;
  to.split = train->split;
  to.split->held_out = true;
  if (!to.parts.empty()) return section.finish();
  JobType own;
  section.take_attributes(own);
  for (Attribute& attribute : own.attributes) {
    std::erase_if(to.attributes, [&](const Attribute& taken) { return taken.name == attribute.name; });
    to.places[attribute.name] = own.places.at(attribute.name);
    to.attributes.push_back(std::move(attribute));
  }
}

// Reads the key "choose": a list of slots, or a table of slots and their new names.
void read_choice(Section& section, JobSource& to) {
  const Node* node = section.find("choose");
  if (node == nullptr) return;
  const auto* renames = node->get<Node::Members>();
  if (renames == nullptr) {
    const std::vector<std::string> slots = *section.strings("choose");
    for (const std::string& slot : slots) to.choose.emplace_back(slot, slot);
  } else {
    for (const auto& [slot, name] : *renames) {
      const auto* given = name.get<std::string>();
      if (given == nullptr || given->empty()) section.wrong("choose." + slot, name, "a new name for the slot");
      to.choose.emplace_back(slot, *given);
    }
  }
  if (to.choose.empty()) section.wrong("choose", *node, "at least one slot");
}

void read_parts(Section& section, const std::string& what, JobReader& to) {
  const Node* node = section.find("part");
  const auto join = section.string("join");
  if (node == nullptr) {
    if (join) section.fail(section.place(), "key \"join\" is for a reader with [[reader." + to.name + ".part]] tables");
    return;
  }
  if (!node->is_list_of_tables()) section.wrong("part", *node, "[[reader." + to.name + ".part]] tables");
  to.join = join.value_or("chain");
  if (to.join != "chain" && to.join != "interleave" && to.join != "compose")
    section.wrong("join", *section.find("join"), "\"chain\", \"interleave\" or \"compose\"");
  for (const Node& table : *node->get<Node::List>()) {
    Section part(table, what + ": part " + std::to_string(to.parts.size() + 1));
    for (const char* key : kReaderKeys)
      if (const Node* misplaced = table.find(key))
        part.fail(misplaced->place,
                  std::string("key \"") + key + "\" applies to the whole reader: it belongs to " + what);
    JobSource source;
    read_choice(part, source);
    static_cast<JobType&>(source) = type_of(part);
    part.take_attributes(source);
    to.parts.push_back(std::move(source));
  }
}

void read_bucket(Section& section, const std::string& what, JobReader& to) {
  const Node* table = section.table("bucket");
  if (table == nullptr) return;
  Section bucket(*table, what + ": bucket");
  JobBucket result;
  const auto slot = bucket.string("slot");
  const auto window = bucket.integer("window", 1, INT64_MAX);
  result.rows = bucket.integer("rows", 1, INT64_MAX).value_or(0);
  if (!slot) bucket.missing("slot");
  if (!window) bucket.missing("window");
  bucket.finish();
  result.slot = *slot;
  result.window = *window;
  to.bucket = result;
}

void read_order(Section& section, JobReader& to) {
  if (const Node* shuffle = section.find("shuffle"); shuffle != nullptr) {
    if (shuffle->get<bool>() != nullptr) {
      to.shuffle = *section.boolean("shuffle");
    } else if (shuffle->get<int64_t>() != nullptr) {
      to.shuffle_buffer = *section.integer("shuffle", 1, INT64_MAX);
      to.shuffle = true;
    } else {
      section.wrong("shuffle", *shuffle, "true, false, or the samples of a buffer");
    }
  }
  const Node* shard = section.find("shard");
  if (shard != nullptr && section.find("shards") == nullptr)
    section.fail(shard->place, "key \"shard\" needs key \"shards\", which is missing");
  constexpr int64_t kMostShards = UINT32_MAX;
  to.shards = section.integer("shards", 1, kMostShards).value_or(1);
  to.shard = section.integer("shard", 0, to.shards - 1).value_or(0);
  to.first_n = section.integer("first_n", 1, INT64_MAX);
}

JobReader reader_of(const std::string& name, const Node& table, const JobReader* fallback) {
  const std::string what = "[reader." + name + "]";
  Section section(table, what);
  JobReader result;
  result.name = name;
  result.table = table;
  read_order(section, result);
  const auto batch = section.integer("batch", 1, INT64_MAX);
  result.drop_last = section.boolean("drop_last").value_or(false);
  result.prefetch = section.integer("prefetch", 0, kMostPrefetch).value_or(kPrefetch);
  read_bucket(section, what, result);
  if (result.bucket && result.drop_last)
    section.fail(section.place(), "keys \"bucket\" and \"drop_last\" exclude each other");
  read_choice(section, result);
  read_slots(section, what, result);
  if (table.find("slots") == nullptr && fallback != nullptr) {
    result.slots = fallback->slots;
    result.own_slots = false;
  }
  read_augments(section, what, result);
  read_hold_out(section, result);
  if (!batch && fallback == nullptr) section.missing("batch");
  result.batch = batch ? *batch : fallback->batch;
  take_held_out(section, fallback, result);
  if (result.split && result.split->held_out) return result;
  read_parts(section, what, result);
  if (result.parts.empty()) {
    static_cast<JobType&>(result) = type_of(section);
    section.take_attributes(result);
  } else {
    result.place = section.place();
    section.finish();
  }
  return result;
}

// Both readers must give a data layer the same scale, offset and layout.
void check_slots(const Job& job) {
  if (!job.train || !job.test) return;
  for (const JobSlot& train : job.train->slots) {
    for (const JobSlot& test : job.test->slots) {
      if (train.layer != test.layer ||
          (train.scale == test.scale && train.offset == test.offset && train.channels_first == test.channels_first))
        continue;
      throw Failure(kBadConfig, test.place + ": [reader.test]: slot \"" + test.slot +
                                    "\": scale, offset or layout of data layer \"" + test.layer + "\" differ from " +
                                    train.place);
    }
  }
}

}  // namespace

void read_readers(Section& top, Job& job) {
  const Node* readers = top.table("reader");
  if (readers == nullptr) return;
  Section section(*readers, "[reader]");
  if (const Node* table = section.table("train")) job.train = reader_of("train", *table, nullptr);
  if (const Node* table = section.table("test"))
    job.test = reader_of("test", *table, job.train ? &*job.train : nullptr);
  section.finish();
  check_slots(job);
}

}  // namespace tenon::cli
