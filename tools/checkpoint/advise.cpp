#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/files.h"
#include "base/system_calls.h"
#include "checkpoint/format/folder.h"
#include "command.h"

namespace cohort::tool {
namespace {

/// Seconds that training goes on between two saves. Young's sqrt(2 C M) [Communications of the ACM 17(9),
/// 1974] is the first term of Daly's [Future Generation Computer Systems 22(3), 2006, equation 37], which
/// also holds where saves are not much shorter than the time between failures.
double best_interval(double save, double mtbf) {
  if (save >= 2 * mtbf) return mtbf;
  const double ratio = save / (2 * mtbf);
  return std::sqrt(2 * save * mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - save;
}

/// The time that is lost per second of training, to saves, to work that is done again and to restarts, if
/// failures are independent of each other [Daly, equation 20].
double loss(double interval, double save, double mtbf, double restart) {
  return mtbf * std::exp(restart / mtbf) * std::expm1((interval + save) / mtbf) / interval - 1;
}

/// How long it takes to bring so many bytes to the disk of `folder`.
double seconds_to_write(const std::string& folder, std::uint64_t bytes) {
  const std::string path = folder + "/.measurement";
  const NewFile file(path);
  const std::string piece(std::size_t{1} << 20, 'x');
  const auto begin = std::chrono::steady_clock::now();
  while (bytes > 0) {
    const ssize_t written = uninterrupted([&] {
      return ::write(file.descriptor(), piece.data(), std::min<std::uint64_t>(piece.size(), bytes));
    });
    if (written < 0) throw Unavailable("cannot write '{}': {}", path, std::strerror(errno));
    bytes -= static_cast<std::uint64_t>(written);
  }
  if (uninterrupted([&] { return ::fsync(file.descriptor()); }) != 0)
    throw Unavailable("cannot write '{}' to the disk: {}", path, std::strerror(errno));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.3g} min", seconds / 60);
  return fmt::format("{:.3g} h", seconds / 3600);
}

}  // namespace

int advise(const Arguments& arguments) {
  const auto given = arguments.number("--save-seconds");
  const auto hours = arguments.number("--mtbf");
  if (!hours) throw WrongUse("advise needs --mtbf HOURS, the mean time between failures");
  if (given.has_value() != arguments.paths.empty())
    throw WrongUse("advise needs either --save-seconds or a checkpoint to measure with");
  const double nodes = arguments.number("--nodes").value_or(1);
  const double mtbf = *hours * 3600 / nodes;
  const double restart = arguments.number("--restart-seconds").value_or(0);
  double save = given.value_or(0);
  if (!given) {
    const std::string& path = arguments.paths.front();
    const std::uint64_t bytes = bytes_of(checkpoint::read_manifest(path));
    save = seconds_to_write(path, bytes);
    fmt::print("one process writes the {} bytes of {} in {}\n", bytes, path, duration(save));
  }
  const double interval = best_interval(save, mtbf);
  fmt::print("save every {} ({:.0f} s)\n", duration(interval), interval);
  fmt::print("  a save of {}, a failure every {}, {} until it trains again\n", duration(save), duration(mtbf),
             duration(restart));
  for (const auto& [factor, name] : {std::pair(1.0, "so"), {0.5, "twice as often"}, {2.0, "half as often"}})
    fmt::print("  {:<15} {:8.2f} % longer than without saves and failures\n", name,
               100 * loss(interval * factor, save, mtbf, restart));
  fmt::print("formulas: Young 1974, Daly 2006 (docs/checkpoints.md)\n");
  return kSound;
}

}  // namespace cohort::tool
