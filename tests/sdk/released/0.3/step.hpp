/* Tenon SDK for C++17: the step of a layer that reads earlier rows of its sequence. SPDX-License-Identifier: MIT
 *
 * A layer type with `static void step(tn::Stepper& stepper)` offers "tenon.step/1" (tenon/step.h):
 *
 *   static void step(tn::Stepper& stepper) {  // h = f(x, what the step before left)
 *     const tn_ref h = stepper.memory(tn::Spec({stepper.spec(0)[0], size}), 1);
 *     const tn_ref next = stepper.layer("my_step", {stepper.input(0), h});
 *     stepper.next(h, next);
 *     stepper.output(0, next);
 *   } */
#ifndef TENON_STEP_HPP
#define TENON_STEP_HPP

#include <tenon/step.h>

#include <tenon/expander.hpp>

namespace tn {

// Adds the layers of one step; inputs are those of the step.
class Stepper : public Expander {
 public:
  explicit Stepper(const tn_stepper& stepper) : Expander(*stepper.expander), stepper_(stepper) {}

  // int64 [samples]: the number of the row in its sequence, from 0.
  tn_ref position() { return made(stepper_.position(stepper_.self)); }
  // [samples, W...]: what the step before left. input: of the layer, with the first value; zeros if it is not
  // connected.
  tn_ref memory(const Spec& spec, int32_t input = -1) {
    const tn_spec view = spec.get();
    const tn_step_memory memory = {sizeof memory, input, &view};
    return made(stepper_.memory(stepper_.self, &memory));
  }
  void next(tn_ref memory, tn_ref value) { check(stepper_.next(stepper_.self, memory, value)); }
  // [N, W...]: what `value` was in the steps before, of all sequences.
  tn_ref history(tn_ref value) { return made(stepper_.history(stepper_.self, value)); }
  // int64, sequences: the numbers of the earlier rows of each sequence in every history.
  tn_ref past() { return made(stepper_.past(stepper_.self)); }

 private:
  const tn_stepper& stepper_;
};

namespace detail {

template <typename T, typename = void>
struct HasStep : std::false_type {};
template <typename T>
struct HasStep<T, std::void_t<decltype(&T::step)>> : std::true_type {};

// The table "tenon.step/1" of a layer type.
template <typename T>
const tn_step* step_table() {
  static constexpr tn_step table = {sizeof(tn_step), 0, [](const tn_stepper* stepper) {
                                      return guarded(stepper->expander->errors, [&] {
                                        Stepper wrapped(*stepper);
                                        T::step(wrapped);
                                      });
                                    }};
  return &table;
}

}  // namespace detail

}  // namespace tn
#endif
