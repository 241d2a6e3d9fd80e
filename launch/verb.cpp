// SPDX-License-Identifier: Apache-2.0
#include "launch/verb.h"

#include "launch/launcher.h"
#include "launch/node/agent.h"
#include "launch/pod/pod.h"

namespace tenon::launch {

int run_launch(const cli::Arguments& arguments) {
  if (arguments == cli::Arguments{"--node"}) return run_agent();
  if (arguments.size() == 3 && arguments[0] == "--node") return run_agent_of_world(arguments[1], arguments[2]);
  if (!arguments.empty() && arguments[0] == "--pod") return run_pod({arguments.begin() + 1, arguments.end()});
  if (arguments == cli::Arguments{"--before-stop"}) return run_before_stop();
  if (arguments == cli::Arguments{"--give"}) return run_give();
  cli::TrainCommand command("launch");
  if (!command.parse(arguments)) return cli::kDone;
  if (!command.arguments.launch.is_wanted()) command.options.fail("expected --processes or --nodes");
  (void)command.arguments.common.format(command.options);
  return Launcher(command).run();
}

}  // namespace tenon::launch
