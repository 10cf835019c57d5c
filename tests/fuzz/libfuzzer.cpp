// The entry that libFuzzer calls.
#include <cstddef>
#include <cstdint>

#include "fuzz_one.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cohort::fuzz::fuzz_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
