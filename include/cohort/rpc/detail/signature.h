// What a method takes and returns: as types, for its callers, and in words, for the comparison between tasks.
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/rpc/detail/codec.h>

namespace cohort::rpc::detail {

/// Of a function type, a pointer to a function, or an object with one operator(), which is no template.
template <class T>
struct SignatureOf;
template <class T>
concept WithOneCallOperator = requires {
  &T::operator();
};
template <WithOneCallOperator T>
struct SignatureOf<T> : SignatureOf<decltype(&T::operator())> {};
template <class Result, class... Parameters>
struct SignatureOf<Result(Parameters...)> {
  using ResultType = Result;
  using ParameterTypes = std::tuple<Parameters...>;
};
template <class Result, class... Parameters>
struct SignatureOf<Result (*)(Parameters...)> : SignatureOf<Result(Parameters...)> {};
template <class Result, class... Parameters>
struct SignatureOf<Result (*)(Parameters...) noexcept> : SignatureOf<Result(Parameters...)> {};
template <class Result, class T, class... Parameters>
struct SignatureOf<Result (T::*)(Parameters...)> : SignatureOf<Result(Parameters...)> {};
template <class Result, class T, class... Parameters>
struct SignatureOf<Result (T::*)(Parameters...) const> : SignatureOf<Result(Parameters...)> {};
template <class Result, class T, class... Parameters>
struct SignatureOf<Result (T::*)(Parameters...) noexcept> : SignatureOf<Result(Parameters...)> {};
template <class Result, class T, class... Parameters>
struct SignatureOf<Result (T::*)(Parameters...) const noexcept> : SignatureOf<Result(Parameters...)> {};

template <class T>
concept WithSignature = requires {
  typename SignatureOf<T>::ResultType;
};

template <class T>
std::string describe();

template <class... Fields>
std::string describe_fields(std::type_identity<std::tuple<Fields...>>) {
  const std::vector<std::string> names{describe<std::remove_cvref_t<Fields>>()...};
  return fmt::format("({})", fmt::join(names, ", "));
}

/// A type in words. Two types of one description are encoded alike.
template <class T>
std::string describe() {
  if constexpr (std::is_void_v<T>)
    return "nothing";
  else if constexpr (std::is_enum_v<T>)
    return "enumerator of " + describe<std::underlying_type_t<T>>();
  else if constexpr (Element<T>)
    return std::string(to_string(kDTypeOf<T>));
  else if constexpr (std::is_same_v<T, std::string>)
    return "text";
  else if constexpr (std::is_same_v<T, Tensor>)
    return "tensor";
  else if constexpr (std::is_same_v<T, IndexedSlices>)
    return "slices";
  else if constexpr (kIsList<T>)
    return fmt::format("list of {}", describe<typename T::value_type>());
  else if constexpr (cohort::detail::kIsInstance<T, std::optional>)
    return fmt::format("optional {}", describe<typename T::value_type>());
  else if constexpr (cohort::detail::kIsInstance<T, std::map>)
    return fmt::format("map of {} to {}", describe<typename T::key_type>(),
                       describe<typename T::mapped_type>());
  else
    return describe_fields(std::type_identity<typename FieldsOf<T>::Type>());
}

/// A signature in words, with its fingerprint: both are made once.
struct SignatureText {
  std::string text;
  std::uint64_t fingerprint;
};

template <class T>
const SignatureText& signature_text() {
  using Signature = SignatureOf<T>;
  static const SignatureText signature = [] {
    std::string text =
        fmt::format("{} -> {}", describe_fields(std::type_identity<typename Signature::ParameterTypes>()),
                    describe<std::remove_cvref_t<typename Signature::ResultType>>());
    const std::uint64_t fingerprint = fingerprint_of(text);
    return SignatureText{std::move(text), fingerprint};
  }();
  return signature;
}

template <class... Parameters>
constexpr bool travel_anywhere(std::type_identity<std::tuple<Parameters...>>) {
  return (kSendableAnywhere<std::remove_cvref_t<Parameters>> && ...);
}

template <class T>
inline constexpr bool kParametersTravel =
    travel_anywhere(std::type_identity<typename SignatureOf<T>::ParameterTypes>());

template <class T>
inline constexpr bool kResultTravels = std::is_void_v<T> || kSendableAnywhere<std::remove_cvref_t<T>>;

/// Whether calls can have the signature of T.
template <class T>
inline constexpr bool kIsCallable =
    kParametersTravel<T>&& kResultTravels<typename SignatureOf<T>::ResultType>;

/// Says, once for each type, why they cannot.
template <class T>
constexpr void require_callable() {
  constexpr bool kArguments = kParametersTravel<T>;
  constexpr bool kResult = kResultTravels<typename SignatureOf<T>::ResultType>;
  static_assert(kArguments,
                "a method takes what cannot travel: use numbers, enumerators, std::string, tensors, "
                "IndexedSlices, and vectors, tuples, maps, optionals or aggregates (COHORT_FIELDS) of them; "
                "of a Variable, send what read() returns");
  static_assert(kResult,
                "a method returns what cannot travel: use numbers, enumerators, std::string, tensors, "
                "IndexedSlices, and vectors, tuples, maps, optionals or aggregates (COHORT_FIELDS) of them; "
                "of a Variable, return what read() returns");
}

}  // namespace cohort::rpc::detail
