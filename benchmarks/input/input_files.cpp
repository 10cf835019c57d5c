#include "input/input_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/input/files/tf_record.h>

#include "value_table.h"

namespace cohort::bench {
namespace {

/// Of numbers in CSV, which have 7 characters and a delimiter.
constexpr std::int64_t kCsvFieldBytes = 8;

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::ofstream stream(path, std::ios::binary);
  write(stream);
  stream.close();
  if (!stream) throw Unavailable("cannot write '{}': {}", path, std::strerror(errno));
}

std::filesystem::path make_folder(const std::string& parent) {
  const std::filesystem::path where =
      parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent);
  std::string name = (where / "cohort-bench-input-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Unavailable("cannot make a folder in '{}': {}", where.string(), std::strerror(errno));
  return name;
}

}  // namespace

InputFiles::InputFiles(const InputBenchOptions& options)
    : folder_(make_folder(options.folder)), elements_((options.file_mib << 20) / options.record_bytes) {
  write_csv(options.record_bytes / kCsvFieldBytes);
  write_npy(options.record_bytes / static_cast<std::int64_t>(sizeof(float)));
  write_records(options.record_bytes);
}

InputFiles::~InputFiles() {
  std::error_code ignored;  // nothing can be done about it
  std::filesystem::remove_all(folder_, ignored);
}

void InputFiles::write_csv(std::int64_t columns) const {
  write_file(csv(), [&](std::ostream& stream) {
    std::string row;
    for (std::int64_t element = 0; element < elements_; ++element) {
      row.clear();
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto digits = mixed_bits(0, static_cast<std::uint64_t>(element * columns + column)) % 1'000'000;
        fmt::format_to(std::back_inserter(row), "{}.{:05}{}", digits / 100'000, digits % 100'000,
                       column + 1 == columns ? '\n' : ',');
      }
      stream << row;
    }
  });
}

void InputFiles::write_npy(std::int64_t columns) const {
  write_file(npy(), [&](std::ostream& stream) {
    constexpr std::size_t kHeaderBytes = 128;
    constexpr std::size_t kPreambleBytes = 10;
    const std::string header = fmt::format(
        "{:<{}}\n",
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", elements_, columns),
        kHeaderBytes - kPreambleBytes - 1);
    stream << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size()) << '\0' << header;
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t element = 0; element < elements_; ++element) {
      std::fill(row.begin(), row.end(), static_cast<float>(element));
      stream.write(reinterpret_cast<const char*>(row.data()),
                   static_cast<std::streamsize>(row.size() * sizeof(float)));
    }
  });
}

void InputFiles::write_records(std::int64_t bytes) const {
  TfRecordWriter writer(tf_record());
  write_file(fixed_length(), [&](std::ostream& stream) {
    std::string record(static_cast<std::size_t>(bytes), '\0');
    for (std::int64_t element = 0; element < elements_; ++element) {
      for (std::size_t at = 0; at < record.size(); ++at)
        record[at] = static_cast<char>(element + static_cast<std::int64_t>(at));
      stream << record;
      writer.write(std::as_bytes(std::span(record)));
    }
  });
  writer.close();
}

}  // namespace cohort::bench
