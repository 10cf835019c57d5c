#include "parameter_server.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/server/detail/codec.h>

#include "rpc/protocol.h"

namespace cohort::server {
namespace {

/// How often the variable was changed since the task of each gradient read it.
std::vector<std::byte> ages_of_gradients(std::span<const Write> writes, const Store& store) {
  Encoder encoder;
  for (const Write& write : writes) {
    if (write.read_version == Write::kNotRead || write.variable >= store.size()) continue;
    // A standby that took over may not have what the task has read in the memory of the one before.
    const std::uint64_t version = store.version(write.variable);
    encoder.number(version - std::min(version, write.read_version));
  }
  return encoder.take();
}

/// Names in the store are unique, those of variables are not.
std::string name_in_store(std::uint64_t number, std::string_view name) {
  return fmt::format("{}:{}", number, name);
}
std::string name_in(const std::string& name_in_store) {
  return name_in_store.substr(name_in_store.find(':') + 1);
}

std::vector<std::byte> encoded(VariableIndex variable) {
  Encoder encoder;
  encoder.number(variable);
  return encoder.take();
}

Tensor first_value(Decoder& decoder, std::string_view name, DType dtype, const Shape& shape) {
  Tensor value = decoder.tensor();
  if (value.dtype() == dtype && value.shape() == shape) return value;
  throw InvalidArgument("the first value of variable '{}' is {}, but the variable is {}{}", name,
                        describe(value), to_string(dtype), to_string(shape));
}

/// @throws InvalidArgument for a row that there is not.
Tensor gathered(const Tensor& value, const Tensor& rows, const std::string& name) {
  if (value.shape().rank() == 0) throw InvalidArgument("variable '{}' has no rows", name);
  for (const std::int64_t row : rows.span<std::int64_t>()) {
    if (row < 0 || row >= value.shape()[0])
      throw InvalidArgument("variable '{}' has no row {}: it has {}", name, row, value.shape()[0]);
  }
  return gather_rows(value, rows.span<std::int64_t>());
}

Tensor kept_for_optimizers(const Store& store, VariableIndex variable, std::uint8_t slot) {
  if (slot == VariableState::kSteps) return Tensor::scalar(steps_of(store, variable));
  const Tensor value = store.value(variable);
  return slot < store.slots(variable) ? store.slot(variable, slot).clone()
                                      : Tensor::zeros(value.shape(), value.dtype());
}

}  // namespace

void Executions::require_not_fenced(const Execution& execution) const {
  if (store_.is_fenced(execution.incarnation))
    throw Aborted("this worker was taken for lost: what it writes is not wanted any more");
}

bool Executions::is_settled(const Execution& execution) const {
  const auto forgotten = forgotten_.find(execution.incarnation);
  return (forgotten != forgotten_.end() && execution.number <= forgotten->second) ||
         store_.find_commit(execution).has_value();
}

/// Nobody asks any more for the executions of the incarnation up to `number`.
void Executions::forget(std::uint64_t incarnation, std::uint64_t number) {
  std::uint64_t& forgotten = forgotten_[incarnation];
  forgotten = std::max(forgotten, number);
  store_.forget(incarnation, number);
  std::erase_if(prepared_, [&](const auto& entry) {
    return entry.first.incarnation == incarnation && entry.first.number <= number;
  });
}

std::vector<std::byte> Executions::commit(const CommitMessage& message) {
  forget(message.execution.incarnation, message.forget);
  std::vector<std::byte> answer = ages_of_gradients(message.writes, store_);
  OpenCommit open(store_);
  for (const Write& write : message.writes) apply(write);
  open.make(message.execution, message.result);
  return answer;
}

void Executions::prepare(CommitMessage message) {
  forget(message.execution.incarnation, message.forget);
  for (Write& write : message.writes) {
    require_fitting(write, store_);
    fetch_value(write);  // its sender does not wait for the end of the commit
  }
  {
    const OpenCommit trial(store_);  // what cannot be written is found out before anything is
    for (const Write& write : message.writes) apply(write);
  }
  prepared_.insert_or_assign(message.execution, std::move(message));
}

bool Executions::make_prepared(const Execution& execution) {
  const auto prepared = prepared_.find(execution);
  if (prepared == prepared_.end()) return false;
  OpenCommit open(store_);
  for (const Write& write : prepared->second.writes) apply(write);
  open.make(execution, {});
  prepared_.erase(prepared);
  return true;
}

FenceAnswer Executions::fence(std::uint64_t incarnation) {
  store_.fence(incarnation);
  store_.fence(outside_executions(incarnation));
  FenceAnswer answer{store_.commits_of(incarnation), {}};
  for (const auto& [execution, message] : prepared_) {
    if (execution.incarnation == incarnation) answer.prepared.push_back(execution.number);
  }
  return answer;
}

void Executions::drop(std::uint64_t incarnation) {
  for (const std::uint64_t lost : {incarnation, outside_executions(incarnation)})
    forget(lost, ~std::uint64_t{0});
}

void ParameterServer::answer(remote::Peer& peer, const remote::Message& message) {
  bool later = false;
  try {
    const std::vector<std::byte> reply = serve(peer, message, later);
    if (!later) this->reply(peer, message, MessageKind::kReply, reply);
  } catch (const NoVariable&) {
    this->reply(peer, message, MessageKind::kNoVariable, {});
  } catch (const Error& error) {
    reply(peer, message, MessageKind::kFailure, rpc::to_bytes(error));
  } catch (const std::exception& error) {
    const Unavailable failure("this server cannot answer: {}", error.what());
    reply(peer, message, MessageKind::kFailure, rpc::to_bytes(failure));
  }
}

void ParameterServer::reply(remote::Peer& peer, const remote::Message& request, MessageKind kind,
                            std::span<const std::byte> body) {
  const auto asked = static_cast<MessageKind>(request.kind);
  const bool only_read = asked == MessageKind::kIdentify || asked == MessageKind::kRead ||
                         asked == MessageKind::kReadRows || asked == MessageKind::kReadSlot;
  if (output_ == nullptr || only_read)
    peer.send(static_cast<std::uint16_t>(kind), request.number, body);
  else
    output_->answer(peer, kind, request.number, body);
}

void ParameterServer::tell(MessageKind kind, std::span<const std::byte> body) {
  if (output_ != nullptr) output_->changed(kind, body);
}

std::vector<std::byte> ParameterServer::serve(remote::Peer& peer, const remote::Message& message,
                                              bool& later) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kIdentify: {
      Encoder encoder;
      encoder.number(store_.identity());
      return encoder.take();
    }
    case MessageKind::kCreate: return create(peer, message, later);
    case MessageKind::kRead:
    case MessageKind::kReadRows:
    case MessageKind::kReadSlot: return read(peer, message, later);
    case MessageKind::kCommit:
    case MessageKind::kPrepare: return take(peer, message);
    case MessageKind::kFinish: {
      Encoder encoder;
      encoder.number(finish(Decoder(message.body).number<Execution>()));
      return encoder.take();
    }
    case MessageKind::kFence: {
      const FenceAnswer answer = executions_.fence(Decoder(message.body).number<std::uint64_t>());
      tell(MessageKind::kFence, message.body);
      return to_bytes(answer);
    }
    case MessageKind::kDrop: {
      executions_.drop(Decoder(message.body).number<std::uint64_t>());
      tell(MessageKind::kDrop, message.body);
      return {};
    }
    default: throw InvalidArgument("a parameter server has no answer to a message of kind {}", message.kind);
  }
}

std::vector<std::byte> ParameterServer::create(remote::Peer& peer, const remote::Message& message,
                                               bool& later) {
  Decoder decoder(message.body);
  const auto number = decoder.number<std::uint64_t>();
  const std::string name(decoder.text());
  const DType dtype = decoder.dtype();
  const Shape shape = decoder.shape();
  const auto brings_value = decoder.number<bool>();
  // A variable without a version is one whose first value was not there yet when this server ended.
  const auto known = find(number);
  if (known && store_.version(*known) > 0) {
    const Tensor value = store_.value(*known);
    const std::string existing = name_in(store_.name(*known));
    if (existing == name && value.dtype() == dtype && value.shape() == shape) return encoded(*known);
    throw InvalidArgument(
        "{} makes variable {} of the job as '{}', {}{}, but it exists already as '{}', {}: all "
        "tasks must make the same variables in the same order",
        peer.name(), number, name, to_string(dtype), to_string(shape), existing, describe(value));
  }
  if (!brings_value && no_values_ != nullptr) throw_error(*no_values_);
  if (!brings_value) {
    waiters_.emplace(number, Waiter{&peer, message.number, {message.body.begin(), message.body.end()}});
    later = true;
    return {};
  }
  const Tensor value = first_value(decoder, name, dtype, shape);
  const VariableIndex variable = known ? *known : store_.create(name_in_store(number, name), shape, dtype);
  OpenCommit open(store_);
  store_.overwrite(variable).fresh_value.copy_from(value);
  open.make({}, {});
  tell(MessageKind::kCreate, message.body);
  answer_waiters(number);
  return encoded(variable);
}

/// Those who waited for the variable ask again, and find it.
void ParameterServer::answer_waiters(std::uint64_t number) {
  const auto [begin, end] = waiters_.equal_range(number);
  std::vector<Waiter> waiters;
  for (auto waiter = begin; waiter != end; ++waiter) waiters.push_back(std::move(waiter->second));
  waiters_.erase(begin, end);
  for (const Waiter& waiter : waiters) {
    answer(*waiter.peer, {static_cast<std::uint16_t>(MessageKind::kCreate), waiter.request, waiter.body});
  }
}

std::optional<VariableIndex> ParameterServer::find(std::uint64_t number) const {
  for (VariableIndex variable = 0; variable < store_.size(); ++variable) {
    if (store_.name(variable).starts_with(name_in_store(number, ""))) return variable;
  }
  return std::nullopt;
}

/// Sends a large value itself, without a copy in the reply.
std::vector<std::byte> ParameterServer::read(remote::Peer& peer, const remote::Message& message,
                                             bool& later) {
  Decoder decoder(message.body);
  const auto variable = decoder.number<VariableIndex>();
  const std::size_t writes = decoder.count();
  if (variable >= store_.size()) throw NoVariable();
  std::optional<OpenCommit> trial;  // of the writes that are not committed; it ends as if nothing had been
  if (writes > 0) trial.emplace(store_);
  for (std::size_t i = 0; i < writes; ++i) executions_.apply(decode_write(decoder, heaps_.of(peer)));
  const Tensor value = writes > 0 ? store_.change_rows(variable, {}).fresh_value : store_.value(variable);
  Encoder encoder;
  encoder.number(store_.version(variable));
  const auto kind = static_cast<MessageKind>(message.kind);
  const bool all_rows = kind == MessageKind::kRead;
  const Tensor wanted = all_rows ? value
                        : kind == MessageKind::kReadSlot
                            ? kept_for_optimizers(store_, variable, decoder.number<std::uint8_t>())
                            : gathered(value, decoder.tensor(), store_.name(variable));
  if (wanted.bytes() < kWorthLending) {
    encoder.tensor(wanted);
    return encoder.take();
  }
  encoder.tensor_at_end(wanted);
  // The store's copy may change before all of it is sent.
  const auto owner = std::make_shared<const Tensor>(all_rows ? wanted.clone() : wanted);
  peer.send_shared(static_cast<std::uint16_t>(MessageKind::kReply), message.number, encoder.bytes(),
                   owner->raw(), owner);
  later = true;
  return {};
}

/// Writes that are to be made now, or by `finish`.
std::vector<std::byte> ParameterServer::take(remote::Peer& peer, const remote::Message& message) {
  Encoder answer;
  try {
    CommitMessage writes = parse_commit(message.body, heaps_.of(peer));
    std::vector<std::byte> ages;
    if (!executions_.is_settled(writes.execution)) {
      executions_.require_not_fenced(writes.execution);
      const auto kind = static_cast<MessageKind>(message.kind);
      std::vector<std::byte> with_values;
      if (output_ != nullptr && output_->wants_values() && fetch_values(writes))
        with_values = to_bytes(writes);
      if (kind == MessageKind::kCommit)
        ages = executions_.commit(writes);
      else
        executions_.prepare(std::move(writes));
      tell(kind, with_values.empty() ? message.body : with_values);
    }
    answer.number(CommitAnswer::kTaken);
    answer.blob(ages);
  } catch (const OutOfReach&) {
    answer.number(CommitAnswer::kSendValues);
  }
  return answer.take();
}

/// Before anything is changed, for what is written here and elsewhere must be the same. False: there were
/// all.
bool ParameterServer::fetch_values(CommitMessage& message) {
  bool any = false;
  for (Write& write : message.writes) {
    if (!write.elsewhere) continue;
    any = true;
    require_fitting(write, store_);
    fetch_value(write);
  }
  return any;
}

FinishAnswer ParameterServer::finish(const Execution& execution) {
  if (executions_.is_settled(execution)) return FinishAnswer::kMade;
  // A server that was started again has no preparations.
  if (!executions_.make_prepared(execution)) return FinishAnswer::kForgotten;
  tell(MessageKind::kFinish, std::as_bytes(std::span(&execution, 1)));
  return FinishAnswer::kMade;
}

void ParameterServer::fail_waiters(const Error& error) {
  no_values_ = std::make_unique<Error>(error);
  for (const auto& [number, waiter] : waiters_)
    waiter.peer->send(static_cast<std::uint16_t>(MessageKind::kFailure), waiter.request,
                      rpc::to_bytes(error));
  waiters_.clear();
}

void ParameterServer::on_lost(const remote::Peer& peer) {
  heaps_.forget(peer);
  std::erase_if(waiters_, [&](const auto& entry) { return entry.second.peer == &peer; });
}

}  // namespace cohort::server
