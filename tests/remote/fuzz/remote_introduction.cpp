#include <stdexcept>

#include "fuzz_one.h"
#include "remote/handshake.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  parse_or_refuse([&] {
    const remote::Introduction introduction = remote::parse_introduction(input);
    if (remote::parse_introduction(remote::to_text(introduction)) != introduction)
      throw std::runtime_error("an introduction that its text changes");
  });
}

}  // namespace cohort::fuzz
