// With u the step after the warm-up, the factors are
//   one_cycle        1 at u = p = rise * steps, `start` at u = 1 and `end` from u = steps on, with a line or half a
//                    cosine between two of them; with three_phase the fall is as long as the rise, to `start` at
//                    u = 2 p - 1, and then goes on to `end` (L. N. Smith and N. Topin, "Super-Convergence", 2017; the
//                    steps are those of PyTorch's OneCycleLR)
//   cyclic           start + (1 - start) h s in cycles of `steps`: h is the height of a triangle, 0 at the ends of the
//                    cycle and 1 at the share `rise` of it, and in cycle c = 0, 1, ... the scale s is 1 (triangular),
//                    2 ^ -c (triangular2) or rate ^ (u / steps) (exponential) (L. N. Smith, "Cyclical Learning Rates",
//                    2015)
//   cosine_restarts  end + (1 - end) (1 + cos(pi v)) / 2 with v the share of the present period that has passed; the
//                    first is of `steps`, each other `multiplier` times as long as the one before (I. Loshchilov and
//                    F. Hutter, "SGDR", 2017, equation 5)
// SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "host/training/schedule/rule.h"

namespace tenon::host {

namespace {

constexpr const char* kAnneal[] = {"cosine", "linear"};
constexpr const char* kModes[] = {"triangular", "triangular2", "exponential"};

// 0 at v = 0 and 1 at v = 1, as half a cosine.
double half_cosine(double v) { return 0.5 * (1 - tn_math_cos(std::numbers::pi * v)); }

Rule one_cycle(UpdaterAttributes& reader) {
  const double steps = reader.number("steps", {1});
  const bool three = reader.flag("three_phase", false);
  const double top = steps * reader.number("rise", {0, three ? 0.5 : 1}, 0.3);
  const double start = reader.number("start", {}, 0.04), end = reader.number("end", {}, 4e-6);
  const bool cosine = reader.choice("anneal", kAnneal, "cosine") == "cosine";
  const auto between = [cosine](double from, double to, double u, double begin, double finish) {
    const double v = finish > begin ? std::clamp((u - begin) / (finish - begin), 0.0, 1.0) : 1;
    return from + (to - from) * (cosine ? half_cosine(v) : v);
  };
  return [=](double u) {
    if (u <= top) return between(start, 1, u, 1, top);
    const double fallen = 2 * top - 1;
    if (!three) return between(1, end, u, top, steps);
    return u <= fallen ? between(1, start, u, top, fallen) : between(start, end, u, fallen, steps);
  };
}

Rule cyclic(UpdaterAttributes& reader) {
  const double steps = reader.number("steps", {1}), rise = reader.number("rise", {0, 1}, 0.5);
  const double start = reader.number("start", {});
  const std::string mode = reader.choice("mode", kModes, "triangular");
  const bool exponential = mode == "exponential";
  if (!exponential && reader.has("rate"))
    reader.bad("rate", text("the mode \"", mode, "\" has no rate, only \"exponential\" has"));
  const double rate = exponential ? reader.number("rate", {}) : mode == "triangular2" ? 0.5 : 1;
  return [=](double u) {
    const double cycle = std::floor(u / steps), v = u / steps - cycle;
    const double height = v < rise ? v / rise : rise < 1 ? (1 - v) / (1 - rise) : 1;
    return start + (1 - start) * height * tn_math_pow(rate, exponential ? u / steps : cycle);
  };
}

Rule cosine_restarts(UpdaterAttributes& reader) {
  const double steps = reader.number("steps", {1}), end = reader.number("end", {}, 0);
  const auto multiplier = static_cast<double>(reader.whole("multiplier", 1, 1));
  return [=](double u) {
    double period = steps;
    if (multiplier == 1) u = std::fmod(u, period);
    while (u >= period) {
      u -= period;
      period *= multiplier;
    }
    return end + (1 - end) * (1 - half_cosine(u / period));
  };
}

constexpr ScheduleKind kCycles[] = {
    {"one_cycle", {"steps", "rise", "start", "end", "anneal", "three_phase"}, one_cycle},
    {"cyclic", {"steps", "rise", "start", "mode", "rate"}, cyclic},
    {"cosine_restarts", {"steps", "multiplier", "end"}, cosine_restarts}};

}  // namespace

std::span<const ScheduleKind> cycles() { return kCycles; }

}  // namespace tenon::host
