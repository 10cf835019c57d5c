// The samples were written by NumPy.
#include <cohort/input/files/npy.h>

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "../batches.h"
#include "device/memory_limits.h"
#include "files.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

std::string sample(const std::string& name) {
  const std::string format = std::filesystem::path(name).extension().string().substr(1);
  return std::string(SAMPLES) + "/" + format + "/" + name;
}

std::vector<Tensor> read_sample(const std::string& name) { return all_of(npy_dataset({sample(name)})); }

auto reading_sample(const std::string& name) {
  return [name] { return read_sample(name); };
}

class Npy : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<Tensor> read(const std::string& bytes) const {
    return all_of(npy_dataset({folder_.file("array", bytes)}));
  }
  [[nodiscard]] auto reading(const std::string& bytes) const {
    return [this, bytes] { return read(bytes); };
  }
  /// Reads an array with this dictionary and these elements.
  [[nodiscard]] auto reading(const std::string& dictionary, const std::string& elements) const {
    return reading("\x93NUMPY\x01" + std::string(1, '\0') +
                   number_bytes(static_cast<std::uint16_t>(dictionary.size())) + dictionary + elements);
  }

  TemporaryFolder folder_;
};

TEST_F(Npy, GivesTheRowsOfAnArray) {
  const auto rows = read_sample("float32.npy");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(describe(rows[0]), "float32[2]");
  EXPECT_THAT(rows[2].span<float>(), ElementsAre(5, 6.5));
  EXPECT_EQ(rows[0].data() + 8, rows[1].data()) << "views of the file";
  EXPECT_EQ(npy_dataset({sample("float32.npy")}).cardinality(), Cardinality::of(3));
}

TEST_F(Npy, TurnsTheOtherByteOrder) {
  const auto rows = read_sample("big_endian.npy");
  EXPECT_THAT(rows[0].span<std::int32_t>(), ElementsAre(1, -2));
  EXPECT_THAT(rows[1].span<std::int32_t>(), ElementsAre(3, 70000));
}

TEST_F(Npy, ReadsBooleansAndOtherVersions) {
  const auto flags = read_sample("bool.npy");
  ASSERT_EQ(flags.size(), 3u);
  EXPECT_EQ(describe(flags[0]), "bool[]");
  EXPECT_FALSE(flags[1].item<bool>());
  EXPECT_THAT(read_sample("version2.npy")[1].span<std::uint16_t>(), ElementsAre(2, 3));
}

TEST_F(Npy, MayHaveNoRows) { EXPECT_THAT(read_sample("no_rows.npy"), IsEmpty()); }

TEST_F(Npy, ReadsWhatIsTheSameInBothOrders) {
  const auto of_shape = [&](const std::string& shape, const std::string& elements) {
    return reading("{'descr': '|u1', 'fortran_order': True, 'shape': (" + shape + ")}\n", elements)();
  };
  EXPECT_THAT(of_shape("3, 1", "abc")[2].span<std::uint8_t>(), ElementsAre('c'));
  EXPECT_THAT(of_shape("1, 1, 3", "abc")[0].span<std::uint8_t>(), ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(of_shape("3,", "abc")[1].span<std::uint8_t>(), ElementsAre('b'));
  EXPECT_THAT(of_shape("0, 3, 2", ""), IsEmpty());
  EXPECT_THAT([&] { of_shape("3, 2", "abcdef"); }, ThrowsMessage<Unimplemented>(HasSubstr("Fortran order")));
}

TEST_F(Npy, ReadsHeadersOfOtherWriters) {
  const auto rows = reading("{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3L), }\n", "abcdef")();
  EXPECT_THAT(rows[1].span<std::uint8_t>(), ElementsAre('d', 'e', 'f'));
  const auto unmarked =
      reading("{'descr': 'i2', 'fortran_order': False, 'shape': (1,)}\n", number_bytes(std::uint16_t{513}))();
  EXPECT_EQ(unmarked[0].item<std::int16_t>(), 513);
  EXPECT_THAT(reading("{'descr': '2', 'fortran_order': False, 'shape': (1,)}\n", "ab"),
              ThrowsMessage<Unimplemented>(HasSubstr("type '2'")));
}

TEST_F(Npy, ReadsTheFirstOfSeveralArrays) {
  const std::string one = bytes_of(sample("float32.npy"));
  EXPECT_EQ(read(one + bytes_of(sample("bool.npy"))).size(), 3u);
  EXPECT_EQ(read(one + one.substr(0, 6)).size(), 3u);
  EXPECT_THAT(reading(one + one.substr(0, 5)), ThrowsMessage<DataLoss>(HasSubstr("29 bytes follow it")));
}

TEST_F(Npy, SaysWhatItDoesNotRead) {
  EXPECT_THAT(reading_sample("fortran.npy"),
              ThrowsMessage<Unimplemented>(HasSubstr("numpy.ascontiguousarray")));
  EXPECT_THAT(reading_sample("text.npy"), ThrowsMessage<Unimplemented>(HasSubstr("type '<U2'")));
  EXPECT_THAT(reading_sample("complex.npy"), ThrowsMessage<Unimplemented>(HasSubstr("type '<c16'")));
  EXPECT_THAT(reading_sample("structure.npy"),
              ThrowsMessage<Unimplemented>(HasSubstr("array of structures")));
  EXPECT_THAT(reading_sample("scalar.npy"),
              ThrowsMessage<InvalidArgument>(HasSubstr("float64[] cannot be iterated over")));
}

TEST_F(Npy, IsOfTheDtypeThatWasAskedFor) {
  EXPECT_EQ(all_of(npy_dataset({sample("float32.npy")}, {.dtype = DType::kFloat32})).size(), 3u);
  EXPECT_THAT(
      [] { return all_of(npy_dataset({sample("float32.npy")}, {.dtype = DType::kFloat64})); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("float32.npy: the array is of float32, not float64"),
                                           HasSubstr("astype('float64')"))));
}

TEST_F(Npy, NamesAHeaderThatLies) {
  const std::string bytes = bytes_of(sample("float32.npy"));
  EXPECT_THAT(reading(bytes.substr(0, bytes.size() - 1)),
              ThrowsMessage<DataLoss>(HasSubstr("promises float32[3, 2], 24 bytes, but 23 bytes follow it")));
  EXPECT_THAT(reading(bytes + "x"), ThrowsMessage<DataLoss>(HasSubstr("but 25 bytes follow it")));
  EXPECT_THAT(reading(bytes.substr(0, 50)),
              ThrowsMessage<DataLoss>(HasSubstr("the header is 128 bytes long, but the file 50")));
  for (std::size_t length = 0; length < 128; ++length)
    EXPECT_THROW(reading(bytes.substr(0, length))(), DataLoss) << length;
  const auto with_shape = [&](const std::string& shape) {
    return reading("{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + ")}\n", "12345678");
  };
  EXPECT_NO_THROW(with_shape("2,")());
  EXPECT_THAT(with_shape("4611686018427387904, 4"), ThrowsMessage<DataLoss>(HasSubstr("2^63 or more bytes")));
  EXPECT_THAT(with_shape("9223372036854775807, 0"), ThrowsMessage<InvalidArgument>(HasSubstr("are empty")));
  EXPECT_THAT(with_shape("99999999999999999999"), ThrowsMessage<DataLoss>(HasSubstr("is no extent")));
  EXPECT_THAT(with_shape("-2,"), ThrowsMessage<DataLoss>(HasSubstr("'-2,)}\\x0a' is no extent")));
  EXPECT_THAT(with_shape("1, 1, 1, 1, 1, 1, 1, 1, 2"),
              ThrowsMessage<InvalidArgument>(HasSubstr("from 1 to 8 axes")));
}

TEST_F(Npy, NamesAHeaderThatIsNone) {
  EXPECT_THAT(reading("PK\x03\x04 and more bytes"),
              ThrowsMessage<DataLoss>(HasSubstr("does not begin with \\x93NUMPY")));
  EXPECT_THAT(reading("\x93NUMPY\x09" + std::string(100, ' ')),
              ThrowsMessage<Unimplemented>(HasSubstr("version 9")));
  for (const char* dictionary :
       {"", "{", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", "{'descr': '<f4' 'fortran_order': False}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "{'shape': (2 2)}",
        "{'descr: ", "{'order': 'C', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "{2: 3}"}) {
    EXPECT_THAT(reading(dictionary, "12345678"), ThrowsMessage<DataLoss>(HasSubstr("cannot be understood")))
        << dictionary;
  }
}

TEST_F(Npy, CopiesRowsThatAreNotAligned) {
  const auto rows = [&] {
    std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
    while ((dictionary.size() + 10) % 8 != 3) dictionary += ' ';
    return reading(dictionary, number_bytes(1.5) + number_bytes(-2.5))();
  }();
  EXPECT_EQ(rows[0].item<double>(), 1.5);
  EXPECT_EQ(rows[1].item<double>(), -2.5);
}

TEST_F(Npy, NamesAByteThatIsNoBool) {
  std::string bytes = bytes_of(sample("bool.npy"));
  bytes.back() = '\x07';
  EXPECT_THAT(reading(bytes), ThrowsMessage<DataLoss>(HasSubstr("byte 130 is 7, and a bool is 0 or 1")));
}

class Npz : public Npy {
 protected:
  static Dataset<Example> examples(const std::string& path) {
    return npz_dataset<Example>({path}, {.arrays = {"images", "labels"}});
  }
};

TEST_F(Npz, GivesTheRowsOfSeveralArraysTogether) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const auto rows = all_of(examples(sample(name)));
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(describe(rows[1].image), "uint8[2, 2]");
    EXPECT_THAT(rows[1].image.span<std::uint8_t>(), ElementsAre(4, 5, 6, 7));
    EXPECT_EQ(rows[1].label.item<int>(), 8);
  }
}

TEST_F(Npz, NeedsNoNameForAnOnlyArray) {
  const auto rows = all_of(npz_dataset({sample("one.npz"), sample("one.npz")}));
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[5].item<float>(), 2);
  EXPECT_THAT(
      [] { return all_of(npz_dataset({sample("stored.npz")})); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("it has 2 arrays"), HasSubstr("images, labels"))));
}

TEST_F(Npz, NamesAnArrayThatIsNotThere) {
  EXPECT_THAT([] { return all_of(npz_dataset({sample("stored.npz")}, {.arrays = {"image"}})); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("no array is called 'image'"), HasSubstr("images, labels"))));
  EXPECT_THAT([] { return all_of(npz_dataset<Example>({sample("stored.npz")}, {.arrays = {"images"}})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("1 arrays cannot fill an element of 2 tensors")));
}

TEST_F(Npz, IsNoPipe) {
  const std::string pipe = folder_.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(
      [&] { return all_of(examples(pipe)); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("npz file '" + pipe + "'"), HasSubstr("a pipe"))));
}

/// An archive with one array of `bytes`, which are not there: the file has a hole in their place.
void write_hollow_npz(const std::string& path, std::uint64_t bytes) {
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  const auto text = [](auto... numbers) { return (std::string() + ... + number_bytes(numbers)); };
  const std::string name = "a.npy";
  const u32 elsewhere = 0xffffffff;  // the number is in the extra field
  const std::string entry = text(u16{45}, u16{0}, u16{0}, u32{0}, u32{0}, elsewhere, elsewhere,
                                 static_cast<u16>(name.size()), u16{20});
  const std::string extra = text(u16{1}, u16{16}, bytes, bytes);
  const std::string begin = text(u32{0x04034b50}) + entry + name + extra;
  const std::string directory =
      text(u32{0x02014b50}, u16{45}) + entry + text(u16{0}, u16{0}, u16{0}, u32{0}, u32{0}) + name + extra;
  const u64 at = begin.size() + bytes;
  const u64 size = directory.size();
  const std::string end =
      text(u32{0x06064b50}, u64{44}, u16{45}, u16{45}, u32{0}, u32{0}, u64{1}, u64{1}, size, at) +
      text(u32{0x07064b50}, u32{0}, at + size, u32{1}) +
      text(u32{0x06054b50}, u16{0}, u16{0}, u16{1}, u16{1}, static_cast<u32>(size), elsewhere, u16{0});
  std::ofstream file(path, std::ios::binary);
  file << begin;
  file.seekp(static_cast<std::streamoff>(at));
  file << directory << end;
}

TEST_F(Npz, TakesNoMoreMemoryThanThereIs) {
  const std::string path = folder_.path("bomb.npz");
  const std::uint64_t bytes = available_memory() + (std::uint64_t{1} << 30);
  write_hollow_npz(path, bytes);
  EXPECT_THAT([&] { return all_of(npz_dataset({path})); },
              ThrowsMessage<Unavailable>(
                  AllOf(HasSubstr("bomb.npz: array 'a'"), HasSubstr(std::to_string(bytes) + " bytes"))));
  write_hollow_npz(path, 100);
  EXPECT_THAT([&] { return all_of(npz_dataset({path})); }, ThrowsMessage<DataLoss>(HasSubstr("array 'a'")))
      << "nothing but its size was wrong";
}

TEST_F(Npz, NoticesDamage) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string bytes = bytes_of(sample(name));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_THROW(all_of(examples(folder_.file("cut.npz", bytes.substr(0, length)))), Error)
          << name << " " << length;
    }
    // Each byte is checked or has no meaning for the elements: they never differ.
    const auto whole = all_of(examples(sample(name)));
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0x04);
      try {
        const auto rows = all_of(examples(folder_.file("changed.npz", changed)));
        ASSERT_EQ(rows.size(), whole.size()) << name << " " << at;
        for (std::size_t row = 0; row < rows.size(); ++row)
          ASSERT_TRUE(bitwise_equal(rows[row].image, whole[row].image)) << name << " " << at;
      } catch (const Error&) {
      }
    }
  }
  EXPECT_THAT([&] { return all_of(examples(folder_.file("text.npz", "a,b\n1,2\n"))); },
              ThrowsMessage<DataLoss>(HasSubstr("text.npz: not a .npz file as numpy.savez writes it")));
}

}  // namespace
}  // namespace cohort::testing
