#include <cohort/base/config.h>

#include <cstdlib>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

const Setting& setting(const Config& config, std::string_view name) {
  for (const Setting& candidate : config.settings()) {
    if (candidate.spec.name == name) return candidate;
  }
  throw std::out_of_range(std::string(name));
}

Config read(const Environment& environment) { return Config(environment); }

auto reading(Environment environment) {
  return [environment = std::move(environment)] { return read(environment); };
}

TEST(Settings, HaveDefaultsThatParse) {
  const Config config = read({});
  ASSERT_EQ(config.settings().size(), Config::specs().size());
  for (std::size_t i = 0; i < Config::specs().size(); ++i) {
    EXPECT_EQ(config.settings()[i].spec.name, Config::specs()[i].name) << "declaration order";
    EXPECT_EQ(config.settings()[i].value, Config::specs()[i].default_value);
    EXPECT_FALSE(config.settings()[i].from_environment);
  }
}

TEST(Settings, AcceptTheirDefaultsFromTheEnvironment) {
  for (const SettingSpec& spec : Config::specs()) {
    const Config config = read({{std::string(spec.name), std::string(spec.default_value)}});
    EXPECT_EQ(setting(config, spec.name).value, spec.default_value);
  }
}

TEST(Settings, AreDescribed) {
  for (const SettingSpec& spec : Config::specs()) {
    EXPECT_THAT(std::string(spec.name), StartsWith("COHORT_"));
    EXPECT_FALSE(spec.text.empty()) << spec.name;
    EXPECT_EQ(spec.choices.empty(), spec.type != SettingType::kChoice) << spec.name;
  }
}

TEST(Settings, ReadTheEnvironmentByType) {
  const Config config = read({{"COHORT_LOG_LEVEL", "debug"},
                              {"COHORT_COLLECTIVE_TIMEOUT_SECONDS", "0.25"},
                              {"COHORT_FAULT_GRACE_SECONDS", "60"},
                              {"COHORT_CPU_DEVICES", "7"},
                              {"COHORT_TOPOLOGY", "pack:2 core:3 pu:1"},
                              {"COHORT_HUGE_PAGES", "false"}});
  EXPECT_EQ(config.log_level(), "debug");
  EXPECT_EQ(config.collective_timeout().count(), 0.25);
  EXPECT_EQ(config.fault_grace().count(), 60);
  EXPECT_EQ(config.cpu_devices(), 7);
  EXPECT_EQ(config.topology(), "pack:2 core:3 pu:1");
  EXPECT_FALSE(config.huge_pages());
}

TEST(Settings, RememberWhereTheirValueCameFrom) {
  const Config config = read({{"COHORT_CPU_DEVICES", "1"}});
  EXPECT_TRUE(setting(config, "COHORT_CPU_DEVICES").from_environment) << "also where it equals the default";
  EXPECT_FALSE(setting(config, "COHORT_LOG_LEVEL").from_environment);
}

struct WrongValue {
  std::string name;
  std::string value;
  std::string expectation;
};

class WrongSetting : public ::testing::TestWithParam<WrongValue> {};

TEST_P(WrongSetting, IsRefusedWithWhatWouldHaveBeenRight) {
  const auto& [name, value, expectation] = GetParam();
  EXPECT_THAT(reading({{name, value}}),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(name + "=" + value), HasSubstr(expectation))));
}

TEST(Config, TakesDigitsForBooleans) {
  EXPECT_TRUE(read({{"COHORT_CHECK_BUFFERS", "1"}}).check_buffers());
  EXPECT_FALSE(read({{"COHORT_HUGE_PAGES", "0"}}).huge_pages());
}

INSTANTIATE_TEST_SUITE_P(Booleans, WrongSetting,
                         ::testing::Values(WrongValue{"COHORT_HUGE_PAGES", "yes",
                                                      "true, false, 1 or 0 (default true)"},
                                           WrongValue{"COHORT_HUGE_PAGES", "", "true, false, 1 or 0"},
                                           WrongValue{"COHORT_HUGE_PAGES", "True", "true, false, 1 or 0"}));
INSTANTIATE_TEST_SUITE_P(Integers, WrongSetting,
                         ::testing::Values(WrongValue{"COHORT_CPU_DEVICES", "0", "a whole number, 1 to 4096"},
                                           WrongValue{"COHORT_CPU_DEVICES", "4097", "1 to 4096"},
                                           WrongValue{"COHORT_CPU_DEVICES", "-1", "1 to 4096"},
                                           WrongValue{"COHORT_CPU_DEVICES", "1.5", "a whole number"},
                                           WrongValue{"COHORT_CPU_DEVICES", "two", "a whole number"},
                                           WrongValue{"COHORT_CPU_DEVICES", "2 ", "a whole number"},
                                           WrongValue{"COHORT_CPU_DEVICES", "", "a whole number"}));
INSTANTIATE_TEST_SUITE_P(
    Seconds, WrongSetting,
    ::testing::Values(WrongValue{"COHORT_COLLECTIVE_TIMEOUT_SECONDS", "-1", "a number of seconds, 0 or more"},
                      WrongValue{"COHORT_COLLECTIVE_TIMEOUT_SECONDS", "5s", "a number of seconds"},
                      WrongValue{"COHORT_COLLECTIVE_TIMEOUT_SECONDS", "0,5", "a number of seconds"},
                      WrongValue{"COHORT_COLLECTIVE_TIMEOUT_SECONDS", "nan", "a number of seconds"},
                      WrongValue{"COHORT_COLLECTIVE_TIMEOUT_SECONDS", "inf", "a number of seconds"},
                      WrongValue{"COHORT_FAULT_GRACE_SECONDS", "0", "a number of seconds, 0.1 to 3600"}));
INSTANTIATE_TEST_SUITE_P(Choices, WrongSetting,
                         ::testing::Values(WrongValue{"COHORT_LOG_LEVEL", "loud",
                                                      "one of debug|info|warning|error|off"},
                                           WrongValue{"COHORT_LOG_LEVEL", "DEBUG", "one of debug"},
                                           WrongValue{"COHORT_LOG_LEVEL", "debug|info", "one of debug"},
                                           WrongValue{"COHORT_LOG_LEVEL", "", "one of debug"}));

TEST(Settings, TakeTheLimitsOfTheirRange) {
  for (const char* value : {"1", "4096"}) EXPECT_NO_THROW(reading({{"COHORT_CPU_DEVICES", value}})());
  for (const char* value : {"0.1", "3600"}) {
    EXPECT_NO_THROW(reading({{"COHORT_FAULT_GRACE_SECONDS", value}})());
  }
}

TEST(Settings, TakeSecondsSmallerThanAnyClockTick) {
  const Config config = read({{"COHORT_COLLECTIVE_TIMEOUT_SECONDS", "1e-310"}});
  EXPECT_EQ(config.collective_timeout().count(), 1e-310);
}

TEST(Settings, DemandASilenceOfSeveralHeartbeats) {
  for (const char* silence : {"0", "4", "60"}) {
    const Config config = read({{"COHORT_HEARTBEAT_SECONDS", "2"}, {"COHORT_SILENCE_SECONDS", silence}});
    EXPECT_EQ(config.heartbeat().count(), 2);
    EXPECT_EQ(config.silence().count(), std::atof(silence));
  }
  EXPECT_THAT(reading({{"COHORT_HEARTBEAT_SECONDS", "2"}, {"COHORT_SILENCE_SECONDS", "3.9"}}),
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("COHORT_SILENCE_SECONDS=3.9"), HasSubstr("COHORT_HEARTBEAT_SECONDS=2"))));
  EXPECT_THAT(reading({{"COHORT_HEARTBEAT_SECONDS", "3"}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("less than twice")))
      << "also where one of them is the default";
}

TEST(UnknownSettings, AreRefusedWithTheNameThatWasMeant) {
  auto message = AllOf(HasSubstr("unknown setting COHORT_CPU_DEVICE:"),
                       HasSubstr("did you mean COHORT_CPU_DEVICES?"), Not(HasSubstr("Known settings:")));
  EXPECT_THAT(reading({{"COHORT_CPU_DEVICE", "2"}}), ThrowsMessage<InvalidArgument>(message));
}

TEST(UnknownSettings, AreRefusedWithAllNamesWhenNoneIsNear) {
  auto message = AllOf(HasSubstr("Known settings:"), Not(HasSubstr("did you mean")),
                       HasSubstr("COHORT_LOG_LEVEL"), HasSubstr("COHORT_FAULT_GRACE_SECONDS"));
  EXPECT_THAT(reading({{"COHORT_BANANA", "2"}}), ThrowsMessage<InvalidArgument>(message));
}

TEST(UnknownSettings, MayBeWhatModuleFilesSet) {
  for (const char* name : {"COHORT_ROOT", "COHORT_HOME", "COHORT_DIR", "COHORT_VERSION"}) {
    EXPECT_NO_THROW(reading({{name, "/opt/cohort"}})()) << name;
  }
  for (const char* name : {"COHORT_ROOTS", "COHORT_HOM", "COHORT_"}) {
    EXPECT_THROW(reading({{name, "/opt/cohort"}})(), InvalidArgument) << name;
  }
}

TEST(UnknownSettings, AreNobodysBusinessWithoutThePrefix) {
  EXPECT_NO_THROW(reading({{"HOME", "/"}, {"COHORTS", "3"}, {"cohort_log_level", "loud"}})());
}

TEST(ProcessSettings, AreReadOnce) { EXPECT_EQ(&config(), &config()); }

TEST(ProcessSettingsDeathTest, ComeFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("COHORT_CPU_DEVICES", "3", 1);
        std::exit(config().cpu_devices());
      },
      ExitedWithCode(3), "");
}

}  // namespace
}  // namespace cohort
