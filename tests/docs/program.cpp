// The program of docs/first-program.md.
#include "first-program.flats.inc"
