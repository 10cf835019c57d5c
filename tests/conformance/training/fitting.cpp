#include "fitting.h"

#include <algorithm>
#include <vector>

namespace cohort::conformance {

Json show_history(const History& history) {
  Json shown = Json::object();
  for (const History::Epoch& epoch : history.epochs())
    for (const auto& [name, value] : epoch.logs) shown[name].push_back(show(value));
  return shown;
}

Json epochs_of(const History& history) {
  Json epochs = Json::array();
  for (const History::Epoch& epoch : history.epochs()) epochs.push_back(epoch.number);
  return epochs;
}

Json names_in(const Logs& logs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : logs) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cohort::conformance
