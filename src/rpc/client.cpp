#include <cohort/rpc/client.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/base/event_count.h>
#include <cohort/remote/task_place.h>
#include <cohort/rpc/reply.h>

#include "base/quiet_thread.h"
#include "protocol.h"
#include "remote/shared_endpoint.h"

namespace cohort::rpc {

/// A call, from its beginning to its answer. What is below `settled` does not change after that.
struct CallState {
  std::uint64_t number = 0;
  std::string method = {};
  const detail::SignatureText* signature = nullptr;  ///< what the caller takes for the method's
  Deadline deadline = Deadline::never();
  std::size_t bytes = 0;  ///< that count as unanswered

  std::atomic<bool> settled{false};
  std::vector<std::byte> result = {};
  std::unique_ptr<Error> failure = {};
};

/// A client's connection to the server of another task, and the calls that are not answered. Any thread may
/// call.
///
/// One of the threads that wait for answers polls the endpoint, for all of them. A thread of its own, the
/// keeper, sees to calls that nobody waits for.
class ClientPart final : private remote::Handler {
 public:
  /// @throws as Client's constructor.
  ClientPart(const remote::TaskPlace& place, const ClusterTask& server, const ClientOptions& options);
  ~ClientPart() override;
  ClientPart(const ClientPart&) = delete;
  ClientPart& operator=(const ClientPart&) = delete;

  [[nodiscard]] std::shared_ptr<CallState> call(const MethodCall& method,
                                                const detail::SignatureText& signature,
                                                std::vector<std::byte> arguments);
  [[nodiscard]] std::shared_ptr<CallState> list_methods();

  /// Whether the call is settled; one whose deadline has passed is from now on.
  [[nodiscard]] bool is_settled(CallState& call);

  /// Waits until it is, or the deadline has passed; true if it came first.
  bool wait(CallState& call, Deadline deadline);

 private:
  void on_connected(remote::Peer& /*peer*/) override {}
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  [[nodiscard]] std::shared_ptr<CallState> new_call(const MethodCall& method);
  [[nodiscard]] bool may_be_sent(CallState& call);
  void send(const std::shared_ptr<CallState>& call, RpcMessage kind, std::span<const std::byte> head,
            std::vector<std::byte> arguments);
  void keep(const std::stop_token& stop);

  [[nodiscard]] bool has_room_for(std::size_t bytes) const noexcept;
  void expire(CallState& call);
  void fail(CallState& call, ErrorCode code, std::string_view why);
  void settle(CallState& call);
  void take_answer(CallState& call, const remote::Message& message);

  remote::Address server_;
  ClientOptions options_;
  remote::Peer* peer_ = nullptr;
  std::optional<std::string> loss_ = {};
  std::map<std::uint64_t, std::shared_ptr<CallState>> unanswered_;
  std::uint64_t next_number_ = 1;
  std::atomic<std::size_t> unanswered_calls_{0};
  std::atomic<std::size_t> unanswered_bytes_{0};
  std::atomic<bool> is_lost_{false};
  EventCount keeper_wakes_;
  std::unique_ptr<remote::SharedEndpoint> shared_;
  std::jthread keeper_;
};

namespace {

/// Of calls that are not answered. What exceeds it waits at the caller, so that neither task keeps more.
constexpr std::size_t kMostUnansweredBytes = std::size_t{64} << 20;

/// What a call needs beside its arguments.
constexpr std::size_t kBytesOfCall = 256;

/// The keeper leaves calls alone that are younger: most callers wait at once, and do without it.
constexpr std::chrono::milliseconds kUntilKept{1};
constexpr std::chrono::milliseconds kLongestUntilKept{16};

void require_time(double seconds, const char* what) {
  if (!(seconds >= 0)) throw InvalidArgument("rpc::Client: {} of {} s; use 0 for none", what, seconds);
}

/// The client listens at an address of its own: nobody is told it.
remote::EndpointOptions options_for(const remote::TaskPlace& place) {
  remote::EndpointOptions options;
  options.task = place.task;
  options.secret = place.secret;
  return options;
}

}  // namespace

ClientPart::ClientPart(const remote::TaskPlace& place, const ClusterTask& server,
                       const ClientOptions& options)
    : server_(remote::address_of(place, server)), options_(options) {
  require_time(options.timeout_seconds, "a timeout");
  require_time(options.connect_timeout_seconds, "a timeout to connect");
  using Seconds = std::chrono::duration<double>;
  shared_ =
      std::make_unique<remote::SharedEndpoint>(options_for(place), static_cast<remote::Handler&>(*this));
  peer_ = &shared_->endpoint().connect(server_, Deadline::after(Seconds(options.connect_timeout_seconds)));
  keeper_ = start_quiet_thread([this](const std::stop_token& stop) { keep(stop); });
}

ClientPart::~ClientPart() {
  keeper_.request_stop();
  keeper_wakes_.notify();
  shared_->notify();
}

void ClientPart::keep(const std::stop_token& stop) {
  std::chrono::milliseconds pause = kUntilKept;
  while (true) {
    keeper_wakes_.wait_until([&] { return stop.stop_requested() || unanswered_calls_.load() > 0; });
    if (stop.stop_requested()) return;
    std::this_thread::sleep_for(pause);
    shared_->poll_alone([&] { return stop.stop_requested() || unanswered_calls_.load() == 0; });
    // Somebody else polls as long as there are calls: this thread looks again later and later.
    pause = unanswered_calls_.load() == 0 ? kUntilKept : std::min(2 * pause, kLongestUntilKept);
  }
}

std::shared_ptr<CallState> ClientPart::new_call(const MethodCall& method) {
  const double timeout = method.timeout_seconds.value_or(options_.timeout_seconds);
  require_time(timeout, "a call's timeout");
  auto call = std::make_shared<CallState>();
  call->method = method.name;
  call->deadline = Deadline::after(std::chrono::duration<double>(timeout));
  call->bytes = kBytesOfCall;
  return call;
}

std::shared_ptr<CallState> ClientPart::call(const MethodCall& method, const detail::SignatureText& signature,
                                            std::vector<std::byte> arguments) {
  std::shared_ptr<CallState> call = new_call(method);
  call->signature = &signature;
  call->bytes += arguments.size();
  if (!may_be_sent(*call)) return call;
  Encoder head;
  head.text(call->method);
  head.number(signature.fingerprint);
  send(call, RpcMessage::kCall, head.bytes(), std::move(arguments));
  return call;
}

std::shared_ptr<CallState> ClientPart::list_methods() {
  std::shared_ptr<CallState> call = new_call("list_methods");
  if (may_be_sent(*call)) send(call, RpcMessage::kList, {}, {});
  return call;
}

bool ClientPart::has_room_for(std::size_t bytes) const noexcept {
  return unanswered_calls_.load() == 0 || unanswered_bytes_.load() + bytes <= kMostUnansweredBytes;
}

/// Waits for room; a call that fails before it is sent is settled.
bool ClientPart::may_be_sent(CallState& call) {
  if (is_running_method_of(peer_->incarnation())) {
    fail(call, ErrorCode::kWrongContext,
         "it was called by a method of the same server, which would wait for itself: call the function");
    return false;
  }
  const auto may_go_on = [&] { return has_room_for(call.bytes) || is_lost_.load(); };
  if (may_go_on() || shared_->wait_until(may_go_on, call.deadline)) return true;
  shared_->exclusively([&] { expire(call); });
  return false;
}

void ClientPart::send(const std::shared_ptr<CallState>& call, RpcMessage kind,
                      std::span<const std::byte> head, std::vector<std::byte> arguments) {
  const remote::SharedEndpoint::Turn turn(*shared_);
  if (loss_) return fail(*call, ErrorCode::kUnavailable, *loss_);
  call->number = next_number_++;
  unanswered_.emplace(call->number, call);
  unanswered_bytes_.fetch_add(call->bytes);
  unanswered_calls_.fetch_add(1);
  send_body(*peer_, kind, call->number, head, std::move(arguments));
  keeper_wakes_.notify();
}

bool ClientPart::is_settled(CallState& call) {
  if (call.settled.load()) return true;
  shared_->poll();
  if (!call.settled.load() && call.deadline.expired()) shared_->exclusively([&] { expire(call); });
  return call.settled.load();
}

bool ClientPart::wait(CallState& call, Deadline deadline) {
  const auto is_settled = [&] { return call.settled.load(); };
  if (is_settled()) return true;
  const bool call_ends_first = call.deadline.at() <= deadline.at();
  if (shared_->wait_until(is_settled, call_ends_first ? call.deadline : deadline)) return true;
  if (call_ends_first) shared_->exclusively([&] { expire(call); });
  return is_settled();
}

/// Settles the call unless its answer has come meanwhile. A server that has not begun it need not do so.
void ClientPart::expire(CallState& call) {
  if (call.settled.load()) return;
  const bool was_sent = call.number != 0;
  if (was_sent) peer_->send(to_number(RpcMessage::kCancel), call.number);
  fail(call, ErrorCode::kDeadlineExceeded,
       was_sent ? "no answer came before the deadline; it is unknown whether the method has run"
                : "it was not sent before the deadline, for calls before it are not answered");
}

void ClientPart::fail(CallState& call, ErrorCode code, std::string_view why) {
  ErrorOrigin origin{.call = call.method, .member = server_.task.id, .host = server_.host};
  call.failure = std::make_unique<Error>(code, fmt::format("{}() of {}: {}", call.method, peer_->name(), why),
                                         std::move(origin));
  settle(call);
}

void ClientPart::settle(CallState& call) {
  const std::uint64_t number = call.number;
  const std::size_t bytes = call.bytes;
  call.settled.store(true);
  if (number == 0) return;  // it was not sent, and has nothing to give back
  unanswered_bytes_.fetch_sub(bytes);
  unanswered_calls_.fetch_sub(1);
  // Last, since it may end the call's life.
  unanswered_.erase(number);
}

void ClientPart::on_message(remote::Peer& /*peer*/, const remote::Message& message) {
  const auto place = unanswered_.find(message.number);
  if (place == unanswered_.end()) return;  // its deadline has passed
  CallState& call = *place->second;
  try {
    take_answer(call, message);
  } catch (const DataLoss& error) {
    fail(call, ErrorCode::kDataLoss, error.what());
  } catch (const std::exception& error) {
    fail(call, ErrorCode::kUnavailable, fmt::format("its answer cannot be kept: {}", error.what()));
  }
}

void ClientPart::take_answer(CallState& call, const remote::Message& message) {
  switch (static_cast<RpcMessage>(message.kind)) {
    case RpcMessage::kResult:
      call.result.assign(message.body.begin(), message.body.end());
      return settle(call);
    case RpcMessage::kMismatch:
      return fail(call, ErrorCode::kInvalidArgument,
                  fmt::format("it was called as {}, but it is registered as {}", call.signature->text,
                              Decoder(message.body).text()));
    case RpcMessage::kFailure: {
      const Error error = parse_failure(message.body);
      return fail(call, error.code(), error.what());
    }
    default: return fail(call, ErrorCode::kDataLoss, "an answer of an unknown kind has come");
  }
}

void ClientPart::on_lost(remote::Peer& /*peer*/, const Error& error) {
  loss_ = fmt::format("{}; make another rpc::Client when it has been started again", error.what());
  is_lost_.store(true);
  const std::string why = fmt::format("{}; it is unknown whether the method has run", error.what());
  while (!unanswered_.empty()) fail(*unanswered_.begin()->second, ErrorCode::kUnavailable, why);
}

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
