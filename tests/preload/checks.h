/* What programs of this folder check their results by: each rank counts what is wrong, and says the first of
 * it. */
#pragma once

#include <stdio.h>

static int rank, size, wrong;

#define CHECK(condition)                                                                                  \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      if (++wrong < 5) fprintf(stderr, "rank %d of %d, line %d: %s\n", rank, size, __LINE__, #condition); \
    }                                                                                                     \
  } while (0)
