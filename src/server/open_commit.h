// A commit of a store that is being made.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "server/store.h"

namespace cohort::server {

/// Abandons the store's open commit, unless it was made.
class OpenCommit {
 public:
  explicit OpenCommit(Store& store) : store_(store) { store.begin(); }
  ~OpenCommit() {
    if (open_) store_.abandon();
  }
  OpenCommit(const OpenCommit&) = delete;
  OpenCommit& operator=(const OpenCommit&) = delete;

  void make(std::optional<Execution> execution, std::span<const std::byte> result) {
    store_.commit(execution, result);
    open_ = false;
  }

 private:
  Store& store_;
  bool open_ = true;
};

}  // namespace cohort::server
