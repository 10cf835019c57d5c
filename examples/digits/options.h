// The command line of the digits example.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace digits {

struct Options {
  std::string strategy = "multi_worker_mirrored";
  std::string roles = {};  ///< empty: all ranks train
  int devices = 1;
  int epochs = 60;
  std::int64_t batch = 64;  ///< global: shared by all replicas
  std::int64_t seed = 1;
  int hidden = 128;
  double learning_rate = 0.5;
  std::int64_t staleness = 4;     ///< for parameter_server
  std::string checkpoint = {};    ///< a folder; empty: no checkpoints
  std::int64_t every = 100;       ///< steps from one checkpoint to the next
  std::int64_t memory_every = 0;  ///< steps from one snapshot in memory to the next; 0: none
  bool resume = false;
  std::string data = {};
  std::string json = {};
};

/// A wrong command line; the text says what is wrong and what to do.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Nothing when help was asked for. @throws UsageError.
[[nodiscard]] std::optional<Options> parse_options(int argc, const char* const* argv);

[[nodiscard]] std::string help_text();

}  // namespace digits
