#include <tenon/tenon.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_updater.hpp>
#include <vector>

// x: a layer standardize of one slot, called "sizes"; reader: of minibatches of at most `batch` samples.
void fit(const tenon::Host& host, const tenon::Layer& x, tenon::TrainOptions& training, const tenon::Reader& reader,
         int64_t batch) {
  tenon::MachineOptions options;
  options.max_samples = batch;
  options.training = true;
  options.flags = TN_MACHINE_GIVEN_GRADIENTS;  // it needs no cost
  const tenon::Machine machine = host.machine(training.parameters, {x}, options);
  for (std::vector<tenon::Array> slots = reader.next(); !slots.empty(); slots = reader.next()) {
    machine.forward({{"sizes", slots[0]}});
    tenon::Array gradient = machine.output(x);
    const std::vector<float> zeros(static_cast<size_t>(gradient.count()));
    gradient.data = zeros.data();
    tenon::backward_from(machine, {{x, gradient}});
    tenon::commit(machine);  // the buffers get their next values
  }
  tenon::set_updates(training.parameters, 0);
  training.immutable_parameters = {"x"};
}
