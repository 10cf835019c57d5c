#include "signs_of_life.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>

namespace cohort::remote {

SignsOfLife::SignsOfLife(Bell& bell, std::chrono::milliseconds interval) : bell_(&bell), interval_(interval) {
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SignsOfLife::~SignsOfLife() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

void SignsOfLife::add(HearsSigns& listener) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(&listener);
}

void SignsOfLife::remove(HearsSigns& listener) {
  const std::lock_guard lock(mutex_);
  std::erase(listeners_, &listener);
}

void SignsOfLife::run() {
  std::unique_lock lock(mutex_);
  bell_->beat();
  // Whoever has just connected needs no sign yet.
  while (!stop_.wait_for(lock, interval_, [this] { return stopping_; })) {
    bell_->beat();
    for (HearsSigns* listener : listeners_) listener->give_sign();
  }
}

}  // namespace cohort::remote
