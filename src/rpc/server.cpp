#include <cohort/rpc/server.h>

#include "rpc/server_part.h"

namespace cohort::rpc {

Server::Server(const remote::TaskPlace& place, const ServerOptions& options)
    : part_(std::make_unique<ServerPart>(place, options)) {}
Server::~Server() = default;

void Server::add(Method method, std::function<void(Decoder&, Encoder&)> run) {
  part_->add(std::move(method), std::move(run));
}

std::vector<Method> Server::methods() const { return part_->methods(); }
void Server::start() { part_->start(); }
void Server::stop() noexcept { part_->stop(); }
void Server::join() { part_->join(); }

}  // namespace cohort::rpc
