// A Server runs methods for the other tasks of the job, which call them through an rpc::Client.
//
//     rpc::Server server(place);
//     server.register_method("scale", [](const Tensor& x, double factor) { return scaled(x, factor); });
//     server.start();
//     server.join();                        // until a method, or another thread, calls stop()
//
// Only tasks that know the job's secret are let in. What a method throws is thrown by the Reply of its call.
// Methods run one after the other, unless ServerOptions::threads are more: then they must bear to run at the
// same time. Calls that wait are kept in memory, no more than 64 MiB of each client, but for its largest.
//
// The server listens at the task's address. So does a ParameterServerStrategy: a task has one of the two.
// Any thread may call.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/remote/task_place.h>
#include <cohort/rpc/detail/signature.h>
#include <cohort/rpc/method.h>

namespace cohort::rpc {

class ServerPart;

struct ServerOptions {
  int threads = 1;  ///< that run methods
};

class Server {
 public:
  /// @throws InvalidArgument for less than one thread; WrongContext in a standby.
  explicit Server(const remote::TaskPlace& place, const ServerOptions& options = {});

  /// Stops, and waits for the methods that run.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Offers a function, a lambda or another object that is called. Its signature is fixed: no template, no
  /// overloads. Arguments are the method's own, which it takes by value or by const reference.
  /// @throws InvalidArgument for a name that is empty or taken, and for an empty std::function; WrongContext
  /// after `start`.
  template <class Callable>
  void register_method(std::string name, Callable callable);

  /// By name.
  [[nodiscard]] std::vector<Method> methods() const;

  /// Lets clients in, and runs what they call. Once is enough.
  /// @throws Unavailable when it cannot listen; WrongContext after `stop`, and where another server or a
  /// ParameterServerStrategy of this process listens at the task's address.
  void start();

  /// Runs no more methods, and answers calls that wait with Unavailable. Does not wait; a method may call it.
  void stop() noexcept;

  /// Waits until the server has stopped and what was running has ended.
  /// @throws WrongContext before `start`, and in a method, which would wait for itself.
  void join();

 private:
  void add(Method method, std::function<void(Decoder& arguments, Encoder& result)> run);

  std::unique_ptr<ServerPart> part_;
};

// ---- implementation of the templates ----

namespace detail {

/// Decodes the arguments, calls, and encodes the result.
template <class Callable, class... Parameters>
void run_method(Callable& callable, Decoder& arguments, Encoder& result,
                std::type_identity<std::tuple<Parameters...>>) {
  // Braces, since these are decoded from left to right.
  std::tuple<std::remove_cvref_t<Parameters>...> values{
      decode<std::remove_cvref_t<Parameters>>(arguments)...};
  if (!arguments.rest().empty()) throw DataLoss("a call from another task has bytes behind its arguments");
  if constexpr (std::is_void_v<typename SignatureOf<Callable>::ResultType>)
    std::apply(callable, std::move(values));
  else
    encode(result, std::apply(callable, std::move(values)));
}

template <class Callable, class... Parameters>
constexpr bool takes_values(std::type_identity<std::tuple<Parameters...>>) {
  return std::is_invocable_v<Callable&, std::remove_cvref_t<Parameters>...>;
}

}  // namespace detail

template <class Callable>
void Server::register_method(std::string name, Callable callable) {
  constexpr bool kHasSignature = detail::WithSignature<Callable>;
  static_assert(kHasSignature,
                "a method has one fixed signature: register a function or a lambda without auto parameters");
  if constexpr (kHasSignature) {
    using Parameters = std::type_identity<typename detail::SignatureOf<Callable>::ParameterTypes>;
    detail::require_callable<Callable>();
    constexpr bool kTakesValues = detail::takes_values<Callable>(Parameters());
    static_assert(kTakesValues,
                  "a method's arguments are its own: it takes them by value or by const reference");
    if constexpr (kTakesValues && detail::kIsCallable<Callable>) {
      std::function<void(Decoder&, Encoder&)> run;
      bool is_empty = false;
      if constexpr (std::is_pointer_v<Callable> || cohort::detail::kIsInstance<Callable, std::function>)
        is_empty = callable == nullptr;
      if (!is_empty) {
        run = [callable = std::move(callable)](Decoder& arguments, Encoder& result) mutable {
          detail::run_method(callable, arguments, result, Parameters());
        };
      }
      add({std::move(name), detail::signature_text<Callable>().text}, std::move(run));
    }
  }
}

}  // namespace cohort::rpc
