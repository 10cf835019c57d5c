// Writes values of each kind to FOLDER, as event files, JSON lines and CSV, for other programs to read. The
// run ends after step 5 and is started again at step 3.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <cohort/summary/summary_writer.h>

namespace {

cohort::SummaryWriter writer_to(const std::string& folder) {
  return cohort::SummaryWriter([&] {
    std::vector<std::unique_ptr<cohort::SummarySink>> sinks;
    sinks.push_back(cohort::event_file_sink(folder + "/logs"));
    sinks.push_back(cohort::json_lines_sink(folder + "/log.jsonl"));
    sinks.push_back(cohort::csv_sink(folder + "/log.csv"));
    return sinks;
  });
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("usage: write_summaries FOLDER\n", stderr), 2;
  using cohort::Tensor;
  {
    cohort::SummaryWriter first = writer_to(arguments[1]);
    for (int step = 0; step < 6; ++step) first.scalar("train/loss", -1, step);
  }
  cohort::SummaryWriter writer = writer_to(arguments[1]);
  writer.restart(3);
  for (int step = 3; step < 6; ++step) writer.scalar("train/loss", 1.0 / (1 + step), step, "of a *batch*");
  writer.scalar("nan, \"quoted\"", NAN, -1);
  writer.histogram("weights", Tensor::from({1.0F, 2.0F, 2.0F, 3.0F, 10.0F}), 3, 5);
  writer.text("note", "some **text**,\n\"\u00e9\"", 4);
  writer.text("notes", std::vector<std::string>{"a", "b"}, 4);
  writer.tensor("matrix", Tensor::from(std::vector{1, 2, 3, 4, 5, 6}, {2, 3}), 5);
  writer.hyperparameters({{"rate", 0.5}, {"layers", 3}, {"nesterov", true}, {"optimizer", "sgd"}});
  writer.close();
  return 0;
}
