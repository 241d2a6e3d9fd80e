// The module tenon._core. SPDX-License-Identifier: Apache-2.0
#include "core.h"

NB_MODULE(_core, module) {
  using namespace tenon_python;
  module.doc() = "The public API of C++ as tenon sees it; programs use the package tenon instead.";
  bind_interpreter(module);
  bind_errors(module);
  bind_arrays(module);
  bind_arrow(module);
  bind_kernels(module);
  bind_model(module);
  bind_program(module);
  bind_machine(module);
  bind_generation(module);
  bind_readers(module);
  bind_team(module);
  bind_training(module);
  bind_weights(module);
}
