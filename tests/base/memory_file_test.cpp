#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/system_calls.h"

namespace cohort {
namespace {

constexpr std::size_t kPage = std::size_t{64} << 10;  // of any system
constexpr int kReadAndWrite = PROT_READ | PROT_WRITE;

class MemoryFiles : public ::testing::Test {
 protected:
  ~MemoryFiles() override { ::close(file_); }

  int file_ = make_memory_file("test", 2 * kPage, FileSize::kFixed);
};

TEST_F(MemoryFiles, KeepASizeThatIsFixed) {
  struct stat status {};
  ASSERT_EQ(::fstat(file_, &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(2 * kPage));
  EXPECT_NE(::ftruncate(file_, 1), 0);
  EXPECT_NE(::ftruncate(file_, 3 * kPage), 0);
  const int other = make_memory_file("test");
  EXPECT_EQ(::ftruncate(other, kPage), 0);
  ::close(other);
}

TEST_F(MemoryFiles, AreSharedByTheirMappings) {
  const MappedRange second(file_, kPage, kPage, kReadAndWrite, MAP_SHARED);
  MappedRange whole = MappedRange::aligned(file_, 2 * kPage, 8 * kPage, kReadAndWrite);
  ASSERT_TRUE(second && whole);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(whole.data()) % (8 * kPage), 0U);
  EXPECT_EQ(whole.bytes(), 2 * kPage);
  second.data()[1] = std::byte{7};
  EXPECT_EQ(whole.data()[kPage + 1], std::byte{7});
  MappedRange moved = std::move(whole);
  EXPECT_EQ(moved.data()[kPage + 1], std::byte{7});
  moved = {};
  EXPECT_FALSE(moved);
}

TEST_F(MemoryFiles, ContinueAtTheirBeginningWhereTheyAreMappedTwice) {
  const MappedRange ring = MappedRange::twice(file_, kPage, kPage);
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring.bytes(), 2 * kPage);
  ring.data()[kPage + 3] = std::byte{9};
  EXPECT_EQ(ring.data()[3], std::byte{9});
}

TEST_F(MemoryFiles, AreRefusedWithAReason) {
  errno = 0;
  EXPECT_FALSE(MappedRange(-1, 0, kPage, kReadAndWrite, MAP_SHARED));
  EXPECT_EQ(errno, EBADF);
  errno = 0;
  EXPECT_FALSE(MappedRange::aligned(-1, kPage, kPage, kReadAndWrite));
  EXPECT_EQ(errno, EBADF);
  errno = 0;
  EXPECT_FALSE(MappedRange::twice(-1, 0, kPage));
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace cohort
