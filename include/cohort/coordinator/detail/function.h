// Functions that run on other tasks. Using one as a template argument registers it before `main`; since all
// tasks run the same program, a function has the same number in all of them. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/coordinator/per_worker.h>
#include <cohort/input/input_context.h>
#include <cohort/server/detail/codec.h>

namespace cohort::coordinator {

using FunctionNumber = std::uint32_t;

/// What a worker gives to the functions that it runs.
class WorkerValues {
 public:
  virtual ~WorkerValues() = default;
  [[nodiscard]] virtual const InputContext& input_context() const noexcept = 0;

  /// This worker's element of a PerWorker. @throws the error that it was made with.
  [[nodiscard]] virtual const std::shared_ptr<void>& element(std::uint64_t number) const = 0;
};

struct Function {
  std::string_view name;
  /// Runs it with encoded arguments, and encodes the result.
  void (*run)(server::Decoder& arguments, const WorkerValues& worker, server::Encoder& result);
  /// Runs it to make an element of a PerWorker.
  std::shared_ptr<void> (*make)(server::Decoder& arguments, const WorkerValues& worker);

  /// As the program's source has it, for example `train_step`; `lambda` where it has no name.
  [[nodiscard]] std::string_view short_name() const noexcept;
};

[[nodiscard]] FunctionNumber register_function(const Function& function);

/// @throws InvalidArgument for a number that no function has.
[[nodiscard]] const Function& function(FunctionNumber number);

/// Of all functions in their order: equal where the same program runs.
[[nodiscard]] std::uint64_t fingerprint_of_functions();

namespace detail {

template <class T>
inline constexpr bool kIsPerWorker = cohort::detail::kIsInstance<T, PerWorker>;

enum class ArgumentKind : std::uint8_t { kValue, kPerWorker };

/// What a function is called with: a value that was sent, or the worker's element of a PerWorker.
template <class T>
class Argument {
 public:
  Argument(server::Decoder& arguments, const WorkerValues& worker) {
    if (arguments.number<ArgumentKind>() == ArgumentKind::kPerWorker) {
      shared_ = worker.element(arguments.number<std::uint64_t>());
      value_ = static_cast<T*>(shared_.get());
      return;
    }
    if constexpr (server::kSendable<T>) {
      own_.emplace(server::decode<T>(arguments));
      value_ = &*own_;
    } else {
      throw DataLoss("an argument arrived that cannot be sent");
    }
  }
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;

  [[nodiscard]] T& value() noexcept { return *value_; }

 private:
  std::optional<T> own_;
  std::shared_ptr<void> shared_;
  T* value_ = nullptr;
};

template <class Signature>
struct SignatureOf;
template <class Result, class... Parameters>
struct SignatureOf<Result (*)(Parameters...)> {
  using ResultType = Result;
  using ParameterTypes = std::tuple<Parameters...>;
};
template <class Result, class... Parameters>
struct SignatureOf<Result (*)(Parameters...) noexcept> : SignatureOf<Result (*)(Parameters...)> {};

/// The parameters that are sent: all but an InputContext at the beginning.
template <class Parameters>
struct Sent {
  using Type = Parameters;
  static constexpr bool kTakesContext = false;
};
template <class First, class... Rest>
requires std::is_same_v<std::remove_cvref_t<First>, InputContext>
struct Sent<std::tuple<First, Rest...>> {
  using Type = std::tuple<Rest...>;
  static constexpr bool kTakesContext = true;
};

template <class T>
constexpr std::string_view name_of_function() {
  return __PRETTY_FUNCTION__;
}

}  // namespace detail

/// `kFunction`, a function or a lambda without captures, as other tasks know it.
template <auto kFunction>
class RegisteredFunction {
  using Signature = detail::SignatureOf<decltype(+kFunction)>;
  using Split = detail::Sent<typename Signature::ParameterTypes>;

 public:
  using Result = typename Signature::ResultType;
  using Parameters = typename Split::Type;  ///< those that are sent
  static constexpr std::size_t kArity = std::tuple_size_v<Parameters>;

  [[nodiscard]] static FunctionNumber number() noexcept { return kNumber; }

 private:
  template <class... P>
  static Result call(server::Decoder& arguments, const WorkerValues& worker,
                     std::type_identity<std::tuple<P...>>) {
    // Braces, since these are decoded from left to right.
    std::tuple<std::unique_ptr<detail::Argument<std::remove_cvref_t<P>>>...> values{
        std::make_unique<detail::Argument<std::remove_cvref_t<P>>>(arguments, worker)...};
    return std::apply(
        [&](auto&... value) -> Result {
          if constexpr (Split::kTakesContext)
            return kFunction(worker.input_context(), static_cast<std::remove_cvref_t<P>&>(value->value())...);
          else
            return kFunction(static_cast<std::remove_cvref_t<P>&>(value->value())...);
        },
        values);
  }

  static void run(server::Decoder& arguments, const WorkerValues& worker, server::Encoder& result) {
    if constexpr (std::is_void_v<Result>)
      call(arguments, worker, std::type_identity<Parameters>());
    else if constexpr (server::kSendableAnywhere<std::remove_cvref_t<Result>>)
      server::encode(result, call(arguments, worker, std::type_identity<Parameters>()));
    else
      throw InvalidArgument("the result of this function cannot be sent to another task");
  }

  static std::shared_ptr<void> make(server::Decoder& arguments, const WorkerValues& worker) {
    if constexpr (std::is_void_v<Result>)
      throw InvalidArgument("a function without a result makes no value of a worker");
    else
      return std::make_shared<std::remove_cvref_t<Result>>(
          call(arguments, worker, std::type_identity<Parameters>()));
  }

  inline static const FunctionNumber kNumber =
      register_function({detail::name_of_function<RegisteredFunction>(), &run, &make});
};

/// What a function is called with, as it is sent, and the PerWorkers whose elements it is to find.
struct EncodedArguments {
  std::vector<std::byte> bytes = {};
  std::vector<std::shared_ptr<const PerWorkerState>> per_workers = {};
};

template <auto kFunction, class... Args>
[[nodiscard]] EncodedArguments encode_arguments(const Args&... args) {
  using Registered = RegisteredFunction<kFunction>;
  server::Encoder encoder;
  EncodedArguments result;
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    [[maybe_unused]] const auto encode_one = [&]<class Parameter, class Arg>(std::type_identity<Parameter>,
                                                                             const Arg& arg) {
      if constexpr (detail::kIsPerWorker<Arg>) {
        constexpr bool kFits = std::is_same_v<Arg, PerWorker<Parameter>>;
        static_assert(kFits, "the function takes another type than the elements of this PerWorker");
        encoder.number(detail::ArgumentKind::kPerWorker);
        encoder.number(arg.state()->number());
        result.per_workers.push_back(arg.state());
      } else {
        constexpr bool kConverts = std::is_convertible_v<const Arg&, Parameter>;
        static_assert(kConverts, "an argument does not convert to what the function takes");
        encoder.number(detail::ArgumentKind::kValue);
        if constexpr (!kConverts)
          return;
        else if constexpr (std::is_same_v<Arg, Parameter>)
          server::encode(encoder, arg);
        else
          server::encode(encoder, static_cast<Parameter>(arg));
      }
    };
    (encode_one(std::type_identity<
                    std::remove_cvref_t<std::tuple_element_t<kIndex, typename Registered::Parameters>>>(),
                args),
     ...);
  }
  (std::index_sequence_for<Args...>());
  result.bytes = encoder.take();
  return result;
}

}  // namespace cohort::coordinator
