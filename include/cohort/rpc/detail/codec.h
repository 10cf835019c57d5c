// How values travel between tasks: as bytes (value/detail/bytes.h), and variables by their numbers. All tasks
// run on machines of one kind. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cohort/value/detail/bytes.h>
#include <cohort/value/variable.h>

namespace cohort::rpc {

/// Finds variables by the numbers that they have in their strategy.
class VariableTable {
 public:
  virtual ~VariableTable() = default;

  /// @throws InvalidArgument for an unknown number.
  [[nodiscard]] virtual Variable variable(std::uint64_t number) const = 0;
};

class Encoder : public cohort::detail::ByteWriter {
 public:
  /// What is to be known of a tensor whose elements the caller puts behind everything else, after
  /// `align_end`.
  void tensor_at_end(const Tensor& tensor);
  /// Zeros up to where the elements of a tensor at the end may begin.
  void align_end();

  /// Numbers the variable. @throws InvalidArgument for one that no parameter server keeps.
  void variable(const Variable& variable);
};

class Decoder : public cohort::detail::ByteReader {
 public:
  explicit Decoder(std::span<const std::byte> bytes, const VariableTable* variables = nullptr) noexcept
      : ByteReader(bytes, "a message from another task"), variables_(variables) {}

  /// Whose elements are the last bytes: a view of them, to be read alone. A copy where they are not aligned.
  [[nodiscard]] Tensor tensor_at_end();
  [[nodiscard]] Variable variable();

 private:
  const VariableTable* variables_;
};

namespace detail {

using cohort::detail::FieldsOf;

template <class T>
inline constexpr bool kIsList = cohort::detail::kIsInstance<T, std::vector>;

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
  detail::require_sendable<T>();
  if constexpr (kSendable<T>) cohort::detail::write_value(encoder, value);
}

template <class T>
[[nodiscard]] T decode(Decoder& decoder) {
  detail::require_sendable<T>();
  if constexpr (kSendable<T>) return cohort::detail::read_value<T>(decoder);
}

}  // namespace cohort::rpc
