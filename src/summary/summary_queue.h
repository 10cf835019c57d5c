// What a SummaryWriter has recorded and its thread has not yet written: callers fill one list of entries
// while the thread writes another one, and then the two change places. Entries keep their memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <cohort/summary/summary_writer.h>

namespace cohort {

class SummaryWriter::Queue {
 public:
  Queue(std::vector<std::unique_ptr<SummarySink>> sinks, const SummaryWriterOptions& options);
  /// Writes what is left. What fails is logged, unless a call has thrown it.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  struct Entry {
    SummaryValue value = {};
    bool is_restart = false;
  };

  /// `fill` writes to the next free entry, as whatever was in it before has left it. Waits only where both
  /// lists are full.
  template <class Fill>
  void add(Fill fill) {
    std::unique_lock lock(mutex_);
    wait_for_space(lock);
    fill(filling_[count_]);
    ++added_;
    if (++count_ == due_) work_.notify_one();
  }

  /// Waits until all is written. @throws Unavailable.
  void flush();

  /// As flush, and closes the files; nothing may be added afterwards.
  void close();
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

 private:
  void wait_for_space(std::unique_lock<std::mutex>& lock);
  void throw_failure();
  void serve();
  void write(std::size_t count);
  void write(SummarySink& sink, std::size_t count);
  void close_sinks();
  void note_failure(const std::exception& error);

  std::vector<std::unique_ptr<SummarySink>> sinks_;
  const std::size_t due_;  ///< entries after which the thread begins
  const std::chrono::duration<double> patience_;
  bool is_closed_ = false;

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable written_;
  std::vector<Entry> filling_;
  std::size_t count_ = 0;  ///< of filling_ that are in use
  std::uint64_t added_ = 0;
  std::uint64_t done_ = 0;  ///< of those added, written or failed
  bool is_asked_ = false;   ///< to write what there is
  bool ends_ = false;
  std::string failure_;
  bool is_told_ = false;  ///< somebody has got the failure as an exception

  std::vector<Entry> writing_;  ///< the thread's
  std::jthread thread_;
};

}  // namespace cohort
