#include "own_task.h"

#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "remote/introduction.h"
#include "remote/supervisor_line.h"

namespace cohort::supervise {

using remote::SupervisorLine;
using remote::SupervisorWord;

OwnTask::OwnTask(remote::TaskPlace place, std::string host, bool has_line)
    : place_(std::move(place)), host_(std::move(host)), has_line_(has_line) {}

std::string OwnTask::describe() const {
  return fmt::format("{}{} (host {}, pid {})", is_standby() ? "the standby of " : "", remote::name_of(task()),
                     host_, pid_);
}

void OwnTask::start(const Command& command, bool reads_input) {
  ++said_;
  watch::Fd end_of_process;
  if (has_line_) std::tie(line_, end_of_process) = remote::make_supervisor_line();
  place_.supervisor = end_of_process.get();
  pid_ = start_process(command, place_, reads_input);
}

void OwnTask::start_again(const Command& command, bool reads_input) {
  ++place_.restarts;
  start(command, reads_input);
}

void OwnTask::signal(int signal) const {
  if (runs()) ::kill(-pid_, signal);
}

void OwnTask::add_to(std::vector<pollfd>& polled) const {
  if (line_) polled.push_back({line_.get(), POLLIN, 0});
}

std::vector<ServerWord> OwnTask::hear() {
  std::vector<ServerWord> words;
  if (!line_) return words;
  while (const auto word = SupervisorLine(line_.get()).receive())
    words.push_back({.server = task().id, .word = *word, .number = ++said_});
  // A line whose other end is closed would end each wait at once.
  pollfd state{line_.get(), 0, 0};
  if (::poll(&state, 1, 0) == 1 && (state.revents & POLLHUP) != 0) line_.reset();
  return words;
}

void OwnTask::pass_on(const ServerWord& word) {
  if (line_ && word.number == said_) SupervisorLine(line_.get()).send(word.word);
}

void OwnTask::take_over() {
  place_.standby = false;
  if (line_) SupervisorLine(line_.get()).send(SupervisorWord::kTakeOver);
  has_line_ = false;  // of another process, which starts as a server without a standby
}

}  // namespace cohort::supervise
