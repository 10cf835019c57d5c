// What a program has made with CUDA and not destroyed yet. When a GPU fails, its objects are CUDA's affair: a
// leak check must not find them lost then, but must before. So they are out of its sight until that moment.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace gpu_stand_in {

class Handles {
 public:
  [[nodiscard]] static Handles& of_this_process() {
    static Handles& instance = *new Handles;
    return instance;
  }

  void add(const void* object, int device) {
    const std::lock_guard lock(mutex_);
    hidden_[hidden(object)] = device;
  }
  void remove(const void* object) {
    const std::lock_guard lock(mutex_);
    hidden_.erase(hidden(object));
  }
  void give_up(int device) {
    const std::lock_guard lock(mutex_);
    for (const auto& [object, its_device] : hidden_) {
      if (its_device == device) given_up_.push_back(~object);
    }
  }

 private:
  static std::uintptr_t hidden(const void* object) { return ~reinterpret_cast<std::uintptr_t>(object); }

  std::mutex mutex_;
  std::map<std::uintptr_t, int> hidden_;
  std::vector<std::uintptr_t> given_up_;
};

}  // namespace gpu_stand_in
