#!/usr/bin/env bash
# The page of a report in a browser, at the widths of a screen and of a telephone, light and dark: what it draws, what its
# buttons do, and that texts stay texts. Skipped without Chromium.
#
#   page_browser.sh COHORT_BENCH
set -euo pipefail
# shellcheck source=tests/benchmarks/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
cohort_bench=$1
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "skipped: there is no Chromium"; exit 77; }

# results NAME FACTOR: a report of three sizes, in which Cohort takes FACTOR times as long.
results() {
  local bytes time row rows=''
  for bytes in 64 4096 262144; do
    for library in cohort mpi; do
      time=$(awk -v bytes="$bytes" -v factor="$2" -v library="$library" \
        'BEGIN { print (library == "mpi" ? 3 : factor) * (0.1 + bytes / 10000) }')
      row='{"collective": "all_reduce", "library": "'$library'", "algorithm": "<img src=x onerror=hacked=1>", "choice": "size",
        "dtype": "float32", "op": "sum", "members": 2, "bytes": '$bytes', "in_place": true, "inputs": "rewritten",
        "buffers": "heap", "loops": 1, "median_us": '$time', "min_us": '$time', "busbw_gbs": '$time', "ratio_to_peer": 3,
        "wrong": 0, "rounds_us": ['$(awk -v t="$time" 'BEGIN { for (i = 0; i < 12; i++) printf "%s%.6f", i ? ", " : "", t * (1 + i / 1000) }')']}'
      rows+=${rows:+,}$row
    done
  done
  echo '{"environment": {"version": "1.2.3", "build": "Release", "date": "2026-01-01T00:00:00Z", "members": 2, "nodes": 1,
    "cores_available": 2, "cpu_model": "</script><script>hacked = 2</script>", "hosts": ["=1+1, \"n0\""], "settings": {}},
    "subject": "<b>all_reduce</b>", "results": ['"$rows"'], "notes": ["a note"]}' >"$scratch/$1.json"
}
results before 1
results now 1.5
capture "$cohort_bench" report --results "$scratch/now.json" --baseline "$scratch/before.json" --fail-below 0.95 \
  --report "$scratch/page.html"
same "status: $(cat "$scratch/err")" 1 "$status"
succeeds "$cohort_bench" report --results "$scratch/page.html" --baseline "$scratch/page.html" --report "$scratch/again.html"

# The page in two frames, and a script beside them that clicks, and writes what it finds.
cat >"$scratch/frames.html" <<'HTML'
<!DOCTYPE html><meta charset="utf-8"><body>
<iframe id="wide" src="page.html" style="width:1280px;height:900px"></iframe>
<iframe id="narrow" src="page.html" style="width:390px;height:900px"></iframe>
<pre id="found"></pre>
<script>
const later = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const lines = [];
async function look(id) {
  const page = document.getElementById(id).contentWindow, $ = (selector) => [...page.document.querySelectorAll(selector)];
  const say = (what, value) => lines.push(`${id} ${what}: ${value}`);
  const copied = [];
  Object.defineProperty(page.navigator, "clipboard", {value: {writeText: async (text) => { copied.push(text); }}});
  say("overflow", page.document.documentElement.scrollWidth - page.document.documentElement.clientWidth);
  say("curves", $("path.curve").length);
  say("points", $("figure[data-plot=Time] g[data-series=mpi] > rect").length);
  const button = $(".legend button").find((each) => each.textContent === "mpi");
  button.click();
  say("curves without mpi", $("path.curve").length + " " + button.getAttribute("aria-pressed"));
  button.click();
  say("curves again", $("path.curve").length + " " + button.getAttribute("aria-pressed"));
  for (const each of $("section .bar button")) each.click();
  await later(100);
  say("tables", $("table").length + ", copied " + copied.length);
  say("head", copied[1].split("\n")[0].split(",").slice(0, 4).join());
  say("rows", copied[1].trim().split("\n").length - 1);
  say("label", $("section .bar button")[0].textContent);
  await later(2000);
  say("label", $("section .bar button")[0].textContent);
  say("verdict", $("#verdict")[0].className + " " + $("#verdict")[0].textContent);
  say("markup made of texts", $("main img, main script, main b:not(figcaption b)").length + " " + page.hacked);
  say("subject", $("main p")[0].textContent);
  say("ground", page.getComputedStyle(page.document.body).backgroundColor);
}
addEventListener("load", async () => {
  await later(500);
  try { await look("wide"); await look("narrow"); } catch (error) { lines.push(`error: ${error.stack}`); }
  document.getElementById("found").textContent = lines.join("\n");
});
</script>
HTML

# look SCHEME: leaves what was found in $scratch/found.
look() {
  HOME=$scratch timeout 100 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --user-data-dir="$scratch/profile" --allow-file-access-from-files --blink-settings=preferredColorScheme="$1" \
    --virtual-time-budget=20000 --dump-dom "file://$scratch/frames.html" >"$scratch/dom" 2>"$scratch/err" ||
    fail "the browser ends with $?: $(tail -n 5 "$scratch/err")"
  sed -n '/<pre id="found">/,/<\/pre>/p' "$scratch/dom" | sed 's/.*<pre id="found">//; s/<\/pre>.*//; s/&lt;/</g; s/&gt;/>/g' >"$scratch/found"
}

# found SCHEME GROUND: what is on the page.
found() {
  local id
  for id in wide narrow; do
    cat <<EXPECTED
$id overflow: 0
$id curves: 5
$id points: 3
$id curves without mpi: 3 false
$id curves again: 5 true
$id tables: 3, copied 3
$id head: collective,library,algorithm,choice
$id rows: 6
$id label: copied
$id label: copy as CSV
$id verdict: verdict failed failed: 3 of 3 sizes have less than 0.95 of the baseline's speed
$id markup made of texts: 0 undefined
$id subject: <b>all_reduce</b>
$id ground: $1
EXPECTED
  done
}

echo "light"
look 1
diff <(found "rgb(255, 255, 255)") "$scratch/found" || fail "the light page is not as expected"
echo "dark"
look 0
diff <(found "rgb(20, 23, 27)") "$scratch/found" || fail "the dark page is not as expected"
