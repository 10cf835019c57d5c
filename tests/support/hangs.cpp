// A program whose second thread waits for what nobody does.
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

std::mutex mutex;
std::condition_variable changed;
bool is_done = false;

}  // namespace

// With a name that stacks show.
[[gnu::noinline]] void wait_for_nobody() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [] { return is_done; });
}

int main() { std::thread(wait_for_nobody).join(); }
