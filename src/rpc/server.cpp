#include <cohort/rpc/server.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/log.h>
#include <cohort/remote/task_place.h>

#include "base/quiet_thread.h"
#include "protocol.h"
#include "remote/shared_endpoint.h"
#include "remote/supervised_task.h"

namespace cohort::rpc {

/// The inside of a Server: its methods, the calls that wait, and the threads that run them. Any thread may
/// call.
///
/// The threads share an endpoint. One of those that are free polls it, and runs what arrives itself, so that
/// no other thread need be woken up.
class ServerPart final : private remote::Handler {
 public:
  using Run = std::function<void(Decoder& arguments, Encoder& result)>;

  ServerPart(remote::TaskPlace place, const ServerOptions& options);
  ~ServerPart() override;
  ServerPart(const ServerPart&) = delete;
  ServerPart& operator=(const ServerPart&) = delete;

  /// As Server's functions of these names.
  void add(Method method, Run run);
  [[nodiscard]] std::vector<Method> methods() const;
  void start();
  void stop() noexcept;
  void join();

 private:
  enum class Phase : std::uint8_t { kRegistering, kRunning, kStopped };

  struct Registered {
    std::string signature;
    std::uint64_t fingerprint;
    Run run;
  };

  /// A call that was not begun.
  struct Call {
    remote::Peer* client;
    std::uint64_t number;
    const Registered* method;
    std::vector<std::byte> arguments;
  };

  void on_connected(remote::Peer& peer) override { clients_.insert(&peer); }
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  void take_call(remote::Peer& client, const remote::Message& message);
  void run_calls();
  [[nodiscard]] std::optional<Call> next_call();
  void run(Call call);
  void end();

  template <class Predicate>
  void drop_calls(Predicate predicate) {
    std::erase_if(calls_, predicate);
    waiting_calls_.store(calls_.size());
  }

  remote::TaskPlace place_;
  ServerOptions options_;
  mutable std::mutex mutex_;  ///< of what follows, up to the threads
  Phase phase_ = Phase::kRegistering;
  std::map<std::string, Registered, std::less<>> methods_;  ///< does not change after the start
  std::unique_ptr<remote::SharedEndpoint> shared_;          ///< does not change while a thread runs
  std::vector<std::jthread> threads_;

  std::atomic<bool> stopping_{false};
  std::atomic<int> threads_left_{0};
  std::atomic<bool> over_{false};  ///< nothing runs any more, and the connections are closed
  std::atomic<std::uint64_t> incarnation_{0};
  std::atomic<std::size_t> waiting_calls_{0};

  // Of the thread that uses the endpoint.
  std::deque<Call> calls_;
  std::set<remote::Peer*> clients_;
};

namespace {

/// How long the end of a server may take so that clients get their last answers.
constexpr std::chrono::seconds kLongestEnd{1};

void send_failure(remote::Peer& client, std::uint64_t number, const Error& error) {
  client.send(to_number(RpcMessage::kFailure), number, to_bytes(error));
}

Unavailable ended() { return Unavailable("the server has ended, and has not begun this call"); }

std::string names_of(const std::vector<Method>& methods) {
  if (methods.empty()) return "none";
  std::string names;
  for (const Method& method : methods) names += (names.empty() ? "" : ", ") + method.name;
  return names;
}

}  // namespace

ServerPart::ServerPart(remote::TaskPlace place, const ServerOptions& options)
    : place_(std::move(place)), options_(options) {
  if (options.threads < 1)
    throw InvalidArgument("rpc::Server: {} threads run no methods; give it at least 1", options.threads);
  // Callers find either of the two processes at the task's address.
  if (place_.standby)
    throw WrongContext(
        "rpc::Server: this process is the standby of {}, which follows it in serve(): start the job with "
        "--copies 1 if its parameter servers have methods of their own",
        remote::name_of(place_.task));
}

ServerPart::~ServerPart() {
  stop();
  threads_.clear();  // joins them
}

void ServerPart::add(Method method, Run run) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kRegistering)
    throw WrongContext("the method '{}' is registered after the server was started: register all before",
                       method.name);
  if (method.name.empty()) throw InvalidArgument("rpc::Server: a method needs a name");
  if (!run)
    throw InvalidArgument("the method '{}' is an empty function: there is nothing to call", method.name);
  const std::uint64_t fingerprint = fingerprint_of(method.signature);
  const auto [place, is_new] =
      methods_.try_emplace(method.name, Registered{std::move(method.signature), fingerprint, std::move(run)});
  if (!is_new)
    throw InvalidArgument("the method '{}' is registered already, as {}: give this one another name",
                          method.name, place->second.signature);
}

std::vector<Method> ServerPart::methods() const {
  const std::lock_guard lock(mutex_);
  std::vector<Method> methods;
  for (const auto& [name, method] : methods_) methods.push_back({name, method.signature});
  return methods;
}

void ServerPart::start() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kRunning) return;
  if (phase_ == Phase::kStopped)
    throw WrongContext("this server has been stopped, and does not start again: make another one");
  shared_ = std::make_unique<remote::SharedEndpoint>(remote::endpoint_options(place_),
                                                     static_cast<remote::Handler&>(*this));
  incarnation_.store(shared_->incarnation());
  phase_ = Phase::kRunning;
  threads_left_.store(options_.threads);
  for (int i = 0; i < options_.threads; ++i)
    threads_.push_back(start_program_thread([this] { run_calls(); }));
}

void ServerPart::stop() noexcept {
  const std::lock_guard lock(mutex_);
  stopping_.store(true);
  if (std::exchange(phase_, Phase::kStopped) == Phase::kRegistering) over_.store(true);
  if (shared_ != nullptr) shared_->notify();
}

void ServerPart::join() {
  if (incarnation_.load() != 0 && is_running_method_of(incarnation_.load()))
    throw WrongContext("a method waits for the end of its own server: it may call stop()");
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kRegistering)
      throw WrongContext("rpc::Server::join() would wait for a server that was not started");
  }
  over_.wait(false);
}

void ServerPart::run_calls() {
  while (true) {
    shared_->wait_until([this] { return stopping_.load() || waiting_calls_.load() > 0; });
    if (stopping_.load()) break;
    shared_->poll();  // for calls that their clients have cancelled meanwhile, and clients that are lost
    // Another thread may have taken it.
    if (std::optional<Call> call = shared_->exclusively([this] { return next_call(); }))
      run(std::move(*call));
  }
  end();
}

std::optional<ServerPart::Call> ServerPart::next_call() {
  if (calls_.empty()) return std::nullopt;
  Call call = std::move(calls_.front());
  calls_.pop_front();
  waiting_calls_.store(calls_.size());
  return call;
}

void ServerPart::run(Call call) {
  const auto fail = [&](const Error& error) {
    shared_->exclusively([&] { send_failure(*call.client, call.number, error); });
  };
  try {
    Encoder result;
    {
      const RunningMethod running(incarnation_.load());
      Decoder arguments(call.arguments);
      call.method->run(arguments, result);
    }
    shared_->exclusively(
        [&] { send_body(*call.client, RpcMessage::kResult, call.number, {}, result.take()); });
  } catch (const Error& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail(Aborted("the method threw: {}", error.what()));
  } catch (...) {
    fail(Aborted("the method threw what is no exception of std's"));
  }
}

/// The last thread closes the connections.
void ServerPart::end() {
  if (threads_left_.fetch_sub(1) > 1) return;
  std::unique_ptr<remote::SharedEndpoint> shared;
  {
    const std::lock_guard lock(mutex_);
    shared = std::move(shared_);
  }
  shared->exclusively([&] {
    for (const Call& call : calls_) send_failure(*call.client, call.number, ended());
    calls_.clear();
    const bool sent = shared->endpoint().wait_until(
        [this] {
          return std::ranges::all_of(clients_, [](remote::Peer* client) { return client->backlog() == 0; });
        },
        Deadline::after(kLongestEnd));
    if (!sent) logging::warning("the server ends, and clients have not taken all of their results");
  });
  shared.reset();
  over_.store(true);
  over_.notify_all();
}

void ServerPart::on_message(remote::Peer& peer, const remote::Message& message) {
  try {
    switch (static_cast<RpcMessage>(message.kind)) {
      case RpcMessage::kCall: return take_call(peer, message);
      case RpcMessage::kCancel:
        return drop_calls(
            [&](const Call& call) { return call.client == &peer && call.number == message.number; });
      case RpcMessage::kList: {
        Encoder encoder;
        encode(encoder, methods());
        return send_body(peer, RpcMessage::kResult, message.number, {}, encoder.take());
      }
      default: return;
    }
  } catch (const Error& error) {
    logging::warning("{} sends a call that cannot be read: {}", peer.name(), error.what());
    send_failure(peer, message.number, error);
  } catch (const std::exception& error) {
    logging::warning("a call of {} cannot be kept: {}", peer.name(), error.what());
    send_failure(peer, message.number, Unavailable("the server cannot keep the call: {}", error.what()));
  }
}

void ServerPart::take_call(remote::Peer& client, const remote::Message& message) {
  if (stopping_.load()) return send_failure(client, message.number, ended());
  Decoder decoder(message.body);
  const std::string_view name = decoder.text();
  const auto fingerprint = decoder.number<std::uint64_t>();
  const auto place = methods_.find(name);
  if (place == methods_.end()) {
    return send_failure(client, message.number,
                        InvalidArgument("the server has no such method; it has: {}", names_of(methods())));
  }
  const Registered& method = place->second;
  if (method.fingerprint != fingerprint) {
    Encoder encoder;
    encoder.text(method.signature);
    return client.send(to_number(RpcMessage::kMismatch), message.number, encoder.bytes());
  }
  calls_.push_back({&client, message.number, &method, {decoder.rest().begin(), decoder.rest().end()}});
  waiting_calls_.store(calls_.size());
}

/// Nobody waits for the answers to its calls.
void ServerPart::on_lost(remote::Peer& peer, const Error& /*error*/) {
  clients_.erase(&peer);
  drop_calls([&](const Call& call) { return call.client == &peer; });
}

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
