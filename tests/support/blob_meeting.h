// Where workers that are threads exchange blobs, as a Bootstrap does between processes: each gets those of
// all, by rank. All of them call it, and it waits for all; the test owns it, and its limit of time ends the
// wait.
#pragma once

#include <barrier>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

class BlobMeeting {
 public:
  explicit BlobMeeting(std::size_t workers)
      : blobs_(workers), barrier_(static_cast<std::ptrdiff_t>(workers)) {}

  std::vector<std::string> operator()(int rank, std::string_view blob) {
    blobs_[static_cast<std::size_t>(rank)] = blob;
    barrier_.arrive_and_wait();
    std::vector<std::string> all = blobs_;
    barrier_.arrive_and_wait();
    return all;
  }

 private:
  std::vector<std::string> blobs_;
  std::barrier<> barrier_;
};

}  // namespace cohort
