// Which line, slot and cell a member uses when: the rules by which memory of the control blocks is
// written again without asking whether all have read it. tests/collective/cell_rotation_test.cpp
// tries them in every order of steps.
//
// With two members the cells of a pair change hands: the member that reads a cell fetches its cache lines
// for writing and fills this very cell in its next turn. Each cache line then crosses between
// the cores once per call, where cells of fixed owners cost two crossings. Nothing else guards
// a cell: a member writes to it only after it has read it itself.
//
// With more members a cell has several readers and stays its owner's. Two slots suffice,
// since no member reaches call k + 2 before all have read call k. A member reads a piece
// after it has written the next one, so four cells do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "control_block.h"

namespace cohort::node {

/// Where a line, slot or cell is: the `index`-th in the control block of `owner`.
struct BufferLocation {
  int owner = 0;
  std::size_t index = 0;
};

/// Which of its lines a member uses in call number `sequence`.
[[nodiscard]] constexpr std::size_t line_of(std::uint64_t sequence) noexcept { return sequence % 2; }

/// Where `member` puts what it contributes to the call that is the `number`-th to go through slots.
[[nodiscard]] constexpr BufferLocation slot_of(int member, std::uint64_t number, int members) noexcept {
  if (members == 2) return {static_cast<int>((static_cast<std::uint64_t>(member) + number) % 2), 0};
  return {member, number % 2};
}

/// Where `member` puts its `piece`-th piece since the beginning.
[[nodiscard]] constexpr BufferLocation cell_of(int member, std::uint64_t piece, int members,
                                               std::size_t cells = kCells) noexcept {
  const std::uint64_t turn = piece / cells;
  if (members == 2) return {static_cast<int>((static_cast<std::uint64_t>(member) + turn) % 2), piece % cells};
  return {member, piece % cells};
}

}  // namespace cohort::node
