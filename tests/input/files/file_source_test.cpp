// What all datasets over a list of files have in common: the order of the files, the division among
// workers, positions, and what happens after an error.
#include <cohort/input/detail/file_source.h>

#include <sys/stat.h>

#include <functional>

#include <gmock/gmock.h>

#include <cohort/input/files/csv.h>
#include <cohort/input/files/fixed_length_record.h>
#include <cohort/input/files/idx.h>
#include <cohort/input/files/npy.h>
#include <cohort/input/files/text_line.h>
#include <cohort/input/files/tf_record.h>

#include "files.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

using Numbers = std::vector<int>;
constexpr std::uint8_t kNoNumber = 255;

/// How a format writes the numbers, one per element, and reads them.
struct Source {
  const char* name;
  bool knows_its_cardinality;
  std::function<void(const std::string& path, const Numbers& numbers)> write;
  std::function<Dataset<Tensor>(std::vector<std::string> files)> read;  ///< elements of uint8, a number each
};

std::ostream& operator<<(std::ostream& stream, const Source& source) { return stream << source.name; }

void write_bytes(const std::string& path, const std::string& header, const Numbers& numbers) {
  std::ofstream stream(path, std::ios::binary);
  stream << header;
  for (const int number : numbers) stream.put(static_cast<char>(number));
}

std::string npy_header(std::size_t rows) {
  const std::string text =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ",), }\n";
  return "\x93NUMPY" + std::string("\x01\x00", 2) + number_bytes(static_cast<std::uint16_t>(text.size())) +
         text;
}

void write_lines(const std::string& path, const Numbers& numbers) {
  std::ofstream stream(path);
  for (const int number : numbers) stream << number << "\n";
}

const std::vector<Source> kSources{
    {"text_line", false, write_lines,
     [](auto files) {
       return text_line_dataset(std::move(files)).map([](const std::string& line) {
         return Tensor::scalar(static_cast<std::uint8_t>(std::stoi(line)));
       });
     }},
    {"csv", false,
     [](const auto& path, const auto& numbers) {
       write_lines(path, numbers);
       std::ofstream(path, std::ios::app) << "\n";  // not even CSV may be an empty file
     },
     [](auto files) { return csv_dataset<Tensor>(std::move(files), {.dtype = DType::kUInt8}); }},
    {"fixed_length_record", true,
     [](const auto& path, const auto& numbers) { write_bytes(path, "header", numbers); },
     [](auto files) {
       return fixed_length_record_dataset(std::move(files), {.record_bytes = 1, .header_bytes = 6});
     }},
    {"idx", true,
     [](const auto& path, const auto& numbers) {
       write_bytes(
           path,
           std::string("\0\0\x08\x01", 4) + number_bytes(static_cast<std::uint32_t>(numbers.size()), true),
           numbers);
     },
     [](auto files) { return idx_dataset(std::move(files)); }},
    {"npy", true,
     [](const auto& path, const auto& numbers) { write_bytes(path, npy_header(numbers.size()), numbers); },
     [](auto files) { return npy_dataset(std::move(files)); }},
    {"tf_record", false,
     [](const auto& path, const auto& numbers) {
       TfRecordWriter writer(path);
       for (const int number : numbers) writer.write(Tensor::scalar(static_cast<std::uint8_t>(number)));
       // Such a file has a record at least.
       if (numbers.empty()) writer.write(Tensor::scalar(kNoNumber));
       writer.close();
     },
     [](auto files) {
       return tf_record_dataset(std::move(files)).filter([](const Tensor& record) {
         return record.raw()[0] != std::byte{kNoNumber};
       });
     }},
};

class FileSource : public ::testing::TestWithParam<Source> {
 protected:
  /// Files of three numbers each, but the second, which is empty where it can be: 0 1 2, -, 3 4 5, ...
  [[nodiscard]] std::vector<std::string> write_files(int count) const {
    std::vector<std::string> files;
    int next = 0;
    for (int file = 0; file < count; ++file) {
      files.push_back(folder_.path("file" + std::to_string(file)));
      const Numbers numbers = file == 1 ? Numbers{} : Numbers{next, next + 1, next + 2};
      next += static_cast<int>(numbers.size());
      GetParam().write(files.back(), numbers);
    }
    return files;
  }

  [[nodiscard]] Dataset<Tensor> read(std::vector<std::string> files) const {
    return GetParam().read(std::move(files));
  }

  static Numbers numbers_of(ElementIterator<Tensor>& elements) {
    Numbers numbers;
    while (const auto element = elements.next())
      numbers.push_back(element->raw()[0] == std::byte{} ? 0 : static_cast<int>(element->raw()[0]));
    return numbers;
  }
  static Numbers numbers_of(const Dataset<Tensor>& dataset) {
    return numbers_of(*dataset.node()->iterate(detail::Pass(0)));
  }

  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, FileSource, ::testing::ValuesIn(kSources),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(FileSource, ReadsItsFilesInTurn) {
  EXPECT_THAT(numbers_of(read(write_files(1))), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers_of(read(write_files(3))), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_P(FileSource, StartsFromTheBeginningInEachPass) {
  const auto dataset = read(write_files(3));
  for (int pass = 0; pass < 3; ++pass) EXPECT_THAT(numbers_of(dataset), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_P(FileSource, MayBeLeftEarly) {
  const auto dataset = read(write_files(3));
  std::optional<Tensor> kept;
  for (const Tensor& element : dataset) {
    kept = element;
    break;
  }
  EXPECT_EQ(static_cast<int>(kept->raw()[0]), 0) << "the element outlives its iterator";
  EXPECT_THAT(numbers_of(dataset), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_P(FileSource, SkipsAnyNumberOfElements) {
  const auto dataset = read(write_files(4));
  const Numbers all = numbers_of(dataset);
  for (std::int64_t count = 0; count <= 10; ++count) {
    const auto elements = dataset.node()->iterate(detail::Pass(0));
    const std::int64_t skipped = std::min<std::int64_t>(count, 9);
    EXPECT_EQ(elements->skip(count), skipped);
    EXPECT_EQ(numbers_of(*elements), Numbers(all.begin() + skipped, all.end())) << count;
  }
}

TEST_P(FileSource, GoesOnFromAPosition) {
  const auto dataset = read(write_files(4)).batch(2);
  auto elements = dataset.begin();
  for (int step = 0; step < 3; ++step) ++elements;
  const auto resumed = read(write_files(4)).batch(2).begin_at(elements.position());
  EXPECT_EQ(text_of(*resumed), text_of(*elements));
  EXPECT_EQ(static_cast<int>((*resumed).raw()[0]), 6);
}

TEST_P(FileSource, CountsItsElementsWhereTheFormatTells) {
  const Cardinality cardinality = read(write_files(4)).cardinality();
  if (GetParam().knows_its_cardinality)
    EXPECT_EQ(cardinality, Cardinality::of(9));
  else
    EXPECT_FALSE(cardinality.is_known());
}

TEST_P(FileSource, DividesItsFiles) {
  const auto dataset = read(write_files(5));
  const auto of_shard = [&](int count, int index) {
    return numbers_of(Dataset<Tensor>(dataset.node()->with_files_of({count, index})));
  };
  EXPECT_THAT(of_shard(2, 0), ElementsAre(0, 1, 2, 3, 4, 5, 9, 10, 11));
  EXPECT_THAT(of_shard(2, 1), ElementsAre(6, 7, 8));
  EXPECT_THAT(of_shard(5, 1), IsEmpty());
  EXPECT_THAT(of_shard(5, 4), ElementsAre(9, 10, 11));
  EXPECT_EQ(dataset.node()->with_hints_as({2, 0}), nullptr);
}

TEST_P(FileSource, DividesItsFilesBelowOtherStages) {
  const auto dataset = read(write_files(4)).batch(2).repeat(2);
  EXPECT_THAT(numbers_of(Dataset<Tensor>(dataset.node()->with_files_of({2, 1}))), ElementsAre(6, 8, 6, 8));
}

TEST_P(FileSource, HasAFileForEachWorker) {
  EXPECT_THAT(
      [&] {
        return read(write_files(3)).node()->with_files_of({4, 0});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("3 files"), HasSubstr("4 workers"))));
}

TEST_P(FileSource, MayListFilesThatOnlyOtherWorkersHave) {
  std::vector<std::string> files = write_files(3);
  files.push_back(folder_.path("elsewhere"));
  const auto dataset = read(files);
  EXPECT_FALSE(dataset.cardinality().is_known());
  EXPECT_THAT(numbers_of(Dataset<Tensor>(dataset.node()->with_files_of({2, 0}))),
              ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_P(FileSource, NamesAMissingFileAndGoesOnAfterIt) {
  std::vector<std::string> files = write_files(3);
  files.insert(files.begin() + 1, "/does/not/exist");
  const auto elements = read(files).node()->iterate(detail::Pass(0));
  EXPECT_EQ(elements->skip(3), 3);
  EXPECT_THAT([&] { return elements->next(); },
              ThrowsMessage<Unavailable>(AllOf(HasSubstr("'/does/not/exist'"), HasSubstr("No such file"))));
  EXPECT_THAT(numbers_of(*elements), ElementsAre(3, 4, 5));
}

TEST_P(FileSource, IsNoFolder) {
  EXPECT_THAT([&] { return numbers_of(read({folder_.path("")})); },
              ThrowsMessage<Error>(HasSubstr(folder_.path(""))));
}

TEST_P(FileSource, DoesNotWaitForAPipeThatNobodyWritesTo) {
  const std::string pipe = folder_.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT([&] { return numbers_of(read({pipe})); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'" + pipe + "'"), HasSubstr("a pipe"))));
}

TEST_P(FileSource, IsNoDevice) {
  EXPECT_THAT([&] { return numbers_of(read({"/dev/zero"})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'/dev/zero'")));
}

TEST_P(FileSource, NeedsAFile) {
  EXPECT_THAT([&] { return read({}); }, ThrowsMessage<InvalidArgument>(HasSubstr("needs at least one file")));
}

}  // namespace
}  // namespace cohort::testing
