#include <cohort/input/csv.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace cohort {
namespace {

/// What some programs put in front of UTF-8 text.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

template <Element T>
class CsvReader {
 public:
  CsvReader(const std::string& path, const CsvOptions& options)
      : path_(path), options_(options), stream_(path) {
    if (!stream_) throw Unavailable("cannot open CSV file '{}': {}", path, std::strerror(errno));
  }

  Tensor read() {
    std::string line;
    bool skip_header = options_.has_header;
    while (std::getline(stream_, line)) {
      ++line_number_;
      if (line_number_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.find_first_not_of(" \t") == std::string::npos || line.front() == '#') continue;
      if (skip_header)
        skip_header = false;
      else
        read_row(line);
    }
    if (stream_.bad()) throw DataLoss("{}:{}: reading failed: {}", path_, line_number_, std::strerror(errno));
    if (rows_ == 0) throw DataLoss("{}: no rows of numbers in the file", path_);
    return Tensor::from(std::span<const Stored>(values_), {rows_, columns_}).cast(options_.dtype);
  }

 private:
  // A byte each, because std::vector<bool> is not a sequence of bool.
  using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

  void read_row(std::string_view line) {
    std::int64_t fields = 0;
    for (bool more = true; more; ++fields) {
      const std::size_t end = line.find(options_.delimiter);
      more = end != std::string_view::npos;
      values_.push_back(parse(line.substr(0, end), fields + 1));
      if (more) line.remove_prefix(end + 1);
    }
    if (rows_ == 0) columns_ = fields;
    if (fields != columns_) {
      throw DataLoss("{}:{}: {} fields where the first row has {}", path_, line_number_, fields, columns_);
    }
    ++rows_;
  }

  Stored parse(std::string_view field, std::int64_t number) const {
    while (field.starts_with(' ')) field.remove_prefix(1);
    while (field.ends_with(' ')) field.remove_suffix(1);
    const char* end = field.data() + field.size();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      T exact = 0;  // not through double, which would round large integers
      const auto [stopped, status] = std::from_chars(field.data(), end, exact);
      if (stopped == end && status == std::errc()) return exact;
      if (stopped == end && status == std::errc::result_out_of_range) throw_does_not_fit(field, number);
    }
    double value = 0;
    const auto [stopped, status] = std::from_chars(field.data(), end, value);
    if (stopped != end || status == std::errc::invalid_argument) {
      throw DataLoss("{}:{}: field {} is '{}', which is not a number", path_, line_number_, number, field);
    }
    if (status == std::errc::result_out_of_range || !fits(value)) throw_does_not_fit(field, number);
    return convert_element<Stored>(value);
  }

  [[noreturn]] void throw_does_not_fit(std::string_view field, std::int64_t number) const {
    throw DataLoss("{}:{}: field {} is '{}', which {} cannot hold", path_, line_number_, number, field,
                   to_string(options_.dtype));
  }

  static bool fits(double value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value == 0 || value == 1;
    } else if constexpr (std::is_integral_v<T>) {
      const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
      return std::floor(value) == value && value >= static_cast<double>(std::numeric_limits<T>::min()) &&
             value < beyond;
    } else {
      return std::isinf(value) || !std::isinf(convert_element<double>(convert_element<T>(value)));
    }
  }

  std::string path_;
  CsvOptions options_;
  std::ifstream stream_;
  std::vector<Stored> values_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t line_number_ = 0;
};

}  // namespace

Tensor read_csv(const std::string& path, const CsvOptions& options) {
  return visit_dtype(options.dtype,
                     [&]<class T>(std::type_identity<T>) { return CsvReader<T>(path, options).read(); });
}

}  // namespace cohort
