// The figures by which algorithms are chosen: all members have the same, soon, and once per shape of group;
// and the file that keeps them.
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <gmock/gmock.h>

#include "collective/choice/tuning_figures.h"
#include "members.h"
#include "temporary_folder.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// The figures that a communicator chooses by, as text that can be compared.
std::string described(const Communicator& communicator) {
  std::string text;
  for (const TuningFigure& figure : communicator.tuning()) {
    // From the table of the process, figures keep their source.
    text += fmt::format("{}={} {}\n", figure.name, figure.value, to_string(figure.source));
  }
  return text;
}

using ForEachMember = std::function<void(const std::function<void(Communicator&)>&)>;

/// The figures of each member after its first large calls, and how long those took.
std::vector<std::string> tables_of(const ForEachMember& for_each, double& seconds) {
  std::mutex mutex;
  std::vector<std::string> tables;
  for_each([&](Communicator& communicator) {
    const Tensor tensor = Tensor::zeros({100'000}, DType::kFloat32);
    EXPECT_THAT(communicator.tuning(), IsEmpty()) << "nothing is probed before it is needed";
    communicator.barrier();
    const auto start = std::chrono::steady_clock::now();
    communicator.all_reduce(tensor, ReduceOp::kSum);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    const std::string first = described(communicator);
    communicator.all_reduce(tensor, ReduceOp::kSum);
    EXPECT_EQ(described(communicator), first);
    const std::lock_guard lock(mutex);
    seconds = std::max(seconds, taken.count());
    tables.push_back(first);
  });
  return tables;
}

void expect_agreement(const ForEachMember& for_each) {
  double seconds = 0;
  const std::vector<std::string> tables = tables_of(for_each, seconds);
  EXPECT_THAT(tables, Each(tables.front()));
  EXPECT_THAT(tables.front(), Not(IsEmpty()));
  // Far above 50 ms, for machines with other work and more members than cores.
  EXPECT_LT(seconds, 5);
  EXPECT_THAT(tables_of(for_each, seconds), Each(tables.front())) << "a later group has the same table";
}

class ProbeOnANode : public ::testing::TestWithParam<int> {};

TEST_P(ProbeOnANode, GivesAllMembersTheSameTable) {
  expect_agreement([](const auto& function) { for_each_member(GetParam(), function); });
}
INSTANTIATE_TEST_SUITE_P(Members, ProbeOnANode, ::testing::Values(1, 2, 3, 4, 7));

class ProbeBetweenNodes : public ::testing::TestWithParam<Layout> {};

TEST_P(ProbeBetweenNodes, GivesAllMembersTheSameFigures) {
  expect_agreement([](const auto& function) { for_each_member(GetParam(), function); });
}
INSTANTIATE_TEST_SUITE_P(Layouts, ProbeBetweenNodes,
                         ::testing::Values(Layout{2, 1}, Layout{3, 1}, Layout{7, 1}, Layout{2, 2},
                                           Layout{3, 2}),
                         [](const auto& instance) {
                           return fmt::format("{}x{}", instance.param.nodes, instance.param.members);
                         });

TEST(Probe, EndsWithTheCallThatDiffers) {
  for_each_member(3, [](Communicator& communicator) {
    const Tensor tensor = Tensor::zeros({communicator.rank() == 2 ? 90'000 : 100'000}, DType::kFloat32);
    EXPECT_THROW(communicator.all_reduce(tensor, ReduceOp::kSum), InvalidArgument);
  });
}

TEST(Probe, EndsByTheDeadlineWhenAMemberIsMissing) {
  for_each_member(3,
                  [](Communicator& communicator) {
                    if (communicator.rank() == 1) return;
                    const Tensor tensor = Tensor::zeros({100'000}, DType::kFloat32);
                    EXPECT_THROW(communicator.all_reduce(tensor, ReduceOp::kSum), Error);
                  },
                  {.timeout_seconds = 0.3});
}

class TuningFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return folder_.path("tuning.json"); }
  void put(const std::string& text) const { std::ofstream(path()) << text; }
  [[nodiscard]] std::string contents() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder folder_;
};

TuningTable probed(double bytes) {
  TuningTable table;
  table.set(Figure::kDirectMove, bytes, TuningSource::kProbed);
  return table;
}

TEST_F(TuningFiles, KeepWhatWasProbed) {
  TuningFile file(path());
  EXPECT_FALSE(file.read(TuningScope::kNode, "shape"));
  file.write(TuningScope::kNode, "shape", probed(4096));
  const std::optional<TuningTable> read = file.read(TuningScope::kNode, "shape");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->value(Figure::kDirectMove), 4096);
  EXPECT_EQ(read->source(Figure::kDirectMove), TuningSource::kFile);
  EXPECT_EQ(read->value(Figure::kSingleCopy), TuningTable().value(Figure::kSingleCopy));
  EXPECT_EQ(read->source(Figure::kSingleCopy), TuningSource::kBuiltIn);
  EXPECT_FALSE(file.read(TuningScope::kNode, "another shape"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1)
      << "nothing else is left";
}

TEST_F(TuningFiles, HaveATableForEachShape) {
  TuningFile file(path());
  file.write(TuningScope::kNode, "one", probed(4096));
  file.write(TuningScope::kNode, "two", probed(8192));
  file.write(TuningScope::kNode, "one", probed(16384));
  EXPECT_EQ(file.read(TuningScope::kNode, "one")->value(Figure::kDirectMove), 16384);
  EXPECT_EQ(file.read(TuningScope::kNode, "two")->value(Figure::kDirectMove), 8192);
}

TEST_F(TuningFiles, ThatAreDamagedAreReplaced) {
  TuningFile file(path());
  file.write(TuningScope::kNode, "shape", probed(4096));
  const std::string good = contents();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::string> damaged{
      good.substr(0, good.size() / 2),
      with("cohort tuning 1", "cohort tuning 2"),
      with("\"version\": \"", "\"version\": \"9"),
      with("\"processor\": \"", "\"processor\": \"another "),
      with("\"hosts\": {", "\"guests\": {"),
      with("direct_move_bytes", "unknown_bytes"),
      with("direct_move_bytes", "latency_seconds"),
      with("4096", "-4096"),
      with("4096", "\"4096\""),
  };
  for (const std::string& text : damaged) {
    put(text);
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(file.read(TuningScope::kNode, "shape")) << text;
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("COHORT_TUNING_FILE")) << text;
    file.write(TuningScope::kNode, "shape", probed(8192));
    ASSERT_TRUE(file.read(TuningScope::kNode, "shape")) << text;
    EXPECT_EQ(file.read(TuningScope::kNode, "shape")->value(Figure::kDirectMove), 8192) << text;
  }
}

TEST_F(TuningFiles, MayBeEmpty) {
  put("");
  TuningFile file(path());
  EXPECT_FALSE(file.read(TuningScope::kNode, "shape"));
  file.write(TuningScope::kNode, "shape", probed(4096));
  EXPECT_TRUE(file.read(TuningScope::kNode, "shape"));
}

/// What two shapes of group say, and do to what is there.
std::string warnings_of(const std::filesystem::path& path) {
  ::testing::internal::CaptureStderr();
  TuningFile file(path);
  for (const char* shape : {"one", "two"}) {
    EXPECT_FALSE(file.read(TuningScope::kNode, shape));
    file.write(TuningScope::kNode, shape, probed(4096));
  }
  return ::testing::internal::GetCapturedStderr();
}

/// Once, by name, with what to do.
auto is_refusal_of(const std::filesystem::path& path, const std::string& why) {
  return ::testing::MatchesRegex(".*COHORT_TUNING_FILE " + path.string() +
                                 " is neither used nor replaced: [^\n]*" + why +
                                 "[^\n]*name a tuning file[^\n]*\n");
}

TEST_F(TuningFiles, ThatAreSomethingElseAreLeftAlone) {
  TuningFile(path()).write(TuningScope::kNode, "shape", probed(4096));
  std::string another_format = contents();
  another_format.replace(another_format.find("cohort tuning"), 13, "of my results");
  for (const std::string& text :
       {std::string("my only thesis\n"), std::string("[]"), std::string("{}"), std::string("{"),
        std::string("\n"), std::string(100'000, ' ') + "x", std::string(3, '\0'), another_format}) {
    put(text);
    EXPECT_THAT(warnings_of(path()), is_refusal_of(path(), "it is no tuning file")) << text;
    EXPECT_EQ(contents(), text);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1)
      << "nothing else is left";
}

TEST_F(TuningFiles, ThatAreNoFilesAreLeftAlone) {
  const std::string why = "it is a folder, a pipe or a device";
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(warnings_of(path()), is_refusal_of(path(), why));
  EXPECT_TRUE(std::filesystem::is_fifo(path()));
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_THAT(warnings_of(path()), is_refusal_of(path(), why));
  EXPECT_TRUE(std::filesystem::is_directory(path()));
  // By a link, so that a mistake replaces the link and not the device.
  std::filesystem::remove(path());
  std::filesystem::create_symlink("/dev/null", path());
  EXPECT_THAT(warnings_of(path()), is_refusal_of(path(), why));
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_TRUE(std::filesystem::is_character_file(path()));
}

TEST_F(TuningFiles, ThatAreLinksStayLinks) {
  const std::filesystem::path target = folder_.path("target.json");
  TuningFile(target).write(TuningScope::kNode, "one", probed(4096));
  std::filesystem::create_symlink(target, path());
  TuningFile file(path());
  file.write(TuningScope::kNode, "two", probed(8192));
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_TRUE(TuningFile(target).read(TuningScope::kNode, "one"));
  EXPECT_EQ(TuningFile(target).read(TuningScope::kNode, "two")->value(Figure::kDirectMove), 8192);
}

TEST_F(TuningFiles, OfOtherHostsAreLeftAlone) {
  TuningFile file(path());
  file.write(TuningScope::kNode, "shape", probed(4096));
  std::string text = contents();
  text.insert(text.find("\"hosts\": {") + 10, R"("elsewhere": {"processor": "x", "tables": {"shape": {}}},)");
  put(text);
  file.write(TuningScope::kNode, "shape", probed(8192));
  EXPECT_THAT(contents(), HasSubstr("elsewhere"));
  EXPECT_EQ(file.read(TuningScope::kNode, "shape")->value(Figure::kDirectMove), 8192);
}

TEST_F(TuningFiles, ThatCannotBeWrittenAreAWarning) {
  TuningFile file(folder_.path("no such folder/tuning.json"));
  ::testing::internal::CaptureStderr();
  file.write(TuningScope::kNode, "shape", probed(4096));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("cannot be written"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace cohort::testing
