#include <cohort/input/files/tf_record.h>

#include "read_all.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  const MemoryFile file(input);
  read_all(tf_record_dataset({file.path()}), file);
}

}  // namespace cohort::fuzz
