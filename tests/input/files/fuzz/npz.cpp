#include <cohort/input/files/npy.h>

#include "read_all.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  const MemoryFile file(input);
  read_all(npz_dataset({file.path()}), file);
  read_all(npz_dataset({file.path()}, {.arrays = {"images"}}), file);
}

}  // namespace cohort::fuzz
