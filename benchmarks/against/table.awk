# The table of against.sh, from measurements.csv. With `fail_below` it exits with 1 where the ratios of a row are shown to
# be below that.
#
# The rounds of a row are pairs, so what slows the machine for longer than a round slows both. The test counts the rounds
# whose ratio is below the bound, which is the sign test: some pairs lie across a change of the machine and are far off, in
# either direction, and a test that weighs distances would hear these most.
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

# chance_of_lower N BOUND: the probability that of the values 1 to N of `sorted` so many are below `bound` if each is so in
# one of two cases.
function chance_of_lower(n, bound,    i, below, differ, ways, larger) {
  for (i = 1; i <= n; i++) {
    if (sorted[i] != bound) differ++
    if (sorted[i] < bound) below++
  }
  ways = 2 ^ -differ
  for (i = 0; i <= differ; i++) {
    if (i >= below) larger += ways
    ways *= (differ - i) / (i + 1)
  }
  return larger
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

# The same of all rows together: of each round, the median over the rows that both programs have. What makes all rows
# slower shows here first, since what disturbs one row alone falls out.
function ratios_of_all(    r, i, n, all) {
  for (r = 1; r <= rounds; r++) {
    n = 0
    for (i = 1; i <= count; i++)
      if ((rows[i], "old", r) in time && (rows[i], "new", r) in time) sorted[++n] = time[rows[i], "old", r] / time[rows[i], "new", r]
    sort(n)
    if (n) medians[++all] = median(n)
  }
  for (r = 1; r <= all; r++) sorted[r] = medians[r]
  sort(all)
  return all
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
  if (tested > 1) chance[++tested] = chance_of_lower(ratios_of_all(), fail_below)
  if (tested) correct(tested)
  together = tested > compared
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
  if (together) {
    n = ratios_of_all()
    ratio = median(n)
    printf line " %8s\n", "all", "", "", "", sprintf("%.3f", ratio), sprintf("%.3f", sorted[1]), sprintf("%.3f", sorted[n]),
      sprintf("%.4f", chance[++tested])
    if (chance[tested] <= 0.01) slower = slower sprintf("\n  all: %.3f", ratio)
  }
  if (slower != "") { print "against.sh: slower than " fail_below " of the old speed:" slower >"/dev/stderr"; exit 1 }
}
