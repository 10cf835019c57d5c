#include "numbers_keeper.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/new_file.h"
#include "base/write_fully.h"
#include "collective/choice/choice_log.h"
#include "prometheus_text.h"
#include "run_numbers_table.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;

/// Prometheus reads such files four times a minute, if nobody says otherwise.
constexpr auto kBetweenFiles = 2s;

}  // namespace

NumbersKeeper::NumbersKeeper(NumbersOptions options, std::vector<WorkerInfo> workers, int rank,
                             TellChief tell_chief)
    : options_(std::move(options)),
      workers_(std::move(workers)),
      rank_(rank),
      tell_chief_(std::move(tell_chief)) {
  if (rank_ == 0 && options_.table) ChoiceLog::of_this_process().turn_on();
}

GroupTally* NumbersKeeper::begin(const ObservedGroup& group) { return &tallies_.emplace_back(group); }

void NumbersKeeper::finish(GroupTally* tally) {
  tally->finish();
  finished_.add(tally->numbers());
  tallies_.remove_if([&](const GroupTally& other) { return &other == tally; });
}

double NumbersKeeper::elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

RunNumbers NumbersKeeper::own() const {
  RunNumbers numbers = finished_;
  for (const GroupTally& tally : tallies_) numbers.add(tally.numbers());
  for (auto& [rank, worker] : numbers.workers) worker.elapsed = elapsed();
  return numbers;
}

void NumbersKeeper::tell() {
  RunNumbers numbers = own();
  if (rank_ != 0) {
    if (numbers.workers.empty()) return;
    for (std::string& note : to_notes(numbers, rank_)) tell_chief_(std::move(note));
    return;
  }
  const std::lock_guard lock(telling_);
  by_reader_[rank_] = std::move(numbers);
}

void NumbersKeeper::tell_if_due() {
  if (options_.prometheus.empty()) return;  // for the table, what is told at the end is enough
  const auto now = Clock::now();
  if (now < next_note_) return;
  next_note_ = now + kBetweenFiles;
  tell();
}

void NumbersKeeper::write_if_due() {
  if (!writes() || Clock::now() < next_file_) return;
  next_file_ = Clock::now() + kBetweenFiles;
  write(elapsed());
}

bool NumbersKeeper::hear(std::string_view note) {
  const std::lock_guard lock(telling_);
  return cohort::hear(note, by_reader_);
}

void NumbersKeeper::stop() {
  while (!tallies_.empty()) finish(&tallies_.front());
  tell();
  seconds_ = elapsed();
}

void NumbersKeeper::conclude() {
  if (rank_ != 0) return;
  if (writes()) write(seconds_);
  if (!options_.table) return;
  try {
    // In one piece, so that other processes' output does not come in between.
    write_fully(STDERR_FILENO,
                table_of(of_all(), workers_, seconds_, ChoiceLog::of_this_process().choices()));
  } catch (const std::exception&) {
    // There is nowhere left to say it.
  }
}

RunNumbers NumbersKeeper::of_all() const {
  const std::lock_guard lock(telling_);
  RunNumbers numbers;
  for (const auto& [reader, of_reader] : by_reader_) numbers.add(of_reader);
  return numbers;
}

void NumbersKeeper::write(double seconds) {
  try {
    NewFile file(options_.prometheus);
    write_fully(file.descriptor(), prometheus_text(of_all(), workers_, seconds));
    file.publish();
  } catch (const std::exception& error) {
    if (std::exchange(cannot_write_, true)) return;
    logging::warning("the numbers cannot be written to {}, which COHORT_PROMETHEUS names: {}",
                     options_.prometheus, error.what());
  }
}

}  // namespace cohort
