#include <tenon/tenon.hpp>
#include <tenon/tenon_updater.hpp>

void step(const tenon::Machine& machine, const tenon::Updater& slow, const tenon::Updater& fast) {
  machine.backward();
  tenon::update_parameters(fast, machine, {"head", "last.bias"});
  slow.update(machine);  // all others
}
