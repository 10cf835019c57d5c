#include "background_save.h"

#include <sys/resource.h>

#include <algorithm>
#include <future>
#include <string>
#include <utility>

#include <cohort/base/log.h>

namespace cohort::checkpoint {
namespace {

/// Where the program's threads need all cores, this one has what they leave.
void go_behind_the_program() {
  constexpr int kLowest = 19;
  // Of this thread, on Linux. If it is refused, steps are slower.
  ::setpriority(PRIO_PROCESS, 0, std::min(::getpriority(PRIO_PROCESS, 0) + kLowest, kLowest));
}

}  // namespace

BackgroundSave::~BackgroundSave() {
  try {
    wait();
  } catch (const std::exception& error) {
    logging::error("a checkpoint was not saved: {}", error.what());
  }
}

void BackgroundSave::start(const Workers& workers, std::unique_ptr<CheckpointWriter> writer) {
  make_group(workers);
  // A thread that has begun would wait for those of workers that failed to begin.
  std::promise<bool> all_have_copied;
  try {
    workers.together_do([&] {
      writer->copy(memory_);
      const Workers threads = group_ == nullptr ? workers : workers.on(*group_);
      thread_ =
          std::thread([this, threads, go = all_have_copied.get_future(), save = std::move(writer)]() mutable {
            go_behind_the_program();
            try {
              if (go.get()) save->write(threads);
            } catch (...) {
              failure_ = std::current_exception();
            }
            save.reset();  // with its lock, before anybody may save again
          });
    });
  } catch (...) {
    all_have_copied.set_value(false);
    wait();
    throw;
  }
  all_have_copied.set_value(true);
}

void BackgroundSave::wait() {
  if (thread_.joinable()) thread_.join();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackgroundSave::make_group(const Workers& workers) {
  if (workers.size() == 1) return;
  // A communicator that failed is of no more use; not all of its members may have noticed.
  const auto answers = workers.together([&] {
    const bool is_usable = group_ != nullptr && !group_->failure();
    return std::string(is_usable ? "usable" : "");
  });
  if (std::ranges::find(answers, "") == answers.end()) return;
  group_.reset();
  group_ = workers.make_group();
}

}  // namespace cohort::checkpoint
