// The command line of the examples of one page, which take no arguments.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

/// The status to end with where there are arguments: `--help` prints `text`, anything else is a mistake.
inline std::optional<int> end_at_arguments(int argc, char** argv, const char* text) {
  if (argc < 2) return std::nullopt;
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::printf("%s; takes no arguments\n", text);
    return EXIT_SUCCESS;
  }
  std::fprintf(stderr, "%s takes no arguments, but got '%s'\n", argv[0], argv[1]);
  return 2;
}
