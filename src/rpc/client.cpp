#include <cohort/rpc/client.h>

#include "rpc/client_part.h"

namespace cohort::rpc {

Client::Client(const remote::TaskPlace& place, const ClusterTask& server, const ClientOptions& options)
    : part_(std::make_shared<ClientPart>(place, server, options)) {}

std::vector<Method> Client::list_methods() const {
  return Reply<std::vector<Method>>(part_, part_->list_methods()).get();
}

std::shared_ptr<CallState> Client::send(const MethodCall& method, const detail::SignatureText& signature,
                                        std::vector<std::byte> arguments) const {
  return part_->call(method, signature, std::move(arguments));
}

}  // namespace cohort::rpc
