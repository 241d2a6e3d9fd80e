// A reader whose samples follow from the options of its plugin, one of each kind. Its version, 1.2.3, stands in the
// file once. SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <tenon/plugin.hpp>

namespace {

constexpr const char* kId = "tenon.test.options";

// `samples` samples, each of the number rate, times -1 with `negative`, times 1000 with the unit "thousand".
class Constant {
 public:
  static void describe(tn::ReaderDescription& d) { d.type("options_constant", "Numbers that follow from options"); }

  explicit Constant(const tn::ReaderOpen& open) : shard_(open.shard()) {
    const tn::Attributes options = tn::options(open.get()->services, kId);
    count_ = options.integer("samples");
    value_ = options.number("rate") * (options.flag("negative") ? -1 : 1) *
             (std::strcmp(options.text("unit"), "thousand") == 0 ? 1000 : 1);
  }

  const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  int64_t samples() const { return shard_.samples(count_); }
  void read(int64_t, tn::Samples& to) const { to.dense<double>(0)[0] = value_; }

 private:
  tn::Shard shard_;
  int64_t count_ = 0;
  double value_ = 0;
  std::vector<tn::ReaderSlot> slots_{{"value", TN_F64, {1}}};
};

void describe(tn::Plugin& plugin) {
  plugin.about(kId, "1.2.3", "A plugin with options", "MIT");
  plugin.reader<Constant>();
  plugin.option(tn::int_attribute("samples", 2).at_least(1).at_most(100).doc("how many samples there are"));
  plugin.option(tn::float_attribute("rate", 0.5).doc("the number of each sample"));
  plugin.option(tn::string_attribute("unit", "one").one_of({"one", "thousand"}).doc("the unit of the rate"));
  plugin.option(tn::bool_attribute("negative", false).doc("whether the number is negative"));
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
