// The memory that two tasks share: what one writes the other reads, and what it counts is not believed.
#include "remote/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <cohort/base/error.h>

namespace cohort::remote {
namespace {

struct SharedRing {
  SharedMemory memory{kRingsBytes};
  MappedRange counts_view = memory.view(0, kRingCountsBytes);
  MappedRange buffer = memory.view_twice(kRingCountsBytes, kRingBytes);
  RingCounts& counts = *reinterpret_cast<RingCounts*>(counts_view.data());
  RingWriter writer{counts, buffer.data()};
  RingReader reader{counts, buffer.data()};
};

TEST(Ring, ShowsWhatCrossesItsEndInOnePiece) {
  SharedRing ring;
  const std::string text = "some text of an odd length";
  const auto bytes = std::as_bytes(std::span(text));
  for (std::size_t written = 0; written < 3 * kRingBytes; written += bytes.size()) {
    ASSERT_GE(ring.writer.room(bytes.size()), bytes.size());
    ring.writer.write(bytes);
    ring.writer.publish();
    const auto readable = ring.reader.readable();
    ASSERT_EQ(readable.size(), bytes.size());
    ASSERT_EQ(std::memcmp(readable.data(), bytes.data(), bytes.size()), 0);
    EXPECT_FALSE(ring.reader.release(bytes.size()));
  }
}

TEST(Ring, TellsAWriterThatWaitsWhenThereIsRoom) {
  SharedRing ring;
  const std::string text(kRingBytes, 'x');
  ring.writer.write(std::as_bytes(std::span(text)));
  ring.writer.publish();
  EXPECT_EQ(ring.writer.room(1), 0U);
  EXPECT_FALSE(ring.writer.wait_for_room());
  EXPECT_EQ(ring.reader.readable().size(), kRingBytes);
  EXPECT_TRUE(ring.reader.release(7));
  EXPECT_FALSE(ring.reader.release(1)) << "it was told already";
  EXPECT_EQ(ring.writer.room(1), 8U);
}

TEST(Ring, DoesNotBelieveCountsThatCannotBe) {
  SharedRing ring;
  ring.counts.written.store(kRingBytes + 1);
  EXPECT_THROW(static_cast<void>(ring.reader.readable()), BrokenStream);
  ring.counts.read.store(1);
  EXPECT_THROW(static_cast<void>(ring.writer.room(kRingBytes + 1)), BrokenStream);
}

TEST(SharedMemory, KeepsItsSize) {
  const SharedMemory memory(1 << 16);
  EXPECT_NE(::ftruncate(memory.descriptor(), 0), 0);
  EXPECT_NE(::ftruncate(memory.descriptor(), 1 << 20), 0);
}

TEST(SharedMemory, IsRefusedWhereItsSizeMayChange) {
  watch::Fd loose(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(loose.get(), 1 << 16), 0);
  EXPECT_THROW(SharedMemory(std::move(loose), 1 << 16), DataLoss);
  const SharedMemory memory(1 << 16);
  EXPECT_THROW(SharedMemory(watch::Fd(::dup(memory.descriptor())), 1 << 17), DataLoss);
  EXPECT_THROW(Doorbell(watch::Fd(::dup(STDERR_FILENO)), watch::Fd()), DataLoss);
}

}  // namespace
}  // namespace cohort::remote
