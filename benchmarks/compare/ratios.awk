# Draws how many times as fast as its best peer Cohort is, from the table below the heading "All-reduce in place" of a page, as
# an SVG picture for light and dark pages:
#
#   awk -f benchmarks/compare/ratios.awk docs/benchmarks/figures.md >docs/all-reduce.svg
#
# Columns: bytes, best peer, its name, heap, ratio, private, ratio. tests/checks/snippets.sh compares the picture with the table.
BEGIN { FS = " *[|] *" }
/^#+ / { inside = /^#+ All-reduce in place/ }
inside && /^[|] [0-9]/ { size[++rows] = $2; heap[rows] = $6; own[rows] = $8 }

function level(ratio) { return sprintf("%.1f", bottom - ratio * unit) }
function bar(x, ratio, class) {
  printf "<rect class=\"%s\" x=\"%.1f\" y=\"%s\" width=\"%d\" height=\"%.1f\"/>\n", class, x, level(ratio), wide, ratio * unit
}
function text(x, y, class, anchor, words) {
  printf "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", class, x, y, anchor, words
}

END {
  if (!rows) { print "ratios.awk: no table of an all-reduce in place" >"/dev/stderr"; exit 1 }
  left = 56; right = 744; top = 66; bottom = 278; highest = 4.5
  unit = (bottom - top) / highest
  step = (right - left) / rows; wide = 20
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 326\" width=\"760\" height=\"326\" role=\"img\"" \
    " font-family=\"system-ui, sans-serif\" font-size=\"13\">"
  print "<title>How many times as fast as the best other MPI an all-reduce of Cohort is, by bytes</title>"
  print "<style>"
  print ".page { fill: #f6f7f9 } .ink { fill: #1f2733 } .quiet { fill: #566173 } .grid { stroke: #d5dae1 } .one { stroke: #b3372f }"
  print ".peer { fill: #b3372f } .heap { fill: #2f6fb0 } .own { fill: #86b6de } .title { font-weight: 600; font-size: 15px } .figure { font-size: 12px }"
  print "@media (prefers-color-scheme: dark) {"
  print "  .page { fill: #161b22 } .ink { fill: #e2e7ee } .quiet { fill: #9aa5b4 } .grid { stroke: #333c48 } .one { stroke: #ff8a80 }"
  print "  .peer { fill: #ff8a80 } .heap { fill: #5aa2e6 } .own { fill: #2d5c8a }"
  print "}"
  print "</style>"
  print "<rect class=\"page\" width=\"760\" height=\"326\" rx=\"10\"/>"
  text(16, 26, "ink title", "start", "All-reduce: times as fast as the best of Open MPI, MPICH and Intel MPI")
  print "<rect class=\"heap\" x=\"16\" y=\"39\" width=\"12\" height=\"12\"/>"
  text(34, 50, "quiet", "start", "memory that Cohort allocates")
  print "<rect class=\"own\" x=\"236\" y=\"39\" width=\"12\" height=\"12\"/>"
  text(254, 50, "quiet", "start", "the program's own memory")
  for (ratio = 0; ratio <= highest; ++ratio) {
    if (ratio != 1) printf "<path class=\"grid\" d=\"M%d %sH%d\"/>\n", left, level(ratio), right
    text(left - 8, level(ratio) + 4, ratio == 1 ? "peer" : "quiet", "end", ratio "×")
  }
  for (row = 1; row <= rows; ++row) {
    middle = left + (row - 0.5) * step
    bar(middle - wide - 1, heap[row], "heap")
    bar(middle + 1, own[row], "own")
    text(middle - wide / 2 - 1, level(heap[row]) - 4, "ink figure", "middle", heap[row])
    text(middle + wide / 2 + 1, level(own[row]) - 4, "quiet figure", "middle", own[row])
    text(middle, bottom + 17, "quiet", "middle", size[row] (size[row] ~ / / ? "B" : " B"))
  }
  printf "<path class=\"one\" d=\"M%d %sH%d\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n", left, level(1), right
  text((left + right) / 2, bottom + 37, "quiet", "middle", "bytes of the tensor")
  print "</svg>"
}
