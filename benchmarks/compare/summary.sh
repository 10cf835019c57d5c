# shellcheck shell=bash
# Sourced by compare.sh: from every single measurement to a table and a plot. What counts of a runner
# at a size is the median over the rounds, with whichever of its settings that is the least.

# best_times COLUMN: bytes,runner,time for each runner and size.
best_times() {
  tail -n +2 "$output/measurements.csv" | sort -t, -k1,1 -k2,2 -k4,4n -k"$1","$1"g |
    awk -F, -v OFS=, -v column="$1" '
      function finish(    middle, time) {
        if (!count) return
        middle = int((count + 1) / 2)
        time = count % 2 ? times[middle] : (times[middle] + times[middle + 1]) / 2
        if (!((bytes, runner) in best) || time < best[bytes, runner]) best[bytes, runner] = time
        count = 0
      }
      { key = $1 FS $2 FS $4 }
      key != last { finish(); last = key; runner = $1; bytes = $4 }
      { times[++count] = $column }
      END {
        finish()
        for (pair in best) { split(pair, part, SUBSEP); print part[1], part[2], best[pair] }
      }' | sort -t, -k1,1n -k2,2
}

# wide FILE: a row per size and a column per runner, from best_times.
wide() {
  awk -F, -v OFS=, '
    !($1 in seen_size) { seen_size[$1]; sizes[++rows] = $1 }
    !($2 in seen_runner) { seen_runner[$2]; runners[++columns] = $2 }
    { time[$1, $2] = $3 }
    END {
      line = "bytes"
      for (c = 1; c <= columns; c++) line = line OFS runners[c]
      print line
      for (r = 1; r <= rows; r++) {
        line = sizes[r]
        for (c = 1; c <= columns; c++) line = line OFS time[sizes[r], runners[c]]
        print line
      }
    }' "$1"
}

# with_ratios FILE: bytes, the best peer, who it is, then time and ratio of each of the others.
with_ratios() {
  awk -F, -v OFS=, -v peers="${ready[*]}" '
    BEGIN { count = split(peers, list, " "); for (i = 1; i <= count; i++) is_peer[list[i]] }
    NR == 1 {
      line = "bytes,best_peer_us,best_peer"
      for (c = 2; c <= NF; c++) { name[c] = $c; if (!($c in is_peer)) line = line OFS $c "_us" OFS $c "_ratio" }
      print line
      next
    }
    {
      best = ""; who = "-"
      for (c = 2; c <= NF; c++) {
        if (name[c] in is_peer && $c != "" && (best == "" || $c + 0 < best + 0)) { best = $c; who = name[c] }
      }
      line = $1 OFS best OFS who
      for (c = 2; c <= NF; c++) {
        if (name[c] in is_peer) continue
        ratio = (best != "" && $c + 0 > 0) ? sprintf("%.3f", best / $c) : ""
        line = line OFS $c OFS ratio
      }
      print line
    }' "$1"
}

as_table() {
  awk -F, '
    function size_of(bytes,    unit) {
      unit = ""
      if (bytes >= 1073741824 && bytes % 1073741824 == 0) { bytes /= 1073741824; unit = "G" }
      else if (bytes >= 1048576 && bytes % 1048576 == 0) { bytes /= 1048576; unit = "M" }
      else if (bytes >= 1024 && bytes % 1024 == 0) { bytes /= 1024; unit = "K" }
      return bytes unit
    }
    function number(text) {
      if (text == "") return "-"
      return text >= 100 ? sprintf("%.0f", text) : text >= 10 ? sprintf("%.1f", text) : sprintf("%.3f", text)
    }
    NR == 1 {
      printf "%6s %12s %-15s", "size", "best peer us", "who"
      for (c = 4; c <= NF; c += 2) { sub(/_us$/, "", $c); printf " %17s %7s", $c " us", "ratio" }
      print ""
      next
    }
    {
      printf "%6s %12s %-15s", size_of($1), number($2), $3
      for (c = 4; c <= NF; c += 2) printf " %17s %7s", number($c), ($(c + 1) == "" ? "-" : sprintf("%.2f", $(c + 1)))
      print ""
    }' "$1"
}

summarize() {
  local words="in place"
  [[ $in_place == yes ]] || words="out of place"
  if (($(wc -l <"$output/measurements.csv") == 1)); then say "nothing could be measured: see $log"; exit 1; fi
  best_times 5 >"$scratch/call"
  best_times 7 >"$scratch/iteration"
  wide "$scratch/call" >"$output/times.csv"
  wide "$scratch/iteration" >"$scratch/iterations.csv"
  with_ratios "$output/times.csv" >"$output/summary.csv"
  with_ratios "$scratch/iterations.csv" >"$output/summary_iterations.csv"
  {
    echo "$collective of $dtype, $words, $ranks ranks; median of $rounds rounds; ratio: best peer over the column's time"
    echo
    echo "The call alone:"
    as_table "$output/summary.csv"
    echo
    echo "The whole iteration: writing the input, the call, reading the result:"
    as_table "$output/summary_iterations.csv"
  } | tee "$output/table.txt"
}

# json_text TEXT: as a string of JSON.
json_text() {
  local text=$1
  text=${text//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//[[:cntrl:]]/ }
  printf '"%s"' "$text"
}

# The environment as cohort-bench sees it, on lines of their own; of the launch of every Cohort run here.
environment() {
  timeout "$limit" mpirun -n "$ranks" "${cohort_binding[@]}" "$cohort_bench" barrier --peer none --iterations 1 --loops 1 \
    --format json --output "$scratch/environment.json" </dev/null >>"$log" 2>&1 || return 1
  sed -n '/^  "environment": {$/,/^  },$/p' "$scratch/environment.json" |
    COMMAND=$(json_text "compare.sh ${arguments[*]}") awk '/^    "command_line": / { print "    \"command_line\": " ENVIRON["COMMAND"] ","; next } { print }'
}

# rows_of_report: a runner's row at each size, with its best setting, as cohort-bench has it in JSON.
rows_of_report() {
  awk -F, -v peers="${ready[*]}" -v collective="${collective//-/_}" -v dtype="$dtype" -v ranks="$ranks" \
    -v in_place="$([[ $in_place == yes ]] && echo true || echo false)" -v factor="$(awk "BEGIN { print $(bus_factor) }")" '
    function median(list,    n, i, j, value, sorted) {
      n = split(list, sorted, " ")
      for (i = 2; i <= n; i++) {
        value = sorted[i]
        for (j = i - 1; j >= 1 && sorted[j] + 0 > value + 0; j--) sorted[j + 1] = sorted[j]
        sorted[j + 1] = value
      }
      return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
    }
    function text(value) { gsub(/[\\"]/, "\\\\&", value); return "\"" value "\"" }
    NR == 1 { next }
    {
      place = $1 SUBSEP $4
      if (!(place in seen)) { seen[place] = ""; order[++places] = place }
      key = place SUBSEP $2
      if (!(key in call)) settings[place] = settings[place] (settings[place] == "" ? "" : "\n") $2
      call[key] = call[key] " " $5
      iteration[key] = iteration[key] " " $7
      if (!(key in least) || $6 + 0 < least[key]) least[key] = $6 + 0
      if ($8 == "wrong") wrong[place] = 1
    }
    END {
      count = split(peers, list, " ")
      for (i = 1; i <= count; i++) is_peer[list[i]]
      for (i = 1; i <= places; i++) {
        n = split(settings[order[i]], names, "\n")
        for (s = 1; s <= n; s++) {
          time = median(call[order[i] SUBSEP names[s]])
          if (s == 1 || time < best[order[i]]) { best[order[i]] = time; setting[order[i]] = names[s] }
        }
        split(order[i], part, SUBSEP)
        if (part[1] in is_peer && (!(part[2] in fastest) || best[order[i]] < fastest[part[2]])) fastest[part[2]] = best[order[i]]
      }
      for (i = 1; i <= places; i++) {
        place = order[i]
        split(place, part, SUBSEP)
        library = part[1]; bytes = part[2]; key = place SUBSEP setting[place]
        buffers = "private"; algorithm = setting[place]; choice = "library"
        if (library ~ /^cohort-/) {
          buffers = substr(library, 8); library = "cohort"
          split(algorithm, chosen, "/"); algorithm = chosen[1]; choice = chosen[2]
        }
        rounds = call[key]; gsub(/^ /, "", rounds); gsub(/ /, ", ", rounds)
        # Where one rank has nothing to do, times are below the last digit.
        has_time = best[place] > 0
        ratio = (part[1] in is_peer || !(bytes in fastest) || !has_time) ? "null" : fastest[bytes] / best[place]
        bandwidth = has_time ? bytes / best[place] / 1000 : 0
        printf "%s    {\"collective\": %s, \"library\": %s, \"algorithm\": %s, \"choice\": %s, \"dtype\": %s, \"op\": %s, " \
          "\"members\": %d, \"bytes\": %s, \"in_place\": %s, \"inputs\": \"rewritten\", \"buffers\": %s, " \
          "\"median_us\": %s, \"min_us\": %s, \"iteration_us\": %s, \"rounds_us\": [%s], \"algbw_gbs\": %.6f, \"busbw_gbs\": %.6f, " \
          "\"ratio_to_peer\": %s, \"wrong\": %s}", i == 1 ? "" : ",\n", text(collective), text(library), text(algorithm), \
          text(choice), text(collective == "barrier" ? "none" : dtype), text(collective ~ /reduce/ ? "sum" : "none"), ranks, bytes, \
          in_place, text(collective == "barrier" ? "none" : buffers), best[place], least[key], median(iteration[key]), rounds, \
          bandwidth, bandwidth * factor, ratio, place in wrong ? 1 : 0
      }
      print ""
    }' "$output/measurements.csv"
}

# The page comes from cohort-bench, out of a report in its form.
write_page() {
  local words="in place" facts
  [[ $in_place == yes ]] || words="out of place"
  [[ $collective != barrier ]] || words="no data"
  facts=$(environment) || { say "no page: cohort-bench cannot tell the environment, see $log"; return; }
  {
    echo "{"
    echo "$facts"
    echo "  \"subject\": $(json_text "$collective, $words, $ranks ranks, beside: ${ready[*]:-no peer}"),"
    echo "  \"method\": $(json_text "Each library is in a program of its own, and all take turns in each of $rounds rounds; what counts is the median over the rounds, with the best of a library's settings. Each member writes its input, calls, and compares the whole result; only the call is timed, on the slowest member."),"
    echo "  \"results\": ["
    rows_of_report
    echo "  ],"
    echo "  \"notes\": []"
    echo "}"
  } >"$output/report.json"
  "$cohort_bench" report --results "$output/report.json" --report "$page" 2>>"$log" || say "no page: see $log"
}

# Bus bandwidth over bytes per time, as benchmarks/bandwidth.h has it.
bus_factor() {
  case $collective in
    all-reduce) echo "2.0 * ($ranks - 1) / $ranks" ;;
    broadcast | reduce) echo 1.0 ;;
    *) echo "($ranks - 1.0) / $ranks" ;;
  esac
}

plot() {
  if [[ $collective == barrier || $sizes != *:* ]]; then say "no plot: there is only one size"; return; fi
  if ! command -v gnuplot >/dev/null; then say "no plot: gnuplot is not installed"; return; fi
  # Columns that are names of runners may not be read as formulas: the titles come from the first line.
  gnuplot -e "times='$output/times.csv'; image='$output/plot.png'; factor=$(bus_factor)" \
    -e "columns=$(head -n 1 "$output/times.csv" | awk -F, '{ print NF }')" "$here/compare/plot.gp" >>"$log" 2>&1 ||
    say "no plot: gnuplot failed, see $log"
}
