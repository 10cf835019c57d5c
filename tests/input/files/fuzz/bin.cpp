#include <cohort/input/files/fixed_length_record.h>

#include "read_all.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  const MemoryFile file(input);
  read_all(
      fixed_length_record_dataset({file.path()}, {.record_bytes = 3, .header_bytes = 4, .footer_bytes = 1}),
      file);
}

}  // namespace cohort::fuzz
