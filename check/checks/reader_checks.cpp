// SPDX-License-Identifier: Apache-2.0
#include "check/checks/reader_checks.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "base/temporary.h"
#include "check/checks/each.h"
#include "check/checks/other_hosts.h"
#include "check/checks/refusing.h"
#include "check/watch/loaded.h"

namespace tenon::check {

namespace {

namespace fs = std::filesystem;

// The attributes of the author's cases.
std::vector<json> cases_of(const Context& context) {
  std::vector<json> result;
  for (const json& each : context.subject().cases) {
    for (const auto& [key, value] : each.items())
      if (key != "type" && key != "attributes") throw Fault("a case of a reader has the unknown key \"" + key + "\"");
    result.push_back(each.value("attributes", json::object()));
  }
  return result;
}

void each_case(Context& context, const std::function<void(const json& attributes)>& one) {
  each(cases_of(context), text_of, one);
}

Reader open(const Context& context, const Host& host, const json& attributes, uint32_t shard = 0, uint32_t shards = 1) {
  return host.reader(context.subject().type, attributes_of(attributes, context.subject().described.at("attributes")),
                     context.subject().folder, shard, shards, {}, context.subject().seed);
}
Reader one_by_one(const Context& context, const Host& host, const json& attributes, uint32_t shard = 0,
                  uint32_t shards = 1) {
  return open(context, host, attributes, shard, shards).batch(1);
}

void append(std::string& to, const void* data, size_t bytes) {
  if (bytes > 0) to.append(static_cast<const char*>(data), bytes);
}

// The bytes of one sample, all slots.
std::string sample_bytes(const std::vector<Array>& arrays) {
  std::string result;
  for (const Array& array : arrays) {
    int64_t elements = array.count();
    if (array.storage == TN_CSR) elements = array.offsets[0][array.samples];
    append(result, array.shape.data(), array.shape.size() * sizeof(int64_t));
    if (array.offsets[0] != nullptr)
      append(result, array.offsets[0], static_cast<size_t>(array.samples + 1) * sizeof(int64_t));
    if (array.ids != nullptr) append(result, array.ids, static_cast<size_t>(elements) * sizeof(int64_t));
    if (array.data != nullptr) append(result, array.data, static_cast<size_t>(elements) * tn_dtype_bytes(array.dtype));
  }
  return result;
}

constexpr size_t kMostSamples = 2000;

// The samples of the rest of the pass, at most `most`.
std::vector<std::string> rest_of(const Reader& reader, size_t most = kMostSamples) {
  std::vector<std::string> result;
  while (result.size() < most) {
    const std::vector<Array> arrays = reader.next();
    if (arrays.empty()) break;
    result.push_back(sample_bytes(arrays));
  }
  return result;
}

void find_reader_cases(Context& context) {
  const size_t count = cases_of(context).size();
  if (count == 0)
    throw Fault("a reader needs a case with its attributes, such as the names of files: give one by --cases");
  context.count(static_cast<int64_t>(count));
}

int64_t largest_of(const Array& array) {
  int64_t result = -1;
  for (int64_t i = 0; i < array.count(); ++i) {
    int64_t value = 0;
    const auto at = [&](auto number) {
      std::memcpy(&number, static_cast<const char*>(array.data) + static_cast<size_t>(i) * sizeof number,
                  sizeof number);
      return static_cast<int64_t>(number);
    };
    switch (array.dtype) {
      case TN_U8:
        value = at(uint8_t{});
        break;
      case TN_I32:
        value = at(int32_t{});
        break;
      case TN_I64:
        value = at(int64_t{});
        break;
      default:
        return -1;
    }
    if (value < 0) return INT64_MAX;
    result = std::max(result, value);
  }
  return result;
}

void check_schema(Context& context) {
  each_case(context, [&](const json& attributes) {
    const Host& host = context.host(1, true);
    const Reader reader = open(context, host, attributes);
    const json described = json::parse(reader.describe());
    const json& slots = described.at("slots");
    const Reader samples = one_by_one(context, host, attributes);
    size_t count = 0;
    for (; count < kMostSamples; ++count) {
      const std::vector<Array> arrays = samples.next();
      if (arrays.empty()) break;
      context.expect(arrays.size() == slots.size(), "a sample has another number of slots than the schema");
      for (size_t i = 0; i < arrays.size(); ++i) {
        const int64_t limit = slots[i].value("index_limit", int64_t{-1});
        const std::string name = slots[i].at("name");
        if (arrays[i].storage == TN_CSR || limit < 0) continue;
        const int64_t largest = largest_of(arrays[i]);
        context.expect(largest < limit, "sample " + std::to_string(count) + " of slot \"" + name +
                                            "\" has an integer that is not in [0, " + std::to_string(limit) + ")");
      }
    }
    const int64_t promised = described.value("samples", int64_t{-1});
    context.expect(
        promised < 0 || count == kMostSamples || static_cast<int64_t>(count) == promised,
        "it says that a pass has " + std::to_string(promised) + " samples and gives " + std::to_string(count));
    context.expect(count > 0, "it gives no samples");
  });
}

void check_reader_process(Context& context) {
  each_case(context, [&](const json& attributes) {
    const Host& host = context.host(1, false);
    context.expect_unchanged([&] { (void)rest_of(one_by_one(context, host, attributes)); });
  });
}

void check_reader_repeat(Context& context) {
  const Host other = context.subject().host();
  each_case(context, [&](const json& attributes) {
    const std::vector<std::string> first = rest_of(one_by_one(context, context.host(1, false), attributes));
    context.expect(first == rest_of(one_by_one(context, context.host(1, false), attributes)),
                   "a second instance gives other samples");
    context.expect(first == rest_of(one_by_one(context, other, attributes)), "a second host gets other samples");
  });
}

bool varies_by_pass(const Context& context) {
  const Loaded loaded(context.subject().file);
  const tn_plugin& plugin = *loaded.descriptor();
  for (uint32_t i = 0; i < plugin.readers_count; ++i) {
    const tn_reader_type& type = *plugin.readers[i];
    if (context.subject().type == type.description->type)
      return type.extension != nullptr && type.extension(type.user, TN_PASS) != nullptr;
  }
  return false;
}

void check_pass(Context& context) {
  const bool varies = varies_by_pass(context);
  each_case(context, [&](const json& attributes) {
    const Host& host = context.host(1, false);
    const Reader one = one_by_one(context, host, attributes), two = one_by_one(context, host, attributes);
    const std::vector<std::string> first = rest_of(one), second = rest_of(one);
    if (first.size() == kMostSamples) throw Skip("a pass has too many samples");
    (void)rest_of(two);
    context.expect(second == rest_of(two), "the second pass of another instance has other samples");
    context.expect(first.size() == second.size(), "the second pass has " + std::to_string(second.size()) +
                                                      " samples, the first " + std::to_string(first.size()));
    context.expect(varies || first == second,
                   "the second pass has other samples than the first, without the extension " TN_PASS);
    if (!varies) return;
    const Reader later = one_by_one(context, host, attributes);
    later.seek({1, 0});
    context.expect(second == rest_of(later),
                   "the second pass, begun by another instance, has other samples than after "
                   "the first: it depends on more than its number");
  });
}

void check_shards(Context& context) {
  each_case(context, [&](const json& attributes) {
    const Host& host = context.host(1, false);
    const std::vector<std::string> all = rest_of(one_by_one(context, host, attributes));
    const bool is_whole = all.size() < kMostSamples;
    for (const uint32_t shards : {2U, 3U}) {
      size_t count = 0;
      for (uint32_t shard = 0; shard < shards; ++shard) {
        const std::vector<std::string> mine = rest_of(one_by_one(context, host, attributes, shard, shards),
                                                      is_whole ? kMostSamples : kMostSamples / shards);
        for (size_t i = 0; i < mine.size(); ++i)
          context.expect(i * shards + shard < all.size() && mine[i] == all[i * shards + shard],
                         "sample " + std::to_string(i) + " of shard " + std::to_string(shard) + " of " +
                             std::to_string(shards) + " is not sample " + std::to_string(i * shards + shard));
        count += mine.size();
      }
      context.expect(count == all.size() || !is_whole, std::to_string(shards) + " shards have " +
                                                           std::to_string(count) + " samples together; expected " +
                                                           std::to_string(all.size()));
    }
  });
}

void check_resume(Context& context) {
  each_case(context, [&](const json& attributes) {
    const Host& host = context.host(1, false);
    const std::vector<std::string> all = rest_of(one_by_one(context, host, attributes));
    const size_t stride = std::max<size_t>(1, all.size() / 12);
    for (size_t from = 0; from <= all.size(); from += stride) {
      const Reader reader = one_by_one(context, host, attributes);
      reader.seek({0, static_cast<int64_t>(from)});
      const std::vector<std::string> rest = rest_of(reader, kMostSamples - from);
      const std::vector<std::string> expected(all.begin() + static_cast<ptrdiff_t>(from), all.end());
      context.expect(rest == expected, "continued at sample " + std::to_string(from) + ", the pass gives " +
                                           std::to_string(rest.size()) + " samples that are not the " +
                                           std::to_string(expected.size()) + " that are left");
    }
  });
}

// Replaces the texts of attributes that name files by what `with` returns for the file.
json replaced(const json& value, const fs::path& folder, const std::function<std::string(const fs::path&)>& with) {
  if (value.is_string()) {
    const fs::path file = folder / value.get<std::string>();
    std::error_code ignored;
    return fs::is_regular_file(file, ignored) ? json(with(file)) : value;
  }
  if (!value.is_structured()) return value;
  json result = value;
  for (json& each : result) each = replaced(each, folder, with);
  return result;
}

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void check_damage(Context& context) {
  each_case(context, [&](const json& attributes) {
    const Host& host = context.host(1, false);
    const std::vector<std::string> samples = rest_of(one_by_one(context, host, attributes));
    std::mt19937_64 random(context.subject().seed);
    const base::TemporaryFolder folder;
    int files = 0;
    // Reads with damaged copies of all files. Returns the number of samples, -1 if they are refused.
    const auto read = [&](const std::function<void(std::string&)>& damage, const std::string& what) {
      const json damaged = replaced(attributes, context.subject().folder, [&](const fs::path& file) {
        std::string content = content_of(file);
        damage(content);
        std::string copy = folder.file(std::to_string(files++) + "_" + file.filename().string());
        std::ofstream(copy, std::ios::binary) << content;
        return copy;
      });
      if (files == 0) throw Skip("no attribute of the case names a file");
      try {
        context.count(1);
        return static_cast<int64_t>(rest_of(one_by_one(context, host, damaged)).size());
      } catch (const Error& error) {
        context.expect(error.code() != TN_INTERNAL && error.code() != TN_PLUGIN_FAULT,
                       what + ": a defect is reported instead of damage: " + error.what());
        return int64_t{-1};
      }
    };
    for (const size_t tenths : {5U, 9U}) {
      const std::string what = "files cut to " + std::to_string(tenths * 10) + " %";
      const int64_t got = read([&](std::string& content) { content.resize(content.size() * tenths / 10); }, what);
      // A text whose last line is cut is still a text of as many lines.
      context.expect(tenths > 5 || got < static_cast<int64_t>(samples.size()),
                     what + " give as many samples as whole ones, without an error");
    }
    (void)read([](std::string& content) { content.clear(); }, "empty files");
    for (int times = 0; times < 24; ++times)
      (void)read(
          [&](std::string& content) {
            if (content.empty()) return;
            char& byte = content[random() % content.size()];
            byte = static_cast<char>(static_cast<uint8_t>(byte) ^ static_cast<uint8_t>(1 + random() % 255));
          },
          "files with one other byte");
  });
}

void check_reader_memory(Context& context) {
  each_case(context, [&](const json& attributes) {
    Refusing refusing;
    const Host host = context.subject().host({1, false, refusing.table()});
    refusing.refuse_each(context, 24, [&] { (void)rest_of(one_by_one(context, host, attributes)); });
  });
}

void check_reader_own_allocations(Context& context) {
  each_case(context, [&](const json& attributes) {
    refuse_own_allocations(context, [&] {
      std::string bytes;
      for (const std::string& sample : rest_of(one_by_one(context, context.host(1, false), attributes)))
        bytes += sample;
      return bytes;
    });
  });
}

void check_reader_in(Context& context, const OtherHosts& hosts) {
  each_case(context, [&](const json& attributes) {
    hosts.expect_work([&](const Host& host) {
      std::string bytes;
      for (const std::string& sample : rest_of(one_by_one(context, host, attributes))) bytes += sample;
      return bytes;
    });
  });
}

}  // namespace

const std::vector<Check>& reader_checks() {
  static const std::vector<Check> checks = {
      {"cases", "the author gives attributes", find_reader_cases},
      {"schema", "samples fit the schema, and a pass has as many as it says", check_schema},
      {"process", kProcessMeaning, check_reader_process},
      {"repeat", "another instance or host gives the same samples", check_reader_repeat},
      {"pass", "passes are equal, or those of " TN_PASS, check_pass},
      {"shards", "the shards together are the whole", check_shards},
      {"resume", "continuing at up to 24 samples of a pass gives the rest of it", check_resume},
      newer_host_check<check_reader_in>(),
      older_host_check<check_reader_in>(),
      {"damage", "cut and changed files: a refusal or other samples, never a crash, nor silence", check_damage},
      {"memory", "the host refuses each allocation in turn: a status, and no crash", check_reader_memory},
      {"own memory", "each allocation of the plugin itself is refused in turn: a status, and no crash",
       check_reader_own_allocations},
  };
  return checks;
}

}  // namespace tenon::check
