// Bytes between the test and functions that workers run. What a function writes to variables is seen when it
// has ended; these are seen at once, so that the test knows which functions run.
#pragma once

namespace cohort::conformance {

/// A pipe that tasks inherit which are started after it was made. One thread reads.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int input() const noexcept { return input_; }
  [[nodiscard]] int output() const noexcept { return output_; }

  /// Waits for so many bytes. @throws DeadlineExceeded after a minute.
  void await(int count = 1) const;
  void give(int count = 1) const;
  /// Those that are there and that nobody awaits.
  void take_all() const;

 private:
  int input_ = -1;
  int output_ = -1;
};

/// For functions, which are given the descriptors.
void await_signal(int input);
void give_signal(int output);

}  // namespace cohort::conformance
