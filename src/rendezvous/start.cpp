#include "start.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/config.h>
#include <cohort/base/log.h>
#include <cohort/base/version.h>

#include "base/json.h"
#include "base/system_calls.h"
#include "cluster/agreement.h"
#include "cluster/launcher.h"
#include "remote/supervised_task.h"

namespace cohort::rendezvous {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

/// Where the first worker listens.
constexpr const char* kFirst = "first";
/// What a worker that gives up says to those that it has no connection to.
constexpr const char* kFailure = "failure";

/// For a wait without an end the store is asked again and again.
constexpr std::chrono::hours kLongestWait{1};

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

Json to_json(const remote::Address& address) {
  return {{"host", address.host}, {"network", address.network}, {"local", address.local}};
}

remote::Address to_address(const Json& json, int rank) {
  return {{"worker", rank},
          json.at("host").get<std::string>(),
          json.at("network").get<std::vector<std::string>>(),
          json.at("local").get<std::string>()};
}

/// What a worker says of itself. Versions of Cohort can read each other's, and say that they differ.
struct Hello {
  std::string version = COHORT_VERSION;
  int size = 0;
  std::string host = {};
  std::string machine = {};  ///< tells hosts of the same name apart
  std::int64_t pid = ::getpid();
  int workers_per_node = 0;
  int cpu_devices = 1;
  std::optional<int> gpus = {};
  std::string watch = {};
  remote::Address address = {};
};

std::string to_text(const Hello& hello) {
  Json json = {{"version", hello.version},
               {"size", hello.size},
               {"host", hello.host},
               {"machine", hello.machine},
               {"pid", hello.pid},
               {"workers_per_node", hello.workers_per_node},
               {"cpu_devices", hello.cpu_devices},
               {"watch", hello.watch},
               {"address", to_json(hello.address)}};
  if (hello.gpus) json["gpus"] = *hello.gpus;
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Hello parse_hello(std::string_view text, int rank) {
  return read_json<Json>(text, fmt::format("what worker {} says of itself", rank), [rank](const Json& json) {
    Hello hello;
    hello.version = json.at("version").get<std::string>();
    hello.size = json.at("size").get<int>();
    hello.host = json.at("host").get<std::string>();
    hello.machine = json.at("machine").get<std::string>();
    hello.pid = json.at("pid").get<std::int64_t>();
    hello.workers_per_node = json.at("workers_per_node").get<int>();
    hello.cpu_devices = json.at("cpu_devices").get<int>();
    if (json.contains("gpus")) hello.gpus = json.at("gpus").get<int>();
    hello.watch = json.at("watch").get<std::string>();
    hello.address = to_address(json.at("address"), rank);
    return hello;
  });
}

/// The number that the kernel has drawn when the machine started: the same in all containers there.
std::string machine_number() { return read_system_file("/proc/sys/kernel/random/boot_id"); }

Hello own_hello(const SessionOptions& options, const remote::Address& address) {
  const Config& settings = config();
  Hello hello;
  hello.size = options.size;
  hello.host = options.host.empty() ? host_name() : options.host;
  hello.machine = machine_number();
  hello.workers_per_node = settings.workers_per_node();
  hello.cpu_devices = settings.cpu_devices();
  hello.gpus = visible_gpus();
  hello.watch = fmt::format("a heartbeat of {:g} s and a silence of {:g} s", settings.heartbeat().count(),
                            settings.silence().count());
  hello.address = address;
  return hello;
}

/// One worker's start.
class Start {
 public:
  Start(const SessionOptions& options, std::function<const Error*()> fault)
      : options_(options), fault_(std::move(fault)), deadline_(Deadline::after(options.timeout)) {}

  Started run() {
    try {
      static_cast<void>(config());  // refuses wrong settings
      if (is_first())
        listen();
      else
        find_first();
      try {
        return meet();
      } catch (const Unavailable&) {
        if (!is_first()) heed_word(kFirst);
        throw;
      }
    } catch (const Error& error) {
      leave_word(error);
      throw;
    }
  }

 private:
  [[nodiscard]] bool is_first() const { return options_.rank == 0; }
  [[nodiscard]] std::string key(const char* name) const { return options_.prefix + name; }
  [[nodiscard]] std::string call() const {
    return fmt::format("{} '{}'", name_of(RoundKind::kStart), options_.prefix);
  }

  void listen() {
    if (options_.size > 1 && options_.store->get(key(kFirst))) refuse_prefix();
    const std::string secret = to_hex(remote::random_secret());
    links_ = std::make_shared<Links>(0, secret);
    if (options_.size == 1) return;
    const Json first = {{"address", to_json(links_->address())}, {"secret", secret}};
    published_ = first.dump(-1, ' ', true, Json::error_handler_t::replace);
    options_.store->set(key(kFirst), published_);
  }

  [[noreturn]] void refuse_prefix() const {
    throw InvalidArgument(
        "{}: somebody else has set the key '{}' of the store. Either two workers have rank 0, or an earlier "
        "session that did not start well had the same prefix: give each session a prefix of its own",
        call(), key(kFirst));
  }

  void find_first() {
    wait_for_first();
    while (true) {
      const std::optional<std::string> text = options_.store->get(key(kFirst));
      if (!text) throw Unavailable("{}: worker 0 has ended before worker {} had come", call(), options_.rank);
      heed(*text);
      std::string secret;
      const remote::Address address = read_json<Json>(
          *text, fmt::format("the value of '{}' in the store", key(kFirst)), [&secret](const Json& json) {
            secret = json.at("secret").get<std::string>();
            return to_address(json.at("address"), 0);
          });
      if (!links_) links_ = std::make_shared<Links>(options_.rank, secret);
      try {
        // Now and then the store is asked whether worker 0 has given up.
        const Deadline attempt = Deadline::after(kBetweenQuestions);
        links_->connect(address, attempt.at() < deadline_.at() ? attempt : deadline_);
        return;
      } catch (const DeadlineExceeded& error) {
        if (!deadline_.expired()) continue;
        throw DeadlineExceeded(error.origin(), fmt::format("{}: deadline of {:.4g} s passed: {}", call(),
                                                           options_.timeout.count(), error.what()));
      }
    }
  }

  void wait_for_first() const {
    const std::string first = key(kFirst);
    while (true) {
      const milliseconds left =
          deadline_.is_never() ? milliseconds(kLongestWait)
                               : std::chrono::ceil<milliseconds>(deadline_.at() - Deadline::Clock::now());
      if (left.count() > 0 && options_.store->wait({&first, 1}, std::min<milliseconds>(left, kLongestWait)))
        return;
      if (!deadline_.expired()) continue;
      heed_word(kFailure);
      throw DeadlineExceeded(
          ErrorOrigin{call(), 0, {}},
          fmt::format(
              "{}: deadline of {:.4g} s passed; missing: worker 0, which has not said where it listens "
              "(key '{}' of the store). It was not started, is stopped or busy elsewhere, or has "
              "another store or prefix",
              call(), options_.timeout.count(), first));
    }
  }

  Started meet() {
    GroupExchangeOptions exchange;
    exchange.name = kEveryone;
    exchange.title = options_.prefix;
    for (int rank = 0; rank < options_.size; ++rank) exchange.ranks.push_back(rank);
    exchange.rank = options_.rank;
    exchange.timeout = options_.timeout;
    exchange.fault = fault_;
    if (is_first()) {
      exchange.check = [this](int rank, std::string_view blob) { check_place(rank, blob); };
      exchange.every_second = [this] { look_at_store(); };
    }
    Started started;
    started.links = links_;
    started.exchange = std::make_shared<GroupExchange>(links_, std::move(exchange));
    const std::vector<std::string> blobs =
        started.exchange->all_gather(RoundKind::kStart, to_text(own_hello(options_, links_->address())));
    // All have a connection: nobody needs the store any more.
    if (!published_.empty()) options_.store->erase(key(kFirst));
    take(blobs, started);
    started.exchange->set_members(started.workers);
    return started;
  }

  /// Of one that has just come to the first.
  void check_place(int rank, std::string_view blob) const {
    const std::vector<std::string> names = links_->namesakes(rank);
    if (names.size() > 1) {
      throw InvalidArgument(
          ErrorOrigin{call(), rank, {}},
          fmt::format("{}: two workers have the same rank: {}", call(), fmt::join(names, " and ")));
    }
    const int size = parse_hello(blob, rank).size;
    if (size == options_.size && rank > 0 && rank < size) return;
    throw InvalidArgument(
        ErrorOrigin{call(), rank, {}},
        fmt::format(
            "{}: all workers must have the same size, and ranks below it, but {} is of {}, while worker 0 "
            "is of {}",
            call(), links_->name(rank), size, options_.size));
  }

  void look_at_store() const {
    heed_word(kFailure);
    const std::optional<std::string> first = options_.store->get(key(kFirst));
    if (first == published_) return;
    if (first) heed(*first);
    refuse_prefix();
  }

  /// Throws the error of a worker that has given up, if that is what the key holds.
  void heed_word(const char* name) const {
    if (const std::optional<std::string> text = options_.store->get(key(name))) heed(*text);
  }
  static void heed(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("error")) return;
    throw_error(static_cast<ErrorCode>(json.value("code", static_cast<int>(ErrorCode::kAborted))),
                json.value("error", std::string()));
  }

  void take(const std::vector<std::string>& blobs, Started& started) const {
    std::vector<std::string> machines;
    std::vector<std::string> versions;
    std::vector<std::string> watches;
    std::vector<int> devices;
    std::vector<std::optional<int>> gpus;
    int workers_per_node = 0;
    for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
      Hello hello = parse_hello(blobs[rank], static_cast<int>(rank));
      if (rank == 0) workers_per_node = hello.workers_per_node;
      WorkerInfo worker;
      worker.rank = static_cast<int>(rank);
      worker.host = hello.host;
      worker.pid = hello.pid;
      started.workers.push_back(std::move(worker));
      machines.push_back(hello.host + '\n' + hello.machine);
      versions.push_back(std::move(hello.version));
      watches.push_back(std::move(hello.watch));
      devices.push_back(hello.cpu_devices);
      gpus.push_back(hello.gpus);
      started.addresses.push_back(std::move(hello.address));
    }
    number_nodes(started.workers, machines, workers_per_node);
    require_same_version(started.workers, versions);
    require_same_devices(started.workers, devices);
    require_same_watch(started.workers, watches);
    if (const std::string warning = warning_of_other_gpus(started.workers, gpus);
        !warning.empty() && is_first())
      logging::warning("{}", warning);
  }

  /// Tells those that have no connection to this worker.
  void leave_word(const Error& error) const {
    if (options_.size == 1) return;
    WorkerInfo self;
    self.rank = options_.rank;
    self.host = options_.host.empty() ? host_name() : options_.host;
    self.pid = ::getpid();
    const std::string who = links_ ? std::string() : describe(self) + ": ";
    const Json word = {{"error", who + error.what()}, {"code", static_cast<int>(error.code())}};
    const std::string text = word.dump(-1, ' ', true, Json::error_handler_t::replace);
    try {
      if (is_first()) options_.store->set(key(kFirst), text);
      if (!links_) options_.store->set(key(kFailure), text);
    } catch (const std::exception&) {
      return;  // the error that this worker throws is what matters
    }
  }

  static constexpr std::chrono::seconds kBetweenQuestions{2};

  const SessionOptions& options_;
  std::function<const Error*()> fault_;
  const Deadline deadline_;
  std::shared_ptr<Links> links_;
  std::string published_;  ///< by the first: where it listens
};

}  // namespace

Started start(const SessionOptions& options, std::function<const Error*()> fault) {
  if (options.store == nullptr && options.size > 1)
    throw InvalidArgument("a rendezvous::Session of {} workers needs a store", options.size);
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    throw InvalidArgument("a rendezvous::Session of {} workers cannot have a worker of rank {}", options.size,
                          options.rank);
  }
  return Start(options, std::move(fault)).run();
}

}  // namespace cohort::rendezvous
