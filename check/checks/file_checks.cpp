// SPDX-License-Identifier: Apache-2.0
#include "check/checks/file_checks.h"

#include "check/watch/loaded.h"
#include "sdk/manifest/manifest.h"

namespace tenon::check {

namespace {

// The first place in which two JSON values differ. built: with which headers the plugin was; a note of older ones lacks
// the lists that came later, those of tables of types among them, and one of newer ones may have keys that are unknown
// here.
std::string difference(const json& code, const json& note, const std::string& path, int built) {
  if (code.is_object() && note.is_object()) {
    for (const auto& [key, value] : code.items()) {
      const bool came_later = value == json::array() || (key == "tables" && path.rfind("/devices/", 0) != 0);
      if (!note.contains(key) && built < TN_ABI_MINOR && came_later) continue;
      if (!note.contains(key)) return path + "/" + key + " is in the code alone";
      if (std::string fault = difference(value, note.at(key), path + "/" + key, built); !fault.empty()) return fault;
    }
    for (const auto& [key, value] : note.items())
      if (!code.contains(key) && built <= TN_ABI_MINOR) return path + "/" + key + " is in the note alone";
    return "";
  }
  if (code.is_array() && note.is_array() && code.size() == note.size()) {
    for (size_t i = 0; i < code.size(); ++i)
      if (std::string fault = difference(code[i], note[i], path + "/" + std::to_string(i), built); !fault.empty())
        return fault;
    return "";
  }
  return code == note ? "" : path + " is " + code.dump() + " in the code and " + note.dump() + " in the note";
}

void check_note(Context& context) {
  const Loaded loaded(context.subject().file);
  const auto manifest = std::make_unique<tn_manifest>();
  const int accepted = tn_manifest_write(manifest.get(), loaded.descriptor());
  context.expect(accepted == 1, std::string("its descriptor is refused: ") + manifest->error);
  const json code = json::parse(std::string(manifest->text, manifest->length));
  const int built = loaded.descriptor()->abi.built;
  const std::string fault = difference(code, context.subject().manifest, "", built);
  context.expect(fault.empty(), "note and descriptor differ: " + fault);
}

void check_symbols(Context& context) {
  const Loaded::Symbols symbols = Loaded(context.subject().file).symbols();
  for (const std::string& name : symbols.exported)
    context.expect(name == TN_ENTRY_NAME, "it exports \"" + name + "\"; expected " TN_ENTRY_NAME " alone");
  for (const std::string& name : symbols.imported)
    context.expect(name.rfind("tn_", 0) != 0, "it imports \"" + name + "\" of the host; expected none");
}

void check_load(Context& context) {
  const Loaded loaded(context.subject().file);
  const tn_plugin* const first = loaded.descriptor();
  for (int times = 0; times < 3; ++times)
    context.expect(loaded.descriptor() == first, TN_ENTRY_NAME " returns another descriptor at another call");
}

void check_process(Context& context) {
  context.expect_unchanged([&] { (void)Loaded(context.subject().file).descriptor(); });
}

}  // namespace

const std::vector<Check>& file_checks() {
  static const std::vector<Check> checks = {
      {"process", kProcessMeaning, check_process},  // first, since the others load the file
      {"note", "note and descriptor agree", check_note},
      {"symbols", "it exports tenon_plugin alone, and imports nothing of the host", check_symbols},
      {"entry", "tenon_plugin returns one descriptor", check_load},
  };
  return checks;
}

}  // namespace tenon::check
