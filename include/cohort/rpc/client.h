// A Client calls the methods that another task of the job has registered with its rpc::Server.
//
//     using Scale = Tensor(const Tensor&, double);
//     const rpc::Client client(place, {"worker", 1});
//     const rpc::Reply<Tensor> scaled = client.call<Scale>("scale", tensor, 2.0);    // returns at once
//     use(scaled.get());                                                             // waits
//
// The function type says what the method takes and returns; arguments convert to it as in a call in C++. The
// server compares it with what the method has, so that other types are an error and no garbage. A call is
// made once at most: it is never repeated, and when its deadline has passed, it is not begun any more.
//
// A handle: copies denote the same connection, which ends with the last of them and of their replies. Any
// thread may call. Calls of one thread arrive in their order. A client whose server was lost stays without
// it; when the server has been started again, make another one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/cluster/cluster_roles.h>
#include <cohort/remote/task_place.h>
#include <cohort/rpc/detail/signature.h>
#include <cohort/rpc/method.h>
#include <cohort/rpc/reply.h>

namespace cohort::rpc {

struct ClientOptions {
  double timeout_seconds = 0;           ///< of calls that have no other; 0: none
  double connect_timeout_seconds = 10;  ///< how long the server may take to be there; 0: for ever
};

/// The method that a call is of: `"scale"`, or `{"scale", 2.5}` for an answer within 2.5 s. The name outlives
/// the call of `call`.
struct MethodCall {
  // NOLINTBEGIN(google-explicit-constructor,hicpp-explicit-conversions): a name is enough
  template <class Name>
  requires std::is_convertible_v<const Name&, std::string_view> MethodCall(const Name& method,
                                                                           std::optional<double> timeout = {})
      : name(method), timeout_seconds(timeout) {}
  // NOLINTEND(google-explicit-constructor,hicpp-explicit-conversions)

  std::string_view name;
  std::optional<double> timeout_seconds;  ///< of this call; 0: none. Unset: as the client's options say
};

class Client {
 public:
  /// Connects this task, `place`, to the server of another, and waits until that has started.
  /// @throws Unavailable naming job, index and host of a server that does not answer; InvalidArgument for a
  /// task that the job does not have, and times below 0.
  Client(const remote::TaskPlace& place, const ClusterTask& server, const ClientOptions& options = {});

  /// Has the server run the method. Returns at once, unless more than 64 MiB of earlier calls are unanswered:
  /// then it waits for answers, or for the call's deadline. Errors are the Reply's.
  /// @throws InvalidArgument for a timeout below 0.
  template <class Signature, class... Args>
  [[nodiscard]] auto call(const MethodCall& method, const Args&... args) const;

  /// What the server has registered, by name. @throws as a call of a method.
  [[nodiscard]] std::vector<Method> list_methods() const;

 private:
  [[nodiscard]] std::shared_ptr<CallState> send(const MethodCall& method,
                                                const detail::SignatureText& signature,
                                                std::vector<std::byte> arguments) const;

  std::shared_ptr<ClientPart> part_;
};

// ---- implementation of the templates ----

namespace detail {

template <class... Parameters, class... Args>
void encode_arguments(Encoder& encoder, std::type_identity<std::tuple<Parameters...>>, const Args&... args) {
  [[maybe_unused]] const auto encode_one = [&]<class Parameter, class Arg>(std::type_identity<Parameter>,
                                                                           const Arg& arg) {
    if constexpr (std::is_same_v<Arg, Parameter>)
      encode(encoder, arg);
    else
      encode(encoder, static_cast<Parameter>(arg));
  };
  (encode_one(std::type_identity<std::remove_cvref_t<Parameters>>(), args), ...);
}

template <class... Parameters, class... Args>
constexpr bool convert_to(std::type_identity<std::tuple<Parameters...>>,
                          std::type_identity<std::tuple<Args...>>) {
  if constexpr (sizeof...(Parameters) == sizeof...(Args))
    return (std::is_convertible_v<const Args&, std::remove_cvref_t<Parameters>> && ...);
  else
    return false;
}

}  // namespace detail

template <class Signature, class... Args>
auto Client::call(const MethodCall& method, const Args&... args) const {
  constexpr bool kIsFunctionType = std::is_function_v<Signature>;
  static_assert(
      kIsFunctionType,
      "call<Signature>() takes the method's function type, for example call<float(int)>(\"name\", 1)");
  if constexpr (kIsFunctionType) {
    using Parameters = typename detail::SignatureOf<Signature>::ParameterTypes;
    using Result = std::remove_cvref_t<typename detail::SignatureOf<Signature>::ResultType>;
    detail::require_callable<Signature>();
    constexpr bool kConvert =
        detail::convert_to(std::type_identity<Parameters>(), std::type_identity<std::tuple<Args...>>());
    static_assert(kConvert, "the arguments of call() are not those of the function type that it is given");
    if constexpr (kConvert && detail::kIsCallable<Signature>) {
      Encoder arguments;
      detail::encode_arguments(arguments, std::type_identity<Parameters>(), args...);
      return Reply<Result>(part_, send(method, detail::signature_text<Signature>(), arguments.take()));
    }
  }
}

}  // namespace cohort::rpc
