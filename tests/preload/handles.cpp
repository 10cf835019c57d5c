// Whether what the shim has in place of mpi.h is what mpi.h has.
#include "handles.h"

#include <cstdio>

int main() {
  const Handles expected = handles_of_mpi();
  const Handles found = handles_of_shim();
  int wrong = expected.size() == found.size() ? 0 : 1;
  for (const auto& [name, number] : expected) {
    const auto ours = found.find(name);
    if (ours != found.end() && ours->second == number) continue;
    ++wrong;
    std::fprintf(stderr, "%s is %#tx in mpi.h, %#tx in the shim\n", name.c_str(), number,
                 ours == found.end() ? 0 : ours->second);
  }
  return wrong == 0 ? 0 : 1;
}
