#include "json.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cohort {
namespace {

using Json = nlohmann::json;

/// How many characters `text` begins with that stand in a string as they are and are ASCII.
std::size_t plain_length(std::string_view text) {
  constexpr auto kOnes = std::uint64_t{0x0101010101010101};
  constexpr auto has_zero = [](std::uint64_t bytes) { return (bytes - kOnes) & ~bytes; };
  std::size_t length = 0;
  // Eight at a time: most of a file of a checkpoint is names.
  for (std::uint64_t bytes = 0; text.size() - length >= sizeof bytes; length += sizeof bytes) {
    std::memcpy(&bytes, text.data() + length, sizeof bytes);
    const std::uint64_t found = bytes | has_zero(bytes ^ kOnes * '"') | has_zero(bytes ^ kOnes * '\\') |
                                ((bytes - kOnes * ' ') & ~bytes);
    // The first is right; a subtraction may have borrowed from those behind it.
    static_assert(std::endian::native == std::endian::little);
    if (const std::uint64_t special = found & kOnes * 0x80; special != 0)
      return length + static_cast<std::size_t>(std::countr_zero(special)) / 8;
  }
  const auto is_plain = [](unsigned char character) {
    return character >= ' ' && character < 0x80 && character != '"' && character != '\\';
  };
  while (length < text.size() && is_plain(static_cast<unsigned char>(text[length]))) ++length;
  return length;
}

/// The length of the UTF-8 character that `text` begins with; 0 for other bytes.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || length > text.size()) return 0;
  // Longer forms than needed, surrogates and what lies behind the last character.
  const unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  return length;
}

void append_bad_byte(std::string& out, unsigned char byte, BadUtf8 bad) {
  if (bad == BadUtf8::kRefuse) throw InvalidArgument("names of values must be UTF-8");
  if (bad == BadUtf8::kReplace)
    out += "\xEF\xBF\xBD";
  else
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
}

void append_escape(std::string& out, char character) {
  constexpr std::string_view kCharacters = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  const std::size_t place = kCharacters.find(character);
  if (place != std::string_view::npos)
    out.append({'\\', kLetters[place]});
  else
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(character));
}

}  // namespace

bool is_nested_deeply(std::string_view text) noexcept {
  int depth = 0;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char character = text[i];
    if (character == '"') is_quoted = !is_quoted;
    if (character == '\\') ++i;
    if (is_quoted) continue;
    if ((character == '[' || character == '{') && ++depth > kDeepestJson) return true;
    if (character == ']' || character == '}') --depth;
  }
  return false;
}

/// Finds the values of a text. What is rare, such as escapes and fractions, it leaves to the library.
class JsonScanner {
 public:
  JsonScanner(std::string_view text, std::string_view what, std::vector<JsonValue>& values,
              std::deque<std::string>& decoded)
      // A byte of 0 is the end for the library.
      : text_(text.substr(0, text.find('\0'))), what_(what), values_(values), decoded_(decoded) {}

  void scan() {
    // A mark of the order of bytes, which some programs write.
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    scan_value(0);
    if (next() != '\0') fail();
  }

 private:
  using Kind = JsonValue::Kind;

  /// The first byte that is no space; 0 at the end.
  char next() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char character) {
    if (next() != character) return false;
    ++at_;
    return true;
  }

  void expect(char character) {
    if (!take(character)) fail();
  }

  [[noreturn]] void fail() const {
    try {
      const Json accepted = Json::parse(text_);
    } catch (const Json::exception& error) {
      throw DataLoss("{} is no JSON: {}", what_, error.what());
    }
    throw DataLoss("{} is no JSON as Cohort writes it: at byte {}", what_, at_);
  }

  void scan_value(int depth) {
    switch (next()) {
      case '{': return scan_within(Kind::kObject, '}', depth);
      case '[': return scan_within(Kind::kList, ']', depth);
      case '"': return scan_text();
      default: return scan_word();
    }
  }

  void scan_within(Kind kind, char end, int depth) {
    if (depth == kDeepestJson) throw DataLoss("{} is nested more than {} levels deep", what_, kDeepestJson);
    const std::size_t own = values_.size();
    const std::size_t begin = at_++;
    values_.emplace_back(kind, std::string_view());
    bool is_sorted = true;
    std::size_t last_name = 0;
    if (next() != end) {
      do {
        const std::size_t name = values_.size();
        if (kind == Kind::kObject) {
          if (next() != '"') fail();
          scan_text();
          expect(':');
          if (last_name != 0) is_sorted = is_sorted && values_[last_name].text_ < values_[name].text_;
          last_name = name;
        }
        scan_value(depth + 1);
        values_[name].size_ = size_from(name);
      } while (take(','));
    }
    expect(end);
    values_[own].text_ = text_.substr(begin, at_ - begin);
    values_[own].size_ = size_from(own);
    if (!is_sorted) require_names_once(values_[own]);
  }

  [[nodiscard]] std::uint32_t size_from(std::size_t first) const {
    return static_cast<std::uint32_t>(values_.size() - first);
  }

  void scan_text() {
    const std::size_t begin = ++at_;
    at_ += plain_length(text_.substr(at_));
    if (at_ < text_.size() && text_[at_] == '"') {
      values_.emplace_back(Kind::kText, text_.substr(begin, at_++ - begin));
      return;
    }
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2U : 1U;
    if (at_ >= text_.size()) fail();
    const Json text = Json::parse(text_.substr(begin - 1, ++at_ - begin + 1), nullptr, false);
    if (text.is_discarded()) fail();
    values_.emplace_back(Kind::kText, decoded_.emplace_back(text.get_ref<const std::string&>()));
  }

  void scan_word() {
    const std::size_t begin = at_;
    const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
    const auto is_in_word = [&](char character) {
      return is_digit(character) || (character >= 'a' && character <= 'z') || character == '-' ||
             character == '+' || character == '.' || character == 'E';
    };
    bool is_plain_number = true;
    for (; at_ < text_.size() && is_in_word(text_[at_]); ++at_)
      is_plain_number = is_plain_number && is_digit(text_[at_]);
    const std::string_view word = text_.substr(begin, at_ - begin);
    // Longer ones may be too large.
    is_plain_number =
        is_plain_number && !word.empty() && word.size() < 20 && (word[0] != '0' || word.size() == 1);
    if (!is_plain_number && !Json::accept(word)) fail();
    const bool is_number = is_plain_number || word[0] == '-' || is_digit(word[0]);
    values_.emplace_back(is_number ? Kind::kNumber : Kind::kWord, word);
  }

  /// Names that Cohort writes are in order, so that a look at neighbours tells: others are sorted here.
  void require_names_once(const JsonValue& object) {
    names_.clear();
    for (const JsonValue& name : object) names_.push_back(name.text_);
    std::ranges::sort(names_);
    const auto twice = std::ranges::adjacent_find(names_);
    if (twice != names_.end()) throw DataLoss("{} has '{}' twice", what_, *twice);
  }

  std::string_view text_;
  std::string_view what_;
  std::vector<JsonValue>& values_;
  std::deque<std::string>& decoded_;
  std::size_t at_ = 0;
  std::vector<std::string_view> names_;  ///< kept for its memory
};

JsonDocument::JsonDocument(std::string_view text, std::string_view what) {
  // Before each value stands one of these, or nothing; texts have few of them. A list that grows is copied
  // and touches twice the memory.
  const auto is_before_value = [](char character) {
    return character == ',' || character == ':' || character == '{' || character == '[';
  };
  const auto values = static_cast<std::size_t>(std::ranges::count_if(text, is_before_value)) + 1;
  values_.reserve(std::min(values, text.size() / 4 + 1));
  JsonScanner(text, what, values_, decoded_).scan();
}

void append_quoted(std::string& out, std::string_view text, BadUtf8 bad) {
  out += '"';
  while (!text.empty()) {
    const std::size_t plain = plain_length(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = utf8_length(text);
    if (length == 0)
      append_bad_byte(out, static_cast<unsigned char>(text[0]), bad);
    else if (length > 1)
      out += text.substr(0, length);
    else
      append_escape(out, text[0]);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

void append_number(std::string& out, double number) {
  if (std::isfinite(number))
    fmt::format_to(std::back_inserter(out), "{}", number);
  else
    out += std::isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
}

void append_number(std::string& out, std::int64_t number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

void append_list(std::string& out, std::span<const std::int64_t> numbers) {
  out += '[';
  for (const std::int64_t& number : numbers) {
    if (&number != numbers.data()) out += ',';
    append_number(out, number);
  }
  out += ']';
}

}  // namespace cohort
