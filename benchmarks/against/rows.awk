# The rows of a report of cohort-bench as against.sh keeps them: which,round,row,unit,time. Columns are found by their
# names, since older programs have fewer. Fails where there is no row with a time.
BEGIN {
  FS = OFS = ","
  parts = split("mode operation case optimizer phase devices workers servers bytes values", part, " ")
  times = split("median_us step_us us round_trip_us ns seconds sharded_ms ms overhead_us", time, " ")
}

function size_of(bytes,    unit) {
  unit = ""
  if (bytes >= 1073741824 && bytes % 1073741824 == 0) { bytes /= 1073741824; unit = "G" }
  else if (bytes >= 1048576 && bytes % 1048576 == 0) { bytes /= 1048576; unit = "M" }
  else if (bytes >= 1024 && bytes % 1024 == 0) { bytes /= 1024; unit = "K" }
  return bytes unit
}

NR == 1 {
  for (c = 1; c <= NF; c++) column[$c] = c
  for (t = 1; t <= times && !measured; t++) if (time[t] in column) { measured = column[time[t]]; unit = time[t] }
  sub(/^.*_/, "", unit)
  next
}

# Peers measure themselves.
measured && !("library" in column && $column["library"] != "cohort") && $measured + 0 > 0 {
  row = ""
  for (p = 1; p <= parts; p++) {
    if (!(part[p] in column) || $column[part[p]] == "") continue
    value = $column[part[p]]
    if (part[p] == "bytes") value = size_of(value)
    else if (value ~ /^[0-9]+$/) value = value " " (value == 1 ? substr(part[p], 1, length(part[p]) - 1) : part[p])
    row = row (row == "" ? "" : " ") value
  }
  print which, round, row, unit, $measured
  found++
}

END { exit !found }
