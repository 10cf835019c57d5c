#include <cohort/coordinator/remote_value.h>

#include "server/connections.h"

namespace cohort::coordinator {

void RemoteState::succeed(std::span<const std::byte> result) {
  result_.assign(result.begin(), result.end());
  settled_.store(true, std::memory_order_release);
}

void RemoteState::fail(const Error& error) {
  failure_ = std::make_unique<Error>(error);
  settled_.store(true, std::memory_order_release);
}

std::span<const std::byte> RemoteState::wait() const {
  if (!is_settled()) connections_->wait_until([this] { return is_settled(); });
  if (failure_ != nullptr) throw_error(*failure_);
  return result_;
}

}  // namespace cohort::coordinator
