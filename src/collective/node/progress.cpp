#include "progress.h"

#include <algorithm>

#include <cohort/base/config.h>

#include "member.h"
#include "waiting.h"

namespace cohort::node {

Progress& Progress::of_this_process() {
  static Progress progress;
  return progress;
}

// The settings are read by the thread to its end, so they are made before it and destroyed after it.
Progress::Progress() {
  static_cast<void>(config());
  thread_ = std::thread([this] { serve(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Progress::attend(std::shared_ptr<Member> member) {
  {
    const std::lock_guard lock(mutex_);
    arrivals_.push_back(std::move(member));
  }
  changed_.notify_one();
}

void Progress::serve() {
  std::vector<std::shared_ptr<Member>> members;
  Waiting waiting(true);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (members.empty()) changed_.wait(lock, [&] { return ending_ || !arrivals_.empty(); });
      if (ending_) return;
      for (std::shared_ptr<Member>& arrival : arrivals_) members.push_back(std::move(arrival));
      arrivals_.clear();
    }
    if (advance(members)) {
      waiting = Waiting(true);
    } else {
      static_cast<void>(waiting.is_time_to_look());
      waiting.give_way();
    }
  }
}

bool Progress::advance(std::vector<std::shared_ptr<Member>>& members) {
  bool moved = false;
  for (const std::shared_ptr<Member>& member : members) {
    if (!member->is_waited_for()) moved |= member->try_advance();
  }
  return std::erase_if(members, [](const auto& member) { return member->idle(); }) > 0 || moved;
}

}  // namespace cohort::node
