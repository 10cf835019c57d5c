#include "client.h"

#include <algorithm>
#include <utility>

#include "device/node_heap.h"
#include "server/serving/protocol.h"

namespace cohort::server {
namespace {

/// Where the writes of this thread go, in write_together.
struct Together {
  const Client* client = nullptr;
  Transaction* transaction = nullptr;
};
thread_local Together together;

Shape shape_of(const Wanted& wanted) {
  return wanted.rows ? wanted.shape.with(0, wanted.rows->shape()[0]) : wanted.shape;
}

Request request_for(const Wanted& wanted, std::span<const Write> writes) {
  Encoder encoder;
  encoder.number(wanted.variable);
  encoder.number(writes.size());
  for (const Write& write : writes) encode(encoder, write);
  if (wanted.rows) encoder.tensor(*wanted.rows);
  if (wanted.slot) encoder.number(*wanted.slot);
  const MessageKind kind = wanted.slot   ? MessageKind::kReadSlot
                           : wanted.rows ? MessageKind::kReadRows
                                         : MessageKind::kRead;
  Request request{wanted.server, kind, encoder.take()};
  Tensor value = Tensor::uninitialized(shape_of(wanted), wanted.dtype);
  if (value.bytes() >= kWorthLending) request.into = std::move(value);
  return request;
}

/// The value in the answer. A large one is in `value` already, where that has its size.
void take_value(Decoder& decoder, Tensor& value) {
  if (value.bytes() < kWorthLending) {
    value = decoder.tensor();
    return;
  }
  Decoder front = decoder;
  const DType dtype = front.dtype();
  const Shape shape = front.shape();
  if (dtype != value.dtype() || shape != value.shape())
    throw DataLoss("a server has answered {}{} for a variable that is {}", to_string(dtype), to_string(shape),
                   describe(value));
  if (!front.rest().empty()) value = decoder.tensor_at_end().clone();
}

/// For servers of this node, which read large values there; -1: there is none.
int heap_of_this_process() {
  const NodeHeap* const heap = NodeHeap::of_this_process();
  return heap != nullptr ? heap->descriptor() : -1;
}

}  // namespace

/// A write outside executions: an execution of its own. Servers may forget those before the oldest one that
/// is not answered.
class Client::SingleWrite {
 public:
  explicit SingleWrite(Client& client) : client_(client) {
    const std::lock_guard lock(client_.mutex_);
    number_ = client_.next_write_++;
    client_.not_answered_.insert(number_);
    forget_ = *client_.not_answered_.begin() - 1;
  }
  ~SingleWrite() {
    const std::lock_guard lock(client_.mutex_);
    client_.not_answered_.erase(number_);
  }
  SingleWrite(const SingleWrite&) = delete;
  SingleWrite& operator=(const SingleWrite&) = delete;

  [[nodiscard]] Execution execution() const noexcept {
    return {outside_executions(client_.connections_.incarnation()), number_};
  }
  [[nodiscard]] std::uint64_t forget() const noexcept { return forget_; }

 private:
  Client& client_;
  std::uint64_t number_;
  std::uint64_t forget_;
};

Client::Client(remote::TaskPlace place) : connections_(std::move(place), heap_of_this_process()) {
  std::vector<Request> requests;
  requests.reserve(static_cast<std::size_t>(connections_.servers()));
  for (int server = 0; server < connections_.servers(); ++server)
    requests.push_back({server, MessageKind::kIdentify, {}});
  static_cast<void>(connections_.ask(std::move(requests)));
}

Client::~Client() { connections_.take_leave(MessageKind::kGoodbye); }

VariableIndex Client::make(int server, std::uint64_t number, const std::string& name, const Shape& shape,
                           DType dtype, const Tensor* value) {
  Encoder encoder;
  encoder.number(number);
  encoder.text(name);
  encoder.number(dtype);
  encoder.shape(shape);
  encoder.number(value != nullptr);
  if (value != nullptr) encoder.tensor(*value);
  const std::vector<std::byte> answer = connections_.ask({server, MessageKind::kCreate, encoder.take()});
  return Decoder(answer).number<VariableIndex>();
}

std::optional<Tensor> Client::read_here(const Wanted& wanted, std::span<const Write> writes) {
  if (!writes.empty() || wanted.slot) return std::nullopt;
  const auto reader = connections_.reader(wanted.server);
  if (reader == nullptr || wanted.variable >= reader->size()) return std::nullopt;
  Tensor result = Tensor::uninitialized(shape_of(wanted), wanted.dtype);
  const auto version =
      wanted.rows ? reader->read_rows(wanted.variable, wanted.rows->span<std::int64_t>(), result.raw())
                  : reader->read(wanted.variable, result.raw());
  if (!version) return std::nullopt;
  note_read(wanted.server, wanted.variable, *version);
  return result;
}

std::vector<Tensor> Client::read(std::span<const Wanted> wanted) {
  if (before_read_) before_read_();
  std::vector<Tensor> results(wanted.size());
  std::vector<Request> requests;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::vector<Write> writes;
    if (running_ != nullptr) writes = running_->writes_to(wanted[i].server, wanted[i].variable);
    if (auto value = read_here(wanted[i], writes)) {
      results[i] = std::move(*value);
      continue;
    }
    requests.push_back(request_for(wanted[i], writes));
    if (requests.back().into) results[i] = *requests.back().into;
    places.push_back(i);
  }
  if (requests.empty()) return results;
  const std::vector<std::vector<std::byte>> answers = connections_.ask(std::move(requests));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Decoder decoder(answers[i]);
    const Wanted& asked = wanted[places[i]];
    const auto version = decoder.number<std::uint64_t>();
    if (!asked.slot) note_read(asked.server, asked.variable, version);
    take_value(decoder, results[places[i]]);
  }
  return results;
}

void Client::write(int server, const Write& write) {
  if (running_ != nullptr) return running_->add(server, write);
  if (together.client == this) return together.transaction->add(server, write);
  const SingleWrite single(*this);
  const CommitMessage message{single.execution(), single.forget(), {write}, {}};
  note_ages(send_writes(connections_, {{server, MessageKind::kCommit, &message}}).front());
}

void Client::note_read(int server, VariableIndex variable, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  last_read_.insert_or_assign({server, variable}, version);
}

std::uint64_t Client::last_read(int server, VariableIndex variable) const {
  const std::lock_guard lock(mutex_);
  const auto found = last_read_.find({server, variable});
  return found == last_read_.end() ? Write::kNotRead : found->second;
}

void Client::note_ages(std::span<const std::byte> answer) {
  const std::lock_guard lock(mutex_);
  for (Decoder decoder(answer); !decoder.rest().empty();) {
    const auto age = decoder.number<std::uint64_t>();
    ++gradients_;
    sum_of_ages_ += age;
    largest_age_ = std::max(largest_age_, age);
  }
}

GradientStaleness Client::gradient_staleness() const {
  const std::lock_guard lock(mutex_);
  const double mean =
      gradients_ == 0 ? 0 : static_cast<double>(sum_of_ages_) / static_cast<double>(gradients_);
  return {gradients_, mean, largest_age_};
}

void Client::end_step(std::int64_t staleness) {
  Encoder encoder;
  {
    const std::lock_guard lock(mutex_);
    last_step_.staleness = staleness;
    ++last_step_.count;
    encoder.number(last_step_);
  }
  const std::vector<std::byte> answer = connections_.ask({0, MessageKind::kEndStep, encoder.take()});
  const std::lock_guard lock(mutex_);
  last_step_.origin = Decoder(answer).number<std::int64_t>();
}

void Client::write_together(const std::function<void()>& function) {
  if (running_ != nullptr || together.client != nullptr) return function();
  Transaction transaction;
  {
    struct Collecting {
      ~Collecting() { together = {}; }
    };
    const Collecting collecting;
    together = {this, &transaction};
    function();
  }
  const SingleWrite single(*this);
  transaction.commit(connections_, single.execution(), single.forget(), {});
}

std::vector<std::byte> Client::execute(std::uint64_t number, std::uint64_t forget,
                                       const std::function<std::vector<std::byte>()>& function,
                                       const std::function<void()>& on_read) {
  Transaction transaction;
  struct Running {
    Client& client;
    ~Running() {
      client.running_ = nullptr;
      client.before_read_ = nullptr;
    }
  };
  std::vector<std::byte> result;
  {
    const Running running{*this};
    running_ = &transaction;
    before_read_ = on_read;
    result = function();
  }
  transaction.commit(connections_, {connections_.incarnation(), number}, forget, result);
  return result;
}

}  // namespace cohort::server
