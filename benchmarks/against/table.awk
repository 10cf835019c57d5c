# The table of against.sh, from measurements.csv. With `fail_below` it exits with 1 where the ratios of a row are shown to
# be below that.
#
# The rounds of a row are pairs, so what slows the machine for longer than a round slows both. Their ratios are tested by
# ranks [Wilcoxon 1945], since some pairs lie across such a change and are far off, in either direction.
BEGIN { FS = "," }

NR > 1 {
  if (!($3 in seen)) { seen[$3]; rows[++count] = $3; unit[$3] = $4 }
  time[$3, $1, $2] = $5
  if ($2 + 0 > rounds) rounds = $2 + 0
}

# sort N: the values 1 to N of `sorted`, upwards.
function sort(n,    i, j, value) {
  for (i = 2; i <= n; i++) {
    value = sorted[i]
    for (j = i - 1; j >= 1 && sorted[j] > value; j--) sorted[j + 1] = sorted[j]
    sorted[j + 1] = value
  }
}

function median(n,    middle) {
  middle = int((n + 1) / 2)
  return n % 2 ? sorted[middle] : (sorted[middle] + sorted[middle + 1]) / 2
}

# chance_of_lower N BOUND: the probability that the values 1 to N of `sorted` are so far below `bound` if they lie around
# it by chance: of all ways to give signs to the ranks of their distances, the share with as large a sum of those
# below. Ranks are doubled, since equal distances share the mean of theirs.
function chance_of_lower(n, bound,    i, j, k, count, distance, lower, value, sign, rank, sum, below, ways, larger, all) {
  for (i = 1; i <= n; i++) {
    value = log(sorted[i] / bound)
    if (value == 0) continue
    sign = value < 0
    if (sign) value = -value
    for (j = ++count - 1; j >= 1 && distance[j] > value; j--) { distance[j + 1] = distance[j]; lower[j + 1] = lower[j] }
    distance[j + 1] = value
    lower[j + 1] = sign
  }
  ways[0] = 1
  for (i = 1; i <= count; i = j) {
    for (j = i; j <= count && distance[j] == distance[i]; j++);
    rank = i + j - 1
    for (k = i; k < j; k++) {
      if (lower[k]) below += rank
      for (value = sum + 0; value >= 0; value--) if (value in ways) ways[value + rank] += ways[value]
      sum += rank
    }
  }
  for (value in ways) { all += ways[value]; if (value + 0 >= below) larger += ways[value] }
  return larger / all
}

# Holm's correction of chance[1] to chance[n]: where all lie around the bound, that any is called lower is no more
# probable than each alone would be.
function correct(n,    i, j, order, largest, value) {
  for (i = 1; i <= n; i++) {
    for (j = i - 1; j >= 1 && chance[order[j]] > chance[i]; j--) order[j + 1] = order[j]
    order[j + 1] = i
  }
  for (i = 1; i <= n; i++) {
    value = chance[order[i]] * (n - i + 1)
    if (value > largest) largest = value
    chance[order[i]] = largest < 1 ? largest : 1
  }
}

# The median of the times of a row; 0 where that program has no such row.
function median_time(row, which,    r, n) {
  n = 0
  for (r = 1; r <= rounds; r++) if ((row, which, r) in time) sorted[++n] = time[row, which, r] + 0
  if (!n) return 0
  sort(n)
  return median(n)
}

function number(value) {
  if (!value) return "-"
  return value >= 100 ? sprintf("%.0f", value) : value >= 10 ? sprintf("%.1f", value) : sprintf("%.3f", value)
}

# The ratios of a row, upwards in `sorted`; how many.
function ratios(row,    r, n) {
  for (r = 1; r <= rounds; r++)
    if ((row, "old", r) in time && (row, "new", r) in time) sorted[++n] = time[row, "old", r] / time[row, "new", r]
  sort(n)
  return n + 0
}

END {
  width = 4
  for (i = 1; i <= count; i++) {
    if (length(rows[i]) > width) width = length(rows[i])
    if (!(n = ratios(rows[i]))) continue
    compared++
    if (fail_below == "") continue
    chance[++tested] = chance_of_lower(n, fail_below)
  }
  if (!compared) { print "against.sh: the two reports have no row in common" >"/dev/stderr"; exit 1 }
  if (tested) correct(tested)
  tested = 0
  line = "%-" width "s %10s %10s %-4s %7s %7s %9s"
  printf line (fail_below == "" ? "" : "   chance") "\n", "row", "old", "new", "", "ratio", "least", "greatest"
  for (i = 1; i <= count; i++) {
    row = rows[i]
    old = median_time(row, "old")
    new = median_time(row, "new")
    n = ratios(row)
    if (!n) { printf line "\n", row, number(old), number(new), unit[row], "-", "-", "-"; continue }
    ratio = median(n)
    printf line, row, number(old), number(new), unit[row], sprintf("%.3f", ratio), sprintf("%.3f", sorted[1]),
      sprintf("%.3f", sorted[n])
    if (fail_below != "") {
      printf " %8s", sprintf("%.4f", chance[++tested])
      if (chance[tested] <= 0.01) slower = slower sprintf("\n  %s: %.3f", row, ratio)
    }
    print ""
  }
  if (slower != "") { print "against.sh: slower than " fail_below " of the old speed:" slower >"/dev/stderr"; exit 1 }
}
