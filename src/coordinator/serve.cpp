#include <cohort/coordinator/serve.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <cohort/base/timeline_span.h>
#include <cohort/coordinator/detail/function.h>

#include "base/quiet_thread.h"
#include "remote/supervised_task.h"
#include "rpc/protocol.h"
#include "server/client/connections.h"
#include "server/client/server_variables.h"
#include "server/server_task.h"
#include "server/standby/standby.h"
#include "worker_link.h"

namespace cohort::coordinator {
namespace {

using server::Decoder;
using server::Encoder;
using server::MessageKind;

/// Polls for a worker while one of its functions takes long, so that the coordinator can ask back what waits
/// behind it. Short functions do not notice: their thread polls when they have ended. The thread that runs
/// functions makes a Listener, and a Running around each of them; the Listener's own thread ends with it, at
/// most 5 ms later.
class Listener {
 public:
  explicit Listener(server::Connections& connections)
      : connections_(connections),
        thread_(start_quiet_thread([this](const std::stop_token& stop) { listen(stop); })) {}
  ~Listener() {
    thread_.request_stop();
    count(2);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// A function runs while it exists.
  class Running {
   public:
    explicit Running(Listener& listener) noexcept : listener_(listener) { listener_.count(1); }
    ~Running() {
      listener_.count(1);
      if (listener_.polls_.load())
        listener_.connections_.notify();  // the thread that waits next polls itself
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Listener& listener_;
  };

 private:
  static constexpr std::chrono::milliseconds kShort{5};

  void count(std::uint64_t more) noexcept {
    changes_.fetch_add(more);
    changes_.notify_one();
  }

  void listen(const std::stop_token& stop) {
    while (true) {
      const std::uint64_t seen = changes_.load();  // first: the end is a change, too
      if (stop.stop_requested()) return;
      const bool runs = seen % 2 == 1;
      if (!runs) {
        changes_.wait(seen);
        continue;
      }
      std::this_thread::sleep_for(kShort);
      polls_.store(true);
      connections_.poll_until([&] { return changes_.load() != seen; });
      polls_.store(false);
    }
  }

  server::Connections& connections_;
  std::atomic<bool> polls_{false};
  std::atomic<std::uint64_t> changes_{0};  ///< begins and ends of functions: odd while one runs
  std::jthread thread_;                    ///< last, since it uses the others
};

/// A worker's part in a job with a coordinator: it runs the calls that it is given, one after the other, each
/// as one execution, and sends the results back.
class WorkerPart final : private server::TaskPart, private WorkerValues {
 public:
  /// `owner` is the strategy, for variables that the coordinator makes.
  WorkerPart(std::shared_ptr<server::ServerVariables> variables, VariableOwner& owner,
             const InputContext& context);
  ~WorkerPart() override;
  WorkerPart(const WorkerPart&) = delete;
  WorkerPart& operator=(const WorkerPart&) = delete;

  /// Until the coordinator says that the job is over. @throws Unavailable when it is lost; InvalidArgument
  /// when this is not its program.
  void run();

 private:
  /// A call, or elements of PerWorkers that are to be made or freed: a message that waits for its turn.
  struct Work {
    CoordinatorMessage kind;
    std::uint64_t number;
    std::vector<std::byte> body;
  };
  struct Element {
    std::shared_ptr<void> value;
    std::unique_ptr<Error> failure;
  };

  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;
  [[nodiscard]] const InputContext& input_context() const noexcept override { return context_; }
  [[nodiscard]] const std::shared_ptr<void>& element(std::uint64_t number) const override;

  void do_work(const Work& work);
  void take_no_part(const remote::Peer& coordinator);
  void free_elements(std::span<const std::byte> body);
  void make_element(std::uint64_t number, std::span<const std::byte> body);
  [[nodiscard]] std::optional<Work> next_work();
  void give_back(remote::Peer& peer);
  void run_call(const Work& call);
  [[nodiscard]] std::vector<std::byte> execute(const Work& call);
  void send_done(std::uint64_t number, std::span<const std::byte> outcome_and_rest);

  std::shared_ptr<server::ServerVariables> variables_;
  VariableOwner& owner_;
  InputContext context_;
  remote::Peer* coordinator_ = nullptr;
  std::deque<Work> work_;  ///< that was not begun
  std::map<std::uint64_t, Element> elements_;
  std::atomic<std::uint64_t> cancelled_{0};  ///< calls up to this number are not wanted
  std::unique_ptr<Error> loss_;              ///< of the coordinator, or why this worker takes no part
  std::atomic<bool> over_{false};
  std::atomic<bool> has_work_{false};
};

/// How long the coordinator may take to be there.
constexpr std::chrono::seconds kStartLimit{60};

std::vector<std::byte> failure_of(const Error& error) {
  Encoder encoder;
  encoder.number(Outcome::kFailure);
  std::vector<std::byte> bytes = encoder.take();
  const std::vector<std::byte> failure = rpc::to_bytes(error);
  bytes.insert(bytes.end(), failure.begin(), failure.end());
  return bytes;
}

WorkerPart::WorkerPart(std::shared_ptr<server::ServerVariables> variables, VariableOwner& owner,
                       const InputContext& context)
    : variables_(std::move(variables)), owner_(owner), context_(context) {
  variables_->client().connections().set_part(*this);
  variables_->set_runs_functions(true);
}

WorkerPart::~WorkerPart() {
  variables_->set_runs_functions(false);
  variables_->client().connections().clear_part();
  variables_->forget_learned();
}

void WorkerPart::run() {
  server::Connections& connections = variables_->client().connections();
  coordinator_ = &connections.connect({"chief", 0}, Deadline::after(kStartLimit));
  connections.exclusively([&] {
    Encoder encoder;
    encoder.number(fingerprint_of_functions());
    coordinator_->send(to_number(CoordinatorMessage::kJoin), 0, encoder.bytes());
  });
  Listener listener(connections);
  while (true) {
    connections.wait_until([this] { return has_work_.load() || over_.load(); });
    if (over_.load()) break;
    // Another thread may poll, and take messages.
    const std::optional<Work> work = connections.exclusively([this] { return next_work(); });
    if (!work) continue;
    {
      const Listener::Running running(listener);
      do_work(*work);
    }
    connections.poll();
  }
  if (loss_ != nullptr) throw_error(*loss_);
}

void WorkerPart::do_work(const Work& work) {
  switch (work.kind) {
    case CoordinatorMessage::kMake: return make_element(work.number, work.body);
    case CoordinatorMessage::kFree: return free_elements(work.body);
    default: return run_call(work);
  }
}

std::optional<WorkerPart::Work> WorkerPart::next_work() {
  std::optional<Work> work;
  if (!work_.empty()) {
    work = std::move(work_.front());
    work_.pop_front();
  }
  has_work_.store(!work_.empty());
  return work;
}

void WorkerPart::on_message(remote::Peer& peer, const remote::Message& message) {
  if (message.kind == static_cast<std::uint16_t>(MessageKind::kJobOver)) {
    variables_->client().connections().set_job_over();
    return over_.store(true);
  }
  if (&peer != coordinator_) return;
  const auto kind = static_cast<CoordinatorMessage>(message.kind);
  switch (kind) {
    case CoordinatorMessage::kOtherBinary: return take_no_part(peer);
    case CoordinatorMessage::kVariables: return variables_->learn(message.body, owner_);
    case CoordinatorMessage::kMake:
    case CoordinatorMessage::kFree:
    case CoordinatorMessage::kRun:
      work_.push_back({kind, message.number, {message.body.begin(), message.body.end()}});
      return has_work_.store(true);
    case CoordinatorMessage::kCancel: cancelled_.store(message.number); return;
    case CoordinatorMessage::kRecall: return give_back(peer);
    default: return;
  }
}

/// Elements are made and freed all the same.
void WorkerPart::give_back(remote::Peer& peer) {
  const auto is_call = [](const Work& work) { return work.kind == CoordinatorMessage::kRun; };
  const auto first = std::ranges::find_if(work_, is_call);
  const std::uint64_t number = first == work_.end() ? 0 : first->number;
  std::erase_if(work_, is_call);
  peer.send(to_number(CoordinatorMessage::kReturned), number);
}

void WorkerPart::take_no_part(const remote::Peer& coordinator) {
  loss_ = std::make_unique<Error>(
      ErrorCode::kInvalidArgument,
      fmt::format("{} has another binary than the coordinator, {}: they have other functions; start all "
                  "tasks with the same one",
                  remote::name_of(variables_->client().connections().place().task), coordinator.name()));
  over_.store(true);
}

void WorkerPart::on_lost(remote::Peer& peer, const Error& error) {
  if (&peer != coordinator_ || over_.load()) return;
  loss_ = std::make_unique<Error>(ErrorCode::kUnavailable,
                                  fmt::format("{}; it is the coordinator: the job ends", error.what()));
  over_.store(true);
}

const std::shared_ptr<void>& WorkerPart::element(std::uint64_t number) const {
  const auto found = elements_.find(number);
  if (found == elements_.end()) throw InvalidArgument("this worker has no element {} of a PerWorker", number);
  if (found->second.failure != nullptr) throw_error(*found->second.failure);
  return found->second.value;
}

void WorkerPart::free_elements(std::span<const std::byte> body) {
  Decoder decoder(body);
  for (const auto number : server::decode<std::vector<std::uint64_t>>(decoder)) elements_.erase(number);
}

void WorkerPart::make_element(std::uint64_t number, std::span<const std::byte> body) {
  Element& element = elements_[number];
  try {
    Decoder decoder(body);
    const Function& made_by = function(decoder.number<FunctionNumber>());
    Decoder arguments(decoder.blob(), variables_.get());
    element.value = made_by.make(arguments, *this);
  } catch (const Error& error) {
    element.failure = std::make_unique<Error>(error);
  } catch (const std::exception& error) {
    element.failure = std::make_unique<Error>(ErrorCode::kAborted, error.what());
  } catch (...) {
    element.failure =
        std::make_unique<Error>(ErrorCode::kAborted, "a function threw what is no exception of std's");
  }
}

std::vector<std::byte> WorkerPart::execute(const Work& call) {
  Decoder decoder(call.body, variables_.get());
  const auto forget = decoder.number<std::uint64_t>();
  const Function& called = function(decoder.number<FunctionNumber>());
  const auto require_wanted = [&] {
    variables_->client().connections().poll();
    if (call.number <= cancelled_.load())
      throw Aborted("this call was cancelled because another one failed first; schedule it again");
    if (over_.load() && loss_ != nullptr) throw_error(*loss_);
  };
  require_wanted();
  return variables_->client().execute(
      call.number, forget,
      [&] {
        const TimelineSpan span(called.short_name());
        Encoder result;
        called.run(decoder, *this, result);
        return result.take();
      },
      require_wanted);
}

void WorkerPart::run_call(const Work& call) {
  try {
    const std::vector<std::byte> result = execute(call);
    Encoder head;
    head.number(Outcome::kSuccess);
    const std::array<std::span<const std::byte>, 2> parts{head.bytes(), result};
    variables_->client().connections().exclusively(
        [&] { coordinator_->send(to_number(CoordinatorMessage::kDone), call.number, parts); });
  } catch (const Error& error) {
    send_done(call.number, failure_of(error));
  } catch (const std::exception& error) {
    send_done(call.number,
              failure_of(Error(ErrorCode::kAborted, fmt::format("a function threw: {}", error.what()))));
  } catch (...) {
    send_done(call.number,
              failure_of(Error(ErrorCode::kAborted, "a function threw what is no exception of std's")));
  }
}

void WorkerPart::send_done(std::uint64_t number, std::span<const std::byte> outcome_and_rest) {
  variables_->client().connections().exclusively(
      [&] { coordinator_->send(to_number(CoordinatorMessage::kDone), number, outcome_and_rest); });
}

}  // namespace
}  // namespace cohort::coordinator

namespace cohort {

int serve(const ParameterServerStrategy& strategy) {
  if (strategy.task().type == "ps") {
    remote::TaskPlace place = strategy.place();
    server::Preparations prepared;
    if (place.standby) {
      std::optional<server::Preparations> taken_over = server::Standby(place).run();
      if (!taken_over) return 0;
      prepared = std::move(*taken_over);
      place.supervisor = -1;  // from here on this is a server without a standby
    }
    server::ServerTask(place, strategy.initial_values_timeout_seconds(), std::move(prepared)).run();
    return 0;
  }
  if (strategy.task().type != "worker")
    throw WrongContext("serve() is for workers and parameter servers, but this task is {}",
                       remote::name_of(strategy.task()));
  const auto workers = std::ranges::count_if(strategy.place().addresses, [](const remote::Address& address) {
    return address.task.type == "worker";
  });
  coordinator::WorkerPart worker(strategy.variables(), strategy.extended(),
                                 {.num_input_pipelines = static_cast<int>(workers),
                                  .input_pipeline_id = strategy.task().id,
                                  .num_replicas_in_sync = strategy.num_replicas_in_sync()});
  worker.run();
  return 0;
}

}  // namespace cohort
