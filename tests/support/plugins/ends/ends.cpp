// Code that ends the process or never returns, in the call and by the way that attributes name; and a layer whose only
// kernel has no backward. SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <tenon/plugin.hpp>

namespace {

void end_in(const tn::Attributes& attributes, const char* call) {
  if (std::strcmp(attributes.text("in"), call) != 0) return;
  const char* const way = attributes.text("way");
  if (std::strcmp(way, "crash") == 0) std::raise(SIGSEGV);
  if (std::strcmp(way, "exit") == 0) std::exit(0);
  for (volatile bool forever = std::strcmp(way, "hang") == 0; forever;) {
  }
}

// Registers handlers of exit() that end the process by the way that the attributes name.
void end_at_exit(const tn::Attributes& attributes) {
  const char* const in = attributes.text("in");
  const std::string_view way = attributes.text("way");
  if (std::strcmp(in, "atexit") == 0) {
    if (way == "crash") std::atexit(std::abort);
    if (way == "exit") std::atexit([] { std::exit(0); });
    if (way == "hang")
      std::atexit([] {
        for (volatile bool forever = true; forever;) {
        }
      });
  }
  if (std::strcmp(in, "destructor") == 0) {
    struct Static {
      ~Static() { std::raise(SIGSEGV); }
    };
    static Static object;
  }
}

template <typename Description>
void describe_ends(Description& d) {
  d.attribute(tn::string_attribute("in", "").doc("the call that ends"));
  d.attribute(tn::string_attribute("way", "hang").one_of({"hang", "crash", "exit"}).doc("how it ends"));
}

struct Ends {
  static void describe(tn::LayerDescription& d) {
    d.type("test_ends", "A layer that ends the process");
    d.input("in", "any");
    d.output("out", "as in");
    describe_ends(d);
  }
  static void plan(tn::Planner& planner) {
    end_in(planner.attributes(), "plan");
    end_at_exit(planner.attributes());
    planner.output(0, planner.input(0));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    end_in(attributes, "lower");
    tn::Program program;
    program.output(program.full() * 1);
    body.output(0, body.pointwise(program, {body.input(0)}, 1)[0]);
  }
};

// Chosen to end in "prepare", or in "run", which it does in process 1 of a team alone.
class Kernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("test_ends", "cpu", "ends", 1);
    d.compute(TN_F32);
  }
  static bool supports(const tn::KernelSite& site, int32_t& /*score*/) {
    end_in(site.attributes(), "supports");
    const std::string_view in = site.attributes().text("in");
    return in == "prepare" || in == "run";
  }
  Kernel(const tn::KernelSite& site, int32_t direction) : forward_(direction == TN_FORWARD) {
    end_in(site.attributes(), "prepare");
    const char* const process = std::getenv("TENON_TEAM_RANK");
    hangs_ = process != nullptr && std::strcmp(process, "1") == 0;
  }
  void run(const tn::Call& call) const {
    for (volatile bool forever = hangs_; forever;) {
    }
    const int64_t count = forward_ ? tn_elements(call.output(0)) : 0;
    for (int64_t i = 0; i < count; ++i) call.out<float>(0)[i] = call.in<float>(0)[i];
  }

 private:
  const bool forward_;
  bool hangs_ = false;
};

struct OneWay {
  static void describe(tn::LayerDescription& d) {
    d.type("test_one_way", "out = in, by a kernel without backward");
    d.input("in", "any");
    d.output("out", "as in");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
};

class OneWayKernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("test_one_way", "cpu", "forward_alone", 1);
    d.compute(TN_F32);
  }
  OneWayKernel(const tn::KernelSite& /*site*/, int32_t direction) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "", "it is for inference alone");
  }
  void run(const tn::Call& call) const {
    const int64_t count = tn_elements(call.output(0));
    for (int64_t i = 0; i < count; ++i) call.out<float>(0)[i] = call.in<float>(0)[i];
  }
};

class Reader {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("test_ends", "A reader that ends the process");
    describe_ends(d);
  }
  explicit Reader(const tn::ReaderOpen& open) { end_in(open.attributes(), "open"); }
  const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  int64_t samples() const { return 1; }
  void read(int64_t, tn::Samples& to) const { to.dense<float>(0)[0] = 1; }

 private:
  std::vector<tn::ReaderSlot> slots_{{"x", TN_F32, {1}}};
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.ends", "1.0.0", "Code that ends the process", "Apache-2.0");
  plugin.layer<Ends>();
  plugin.kernel<Kernel>();
  plugin.layer<OneWay>();
  plugin.kernel<OneWayKernel>();
  plugin.reader<Reader>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
