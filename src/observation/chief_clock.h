// How far the steady clock of this node is from that of the chief's: asked of the chief again and again,
// since clocks drift apart. The time of a question and its answer bounds the error. Any thread may call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace cohort {

/// In nanoseconds. To be added to a time of this node, for that of the chief's clock.
struct ClockOffset {
  std::int64_t offset = 0;
  std::int64_t error = 0;  ///< at most, either way
};

class ChiefClock {
 public:
  using Tell = std::function<void(int worker, std::string note)>;

  /// `is_same`: this worker is on the chief's host, and nobody needs to be asked.
  ChiefClock(int rank, bool is_same, Tell tell);

  /// Asks the chief, if it is time to. Its answer comes by `hear`.
  void ask_if_due();

  /// What another worker has told; false: the note is none of these. The chief answers it.
  bool hear(std::string_view text);

  /// Nothing before the first answer.
  [[nodiscard]] std::optional<ClockOffset> offset() const;

  /// A time of this node's clock, in nanoseconds, on the chief's; as it is before the first answer. The later
  /// of two times never becomes the earlier one, although what is known of the chief's clock changes.
  [[nodiscard]] std::int64_t to_chief(std::int64_t time) const;

  /// Waits for the first answer, for so long; the chief may be gone.
  void wait_until_known(std::chrono::milliseconds timeout);

  [[nodiscard]] static std::int64_t now();

 private:
  struct Answer {
    std::int64_t heard = 0;  ///< when, on this clock
    std::int64_t offset = 0;
    std::int64_t error = 0;  ///< at that moment
  };

  /// From a time of this clock on.
  struct Offset {
    std::int64_t from = 0;
    std::int64_t offset = 0;
    std::int64_t least = 0;  ///< of the chief's times that come out: earlier ones are those of times before
  };

  void note_offset(std::int64_t from, std::int64_t offset);
  [[nodiscard]] std::optional<ClockOffset> best_at(std::int64_t time) const;

  const int rank_;
  const bool is_same_;
  const Tell tell_;

  mutable std::mutex mutex_;
  std::condition_variable first_answer_;
  std::int64_t next_question_ = 0;
  std::deque<Answer> answers_;
  std::deque<Offset> offsets_;  ///< as they were known, the latest last
};

}  // namespace cohort
