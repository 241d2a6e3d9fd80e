// With u the step after the warm-up and v = min(u / steps, 1), the factors are
//   constant     1
//   step         rate ^ floor(u / steps)
//   multi_step   rate ^ (the number of milestones <= u), or the one of `factors` that this number counts; 1 for none
//   exponential  rate ^ (u / steps)
//   inverse      (1 + u / steps) ^ -power
//   linear       start + (end - start) v
//   polynomial   end + (1 - end) (1 - v) ^ power
//   cosine       end + (1 - end) (1 + cos(pi v)) / 2     (Loshchilov and Hutter, "SGDR", 2017, equation 5)
// SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "host/training/schedule/rule.h"

namespace tenon::host {

namespace {

double steps_of(UpdaterAttributes& reader) { return reader.number("steps", {1}); }
double rate_of(UpdaterAttributes& reader) { return reader.number("rate", {}, 0.1); }
double power_of(UpdaterAttributes& reader) { return reader.number("power", {}, 1); }
double end_of(UpdaterAttributes& reader) { return reader.number("end", {}, 0); }
double part(double u, double steps) { return std::min(u / steps, 1.0); }

Rule constant(UpdaterAttributes& /*reader*/) {
  return [](double /*u*/) { return 1.0; };
}

Rule step(UpdaterAttributes& reader) {
  return
      [steps = steps_of(reader), rate = rate_of(reader)](double u) { return tn_math_pow(rate, std::floor(u / steps)); };
}

Rule multi_step(UpdaterAttributes& reader) {
  std::vector<int64_t> milestones = reader.wholes("milestones");
  int64_t last = 0;
  for (const int64_t each : milestones) {
    if (each <= last)
      reader.bad("milestones", text("expected increasing numbers of steps of at least 1, got ", shown(milestones)));
    last = each;
  }
  const auto passed = [milestones](double u) {
    return std::count_if(milestones.begin(), milestones.end(),
                         [u](int64_t each) { return static_cast<double>(each) <= u; });
  };
  if (!reader.has("factors"))
    return [passed, rate = rate_of(reader)](double u) { return tn_math_pow(rate, static_cast<double>(passed(u))); };
  if (reader.has("rate")) reader.bad("rate", text("\"", reader.name("factors"), "\" replaces it"));
  std::vector<double> factors = reader.numbers("factors", 0);
  if (factors.size() != milestones.size())
    reader.bad("factors",
               text("expected a number for each of the ", milestones.size(), " milestones, got ", factors.size()));
  factors.insert(factors.begin(), 1);
  return [passed, factors](double u) { return factors[static_cast<size_t>(passed(u))]; };
}

Rule exponential(UpdaterAttributes& reader) {
  return [steps = steps_of(reader), rate = rate_of(reader)](double u) { return tn_math_pow(rate, u / steps); };
}

Rule inverse(UpdaterAttributes& reader) {
  return [steps = steps_of(reader), power = power_of(reader)](double u) { return tn_math_pow(1 + u / steps, -power); };
}

Rule linear(UpdaterAttributes& reader) {
  const double steps = steps_of(reader), start = reader.number("start", {}), end = reader.number("end", {});
  return [=](double u) { return start + (end - start) * part(u, steps); };
}

Rule polynomial(UpdaterAttributes& reader) {
  const double steps = steps_of(reader), power = power_of(reader), end = end_of(reader);
  return [=](double u) { return end + (1 - end) * tn_math_pow(1 - part(u, steps), power); };
}

Rule cosine(UpdaterAttributes& reader) {
  const double steps = steps_of(reader), end = end_of(reader);
  return [=](double u) { return end + (1 - end) * 0.5 * (1 + tn_math_cos(std::numbers::pi * part(u, steps))); };
}

constexpr ScheduleKind kDecays[] = {{"constant", {}, constant},
                                    {"step", {"steps", "rate"}, step},
                                    {"multi_step", {"milestones", "rate", "factors"}, multi_step},
                                    {"exponential", {"steps", "rate"}, exponential},
                                    {"inverse", {"steps", "power"}, inverse},
                                    {"linear", {"steps", "start", "end"}, linear},
                                    {"polynomial", {"steps", "power", "end"}, polynomial},
                                    {"cosine", {"steps", "end"}, cosine}};

}  // namespace

std::span<const ScheduleKind> decays() { return kDecays; }

}  // namespace tenon::host
