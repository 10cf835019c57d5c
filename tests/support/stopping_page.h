// Pages of a test's own, and one at which a thread that reads or writes it stops.
#pragma once

#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <span>
#include <stdexcept>

#include <gtest/gtest.h>

namespace cohort::testing {

inline std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// Anonymous, as mmap gives them.
class MappedPages {
 public:
  explicit MappedPages(std::size_t pages, int flags = MAP_PRIVATE) : bytes_(pages * page_bytes()) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no pages");
    data_ = static_cast<std::byte*>(memory);
  }
  ~MappedPages() { ::munmap(data_, bytes_); }
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, bytes_}; }
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

/// Floats in memory with a page at which a thread that reads or writes it stops: a member that the system has
/// stopped in the middle of a call. One at a time.
class StoppingPage {
 public:
  struct Place {
    std::size_t pages = 1;  ///< of the memory
    std::size_t page = 0;   ///< the one where threads stop, from 0
  };

  explicit StoppingPage(const Place& place) : memory_(place.pages), page_(place.page) {
    ::sem_init(&reached_, 0, 0);
    ::sem_init(&goes_on_, 0, 0);
  }

  ~StoppingPage() {
    if (armed_) ::sigaction(SIGSEGV, &before_, nullptr);
    current_ = nullptr;
    ::sem_destroy(&reached_);
    ::sem_destroy(&goes_on_);
  }

  StoppingPage(const StoppingPage&) = delete;
  StoppingPage& operator=(const StoppingPage&) = delete;

  [[nodiscard]] std::span<float> floats() const { return memory_.as<float>(); }
  [[nodiscard]] std::span<float> floats_behind() const {
    return floats().subspan((page_ + 1) * page_bytes() / sizeof(float));
  }

  /// From here on, whoever touches the page stops. Once.
  void arm() {
    current_ = this;
    struct sigaction action {};
    action.sa_sigaction = stop;
    action.sa_flags = SA_SIGINFO;
    armed_ = ::sigaction(SIGSEGV, &action, &before_) == 0;
    ASSERT_TRUE(armed_);
    ASSERT_EQ(::mprotect(page(), page_bytes(), PROT_NONE), 0);
  }

  /// Whether a thread stands there; true once for each.
  [[nodiscard]] bool is_reached() { return ::sem_trywait(&reached_) == 0; }
  void wait_until_reached() { wait_for(reached_); }
  void let_go_on() { ::sem_post(&goes_on_); }

 private:
  static void wait_for(sem_t& semaphore) {
    while (::sem_wait(&semaphore) != 0 && errno == EINTR) {
    }
  }

  static void stop(int /*signal*/, siginfo_t* info, void* /*context*/) {
    StoppingPage& self = *current_;
    const auto* address = static_cast<const std::byte*>(info->si_addr);
    if (address < self.page() || address >= self.page() + page_bytes()) {
      ::signal(SIGSEGV, SIG_DFL);  // a mistake elsewhere: the access is tried again
      return;
    }
    ::sem_post(&self.reached_);
    wait_for(self.goes_on_);
    ::mprotect(self.page(), page_bytes(), PROT_READ | PROT_WRITE);
  }

  [[nodiscard]] std::byte* page() const { return memory_.bytes().data() + page_ * page_bytes(); }

  static inline std::atomic<StoppingPage*> current_{nullptr};

  MappedPages memory_;
  std::size_t page_;
  bool armed_ = false;
  struct sigaction before_ {};
  sem_t reached_{};
  sem_t goes_on_{};
};

}  // namespace cohort::testing
