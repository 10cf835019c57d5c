#include "supervised_task.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/remote/task_place.h>

#include "base/json.h"
#include "base/system_calls.h"
#include "cluster/sockets.h"
#include "handshake.h"

namespace cohort::remote {
namespace {

using watch::Fd;

[[noreturn]] void refuse(const ClusterTask& task, std::string_view what) {
  throw Unavailable("{} cannot be given {}: {}", name_of(task), what, std::strerror(errno));
}

Fd duplicate(int descriptor) {
  if (descriptor < 0) return {};
  Fd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw Unavailable("descriptor {} cannot be duplicated: {}", descriptor, std::strerror(errno));
  return copy;
}

using Json = nlohmann::json;

constexpr std::string_view kCard = "the card of the task";
constexpr std::string_view kAddresses = "the list of tasks";
constexpr std::string_view kCardForm =
    R"({"task": {"type": "worker", "index": 0}, "restarts": 0, "standby": false, "secret": "hexadecimal", )"
    R"("descriptors": {"network": 3, "local": 4, "memory": -1, "supervisor": -1}, "tasks": [...]})";
constexpr std::string_view kAddressForm =
    R"({"type": "worker", "index": 0, "host": "n0", "network": ["127.0.0.1:4000"], "local": "name"})";

// What is wrong is named and not quoted, because cards hold a secret.

const Json& member(const Json& object, const char* key, std::string_view form) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end())
    throw InvalidArgument("{}: '{}' is missing; the form is {}", kCard, key, form);
  return *found;
}

std::string text_of(const Json& object, const char* key, std::string_view form) {
  if (const auto* text = member(object, key, form).get_ptr<const std::string*>()) return *text;
  throw InvalidArgument("{}: '{}' is no text; the form is {}", kCard, key, form);
}

int number_of(const Json& object, const char* key, int minimum, std::string_view form) {
  const Json& value = member(object, key, form);
  if (value.is_number_integer() && value >= minimum && value <= std::numeric_limits<int>::max())
    return value.get<int>();
  throw InvalidArgument("{}: '{}' is no whole number from {}; the form is {}", kCard, key, minimum, form);
}

bool flag_of(const Json& object, const char* key, std::string_view form) {
  const Json& value = member(object, key, form);
  if (value.is_boolean()) return value.get<bool>();
  throw InvalidArgument("{}: '{}' is neither true nor false; the form is {}", kCard, key, form);
}

/// -1 or a descriptor beyond the standard ones.
int descriptor_of(const Json& descriptors, const char* key) {
  const int descriptor = number_of(descriptors, key, -1, kCardForm);
  if (descriptor == -1 || descriptor > 2) return descriptor;
  throw InvalidArgument("{}: the descriptor '{}' is {}, one of the standard ones", kCard, key, descriptor);
}

Address address_of(const Json& json) {
  Address address{.task = {text_of(json, "type", kAddressForm), number_of(json, "index", 0, kAddressForm)},
                  .host = text_of(json, "host", kAddressForm),
                  .local = text_of(json, "local", kAddressForm)};
  const Json& network = member(json, "network", kAddressForm);
  if (!network.is_array())
    throw InvalidArgument("{}: 'network' is no list; the form is {}", kCard, kAddressForm);
  for (const Json& one : network) {
    const auto* text = one.get_ptr<const std::string*>();
    if (text == nullptr)
      throw InvalidArgument("{}: 'network' is no list of texts; the form is {}", kCard, kAddressForm);
    address.network.push_back(*text);
  }
  return address;
}

std::vector<Address> addresses_of(const Json& list) {
  if (!list.is_array()) throw InvalidArgument("{}: 'tasks' is no list of {}", kCard, kAddressForm);
  std::vector<Address> addresses;
  for (const Json& json : list) addresses.push_back(address_of(json));
  return addresses;
}

Json json_of(std::span<const Address> addresses) {
  Json list = Json::array();
  for (const Address& address : addresses) {
    list.push_back({{"type", address.task.type},
                    {"index", address.task.id},
                    {"host", address.host},
                    {"network", address.network},
                    {"local", address.local}});
  }
  return list;
}

std::string to_hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string from_hexadecimal(std::string_view text) {
  std::string bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    unsigned char byte = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + 2, byte, 16);
    if (status != std::errc() || end != text.data() + 2) break;
    bytes.push_back(static_cast<char>(byte));
  }
  if (text.empty() && bytes.size() >= kShortestSecret) return bytes;
  throw InvalidArgument("{}: 'secret' is not at least {} bytes in hexadecimal", kCard, kShortestSecret);
}

void require_one_address_each(const std::vector<Address>& addresses) {
  std::vector<std::string> names;
  names.reserve(addresses.size());
  for (const Address& address : addresses) names.push_back(name_of(address.task));
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) throw InvalidArgument("{}: the task {} is listed twice", kCard, *twice);
}

}  // namespace

std::string name_of(const ClusterTask& task) { return fmt::format("{} {}", task.type, task.id); }

TaskListeners listen_for(const ClusterTask& task, Interfaces interfaces) {
  TaskListeners listeners;
  listeners.network = interfaces == Interfaces::kAll ? watch::listen_network() : watch::listen_loopback();
  if (!listeners.network) refuse(task, "a TCP port to listen on");
  listeners.local = watch::listen_local(watch::random_token());
  if (!listeners.local) refuse(task, "a local socket to listen on");
  if (task.type == "ps") {
    listeners.memory.reset(make_memory_file("cohort-store"));
    if (!listeners.memory) refuse(task, "a memory file");
  }
  listeners.address = {.task = task,
                       .host = host_name(),
                       .network = watch::network_addresses(listeners.network.get()),
                       .local = watch::local_name(listeners.local.get())};
  return listeners;
}

std::string random_secret() {
  std::string secret(32, '\0');
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    throw Unavailable("the system has no random numbers: {}", std::strerror(errno));
  return secret;
}

const Address& address_of(const TaskPlace& place, const ClusterTask& task) {
  const auto found = std::ranges::find(place.addresses, task, &Address::task);
  if (found != place.addresses.end()) return *found;
  throw InvalidArgument("the job has no task {}: it has {} tasks", name_of(task), place.addresses.size());
}

EndpointOptions endpoint_options(const TaskPlace& place) {
  Fd network = duplicate(place.network_listener);
  Fd local = duplicate(place.local_listener);
  EndpointOptions options;
  options.task = place.task;
  options.secret = place.secret;
  options.network_listener = network.release();
  options.local_listener = local.release();
  options.offered = place.memory;
  return options;
}

ClusterSpec cluster_spec(const TaskPlace& place) {
  std::map<std::string, ClusterSpec::Tasks, std::less<>> jobs;
  for (const Address& address : place.addresses) {
    jobs[address.task.type].emplace(address.task.id,
                                    address.network.empty() ? std::string() : address.network.front());
  }
  return ClusterSpec(std::move(jobs));
}

std::string to_card(const TaskPlace& place) {
  const Json card = {{"task", {{"type", place.task.type}, {"index", place.task.id}}},
                     {"restarts", place.restarts},
                     {"standby", place.standby},
                     {"secret", to_hexadecimal(place.secret)},
                     {"descriptors",
                      {{"network", place.network_listener},
                       {"local", place.local_listener},
                       {"memory", place.memory},
                       {"supervisor", place.supervisor}}},
                     {"tasks", json_of(place.addresses)}};
  return card.dump();
}

watch::Fd card_file(const TaskPlace& place) {
  const std::string card = to_card(place);
  watch::Fd file(make_memory_file("cohort-card"));
  if (!file || uninterrupted([&] { return ::write(file.get(), card.data(), card.size()); }) !=
                   static_cast<ssize_t>(card.size()))
    throw Unavailable("there is no memory for the card of a task: {}", std::strerror(errno));
  return file;
}

TaskPlace place_from_card(std::string_view card) {
  const Json json = parse_json<Json>(card, kCard, kCardForm);
  const Json& task = member(json, "task", kCardForm);
  const Json& descriptors = member(json, "descriptors", kCardForm);
  TaskPlace place{.task = {text_of(task, "type", kCardForm), number_of(task, "index", 0, kCardForm)},
                  .addresses = addresses_of(member(json, "tasks", kCardForm)),
                  .secret = from_hexadecimal(text_of(json, "secret", kCardForm)),
                  .network_listener = descriptor_of(descriptors, "network"),
                  .local_listener = descriptor_of(descriptors, "local"),
                  .memory = descriptor_of(descriptors, "memory"),
                  .restarts = number_of(json, "restarts", 0, kCardForm),
                  .supervisor = descriptor_of(descriptors, "supervisor"),
                  .standby = flag_of(json, "standby", kCardForm)};
  require_one_address_each(place.addresses);
  static_cast<void>(address_of(place, place.task));              // throws unless the job has the task
  static_cast<void>(is_chief(cluster_spec(place), place.task));  // throws unless all jobs are known
  return place;
}

std::string addresses_to_json(std::span<const Address> addresses) { return json_of(addresses).dump(); }

std::vector<Address> addresses_from_json(std::string_view text) {
  return addresses_of(parse_json<Json>(text, kAddresses, kAddressForm));
}

void SupervisorLine::send(SupervisorWord word) const {
  if (::send(descriptor_, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof word) return;
  if (errno == EAGAIN)
    throw Unavailable("a parameter server and its supervisor do not read what they tell each other");
}

std::optional<SupervisorWord> SupervisorLine::receive() const {
  SupervisorWord word{};
  if (::recv(descriptor_, &word, sizeof word, MSG_DONTWAIT) == sizeof word) return word;
  return std::nullopt;
}

std::pair<watch::Fd, watch::Fd> make_supervisor_line() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Unavailable("the system has no pair of sockets: {}", std::strerror(errno));
  return {watch::Fd(ends[0]), watch::Fd(ends[1])};
}

}  // namespace cohort::remote
