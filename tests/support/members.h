// Runs a function once per member, each on a thread of its own.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include <cohort/collective/thread_communicator.h>

namespace cohort::testing {

inline void for_each_member(int members, const std::function<void(Communicator&)>& function,
                            const CommunicationOptions& options = {}) {
  const auto communicators = make_thread_communicators(members, options);
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (const auto& communicator : communicators)
    threads.emplace_back([&function, &communicator] { function(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cohort::testing
