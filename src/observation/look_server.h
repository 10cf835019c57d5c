// Lets the user of a job look at it while it runs (cohort-info --job). The first process of each node listens
// for clients. For each of them it asks all processes of the job what they know, over the watch's links, and
// sends what has come within a second. Nothing is known to anyone but the job's own user.
//
// It does nothing until somebody asks. Any thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <cohort/cluster/worker.h>

#include "cluster/job_socket.h"
#include "cluster/sockets.h"
#include "job_look.h"

namespace cohort {

struct LookServerOptions {
  std::string job = {};
  std::vector<WorkerInfo> workers = {};  ///< by rank
  int rank = 0;
  std::function<JobLook()> look = {};  ///< what this process knows; called on the server's thread
  std::function<void(int worker, std::string note)> tell = {};
  std::function<void(std::string note)> tell_all = {};
  std::chrono::milliseconds limit{1000};  ///< for the answers of all nodes
};

class LookServer {
 public:
  /// The first process of a node listens from now on; where it cannot, that is a warning.
  explicit LookServer(LookServerOptions options);
  ~LookServer();

  LookServer(const LookServer&) = delete;
  LookServer& operator=(const LookServer&) = delete;

  /// Whether the note, from another process of the job, was a question or an answer.
  bool hear(std::string_view note);

  /// Answers nobody from here on, and tells nobody anything.
  void stop() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  /// An answer, as far as it has come.
  struct Answer {
    std::size_t pieces_left = 0;
    std::vector<std::string> pieces;
  };
  /// A client that waits.
  struct Client {
    watch::Fd socket;
    JobLook look;
    std::set<int> missing = {};  ///< first workers of nodes that have not answered
    std::map<int, Answer> answers = {};
    Clock::time_point until;
  };

  [[nodiscard]] const WorkerInfo& self() const;
  void start_thread();
  void run();
  void wait_for_events();
  void wake() const;
  void accept_clients();
  void read_notes();
  void answer(int asker, std::uint32_t question);
  void take_piece(Client& client, int worker, std::size_t index, std::size_t pieces, std::string_view text);
  void send_to_clients();

  const LookServerOptions options_;
  watch::Fd listener_;  ///< none: this process is not the first of its node
  watch::Fd wake_;      ///< a pipe's end: readable when there is something to do
  watch::Fd to_wake_;   ///< its other end

  std::mutex mutex_;
  bool stopping_ = false;
  std::vector<std::string> notes_;  ///< heard and not read yet
  std::jthread thread_;             ///< from the first question on, where there is no listener

  std::map<std::uint32_t, Client> clients_;  ///< by question; of the thread
  std::uint32_t questions_ = 0;
};

}  // namespace cohort
