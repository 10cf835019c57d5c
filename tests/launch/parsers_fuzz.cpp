// For libFuzzer, with a build by Clang: parsers_fuzz -max_total_time=60
#include <cstddef>
#include <cstdint>

#include "parsers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cohort::testing::read_in_every_way({reinterpret_cast<const char*>(data), size});
  return 0;
}
