#include "remote/supervised_task.h"

#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  parse_or_refuse([&] { static_cast<void>(remote::place_from_card(input)); });
  parse_or_refuse([&] { static_cast<void>(remote::addresses_from_json(input)); });
}

}  // namespace cohort::fuzz
