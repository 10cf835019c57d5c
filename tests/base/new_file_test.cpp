// Files that appear when they are complete, what their writers leave behind, and opening files that are none.
#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>

#include "temporary_folder.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class NewFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "data") const { return folder_.path(name); }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.insert(entry.path().filename());
    return names;
  }

  testing::TemporaryFolder folder_;
};

/// Lets a process be killed while it writes `path`.
void kill_writer(const std::string& path, NewFile::Name name) {
  const pid_t writer = ::fork();
  if (writer == 0) {
    const NewFile file(path, name);
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(writer, nullptr, 0), writer);
}
void leave_unfinished(const std::string& path) { kill_writer(path, NewFile::Name::kFirst); }

bool files_may_have_no_name(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) ::close(file);
  return file >= 0;
}

TEST_F(NewFiles, AppearWhenTheyAreComplete) {
  for (const NewFile::Name name : {NewFile::Name::kFirst, NewFile::Name::kLast}) {
    std::ofstream(path()) << "before";
    {
      NewFile file(path(), name);
      if (name == NewFile::Name::kFirst) {
        EXPECT_THAT(names(), ElementsAre("data", StartsWith("data.unfinished-")));
      }
      EXPECT_EQ(::write(file.descriptor(), "after", 5), 5);
      EXPECT_EQ(std::filesystem::file_size(path()), 6u);
      file.publish();
      EXPECT_EQ(std::filesystem::file_size(path()), 5u);
    }
    EXPECT_THAT(names(), ElementsAre("data"));
    struct stat status {};
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask) << "as any file";
  }
}

TEST_F(NewFiles, OfAWriterThatIsKilledAreGoneAtOnce) {
  if (!files_may_have_no_name(folder_.path())) GTEST_SKIP() << "every file of this file system has a name";
  kill_writer(path(), NewFile::Name::kLast);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(NewFiles, LeaveNothingWhenTheyAreGivenUp) {
  { const NewFile file(path()); }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(NewFiles, DoNotDisturbEachOther) {
  NewFile first(path(), NewFile::Name::kFirst);
  NewFile second(path(), NewFile::Name::kFirst);
  EXPECT_EQ(names().size(), 2u) << "the first one is not abandoned";
  second.publish();
  first.publish();
  EXPECT_THAT(names(), ElementsAre("data"));
}

TEST_F(NewFiles, OfAWriterThatWasKilledAreRemovedByTheNext) {
  leave_unfinished(path());
  EXPECT_THAT(names(), ElementsAre(StartsWith("data.unfinished-")));
  { const NewFile file(path()); }
  EXPECT_THAT(names(), IsEmpty());
  leave_unfinished(path());
  remove_abandoned(path());
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(NewFiles, OfOtherHostsAreRemovedWhenTheyAreOld) {
  const std::string file = path("data.unfinished-elsewhere-0000abcd");
  std::ofstream(file) << "?";
  remove_abandoned(path());
  EXPECT_EQ(names().size(), 1u) << "its lock may not be seen here";
  std::filesystem::last_write_time(file,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  const int writer = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);
  remove_abandoned(path());
  EXPECT_EQ(names().size(), 1u) << "its writer lives";
  ::close(writer);
  remove_abandoned(path());
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(NewFiles, RemoveNothingElse) {
  leave_unfinished(path());
  const std::string abandoned = *names().begin();
  const std::string of_this_host = abandoned.substr(0, abandoned.rfind('-') + 1);
  std::filesystem::remove(path(abandoned));
  const std::set<std::string> others{"data.unfinished", "other.unfinished-x-0", "precious"};
  for (const std::string& name : others) std::ofstream(path(name)) << "?";
  std::filesystem::create_symlink(path("precious"), path(of_this_host + "link"));
  std::filesystem::create_directory(path(of_this_host + "folder"));
  ASSERT_EQ(::mkfifo(path(of_this_host + "fifo").c_str(), 0600), 0);
  const std::set<std::string> before = names();
  EXPECT_EQ(before.size(), 6u);
  remove_abandoned(path());
  EXPECT_EQ(names(), before);
}

TEST_F(NewFiles, NeedAFolder) {
  EXPECT_THAT([&] { const NewFile file(path("none/data")); },
              ThrowsMessage<Unavailable>(AllOf(HasSubstr(path("none/data")), HasSubstr("No such file"))));
}

TEST_F(NewFiles, MayLieInTheCurrentFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  leave_unfinished("data");
  { const NewFile file("data"); }
  std::filesystem::current_path(before);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(NewFiles, MustBeFilesToBeRead) {
  std::ofstream(path()) << "?";
  const int file = open_regular_file(path(), "text");
  EXPECT_GE(file, 0);
  ::close(file);
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  for (const std::string& name :
       {path("fifo"), path(""), std::string("/dev/null"), std::string("/dev/tty")}) {
    EXPECT_THAT([&] { static_cast<void>(open_regular_file(name, "text")); },
                ThrowsMessage<Error>(AllOf(HasSubstr("text '" + name + "'"))))
        << name;
  }
}

}  // namespace
}  // namespace cohort
