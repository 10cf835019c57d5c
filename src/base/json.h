// JSON as all layers read and write it. Three readers' needs: parse_json for what people write, read_json for
// what Cohort's own processes and files say, and JsonDocument for files that name many thousand values. It is
// written as text: a tree of maps takes ten times as long.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <cohort/base/error.h>

namespace cohort {

/// Of lists and objects within each other. What is written and read here has 6; to write, copy or compare
/// much deeper ones would overflow the stack.
inline constexpr int kDeepestJson = 32;

/// Whether a text of JSON is nested deeper than that.
[[nodiscard]] bool is_nested_deeply(std::string_view text) noexcept;

/// What a person has written, as a `Json` of the library. @throws InvalidArgument that begins with `what`,
/// says where the text is wrong, and ends with `form`.
template <class Json>
Json parse_json(std::string_view text, std::string_view what, std::string_view form) {
  if (is_nested_deeply(text))
    throw InvalidArgument("{} is nested more than {} levels deep; write {}", what, kDeepestJson, form);
  try {
    return Json::parse(text);
  } catch (const typename Json::parse_error& error) {
    throw InvalidArgument("{} is not JSON at byte {}; write {}", what, error.byte, form);
  } catch (const typename Json::exception&) {
    throw InvalidArgument("{} has a number that is too large; write {}", what, form);
  }
}

/// What `read` makes of a text that another process or an earlier one has written. @throws InvalidArgument,
/// "`what`: " and why, for a text that is no JSON, and instead of any exception of `read`.
template <class Json, class Read>
auto read_json(std::string_view text, std::string_view what, Read&& read) {
  try {
    if (is_nested_deeply(text)) throw DataLoss("it is nested more than {} levels deep", kDeepestJson);
    return read(Json::parse(text));
  } catch (const std::exception& error) {
    throw InvalidArgument("{}: {}", what, error.what());
  }
}

/// The value as text, cut off if it is long.
template <class Json>
std::string quote(const Json& value) {
  constexpr std::size_t kLongest = 200;
  std::string text = value.dump(-1, ' ', true);  // escapes keep a cut text valid
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

/// A value in a JsonDocument; behind it lie those within it. To iterate over it gives the elements of a list,
/// and the names of an object, each with its value().
class JsonValue {
 public:
  /// A word is true, false or null.
  enum class Kind : std::uint8_t { kObject, kList, kText, kNumber, kWord };

  class Iterator {
   public:
    explicit Iterator(const JsonValue* at) : at_(at) {}
    const JsonValue& operator*() const { return *at_; }
    Iterator& operator++() {
      at_ += at_->size_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const JsonValue* at_;
  };

  JsonValue(Kind kind, std::string_view text) : text_(text), kind_(kind) {}

  [[nodiscard]] bool is(Kind kind) const noexcept { return kind_ == kind; }

  /// What a text says; of other values, as they stand in the document.
  [[nodiscard]] std::string_view text() const noexcept { return text_; }

  /// A number that fits; nothing for all else, and for -0, which counts nothing.
  template <class Number>
  [[nodiscard]] std::optional<Number> number() const {
    Number number{};
    const char* const last = text_.data() + text_.size();
    const auto [end, error] = std::from_chars(text_.data(), last, number);
    if (kind_ != Kind::kNumber || end != last || error != std::errc()) return std::nullopt;
    if (std::is_integral_v<Number> && text_ == "-0") return std::nullopt;
    return number;
  }

  /// The member's that has this name.
  [[nodiscard]] const JsonValue& value() const { return *(this + 1); }

  /// The value of a member of an object; null where there is none, as in all that is no object.
  [[nodiscard]] const JsonValue* find(std::string_view name) const {
    if (kind_ != Kind::kObject) return nullptr;
    for (const JsonValue& member : *this)
      if (member.text() == name) return &member.value();
    return nullptr;
  }

  [[nodiscard]] Iterator begin() const { return Iterator(this + 1); }
  [[nodiscard]] Iterator end() const { return Iterator(this + (is_structured() ? size_ : 1)); }

 private:
  friend class JsonScanner;

  [[nodiscard]] bool is_structured() const noexcept { return kind_ == Kind::kObject || kind_ == Kind::kList; }

  std::string_view text_;
  std::uint32_t size_ = 1;  ///< of values: itself and all within it; that of a name includes its value's
  Kind kind_;
};

/// A text that may be damaged, or made to do harm: all of it is looked at once, and values stay where they
/// are.
class JsonDocument {
 public:
  /// The text outlives it. @throws DataLoss that begins with `what`, for a text that is no JSON, that has two
  /// members of one name, of which readers would take either, or that is nested deeply.
  JsonDocument(std::string_view text, std::string_view what);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  [[nodiscard]] const JsonValue& root() const { return values_.front(); }

 private:
  std::vector<JsonValue> values_;
  std::deque<std::string> decoded_;  ///< texts that stand in the document by escapes
};

/// What becomes of bytes that are no UTF-8.
enum class BadUtf8 {
  kRefuse,   ///< with InvalidArgument: of names by which values are found again
  kReplace,  ///< each by U+FFFD
  kLatin1    ///< each is taken for a letter of Latin-1
};

/// As a string of JSON.
void append_quoted(std::string& out, std::string_view text, BadUtf8 bad);

/// With the digits that give the same number back; what JSON lacks are "NaN", "Infinity" and "-Infinity".
void append_number(std::string& out, double number);
void append_number(std::string& out, std::int64_t number);

/// For example `[2,3]`.
void append_list(std::string& out, std::span<const std::int64_t> numbers);

}  // namespace cohort
