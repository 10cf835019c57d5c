// Runs a function once per member, each on a thread of its own.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include <cohort/collective/thread_communicator.h>

namespace cohort::testing {

inline void for_each_member(int members, const std::function<void(Communicator&)>& function,
                            const CommunicationOptions& options = {}) {
  const auto seats = make_thread_communicators(members, options);
  std::vector<std::thread> threads;
  threads.reserve(seats.size());
  for (const auto& seat : seats) threads.emplace_back([&function, &seat] { function(*seat); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cohort::testing
