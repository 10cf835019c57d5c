#!/usr/bin/env bash
# Simulates all collectives among 2 to 1024 nodes, and checks that their times grow as the formulas say.
#
#   simulated_scaling.sh COMMAND...     COMMAND starts cohort-bench in one process
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

succeeds "$@" simulate --nodes 1024 --lanes 4 --format csv
rows=$(tail -n +2 "$scratch/out")

same "rows" 120 "$(wc -l <<<"$rows")" # 12 calls among 2, 4, 8 ... nodes
same "collectives" "all_gather all_reduce all_to_all barrier broadcast gather reduce reduce_scatter scatter" \
  "$(cut -d, -f1 <<<"$rows" | sort -u | paste -sd' ')"
# A formula adds up latencies of which long calls hide some.
same "times among 1024 nodes below 0.8 or above 1.1 of the formula's" "" \
  "$(awk -F, '$2 == 1024 && ($6 < 0.8 * $7 || $6 > 1.1 * $7)' <<<"$rows")"
# Rounds grow with the logarithm, twofold here; and beyond some number a roll call carries no data any more.
same "calls without blocks that take over five times as long among 1024 nodes as among 32" "" \
  "$(awk -F, '$1 ~ /^(barrier|all_reduce|reduce|broadcast)$/ { us[$1 "," $4, $2] = $6; calls[$1 "," $4] }
              END { for (call in calls) if (!(us[call, 1024] <= 5 * us[call, 32])) print call }' <<<"$rows")"
