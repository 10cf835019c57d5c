# The table of against.sh, from measurements.csv. Exits with 1 where a ratio is below `fail_below`.
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

END {
  width = 4
  for (i = 1; i <= count; i++) if (length(rows[i]) > width) width = length(rows[i])
  line = "%-" width "s %10s %10s %-4s %7s %7s %9s\n"
  printf line, "row", "old", "new", "", "ratio", "least", "greatest"
  for (i = 1; i <= count; i++) {
    row = rows[i]
    old = median_time(row, "old")
    new = median_time(row, "new")
    n = 0
    for (r = 1; r <= rounds; r++)
      if ((row, "old", r) in time && (row, "new", r) in time) sorted[++n] = time[row, "old", r] / time[row, "new", r]
    if (!n) { printf line, row, number(old), number(new), unit[row], "-", "-", "-"; continue }
    sort(n)
    ratio = median(n)
    printf line, row, number(old), number(new), unit[row], sprintf("%.3f", ratio), sprintf("%.3f", sorted[1]),
      sprintf("%.3f", sorted[n])
    compared++
    if (fail_below != "" && ratio < fail_below + 0) slower = slower sprintf("\n  %s: %.3f", row, ratio)
  }
  if (!compared) { print "against.sh: the two reports have no row in common" >"/dev/stderr"; exit 1 }
  if (slower != "") { print "against.sh: slower than " fail_below " of the old speed:" slower >"/dev/stderr"; exit 1 }
}
