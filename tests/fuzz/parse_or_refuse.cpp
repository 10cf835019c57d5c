#include <algorithm>
#include <stdexcept>
#include <string>

#include "fuzz_one.h"

namespace cohort::fuzz {

void parse_or_refuse(const std::function<void()>& parse, std::initializer_list<ErrorCode> refusals) {
  try {
    parse();
  } catch (const Error& error) {
    if (std::ranges::find(refusals, error.code()) == refusals.end() || std::string(error.what()).empty())
      throw std::logic_error("refused by: " + std::string(to_string(error.code())) + ": " + error.what());
  } catch (const std::exception& error) {
    throw std::logic_error("let through: " + std::string(error.what()));
  }
}

}  // namespace cohort::fuzz
