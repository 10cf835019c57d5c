// Everything in this library that reads text which a user or a launcher wrote, behind one
// function, for tests that feed it text of which nobody knows what it is.
#pragma once

#include <string>

namespace cohort::testing {

/// Reads `text` in every way there is; how it is refused, if it is, must be an Error that says something.
/// @throws std::logic_error when it is refused in another way.
void read_in_every_way(const std::string& text);

}  // namespace cohort::testing
