// What COHORT_TUNING_FILE may hold. A file that cannot be used is a warning.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "collective/choice/tuning_figures.h"
#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  [[maybe_unused]] static const int silent = ::setenv("COHORT_LOG_LEVEL", "off", 1);
  const int file = ::memfd_create("fuzzed", MFD_CLOEXEC);
  if (::write(file, input.data(), input.size()) != static_cast<ssize_t>(input.size()))
    throw std::runtime_error("no memory for a file");
  for (const TuningScope scope : {TuningScope::kNode, TuningScope::kNetwork}) {
    const auto table = TuningFile("/proc/self/fd/" + std::to_string(file)).read(scope, "shape");
    if (!table) continue;
    for (const TuningFigure& figure : table->figures(scope)) {
      if (!std::isfinite(figure.value) || figure.value <= 0) throw std::logic_error("no figure is like this");
    }
  }
  ::close(file);
}

}  // namespace cohort::fuzz
