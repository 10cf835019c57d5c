#include "checkpoint/format/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include <cohort/base/error.h>

#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  const int descriptor = ::memfd_create("fuzzed", MFD_CLOEXEC);
  if (::write(descriptor, input.data(), input.size()) != static_cast<ssize_t>(input.size()))
    throw std::runtime_error("no memory for a file");
  const checkpoint::InputFile file("/proc/self/fd/" + std::to_string(descriptor));
  ::close(descriptor);
  try {
    for (const auto& [name, place] : checkpoint::read_header(file).tensors) {
      // What a header is believed to have can be read.
      std::vector<std::byte> bytes(place.bytes());
      file.read(place.begin, bytes);
    }
  } catch (const DataLoss&) {
    return;
  }
}

}  // namespace cohort::fuzz
