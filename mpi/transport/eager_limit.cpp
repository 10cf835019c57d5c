#include "eager_limit.h"

#include <algorithm>
#include <optional>

#include "../calls.h"

namespace cohort::mpi {
namespace {

/// Open MPI's name, and that of MPICH and its kin.
constexpr const char* kNames[] = {"btl_tcp_eager_limit", "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE"};

constexpr std::size_t kUsualLimit = std::size_t{64} << 10;

/// Shorter messages would pay their fixed cost too often, longer ones fill the caches.
constexpr std::size_t kShortest = std::size_t{4} << 10;
constexpr std::size_t kLongest = std::size_t{256} << 10;

}  // namespace

std::size_t longest_message_below(std::size_t limit) noexcept {
  return std::clamp(limit / 8 * 7, kShortest, kLongest) / kShortest * kShortest;
}

std::size_t longest_eager_message() {
  // The library's variables are found by name among a thousand, and this one stays as it is.
  static const std::size_t bytes = [] {
    for (const char* name : kNames) {
      if (const std::optional<std::size_t> limit = control_variable(name))
        return longest_message_below(*limit);
    }
    return longest_message_below(kUsualLimit);
  }();
  return bytes;
}

}  // namespace cohort::mpi
