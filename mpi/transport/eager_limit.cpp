#include "eager_limit.h"

#include <algorithm>

#include "../calls.h"

namespace cohort::mpi {
namespace {

#ifdef OPEN_MPI
constexpr const char* kName = "btl_tcp_eager_limit";
#else  // MPICH and its kin
constexpr const char* kName = "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE";
#endif

constexpr std::size_t kUsualLimit = std::size_t{64} << 10;

/// Shorter messages would pay their fixed cost too often, longer ones fill the caches.
constexpr std::size_t kShortest = std::size_t{4} << 10;
constexpr std::size_t kLongest = std::size_t{256} << 10;

}  // namespace

std::size_t longest_message_below(std::size_t limit) noexcept {
  return std::clamp(limit / 8 * 7, kShortest, kLongest) / kShortest * kShortest;
}

std::size_t longest_eager_message() {
  // Asked once: the library then registers the variables of all its parts, which takes Open MPI 0.2 s.
  static const std::size_t bytes = longest_message_below(control_variable(kName).value_or(kUsualLimit));
  return bytes;
}

}  // namespace cohort::mpi
