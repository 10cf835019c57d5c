// Writes one value of each kind to an event file in FOLDER, for read_by_tensorboard.sh.
#include <cstdio>
#include <vector>

#include <cohort/summary/summary_writer.h>

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("usage: write_summaries FOLDER\n", stderr), 2;
  using namespace cohort;
  {
    SummaryWriter first(arguments[1]);
    for (int step = 0; step < 6; ++step) first.scalar("train/loss", -1, step);  // the others from 3 on
  }
  SummaryWriter writer(arguments[1]);
  writer.restart(3);
  for (int step = 3; step < 6; ++step) writer.scalar("train/loss", 1.0 / (1 + step), step, "of a *batch*");
  writer.histogram("weights", Tensor::from({1.0F, 2.0F, 2.0F, 3.0F, 10.0F}), 3, 5);
  writer.text("note", "some **text**", 4);
  writer.text("notes", std::vector<std::string>{"a", "b"}, 4);
  writer.tensor("matrix", Tensor::from(std::vector{1, 2, 3, 4, 5, 6}, {2, 3}), 5);
  writer.hyperparameters({{"rate", 0.5}, {"nesterov", true}, {"optimizer", std::string("sgd")}});
  writer.close();
  return 0;
}
