#include "commands.h"

#include <algorithm>
#include <array>

namespace cohort::bench {

std::span<const Command> commands() {
  static const std::array all{dispatch_command(),    lines_command(),
                              simulate_command(),    input_command(),
                              coordinator_command(), parameters_command(),
                              checkpoint_command(),  trainer_command(),
                              summary_command(),     sharded_optimizer_command(),
                              start_command()};
  return all;
}

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found == commands().end() ? nullptr : &*found;
}

}  // namespace cohort::bench
