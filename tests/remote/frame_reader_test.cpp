// Messages are found in a stream wherever it is cut, and what cannot be a message is refused.
#include "remote/frames.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::remote {
namespace {

using ::testing::HasSubstr;

std::string frame(std::uint64_t number, const std::string& body, std::size_t large_bytes = 0) {
  const auto bytes = std::as_bytes(std::span(body));
  std::string text;
  FrameParts({.kind = 3, .number = number, .body_bytes = body.size(), .large_bytes = large_bytes},
             {&bytes, 1})
      .for_each([&](std::span<const std::byte> piece) {
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      });
  return text;
}

/// The bodies in `stream`, of which the reader sees `cut` more bytes at a time.
std::vector<std::string> read_all(FrameReader& reader, const std::string& stream, std::size_t cut) {
  std::vector<std::string> bodies;
  std::size_t begin = 0;
  std::size_t end = 0;
  while (true) {
    const FrameReader::Step step = reader.step(std::as_bytes(std::span(stream).subspan(begin, end - begin)));
    begin += step.bytes;
    if (step.message) {
      const Message& message = reader.message();
      bodies.emplace_back(reinterpret_cast<const char*>(message.body.data()), message.body.size());
    } else if (step.bytes == 0) {
      if (end == stream.size()) break;
      end = std::min(end + cut, stream.size());
    }
  }
  EXPECT_EQ(begin, stream.size());
  return bodies;
}

std::span<std::byte> nowhere(std::uint16_t, std::uint64_t, std::span<const std::byte>, std::size_t) {
  return {};
}

TEST(FrameReader, FindsMessagesHoweverTheStreamIsCut) {
  const std::vector<std::string> bodies{
      "", "a", std::string(16, 'b'), std::string(17, 'c'), std::string(70'001, 'd'), "e"};
  std::string stream;
  for (const std::string& body : bodies) stream += frame(1, body);
  for (const std::size_t cut : {1UL, 7UL, 16UL, 1000UL, 69'999UL, stream.size()}) {
    FrameReader reader(nowhere);
    EXPECT_EQ(read_all(reader, stream, cut), bodies) << "in pieces of " << cut;
  }
}

TEST(FrameReader, SkipsSignsOfLife) {
  std::string sign(sizeof(FrameHeader), '\0');
  const FrameHeader header{.type = FrameType::kSignOfLife};
  std::memcpy(sign.data(), &header, sizeof header);
  FrameReader reader(nowhere);
  EXPECT_EQ(read_all(reader, sign + frame(1, "a") + sign + sign + frame(2, "b") + sign, 5),
            (std::vector<std::string>{"a", "b"}));
}

TEST(FrameReader, BringsTheLargePartWhereItIsWanted) {
  const std::string large(kLargeBytes + 3, 'x');
  const std::string stream = frame(1, "head" + large, large.size()) + frame(2, "next");
  for (const std::size_t cut : {977UL, stream.size()}) {
    std::string place(large.size(), '\0');
    FrameReader reader(
        [&](std::uint16_t kind, std::uint64_t number, std::span<const std::byte> head, std::size_t bytes) {
          EXPECT_EQ(kind, 3);
          EXPECT_EQ(number, 1U);
          EXPECT_EQ(head.size(), 4U);
          EXPECT_EQ(bytes, place.size());
          return std::as_writable_bytes(std::span(place));
        });
    EXPECT_EQ(read_all(reader, stream, cut), (std::vector<std::string>{"head", "next"}));
    EXPECT_TRUE(place == large);
  }
}

TEST(FrameReader, RefusesADestinationOfAnotherSize) {
  std::string place(5, '\0');
  FrameReader reader([&](auto...) { return std::as_writable_bytes(std::span(place)); });
  const std::string stream = frame(1, std::string(kLargeBytes, 'x'), kLargeBytes);
  EXPECT_THROW(static_cast<void>(reader.step(std::as_bytes(std::span(stream)))), InvalidArgument);
}

TEST(FrameReader, RefusesWhatIsNoMessage) {
  const auto refuses = [](const FrameHeader& header) {
    FrameReader reader(nowhere);
    EXPECT_THROW(static_cast<void>(reader.step(std::as_bytes(std::span(&header, 1)))), BrokenStream);
  };
  refuses({.type = static_cast<FrameType>(0)});
  refuses({.type = static_cast<FrameType>(3)});
  refuses({.unused = 1});
  refuses({.body_bytes = kLongestBody + 1});
  refuses({.body_bytes = 4, .large_bytes = 5});
  refuses({.type = FrameType::kSignOfLife, .body_bytes = 1});
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end the process instead
TEST(FrameReader, SaysSoWhenThereIsNoMemory) {
  const FrameHeader header{.body_bytes = kLongestBody - 1};
  FrameReader reader(nowhere);
  try {
    // Some systems promise any memory, and then it only is not there.
    EXPECT_EQ(reader.step(std::as_bytes(std::span(&header, 1))).bytes, sizeof header);
  } catch (const BrokenStream& e) {
    EXPECT_THAT(e.what(), HasSubstr("finds no memory"));
  }
}
#endif

}  // namespace
}  // namespace cohort::remote
