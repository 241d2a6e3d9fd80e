// SPDX-License-Identifier: Apache-2.0
#include "launch/verb.h"

#include "launch/launcher.h"
#include "launch/node/agent.h"

namespace tenon::launch {

int run_launch(const cli::Arguments& arguments) {
  if (arguments == cli::Arguments{"--node"}) return run_agent();
  if (arguments.size() == 3 && arguments[0] == "--node") return run_agent_of_world(arguments[1], arguments[2]);
  cli::TrainCommand command("launch");
  if (!command.parse(arguments)) return cli::kDone;
  if (!command.arguments.launch.is_wanted()) command.options.fail("expected --processes or --nodes");
  (void)command.arguments.common.format(command.options);
  return Launcher(command).run();
}

}  // namespace tenon::launch
