// Turns SIGTERM and SIGINT into bytes in a pipe, so that a PeerWatch can print and send messages before they
// end the process. Handlers are per process, so only one relay is in use at a time; signals that the program
// handles, ignores or starts to handle later are left to it.
#pragma once

#include <array>
#include <csignal>

namespace cohort::watch {

class SignalRelay {
 public:
  SignalRelay();
  ~SignalRelay();

  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  /// Readable once a signal has come; -1 when no signal is relayed.
  [[nodiscard]] int fd() const noexcept;

  /// The signal that came, or 0.
  [[nodiscard]] int take() const noexcept;

  /// A line, newline included, that is written as soon as a signal comes; it must stay valid.
  void set_last_words(const char* line) const noexcept;

  /// Writes that line unless it has been written; safe in a handler.
  static void speak_last_words() noexcept;

  /// Ends this process as the signal would have done without a handler.
  [[noreturn]] static void end_by(int signal) noexcept;

 private:
  static constexpr std::array kSignals{SIGTERM, SIGINT};
  bool in_use_ = false;
  std::array<bool, kSignals.size()> installed_{};
};

}  // namespace cohort::watch
