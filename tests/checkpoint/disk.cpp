#include "disk.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <system_error>

namespace cohort::testing {
namespace {

struct Disk {
  std::mutex mutex = {};
  std::condition_variable changed = {};
  bool is_held = false;
  std::string broken_ending = {};
  int syncs_until_broken = 0;  ///< of such paths; 0: none breaks

  static Disk& instance() {
    static Disk disk;
    return disk;
  }

  [[nodiscard]] bool breaks(const std::string& path) {
    if (syncs_until_broken == 0 || !path.ends_with(broken_ending)) return false;
    return --syncs_until_broken == 0;
  }
};

}  // namespace

HeldDisk::HeldDisk() {
  Disk& disk = Disk::instance();
  const std::lock_guard lock(disk.mutex);
  disk.is_held = true;
}

void HeldDisk::let_go() {
  Disk& disk = Disk::instance();
  const std::lock_guard lock(disk.mutex);
  disk.is_held = false;
  disk.changed.notify_all();
}

BrokenDisk::BrokenDisk(const std::string& path_ending, int nth) {
  Disk& disk = Disk::instance();
  const std::lock_guard lock(disk.mutex);
  disk.broken_ending = path_ending;
  disk.syncs_until_broken = nth;
}

BrokenDisk::~BrokenDisk() {
  Disk& disk = Disk::instance();
  const std::lock_guard lock(disk.mutex);
  disk.syncs_until_broken = 0;
}

}  // namespace cohort::testing

// In place of the system's in this program, whose parameter has a reserved name.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" int fsync(int descriptor) {
  auto& disk = cohort::testing::Disk::instance();
  {
    std::error_code unknown;
    const auto path =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), unknown).string();
    std::unique_lock lock(disk.mutex);
    disk.changed.wait(lock, [&] { return !disk.is_held; });
    if (disk.breaks(path)) {
      errno = EIO;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}
