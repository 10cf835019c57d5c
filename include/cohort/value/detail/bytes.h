// Values as bytes: numbers, enumerators, text, tensors, IndexedSlices, and structures of them. The elements
// of a cache lie in its file so, and arguments travel so between tasks. The layout follows from the type;
// beside the values only what varies is written: lengths, keys, shapes and dtypes. Numbers are as in memory.
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
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

namespace cohort::detail {

class ByteWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void number(T value) { append(std::as_bytes(std::span(&value, 1))); }
  void text(std::string_view text) { blob(std::as_bytes(std::span(text))); }
  void blob(std::span<const std::byte> bytes);
  void shape(const Shape& shape);
  /// The tensor may be on any device.
  void tensor(const Tensor& tensor);

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::vector<std::byte> take() noexcept { return std::move(bytes_); }
  void clear() noexcept { bytes_.clear(); }

 protected:
  void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a ByteWriter wrote. Everything throws DataLoss where the bytes end too early or make no sense.
class ByteReader {
 public:
  /// `source` is what errors call the bytes, and outlives the reader.
  ByteReader(std::span<const std::byte> bytes, const char* source) noexcept : rest_(bytes), source_(source) {}

  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T number() {
    if constexpr (std::is_same_v<T, bool>) return boolean();
    T value;
    std::memcpy(&value, next(sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::string_view text();
  [[nodiscard]] std::span<const std::byte> blob() { return next(count()); }
  [[nodiscard]] Shape shape();
  [[nodiscard]] DType dtype();
  [[nodiscard]] Tensor tensor();

  /// How many elements follow, each of at least one byte.
  [[nodiscard]] std::size_t count();

  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return rest_; }

 protected:
  /// The number of bytes of a tensor, which are among the rest.
  [[nodiscard]] std::size_t bytes_of(const Shape& shape, DType dtype) const;
  /// Refuses what cannot be elements: any byte but 0 and 1 is undefined as a bool.
  void require_elements(std::span<const std::byte> bytes, DType dtype) const;
  [[noreturn]] void refuse(const char* what) const;

  std::span<const std::byte> rest_;

 private:
  [[nodiscard]] std::span<const std::byte> next(std::size_t bytes);
  [[nodiscard]] bool boolean();

  const char* source_;
};

/// A class that is made of other values, and is constructed from them: a ShardedVariable.
template <class T>
concept WithParts = requires(const T& value) {
  value.parts_to_send();
};

/// A tuple of the types that a structure consists of, in their order; void for another type.
template <class T>
struct FieldsOf {
  using Type = void;
};
template <WithParts T>
struct FieldsOf<T> {
  using Type = decltype(std::declval<const T&>().parts_to_send());
};
template <TupleLike T>
struct FieldsOf<T> {
  using Type = decltype(std::tuple_cat(std::declval<T>()));
};
template <class T>
requires(!TupleLike<T> && WithFields<const T>) struct FieldsOf<T> {
  using Type = decltype(cohort_fields(std::declval<const T&>()));
};

template <class T>
inline constexpr bool kIsNumeric = std::is_arithmetic_v<T> || std::is_enum_v<T> || Element<T>;

/// Variables are for writers and readers that know them, by `variable`.
template <class Writer, class T>
void write_value(Writer& writer, const T& value) {
  const auto each = [&](const auto&... parts) { (write_value(writer, parts), ...); };
  if constexpr (kIsNumeric<T>) {
    writer.number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    writer.text(value);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    writer.tensor(value);
  } else if constexpr (std::is_same_v<T, Variable> && requires { writer.variable(value); }) {
    writer.variable(value);
  } else if constexpr (std::is_same_v<T, IndexedSlices>) {
    each(value.values, value.indices);
    writer.shape(value.dense_shape);
  } else if constexpr (WithParts<T>) {
    write_value(writer, value.parts_to_send());
  } else if constexpr (kIsInstance<T, std::vector> || kIsArray<T>) {
    if constexpr (!kIsArray<T>) writer.number(value.size());
    for (const auto& part : value) write_value(writer, part);
  } else if constexpr (kIsInstance<T, std::map>) {
    writer.number(value.size());
    for (const auto& [key, part] : value) each(key, part);
  } else if constexpr (kIsInstance<T, std::optional>) {
    writer.number(value.has_value());
    if (value) write_value(writer, *value);
  } else if constexpr (TupleLike<T>) {
    std::apply(each, value);
  } else if constexpr (WithFields<const T>) {
    std::apply(each, cohort_fields(value));
  } else {
    static_assert(
        TupleLike<T>,
        "cannot be written to a file: use tensors, numbers, strings, tuples, vectors, arrays, maps, "
        "optionals, or aggregates that COHORT_FIELDS describes");
  }
}

template <class T, class Reader>
[[nodiscard]] T read_value(Reader& reader);

/// Parts in their order: those of a braced list are evaluated from left to right.
template <class T, class Parts, class Reader>
T read_parts(Reader& reader) {
  return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return T{read_value<std::remove_cvref_t<std::tuple_element_t<kIndex, Parts>>>(reader)...};
  }
  (std::make_index_sequence<std::tuple_size_v<Parts>>());
}

template <class T, class Reader>
T read_value(Reader& reader) {
  if constexpr (kIsNumeric<T>) {
    return reader.template number<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(reader.text());
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return reader.tensor();
  } else if constexpr (std::is_same_v<T, Variable>) {
    return reader.variable();
  } else if constexpr (std::is_same_v<T, IndexedSlices>) {
    Tensor values = reader.tensor();
    Tensor indices = reader.tensor();
    return {std::move(values), std::move(indices), reader.shape()};
  } else if constexpr (kIsInstance<T, std::vector>) {
    T result;
    for (std::size_t left = reader.count(); left > 0; --left)
      result.push_back(read_value<typename T::value_type>(reader));
    return result;
  } else if constexpr (kIsInstance<T, std::map>) {
    T result;
    for (std::size_t left = reader.count(); left > 0; --left) {
      auto key = read_value<typename T::key_type>(reader);
      result.insert_or_assign(std::move(key), read_value<typename T::mapped_type>(reader));
    }
    return result;
  } else if constexpr (kIsInstance<T, std::optional>) {
    if (!reader.template number<bool>()) return std::nullopt;
    return T(std::in_place, read_value<typename T::value_type>(reader));
  } else if constexpr (TupleLike<T>) {  // not by FieldsOf: an array may be too long for a tuple
    return read_parts<T, T>(reader);
  } else {
    return read_parts<T, typename FieldsOf<T>::Type>(reader);
  }
}

}  // namespace cohort::detail
