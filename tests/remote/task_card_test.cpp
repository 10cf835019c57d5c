// The card of a task, there and back, and what is refused.
#include "remote/supervised_task.h"

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort::remote {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

TaskPlace example() {
  TaskPlace place;
  place.task = {"ps", 0};
  place.addresses.resize(2);
  Address& chief = place.addresses.front();
  chief.task.type = "chief";
  chief.host = "n0";
  chief.network = {"10.0.0.1:4000", "[fd00::1]:4000"};
  chief.local = "first";
  place.addresses.back().task = place.task;
  place.addresses.back().host = "n1";
  place.addresses.back().local = "second";
  place.secret = std::string("0123456789abcde\0\xff\n", 18);
  place.network_listener = 5;
  place.local_listener = 6;
  place.memory = 7;
  place.restarts = 2;
  place.supervisor = 8;
  place.standby = true;
  return place;
}

TEST(TaskCard, SaysAllOfAPlace) {
  const TaskPlace place = example();
  const TaskPlace read = place_from_card(to_card(place));
  EXPECT_EQ(read.task, place.task);
  EXPECT_EQ(read.addresses, place.addresses);
  EXPECT_EQ(read.secret, place.secret);
  EXPECT_EQ(read.network_listener, 5);
  EXPECT_EQ(read.local_listener, 6);
  EXPECT_EQ(read.memory, 7);
  EXPECT_EQ(read.restarts, 2);
  EXPECT_EQ(read.supervisor, 8);
  EXPECT_TRUE(read.standby);
  EXPECT_EQ(addresses_from_json(addresses_to_json(place.addresses)), place.addresses);
}

/// The example's card with one text replaced.
auto reading_with(const std::string& text, const std::string& other) {
  std::string card = to_card(example());
  const std::size_t at = card.find(text);
  EXPECT_NE(at, std::string::npos) << text << " in " << card;
  card.replace(at, text.size(), other);
  return [card] { static_cast<void>(place_from_card(card)); };
}

TEST(TaskCard, SaysWhatIsWrong) {
  const auto refuses = [](const std::string& text, const std::string& other, const std::string& says) {
    EXPECT_THAT(reading_with(text, other),
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("the card of the task"), HasSubstr(says))));
  };
  refuses("{", "", "not JSON at byte");
  refuses("\"restarts\":2", "\"restarts\":-1", "'restarts' is no whole number from 0");
  refuses("\"restarts\":2", "\"restart\":2", "'restarts' is missing");
  refuses("\"standby\":true", "\"standby\":1", "'standby' is neither true nor false");
  refuses("\"memory\":7", "\"memory\":1", "'memory' is 1, one of the standard ones");
  refuses("\"memory\":7", "\"memory\":4294967296", "'memory' is no whole number");
  refuses("\"memory\":7", "\"memory\":7.5", "'memory' is no whole number");
  refuses("\"secret\":\"30", "\"secret\":\"3", "'secret' is not at least 16 bytes in hexadecimal");
  refuses("\"secret\":\"30", "\"secret\":\"+0", "'secret' is not at least 16 bytes in hexadecimal");
  refuses("\"network\":[]", "\"network\":[1]", "'network' is no list of texts");
  refuses("\"network\":[]", "\"network\":3", "'network' is no list");
  refuses("\"local\":\"second\"", "\"local\":3", "'local' is no text");
  refuses("\"type\":\"chief\"", "\"type\":\"ps\"", "the task ps 0 is listed twice");
}

TEST(TaskCard, BelongsToATaskOfACluster) {
  EXPECT_THAT(reading_with("\"task\":{\"index\":0", "\"task\":{\"index\":1"),
              ThrowsMessage<InvalidArgument>(HasSubstr("no task ps 1")));
  EXPECT_THAT(reading_with("\"type\":\"chief\"", "\"type\":\"boss\""),
              ThrowsMessage<InvalidArgument>(HasSubstr("a job 'boss'")));
}

TEST(TaskCard, IsNotQuotedWithItsSecret) {
  EXPECT_THAT(reading_with("\"secret\":\"30", "\"secret\":\"x30"),
              ThrowsMessage<InvalidArgument>(Not(HasSubstr("3132"))));
}

}  // namespace
}  // namespace cohort::remote
