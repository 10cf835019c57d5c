#include "report.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

namespace digits {
namespace {

/// mpirun gives its ranks a pseudo-terminal even when its own output goes to a file, so under mpirun the
/// launcher's output decides.
bool shows_on_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return true;
  std::error_code error;
  const auto target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", getppid()), error).string();
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
}

}  // namespace

void print(const Results& results) {
  fmt::print("{}: {} replica{}, test accuracy {:.4f}\n", results.strategy, results.replicas,
             results.replicas == 1 ? "" : "s", results.test_accuracy);
}

Progress::Progress(bool enabled, int epochs, std::int64_t steps)
    : enabled_(enabled), terminal_(shows_on_terminal()), epochs_(epochs), steps_(steps) {}

void Progress::step(int epoch, std::int64_t step) {
  if (epoch == 1 && step == 1) cohort::logging::debug("the first step is done");
  if (!enabled_ || !terminal_) return;
  constexpr std::int64_t kWidth = 30;
  const std::int64_t filled = kWidth * step / steps_;
  fmt::print("\repoch {:>3}/{} [{:=<{}}{: <{}}] {}/{}", epoch, epochs_, "", filled, "", kWidth - filled, step,
             steps_);
  std::fflush(stdout);
}

void Progress::end_epoch(const Epoch& epoch) {
  if (enabled_) {
    // On a terminal the line overwrites the whole bar, even a longer one.
    fmt::print("{}epoch {:>3}/{}  loss {:.6f}  accuracy {:.4f}  {:.3f} s{}\n", terminal_ ? "\r" : "",
               epoch.number, epochs_, epoch.loss, epoch.accuracy, epoch.seconds, terminal_ ? "\033[K" : "");
    std::fflush(stdout);
  }
}

ResultsFile::ResultsFile(std::string path) : path_(std::move(path)), stream_(path_) { require_good(); }

void ResultsFile::require_good() const {
  if (!stream_) throw cohort::Unavailable("cannot write '{}': {}", path_, std::strerror(errno));
}

void ResultsFile::write(const Results& results) {
  nlohmann::ordered_json json;
  json["strategy"] = results.strategy;
  json["replicas"] = results.replicas;
  json["epochs"] = nlohmann::ordered_json::array();
  for (const Epoch& epoch : results.epochs) {
    json["epochs"].push_back({{"number", epoch.number},
                              {"loss", epoch.loss},
                              {"accuracy", epoch.accuracy},
                              {"seconds", epoch.seconds}});
  }
  json["test_accuracy"] = results.test_accuracy;
  stream_ << json.dump(2) << '\n';
  stream_.close();
  require_good();
}

}  // namespace digits
