// Says what a task has been given, for scripts that play tasks:
//
//   job=ps index=0 restarts=1 standby=false network=127.0.0.1:4000 local=... line=-1 card=7 secret=...
//   tasks=3 heard=... memory=...
//
// `line` is the descriptor of the line to the supervisor, `card` that of the task's card, `secret` a number
// that follows from the secret, and `heard` the first line of a connection that waits at the network
// listener, if there is one. A word that is given is what the memory of a `ps` holds afterwards.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/resolvers/task_cluster_resolver.h>

namespace {

std::string heard_at(int listener) {
  const int connection = ::accept(listener, nullptr, nullptr);
  if (connection < 0) return {};
  std::string text(64, '\0');
  const ssize_t got = ::recv(connection, text.data(), text.size(), 0);
  ::close(connection);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text.substr(0, text.find('\n'));
}

std::string memory_in(int file) {
  std::string text(64, '\0');
  const ssize_t got = file < 0 ? -1 : ::pread(file, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

}  // namespace

int main(int argc, char** argv) try {
  const cohort::TaskClusterResolver resolver;
  const cohort::remote::TaskPlace& place = resolver.place();
  const cohort::remote::Address& own = address_of(place, place.task);
  fmt::print(
      "job={} index={} restarts={} standby={} network={} local={} line={} card={} secret={} tasks={} "
      "heard={} memory={}\n",
      place.task.type, place.task.id, place.restarts, place.standby, own.network.front(), own.local,
      place.supervisor, cohort::config().task_descriptor(), std::hash<std::string>()(place.secret),
      place.addresses.size(), heard_at(place.network_listener), memory_in(place.memory));
  if (argc > 1 && place.memory >= 0) {
    const std::string text = argv[1];
    return ::pwrite(place.memory, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  }
  return 0;
} catch (const cohort::Error& error) {
  fmt::print(stderr, "task_probe: {}\n", error.what());
  return 1;
}
