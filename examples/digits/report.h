// The output of the digits example while it trains, and the results that it writes at the end.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace digits {

struct Epoch {
  int number = 1;
  double loss = 0;      ///< mean over the training images, during the epoch
  double accuracy = 0;  ///< the same
  double seconds = 0;
};

struct Results {
  std::string strategy;
  int replicas = 1;
  std::vector<Epoch> epochs;  ///< those that were trained since the start, which may be later ones
  double test_accuracy = 0;
};

/// The strategy and the accuracy that it has reached.
void print(const Results& results);

/// A progress bar on a terminal, one line per epoch elsewhere. Silent unless `enabled`.
class Progress {
 public:
  Progress(bool enabled, int epochs, std::int64_t steps);
  /// So many steps of the epoch are done.
  void step(int epoch, std::int64_t step);
  void end_epoch(const Epoch& epoch);

 private:
  bool enabled_;
  bool terminal_;
  int epochs_;
  std::int64_t steps_;
};

/// A file for the results. It is opened before the training, so that a wrong path does not cost hours of it.
class ResultsFile {
 public:
  /// @throws cohort::Unavailable when the file cannot be written.
  explicit ResultsFile(std::string path);
  void write(const Results& results);

 private:
  void require_good() const;

  std::string path_;
  std::ofstream stream_;
};

}  // namespace digits
