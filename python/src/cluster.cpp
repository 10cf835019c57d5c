#include "cluster.h"

#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace cohort::pytorch {
namespace {

/// PyTorch's key-value store as Cohort's.
class StoreOfPyTorch final : public rendezvous::Store {
 public:
  explicit StoreOfPyTorch(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  void set(const std::string& key, std::string_view value) override { store_->set(key, std::string(value)); }

  std::optional<std::string> get(const std::string& key) override {
    if (!store_->check({key})) return std::nullopt;
    return store_->get_to_str(key);
  }

  bool wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override {
    const std::vector<std::string> list(keys.begin(), keys.end());
    try {
      store_->wait(list, timeout);
      return true;
    } catch (const std::exception&) {
      return store_->check(list);  // throws if the store itself is gone
    }
  }

  void erase(const std::string& key) override {
    try {
      store_->deleteKey(key);
    } catch (const std::exception&) {
      // Not all stores can.
    }
  }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

std::unique_ptr<rendezvous::Group> connect(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           std::chrono::milliseconds timeout) {
  return std::make_unique<rendezvous::Session>(
      // A store whose time-outs are no other's.
      rendezvous::SessionOptions{.store = std::make_shared<StoreOfPyTorch>(store->clone()),
                                 .rank = rank,
                                 .size = size,
                                 .timeout = timeout});
}

}  // namespace cohort::pytorch
