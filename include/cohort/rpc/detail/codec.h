// How values travel between tasks: numbers, enumerators, text, tensors, IndexedSlices, variables, and
// structures of them. All tasks run on machines of one kind, so bytes are those in memory. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/value/structure.h>
#include <cohort/value/variable.h>

namespace cohort::rpc {

/// Finds variables by the numbers that they have in their strategy.
class VariableTable {
 public:
  virtual ~VariableTable() = default;

  /// @throws InvalidArgument for an unknown number.
  [[nodiscard]] virtual Variable variable(std::uint64_t number) const = 0;
};

class Encoder {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void number(T value) { append(std::as_bytes(std::span(&value, 1))); }
  void text(std::string_view text);
  void blob(std::span<const std::byte> bytes);
  void shape(const Shape& shape);
  void tensor(const Tensor& tensor);

  /// What is to be known of a tensor whose elements the caller puts behind everything else, after
  /// `align_end`.
  void tensor_at_end(const Tensor& tensor);
  /// Zeros up to where the elements of a tensor at the end may begin.
  void align_end();

  /// Numbers the variable. @throws InvalidArgument for one that no parameter server keeps.
  void variable(const Variable& variable);

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::vector<std::byte> take() noexcept { return std::move(bytes_); }

 private:
  void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  std::vector<std::byte> bytes_;
};

/// Reads what an Encoder wrote. Everything throws DataLoss at the end of the bytes.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes, const VariableTable* variables = nullptr) noexcept
      : rest_(bytes), variables_(variables) {}

  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T number() {
    T value;
    std::memcpy(&value, next(sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::string_view text();
  [[nodiscard]] std::span<const std::byte> blob();
  [[nodiscard]] Shape shape();
  [[nodiscard]] DType dtype();
  [[nodiscard]] Tensor tensor();
  /// Whose elements are the last bytes: a view of them, to be read alone. A copy where they are not aligned.
  [[nodiscard]] Tensor tensor_at_end();
  [[nodiscard]] Variable variable();

  /// How many elements follow, each of at least one byte.
  [[nodiscard]] std::size_t count();

  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return rest_; }

 private:
  [[nodiscard]] std::span<const std::byte> next(std::size_t bytes);

  std::span<const std::byte> rest_;
  const VariableTable* variables_;
};

namespace detail {

template <class T>
inline constexpr bool kIsList = cohort::detail::kIsInstance<T, std::vector>;

/// A class that is made of other values, and is constructed from them: a ShardedVariable.
template <class T>
concept WithParts = requires(const T& value) {
  value.parts_to_send();
};

template <class T>
struct FieldsOf {
  using Type = void;
};
template <WithParts T>
struct FieldsOf<T> {
  using Type = decltype(std::declval<const T&>().parts_to_send());
};
template <cohort::detail::TupleLike T>
struct FieldsOf<T> {
  using Type = decltype(std::tuple_cat(std::declval<T>()));
};
template <class T>
requires(!cohort::detail::TupleLike<T> && cohort::detail::WithFields<const T>) struct FieldsOf<T> {
  using Type = decltype(cohort_fields(std::declval<const T&>()));
};

/// A Variable is known only to the tasks of its strategy.
enum class Among { kAnyTasks, kTasksOfAStrategy };

template <class T, Among kAmong>
constexpr bool is_sendable();

template <Among kAmong, class... Fields>
constexpr bool are_sendable(std::type_identity<std::tuple<Fields...>>) {
  return (is_sendable<std::remove_cvref_t<Fields>, kAmong>() && ...);
}

template <class T, Among kAmong>
constexpr bool is_sendable() {
  if constexpr (Element<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                std::is_same_v<T, Tensor> || std::is_same_v<T, IndexedSlices>)
    return true;
  else if constexpr (std::is_same_v<T, Variable>)
    return kAmong == Among::kTasksOfAStrategy;
  else if constexpr (kIsList<T> || cohort::detail::kIsInstance<T, std::optional>)
    return is_sendable<typename T::value_type, kAmong>();
  else if constexpr (cohort::detail::kIsInstance<T, std::map>)
    return is_sendable<typename T::key_type, kAmong>() && is_sendable<typename T::mapped_type, kAmong>();
  else if constexpr (std::is_void_v<typename FieldsOf<T>::Type>)
    return false;
  else
    return are_sendable<kAmong>(std::type_identity<typename FieldsOf<T>::Type>());
}

/// Says, once for each type, that it cannot be sent.
template <class T>
constexpr void require_sendable() {
  constexpr bool kSendable = is_sendable<T, Among::kTasksOfAStrategy>();
  static_assert(kSendable,
                "this type cannot be sent to another task: use numbers, enumerators, std::string, tensors, "
                "IndexedSlices, Variables, ShardedVariables, and vectors, tuples, maps, optionals or "
                "aggregates (COHORT_FIELDS) of "
                "them");
}

}  // namespace detail

/// Whether values of the type can travel between the tasks of a strategy.
template <class T>
inline constexpr bool kSendable = detail::is_sendable<T, detail::Among::kTasksOfAStrategy>();

/// Whether they can travel between any tasks.
template <class T>
inline constexpr bool kSendableAnywhere = detail::is_sendable<T, detail::Among::kAnyTasks>();

template <class T>
void encode(Encoder& encoder, const T& value) {
  if constexpr (Element<T> || std::is_enum_v<T>) {
    encoder.number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    encoder.text(value);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    encoder.tensor(value);
  } else if constexpr (std::is_same_v<T, Variable>) {
    encoder.variable(value);
  } else if constexpr (std::is_same_v<T, IndexedSlices>) {
    encoder.tensor(value.values);
    encoder.tensor(value.indices);
    encoder.shape(value.dense_shape);
  } else if constexpr (detail::WithParts<T>) {
    encode(encoder, value.parts_to_send());
  } else if constexpr (detail::kIsList<T>) {
    encoder.number(value.size());
    for (const auto& element : value) encode(encoder, element);
  } else if constexpr (cohort::detail::kIsInstance<T, std::map>) {
    encoder.number(value.size());
    for (const auto& [key, element] : value) {
      encode(encoder, key);
      encode(encoder, element);
    }
  } else if constexpr (cohort::detail::kIsInstance<T, std::optional>) {
    encoder.number(value.has_value());
    if (value) encode(encoder, *value);
  } else if constexpr (cohort::detail::TupleLike<T>) {
    std::apply([&](const auto&... fields) { (encode(encoder, fields), ...); }, value);
  } else if constexpr (cohort::detail::WithFields<const T>) {
    std::apply([&](const auto&... fields) { (encode(encoder, fields), ...); }, cohort_fields(value));
  } else {
    detail::require_sendable<T>();
  }
}

template <class T>
[[nodiscard]] T decode(Decoder& decoder);

namespace detail {

template <class List>
List decode_list(Decoder& decoder) {
  List result;
  for (std::size_t left = decoder.count(); left > 0; --left)
    result.push_back(decode<typename List::value_type>(decoder));
  return result;
}

template <class Map>
Map decode_map(Decoder& decoder) {
  Map result;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    auto key = decode<typename Map::key_type>(decoder);
    result.emplace(std::move(key), decode<typename Map::mapped_type>(decoder));
  }
  return result;
}

/// Fields in their order: those of a braced list are evaluated from left to right.
template <class Result, class... Fields>
Result decode_fields(Decoder& decoder, std::type_identity<std::tuple<Fields...>>) {
  return Result{decode<std::remove_cvref_t<Fields>>(decoder)...};
}

}  // namespace detail

template <class T>
T decode(Decoder& decoder) {
  if constexpr (Element<T> || std::is_enum_v<T>) {
    return decoder.number<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(decoder.text());
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return decoder.tensor();
  } else if constexpr (std::is_same_v<T, Variable>) {
    return decoder.variable();
  } else if constexpr (std::is_same_v<T, IndexedSlices>) {
    Tensor values = decoder.tensor();
    Tensor indices = decoder.tensor();
    return {std::move(values), std::move(indices), decoder.shape()};
  } else if constexpr (detail::kIsList<T>) {
    return detail::decode_list<T>(decoder);
  } else if constexpr (cohort::detail::kIsInstance<T, std::map>) {
    return detail::decode_map<T>(decoder);
  } else if constexpr (cohort::detail::kIsInstance<T, std::optional>) {
    if (!decoder.number<bool>()) return std::nullopt;
    return decode<typename T::value_type>(decoder);
  } else if constexpr (cohort::detail::TupleLike<T> || cohort::detail::WithFields<const T> ||
                       detail::WithParts<T>) {
    return detail::decode_fields<T>(decoder, std::type_identity<typename detail::FieldsOf<T>::Type>());
  } else {
    detail::require_sendable<T>();
  }
}

}  // namespace cohort::rpc
