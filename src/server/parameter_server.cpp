#include "server/parameter_server.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <cohort/server/detail/codec.h>

#include "rpc/failure.h"
#include "server/protocol.h"

namespace cohort::server {
namespace {

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

/// How often the variable was changed since the task of each gradient read it.
std::vector<std::byte> ages_of_gradients(std::span<const Write> writes, const Store& store) {
  Encoder encoder;
  for (const Write& write : writes) {
    if (write.read_version == Write::kNotRead || write.variable >= store.size()) continue;
    encoder.number(store.version(write.variable) - write.read_version);
  }
  return encoder.take();
}

/// @throws InvalidArgument for a row that there is not.
Tensor gathered(const Tensor& value, const Tensor& rows, const std::string& name) {
  if (value.shape().rank() == 0) throw InvalidArgument("variable '{}' has no rows", name);
  Tensor result = Tensor::uninitialized(value.shape().with(0, rows.shape()[0]), value.dtype());
  std::int64_t place = 0;
  for (const std::int64_t row : rows.span<std::int64_t>()) {
    if (row < 0 || row >= value.shape()[0])
      throw InvalidArgument("variable '{}' has no row {}: it has {}", name, row, value.shape()[0]);
    result.row(place++).copy_from(value.row(row));
  }
  return result;
}

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

}  // namespace

void ParameterServer::answer(remote::Peer& peer, const remote::Message& message) {
  bool later = false;
  try {
    const std::vector<std::byte> reply = serve(peer, message, later);
    if (!later) peer.send(static_cast<std::uint16_t>(MessageKind::kReply), message.number, reply);
  } catch (const NoVariable&) {
    peer.send(static_cast<std::uint16_t>(MessageKind::kNoVariable), message.number);
  } catch (const Error& error) {
    peer.send(static_cast<std::uint16_t>(MessageKind::kFailure), message.number, rpc::to_bytes(error));
  } catch (const std::exception& error) {
    const Unavailable failure("this server cannot answer: {}", error.what());
    peer.send(static_cast<std::uint16_t>(MessageKind::kFailure), message.number, rpc::to_bytes(failure));
  }
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
    case MessageKind::kRead: return read(peer, message.body, true);
    case MessageKind::kReadRows: return read(peer, message.body, false);
    case MessageKind::kCommit:
    case MessageKind::kPrepare: return take(peer, message);
    case MessageKind::kFinish: {
      Encoder encoder;
      encoder.number(finish(Decoder(message.body).number<Execution>()));
      return encoder.take();
    }
    case MessageKind::kFence: return to_bytes(fence(Decoder(message.body).number<std::uint64_t>()));
    case MessageKind::kDrop: {
      const auto incarnation = Decoder(message.body).number<std::uint64_t>();
      for (const std::uint64_t lost : {incarnation, outside_executions(incarnation)}) {
        forget(lost, ~std::uint64_t{0});
      }
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

std::vector<std::byte> ParameterServer::read(remote::Peer& peer, std::span<const std::byte> body,
                                             bool all_rows) {
  Decoder decoder(body);
  const auto variable = decoder.number<VariableIndex>();
  const std::size_t writes = decoder.count();
  if (variable >= store_.size()) throw NoVariable();
  std::optional<OpenCommit> trial;  // of the writes that are not committed; it ends as if nothing had been
  if (writes > 0) trial.emplace(store_);
  for (std::size_t i = 0; i < writes; ++i) apply(decode_write(decoder, heaps_.of(peer)), store_, optimizers_);
  const Tensor value = writes > 0 ? store_.change_rows(variable, {}).fresh_value : store_.value(variable);
  Encoder encoder;
  encoder.number(store_.version(variable));
  encoder.tensor(all_rows ? value : gathered(value, decoder.tensor(), store_.name(variable)));
  return encoder.take();
}

void ParameterServer::require_not_fenced(const Execution& execution) const {
  if (store_.is_fenced(execution.incarnation))
    throw Aborted("this worker was taken for lost: what it writes is not wanted any more");
}

/// Writes that are to be made now, or by `finish`.
std::vector<std::byte> ParameterServer::take(remote::Peer& peer, const remote::Message& message) {
  Encoder answer;
  try {
    CommitMessage writes = parse_commit(message.body, heaps_.of(peer));
    std::vector<std::byte> ages;
    if (static_cast<MessageKind>(message.kind) == MessageKind::kCommit)
      ages = commit(writes);
    else
      prepare(std::move(writes));
    answer.number(CommitAnswer::kTaken);
    answer.blob(ages);
  } catch (const OutOfReach&) {
    answer.number(CommitAnswer::kSendValues);
  }
  return answer.take();
}

/// Whether the message is a repetition of one that was answered: the answer was lost, or it was late.
bool ParameterServer::is_settled(const Execution& execution) const {
  const auto forgotten = forgotten_.find(execution.incarnation);
  return (forgotten != forgotten_.end() && execution.number <= forgotten->second) ||
         store_.find_commit(execution).has_value();
}

/// Nobody asks any more for the executions of the incarnation up to `number`.
void ParameterServer::forget(std::uint64_t incarnation, std::uint64_t number) {
  std::uint64_t& forgotten = forgotten_[incarnation];
  forgotten = std::max(forgotten, number);
  store_.forget(incarnation, number);
  std::erase_if(prepared_, [&](const auto& entry) {
    return entry.first.incarnation == incarnation && entry.first.number <= number;
  });
}

std::vector<std::byte> ParameterServer::commit(const CommitMessage& message) {
  if (is_settled(message.execution)) return {};
  require_not_fenced(message.execution);
  forget(message.execution.incarnation, message.forget);
  std::vector<std::byte> answer = ages_of_gradients(message.writes, store_);
  OpenCommit open(store_);
  for (const Write& write : message.writes) apply(write, store_, optimizers_);
  open.make(message.execution, message.result);
  return answer;
}

void ParameterServer::prepare(CommitMessage message) {
  if (is_settled(message.execution)) return;
  require_not_fenced(message.execution);
  forget(message.execution.incarnation, message.forget);
  for (Write& write : message.writes) {
    require_fitting(write, store_);
    fetch_value(write);  // its sender does not wait for the end of the commit
  }
  {
    const OpenCommit trial(store_);  // what cannot be written is found out before anything is
    for (const Write& write : message.writes) apply(write, store_, optimizers_);
  }
  prepared_.insert_or_assign(message.execution, std::move(message));
}

FinishAnswer ParameterServer::finish(const Execution& execution) {
  if (is_settled(execution)) return FinishAnswer::kMade;
  const auto prepared = prepared_.find(execution);
  // A server that was started again has no preparations.
  if (prepared == prepared_.end()) return FinishAnswer::kForgotten;
  OpenCommit open(store_);
  for (const Write& write : prepared->second.writes) apply(write, store_, optimizers_);
  open.make(execution, {});
  prepared_.erase(prepared);
  return FinishAnswer::kMade;
}

FenceAnswer ParameterServer::fence(std::uint64_t incarnation) {
  store_.fence(incarnation);
  store_.fence(outside_executions(incarnation));
  FenceAnswer answer{store_.commits_of(incarnation), {}};
  for (const auto& [execution, message] : prepared_) {
    if (execution.incarnation == incarnation) answer.prepared.push_back(execution.number);
  }
  return answer;
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
