// Opens files as stores: the input as it is, and a store after changes that the input names. Each line is a
// part of the file (h: header, c: changes of the recorded commit, t: table, b: blocks), the number of a word
// of eight bytes in it, and its new value; or `s 0 SIZE`, the new size of the file.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz_one.h"
#include "server/store/store.h"
#include "server/store/store_layout.h"
#include "server/store/store_mapping.h"

namespace cohort::fuzz {
namespace {

using server::Execution;
using server::Store;
using server::StoreReader;
using server::VariableIndex;

struct Part {
  char name;
  std::uint64_t begin;
};
constexpr std::array kParts{Part{'h', 0}, Part{'c', server::kChangesBegin}, Part{'t', server::kTableBegin},
                            Part{'b', server::kBlocksBegin}};
constexpr std::uint64_t kUsed = server::kPage;  // of each part

void write_at(int file, std::uint64_t position, const void* bytes, std::size_t size) {
  if (::pwrite(file, bytes, size, static_cast<off_t>(position)) != static_cast<ssize_t>(size))
    throw std::runtime_error("no memory for a file");
}

/// The used parts of a store with two variables and two commits, and its size.
struct Sample {
  std::array<std::array<std::byte, kUsed>, kParts.size()> parts;
  std::uint64_t bytes;
};

Sample make_sample() {
  Store store;
  store.create("weights", {4, 2}, DType::kFloat32, 1);
  store.create("number", {}, DType::kInt64);
  store.fence(3);
  for (std::uint64_t number = 1; number <= 2; ++number) {
    store.begin();
    store.overwrite(0).fresh_value.fill(1);
    store.overwrite(1).fresh_value.fill(1);
    store.commit(Execution{1, number}, std::vector<std::byte>(10));
  }
  Sample sample{};
  struct stat status {};
  ::fstat(store.descriptor(), &status);
  sample.bytes = static_cast<std::uint64_t>(status.st_size);
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (::pread(store.descriptor(), sample.parts[i].data(), kUsed, static_cast<off_t>(kParts[i].begin)) !=
        static_cast<ssize_t>(kUsed))
      throw std::runtime_error("no sample");
  }
  return sample;
}

watch::Fd changed_store(std::string_view input) {
  static const Sample sample = make_sample();
  watch::Fd file = server::make_store_file();
  if (::ftruncate(file.get(), static_cast<off_t>(sample.bytes)) != 0) throw std::runtime_error("no file");
  for (std::size_t i = 0; i < kParts.size(); ++i)
    write_at(file.get(), kParts[i].begin, sample.parts[i].data(), kUsed);
  std::istringstream lines{std::string(input)};
  char name = 0;
  std::uint64_t word = 0;
  std::uint64_t value = 0;
  while (lines >> name >> word >> value) {
    if (name == 's' && ::ftruncate(file.get(), static_cast<off_t>(value % (2 * sample.bytes))) != 0)
      throw std::runtime_error("no file");
    for (const Part& part : kParts) {
      if (part.name == name) write_at(file.get(), part.begin + word % (kUsed / 8) * 8, &value, 8);
    }
  }
  return file;
}

void read_all(const StoreReader& reader, const Store& store) {
  for (VariableIndex index = 0; index < store.size(); ++index) {
    const Tensor value = store.value(index);
    std::vector<std::byte> bytes(value.bytes());
    if (reader.read(index, bytes) != store.version(index)) throw std::logic_error("another version is read");
    if (value.shape().rank() == 0 || value.shape()[0] == 0) continue;
    const std::vector<std::int64_t> last_row{value.shape()[0] - 1};
    bytes.resize(value.bytes() / static_cast<std::size_t>(value.shape()[0]));
    static_cast<void>(reader.read_rows(index, last_row, bytes));
  }
}

void change_all(Store& store) {
  store.begin();
  for (VariableIndex index = 0; index < store.size(); ++index) {
    static_cast<void>(store.change_rows(index, {}));
    store.overwrite(index).fresh_value.fill(1);
  }
  store.commit(Execution{2, 1}, std::vector<std::byte>(100));
  for (std::uint64_t incarnation = 0; incarnation < 3; ++incarnation) {
    static_cast<void>(store.commits_of(incarnation));
    store.forget(incarnation, 1);
  }
}

void open_store(int file) {
  parse_or_refuse([&] { const StoreReader reader(file); }, {ErrorCode::kDataLoss});
  parse_or_refuse(
      [&] {
        Store store(file);
        const StoreReader reader(file);
        read_all(reader, store);
        // What was damaged may fence the incarnation, or be its commit.
        parse_or_refuse([&] { change_all(store); }, {ErrorCode::kAborted, ErrorCode::kInvalidArgument});
      },
      {ErrorCode::kDataLoss});
}

}  // namespace

void fuzz_one(std::string_view input) {
  const watch::Fd file = server::make_store_file();
  write_at(file.get(), 0, input.data(), input.size());
  open_store(file.get());
  open_store(changed_store(input).get());
}

}  // namespace cohort::fuzz
