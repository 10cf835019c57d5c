#include <cohort/rpc/reply.h>

#include "rpc/client_part.h"

namespace cohort::rpc {

AnyReply::AnyReply(std::shared_ptr<ClientPart> client, std::shared_ptr<CallState> call) noexcept
    : client_(std::move(client)), call_(std::move(call)) {}

bool AnyReply::is_ready() const { return client_->is_settled(*call_); }

bool AnyReply::wait(Deadline deadline) const { return client_->wait(*call_, deadline); }

std::optional<Error> AnyReply::error() const {
  wait();
  if (call_->failure == nullptr) return std::nullopt;
  return *call_->failure;
}

std::span<const std::byte> AnyReply::result() const {
  wait();
  if (call_->failure != nullptr) throw_error(*call_->failure);
  return call_->result;
}

}  // namespace cohort::rpc
