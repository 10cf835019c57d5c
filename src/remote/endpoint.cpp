#include <cohort/remote/endpoint.h>

#include "endpoint_impl.h"

namespace cohort::remote {

Endpoint::Endpoint(EndpointOptions options, Handler& handler)
    : impl_(std::make_unique<Impl>(std::move(options), handler)) {}
Endpoint::~Endpoint() = default;

const Address& Endpoint::address() const noexcept { return impl_->address(); }
std::uint64_t Endpoint::incarnation() const noexcept { return impl_->incarnation(); }
Peer& Endpoint::connect(const Address& address, Deadline deadline) {
  return impl_->connect(address, deadline);
}
int Endpoint::poll() { return impl_->poll(); }
bool Endpoint::wait(Deadline deadline) { return impl_->wait(deadline); }
void Endpoint::wake() noexcept { impl_->wake(); }

}  // namespace cohort::remote
