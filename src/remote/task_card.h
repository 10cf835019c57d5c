// The card of a task: its TaskPlace as JSON, which the supervisor puts into a memory file that the task's
// process inherits. Nobody else can read it there, as everyone could a variable or an argument.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/remote/task_place.h>

namespace cohort::remote {

[[nodiscard]] std::string to_card(const TaskPlace& place);

/// @throws InvalidArgument saying what is wrong with the text, and where.
[[nodiscard]] TaskPlace place_from_card(std::string_view card);

/// The part of the card about where tasks listen, which supervisors of several hosts tell each other.
[[nodiscard]] std::string addresses_to_json(std::span<const Address> addresses);
[[nodiscard]] std::vector<Address> addresses_from_json(std::string_view text);

}  // namespace cohort::remote
