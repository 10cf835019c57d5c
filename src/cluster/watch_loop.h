// The thread of a PeerWatch: keeps the links of this process, floods news along them, and ends the process
// when the grace period after a fault is over.
//
// The links form a tree: each worker has at most one uplink, towards the chief, and
// accepts links from those below. A frame is forwarded once to every other link, so it
// reaches all in at most four hops. Everything but the public functions runs on the thread.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "peer_watch.h"
#include "signal_relay.h"
#include "sockets.h"
#include "watch_link.h"

namespace cohort::watch {

class Loop {
 public:
  explicit Loop(PeerWatchOptions options);
  ~Loop();

  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Accepts links from workers that know the key of `address`.
  void listen(Fd socket, Reach reach, const Address& address);
  void stop_listening();
  void set_uplink(std::unique_ptr<Link> link);

  [[nodiscard]] const std::shared_ptr<FaultRecord>& record() const noexcept { return record_; }
  void announce_failure(const std::string& text);
  void mute() noexcept;
  void tell(int worker, std::string note);
  void tell_all(std::string note);
  void hear_notes(std::function<void(std::string_view)> hear);
  [[nodiscard]] bool leave();
  [[nodiscard]] bool leave_within(std::chrono::milliseconds limit);

 private:
  struct Listener {
    Fd socket;
    Reach reach;
    Address address;
  };
  using TimePoint = Clock::time_point;

  void post(std::function<void()> command);
  void run();
  void wait_for_events();
  void wake();
  [[nodiscard]] TimePoint next_due() const;
  [[nodiscard]] bool judges_silence_of(const Link& link) const;
  void run_commands();
  void accept_all();
  void drop_oldest_stranger();
  void read_links();
  void check_clocks();

  void welcome(Link& link, const Frame& hello);
  void handle(Link& link, const Frame& frame);
  void handle_end(const Link& link);
  void interrupted_by(int signal);
  void interrupted(const Frame& frame, const Link* from);
  void raise(FrameKind kind, int subject, const std::string& message, const Link* from);
  void leave_when_all_below_left();
  void all_have_left();
  void forward(const Frame& frame, const Link* except);
  void deliver(const Frame& note, const Link* from);
  [[nodiscard]] Link* link_towards(int worker) const;
  void end_later();
  void end_process(const std::string& line);
  [[nodiscard]] std::string describe_worker(int rank) const;
  [[nodiscard]] bool is_linked(int rank) const;

  const PeerWatchOptions options_;
  std::optional<SignalRelay> signals_;
  Fd wake_;     ///< a pipe's end: readable when there are commands
  Fd to_wake_;  ///< its other end

  std::mutex mutex_;
  std::vector<std::function<void()>> commands_;

  std::vector<Listener> listeners_;
  std::vector<std::unique_ptr<Link>> links_;
  Link* uplink_ = nullptr;
  std::function<void(std::string_view)> hear_note_;

  std::unique_ptr<Error> fault_;
  Frame fault_frame_;       ///< tells the others of it
  std::string last_words_;  ///< tells the user
  std::string last_line_;   ///< the same, as the signal handler needs it
  const std::shared_ptr<FaultRecord> record_ = std::make_shared<FaultRecord>();
  std::string own_failure_;
  int dying_of_ = 0;                   ///< the signal that ends this process
  std::optional<TimePoint> end_at_;    ///< of this process
  std::optional<Frame> interruption_;  ///< another worker's, while our own signal may follow
  std::optional<TimePoint> interruption_ends_at_;
  TimePoint next_beat_ = Clock::now();
  TimePoint round_due_ = Clock::now();  ///< when this round should begin at the latest

  bool stopped_ = false;
  bool leaving_ = false;
  bool told_uplink_ = false;
  bool waits_for_chief_ = true;  ///< once it leaves
  std::promise<bool> left_;
  bool left_is_decided_ = false;
  std::jthread thread_;
};

}  // namespace cohort::watch
