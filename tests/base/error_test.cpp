#include <cohort/base/error.h>

#include <sys/resource.h>

#include <set>

#include <gmock/gmock.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr ErrorCode kAllCodes[] = {
    ErrorCode::kInvalidArgument, ErrorCode::kWrongContext,     ErrorCode::kUnimplemented,
    ErrorCode::kUnavailable,     ErrorCode::kDeadlineExceeded, ErrorCode::kAborted,
    ErrorCode::kDataLoss,        ErrorCode::kOutOfRange,       ErrorCode::kInternal,
};

/// `throw_error` must throw exactly `Kind`, with everything it was given.
template <class Kind>
void expect_rethrown_as(ErrorCode code) {
  try {
    throw_error(Error(code, "the text", {"all_reduce #12", 5, "n1"}));
  } catch (const Kind& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_STREQ(error.what(), "the text");
    EXPECT_EQ(error.origin().call, "all_reduce #12");
    EXPECT_EQ(error.origin().member, 5);
    EXPECT_EQ(error.origin().host, "n1");
  } catch (const std::exception& error) {
    ADD_FAILURE() << to_string(code) << " came back as another kind: " << error.what();
  }
}

TEST(ErrorCodes, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const ErrorCode code : kAllCodes) names.insert(to_string(code));
  EXPECT_EQ(names.size(), std::size(kAllCodes));
  EXPECT_EQ(to_string(ErrorCode::kDeadlineExceeded), "deadline_exceeded");
}

TEST(ErrorCodes, ComeBackAsTheirKindOfError) {
  expect_rethrown_as<InvalidArgument>(ErrorCode::kInvalidArgument);
  expect_rethrown_as<WrongContext>(ErrorCode::kWrongContext);
  expect_rethrown_as<Unimplemented>(ErrorCode::kUnimplemented);
  expect_rethrown_as<Unavailable>(ErrorCode::kUnavailable);
  expect_rethrown_as<DeadlineExceeded>(ErrorCode::kDeadlineExceeded);
  expect_rethrown_as<Aborted>(ErrorCode::kAborted);
  expect_rethrown_as<DataLoss>(ErrorCode::kDataLoss);
  expect_rethrown_as<OutOfRange>(ErrorCode::kOutOfRange);
  expect_rethrown_as<Internal>(ErrorCode::kInternal);
}

/// Ends the program as an exception that leaves `main` does, without leaving a core behind.
[[noreturn]] void throw_uncaught() noexcept {
  const ::rlimit no_core{0, 0};
  static_cast<void>(::setrlimit(RLIMIT_CORE, &no_core));
  throw_error(ErrorCode::kInvalidArgument, "3 values do not fill [2]");
}

TEST(ErrorsDeathTest, TellTheirNameAndTextWhenNobodyCatchesThem) {
  EXPECT_DEATH(throw_uncaught(), "cohort::InvalidArgument'[^<]*3 values do not fill \\[2\\]");
}

TEST(Errors, FormatTheirMessage) {
  EXPECT_STREQ(InvalidArgument("{} values do not fill {}", 3, "[2]").what(), "3 values do not fill [2]");
}

TEST(Errors, KnowNoOriginUnlessTheyAreGivenOne) {
  const Unavailable error("worker 2 is gone");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.origin().call, "");
  EXPECT_EQ(error.origin().member, -1);
  EXPECT_EQ(error.origin().host, "");
}

TEST(Errors, DoNotFormatAMessageThatArrivedAsData) {
  EXPECT_STREQ(Aborted(ErrorOrigin{}, "braces {} stay").what(), "braces {} stay");
  EXPECT_THAT([] { throw_error(ErrorCode::kAborted, "braces {} stay"); },
              ThrowsMessage<Aborted>("braces {} stay"));
}

TEST(Errors, AreCaughtAsCohortErrorsAndAsStandardOnes) {
  EXPECT_THROW(throw InvalidArgument("x"), Error);
  EXPECT_THROW(throw InvalidArgument("x"), std::runtime_error);
}

TEST(Checks, NameTheConditionAndItsPlace) {
  const int members = 3;
  EXPECT_THAT([&] { COHORT_CHECK(members == 4); },
              ThrowsMessage<Internal>(AllOf(HasSubstr("error_test.cpp:"), HasSubstr("members == 4"),
                                            EndsWith("please report it."))));
}

TEST(Checks, LookAtTheirConditionOnce) {
  int looks = 0;
  COHORT_CHECK(++looks > 0);
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace cohort
