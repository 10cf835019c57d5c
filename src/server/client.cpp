#include "server/client.h"

#include <algorithm>
#include <utility>

#include "device/node_heap.h"
#include "server/commit_message.h"
#include "server/send_writes.h"

namespace cohort::server {

namespace {

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

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t forget() const noexcept { return forget_; }

 private:
  Client& client_;
  std::uint64_t number_;
  std::uint64_t forget_;
};

Client::Client(remote::TaskPlace place) : connections_(std::move(place), heap_of_this_process()) {
  std::vector<Request> requests;
  for (int server = 0; server < connections_.servers(); ++server)
    requests.push_back({server, MessageKind::kIdentify, {}});
  static_cast<void>(connections_.ask(std::move(requests)));
}

Client::~Client() { connections_.tell_servers(MessageKind::kGoodbye); }

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

Tensor Client::read(int server, VariableIndex variable, const Shape& shape, DType dtype) {
  if (before_read_) before_read_();
  std::vector<Write> writes;
  if (running_ != nullptr) writes = running_->writes_to(server);
  if (writes.empty()) {
    if (const auto reader = connections_.reader(server)) {
      Tensor result = Tensor::uninitialized(shape, dtype);
      if (const auto version = reader->read(variable, result.raw())) {
        note_read(server, variable, *version);
        return result;
      }
    }
  }
  Encoder encoder;
  encoder.number(variable);
  encoder.number(writes.size());
  for (const Write& write : writes) encode(encoder, write);
  const std::vector<std::byte> answer = connections_.ask({server, MessageKind::kRead, encoder.take()});
  Decoder decoder(answer);
  note_read(server, variable, decoder.number<std::uint64_t>());
  return decoder.tensor();
}

Tensor Client::read_rows(int server, VariableIndex variable, const Tensor& rows, const Shape& shape,
                         DType dtype) {
  if (before_read_) before_read_();
  if (running_ != nullptr && !running_->writes_to(server).empty()) {
    const Tensor value = read(server, variable, shape, dtype);
    Tensor result = Tensor::uninitialized(shape.with(0, rows.shape()[0]), dtype);
    std::int64_t place = 0;
    for (const std::int64_t row : rows.span<std::int64_t>()) result.row(place++).copy_from(value.row(row));
    return result;
  }
  if (const auto reader = connections_.reader(server)) {
    Tensor result = Tensor::uninitialized(shape.with(0, rows.shape()[0]), dtype);
    if (reader->read_rows(variable, rows.span<std::int64_t>(), result.raw())) return result;
  }
  Encoder encoder;
  encoder.number(variable);
  encoder.tensor(rows);
  const std::vector<std::byte> answer = connections_.ask({server, MessageKind::kReadRows, encoder.take()});
  return Decoder(answer).tensor();
}

void Client::write(int server, const Write& write) {
  if (running_ != nullptr) return running_->add(server, write);
  const SingleWrite single(*this);
  const CommitMessage message{{connections_.incarnation(), single.number()},
                              single.forget(),
                              static_cast<std::uint32_t>(server),
                              {write},
                              {}};
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
