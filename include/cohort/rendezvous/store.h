// A Store is the key-value store by which the workers of a rendezvous::Session find each other: the Store of
// PyTorch's c10d, an etcd, a folder that all hosts see. The program implements it. All workers see one store;
// what one has set, all can get.
//
// A Session uses it only while it starts, from the thread that makes it, and for few keys: see session.h. So
// it may be slow, but it must not lose what was set. What its functions throw ends the start of the Session.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cohort::rendezvous {

class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Sets the value, of any bytes, in place of one that was there.
  virtual void set(const std::string& key, std::string_view value) = 0;

  /// What was set last; nothing when there is no such key. Does not wait for it.
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& key) = 0;

  /// Returns true as soon as all keys are there, false when they are not after `timeout`.
  [[nodiscard]] virtual bool wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) = 0;

  /// Removes the key, if it is there. A store that cannot keeps a few short values of each Session.
  virtual void erase(const std::string& /*key*/) {}
};

}  // namespace cohort::rendezvous
