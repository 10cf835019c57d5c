"use strict";
// Draws the report that the page has as JSON. Every text goes into the page as a text, never as markup.
const report = JSON.parse(document.getElementById("report").textContent);
const main = document.querySelector("main");

// element("p", {class: "soft"}, "text", otherElement, ...)
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : String(child)));
  return node;
}

function shape(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function sizeText(bytes) {
  for (const [unit, size] of [["G", 2 ** 30], ["M", 2 ** 20], ["K", 2 ** 10]])
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  return String(bytes);
}

// Three digits, never an exponent.
function three(value) {
  if (value === null || value === undefined) return "–";
  if (!isNumber(value)) return String(value);
  if (value === 0 || Number.isInteger(value)) return String(value);
  const digits = 2 - Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.min(Math.max(digits, 0), 6));
}

// As RFC 4180 has it. A cell that a spreadsheet would take for a formula begins with an apostrophe.
function csvOf(columns, rows) {
  const cell = (value) => {
    let text = value === null || value === undefined ? "" :
      typeof value === "object" ? JSON.stringify(value) : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Some browsers have no clipboard for a page that is a file.
    const area = element("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const label = button.textContent;
  button.textContent = done ? "copied" : "could not be copied";
  setTimeout(() => { button.textContent = label; }, 1500);
}

// columns: {head, value(row), text: whether it is no number, mark(row): a class}. The CSV has all fields of the rows.
function tableSection(title, columns, rows, hint = null) {
  const fields = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const button = element("button", {type: "button"}, "copy as CSV");
  button.addEventListener("click", () =>
    copy(csvOf(fields, rows.map((row) => fields.map((field) => row[field]))), button));
  const kind = (column) => (column.text ? {class: "text"} : {});
  const head = element("tr", {}, ...columns.map((column) => element("th", kind(column), column.head)));
  const body = rows.map((row) => element("tr", {}, ...columns.map((column) => {
    const mark = [column.text ? "text" : "", column.mark ? column.mark(row) : ""].join(" ").trim();
    return element("td", mark ? {class: mark} : {}, column.value(row));
  })));
  return element("section", {},
    element("div", {class: "bar"}, element("h2", {}, title), button),
    hint === null ? null : element("p", {class: "hint"}, hint),
    element("div", {class: "wide", tabindex: "0", role: "region", "aria-label": title},
      element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))));
}

function facts(pairs) {
  return element("dl", {}, ...pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function environmentSection(environment) {
  const one = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const changed = Object.entries(environment.settings ?? {}).filter(([, setting]) => setting.origin === "environment");
  const nodes = environment.nodes;
  return element("section", {}, element("h2", {}, "Environment"), facts([
    ["command", environment.command_line ? element("code", {}, environment.command_line) : null],
    ["date", environment.date],
    ["Cohort", environment.version ? `${environment.version} (${environment.build})` : null],
    ["MPI", environment.mpi_library],
    ["members", isNumber(environment.members) ? `${one(environment.members, "member")} on ${one(nodes, "node")}, ` +
      `${one(environment.cores_available, "core")}: ${environment.binding}` : null],
    ["hosts", (environment.hosts ?? []).join(", ")],
    ["processor", environment.cpu_model],
    ["GPU", environment.gpu],
    ["system", environment.kernel],
    ["clock", environment.clock],
    ["settings", environment.settings ?
      changed.map(([name, setting]) => `${name}=${setting.value}`).join(" ") || "all default" : null],
  ]), environment.oversubscribed ? element("p", {class: "verdict failed"},
    "There were more members than cores: the scheduler was timed, not the libraries.") : null);
}

// Curves over sizes, both axes logarithmic.
const marks = [
  (x, y) => shape("circle", {cx: x, cy: y, r: 3.2}),
  (x, y) => shape("rect", {x: x - 3, y: y - 3, width: 6, height: 6}),
  (x, y) => shape("path", {d: `M${x} ${y - 4}l4 7h-8z`}),
  (x, y) => shape("path", {d: `M${x} ${y - 4.5}l4.5 4.5l-4.5 4.5l-4.5 -4.5z`}),
  (x, y) => shape("path", {d: `M${x} ${y + 4}l4 -7h-8z`}),
];
const signs = ["●", "■", "▲", "◆", "▼"];
const dashes = ["", "7 4", "2 3"];
const style = (number) => ({
  tint: `var(--series-${number % 8})`, mark: number % marks.length, dash: dashes[Math.floor(number / 8) % dashes.length]});

function decades(least, most) {
  const ticks = [];
  const steps = Math.log10(most / least) < 2 ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(least)) - 1; power <= Math.ceil(Math.log10(most)); ++power)
    for (const step of steps) ticks.push(step * 10 ** power);
  return ticks;
}

function plot(curves, unit, width, withOne) {
  const height = Math.round(Math.max(230, Math.min(330, width * 0.68)));
  const [left, right, top, bottom] = [46, 12, 10, 38];
  const points = curves.flatMap((curve) => curve.points);
  const svg = shape("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${unit} over bytes`});
  if (points.length === 0) {
    svg.append(shape("text", {x: left, y: height / 2}, "nothing is shown"));
    return svg;
  }
  const xs = points.map((point) => point.x), ys = points.map((point) => point.y).concat(withOne ? [1] : []);
  let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  if (x0 === x1) { x0 /= 2; x1 *= 2; }
  [y0, y1] = [y0 / 1.25, y1 * 1.25];
  const across = (x) => left + (width - left - right) * Math.log(x / x0) / Math.log(x1 / x0);
  const up = (y) => height - bottom - (height - top - bottom) * Math.log(y / y0) / Math.log(y1 / y0);
  for (const tick of decades(y0, y1)) {
    if (tick < y0 || tick > y1) continue;
    svg.append(shape("line", {class: "grid", x1: left, x2: width - right, y1: up(tick), y2: up(tick)}),
      shape("text", {x: left - 6, y: up(tick) + 4, "text-anchor": "end"}, String(Number(tick.toPrecision(1)))));
  }
  const sizes = [...new Set(xs)].sort((a, b) => a - b);
  const every = Math.ceil(sizes.length / Math.max(2, Math.floor((width - left) / 44)));
  sizes.forEach((size, number) => {
    if (number % every) return;
    svg.append(shape("line", {class: "grid", x1: across(size), x2: across(size), y1: top, y2: height - bottom}),
      shape("text", {x: across(size), y: height - bottom + 16, "text-anchor": "middle"}, sizeText(size)));
  });
  svg.append(shape("text", {x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle"}, "bytes"));
  if (withOne) svg.append(shape("line", {class: "one", x1: left, x2: width - right, y1: up(1), y2: up(1)}));
  for (const curve of curves) {
    const {tint, mark, dash} = style(curve.number);
    const group = shape("g", {"data-series": curve.name});
    const line = curve.points.map((point, i) => `${i ? "L" : "M"}${across(point.x).toFixed(1)} ${up(point.y).toFixed(1)}`);
    group.append(shape("path", {class: "curve", d: line.join(""), style: `stroke: ${tint}`, "stroke-dasharray": dash}));
    for (const point of curve.points) {
      const at = marks[mark](across(point.x), up(point.y));
      at.setAttribute("style", `fill: ${tint}`);
      at.append(shape("title", {}, `${curve.name}, ${sizeText(point.x)} bytes: ${three(point.y)} ${unit}`));
      group.append(at);
    }
    svg.append(group);
  }
  return svg;
}

// One for each library and kind of memory: those of one name have the same calls.
function seriesOf(rows) {
  const libraries = new Map();
  for (const row of rows) {
    if (!libraries.has(row.library)) libraries.set(row.library, new Set());
    libraries.get(row.library).add(row.buffers);
  }
  const series = new Map();
  for (const row of rows) {
    const name = libraries.get(row.library).size > 1 ? `${row.library} (${row.buffers})` : row.library;
    if (!series.has(name)) series.set(name, {name, number: series.size, ours: row.library.startsWith("cohort"), rows: []});
    series.get(name).rows.push(row);
  }
  return [...series.values()];
}

function plotsSection(series) {
  const peers = series.filter((each) => !each.ours);
  const best = new Map();  // the fastest peer's row of each size
  for (const row of peers.flatMap((each) => each.rows))
    if (!best.has(row.bytes) || row.median_us < best.get(row.bytes).median_us) best.set(row.bytes, row);
  const curvesOf = (chosen, value) => chosen.map((each) => ({
    name: each.name, number: each.number,
    points: each.rows.map((row) => ({x: row.bytes, y: value(row)})).filter((point) => point.x > 0 && point.y > 0),
  }));
  const figures = [
    {title: "Time", unit: "us", what: "microseconds of a call; less is better", curves: curvesOf(series, (row) => row.median_us)},
    {title: "Bus bandwidth", unit: "GB/s", what: "1e9 bytes per second; more is better", curves: curvesOf(series, (row) => row.busbw_gbs)},
  ];
  if (peers.length > 0) figures.push({
    title: "Ratio to the best peer", unit: "times as fast", withOne: true, what: "the fastest peer's time over ours; above 1 is faster",
    curves: curvesOf(series.filter((each) => each.ours), (row) => best.has(row.bytes) ? best.get(row.bytes).median_us / row.median_us : 0),
  });
  if (new Set(series.flatMap((each) => each.rows.map((row) => row.bytes))).size < 2) return null;  // nothing to draw over
  const hidden = new Set();
  const boxes = figures.map((figure) => {
    const box = element("figure", {"data-plot": figure.title},
      element("figcaption", {}, element("b", {}, figure.title), `: ${figure.what}`));
    return {figure, box};
  });
  const draw = () => {
    for (const {figure, box} of boxes) {
      box.querySelector("svg")?.remove();
      const shown = figure.curves.filter((curve) => !hidden.has(curve.name));
      box.append(plot(shown, figure.unit, Math.max(260, box.clientWidth - 22), figure.withOne));
    }
  };
  const legend = element("div", {class: "legend", role: "group", "aria-label": "what the plots show"}, ...series.map((each) => {
    const {tint, mark} = style(each.number);
    const button = element("button", {type: "button", "aria-pressed": "true", "data-sign": signs[mark], style: `--tint: ${tint}`}, each.name);
    button.addEventListener("click", () => {
      if (!hidden.delete(each.name)) hidden.add(each.name);
      button.setAttribute("aria-pressed", String(!hidden.has(each.name)));
      draw();
    });
    return button;
  }));
  const section = element("section", {}, element("h2", {}, "Over the size"), legend,
    element("div", {class: "plots"}, ...boxes.map(({box}) => box)));
  let width = 0;
  new ResizeObserver(() => {
    if (width !== section.clientWidth) { width = section.clientWidth; draw(); }
  }).observe(section);
  return section;
}

const reasons = {
  size: "calls of this size have only this one",
  model: "the cheapest by the built-in figures",
  probe: "the cheapest by figures measured in this run",
  file: "the cheapest by the figures of COHORT_TUNING_FILE",
  forced: "COHORT_ALGORITHM asks for it",
  library: "the library's own choice",
};

function resultsSection(rows) {
  const named = (head, field) => ({head, text: true, value: (row) => row[field] ?? "–"});
  const number = (head, field) => ({head, value: (row) => three(row[field])});
  const verdict = (row) => row.ratio_to_peer > 1 ? "good" : row.ratio_to_peer < 1 ? "bad" : "";
  return tableSection("Results", [
    {head: "bytes", value: (row) => sizeText(row.bytes)},
    named("library", "library"), number("median us", "median_us"),
    {head: "ratio", value: (row) => three(row.ratio_to_peer), mark: (row) => row.library.startsWith("cohort") ? verdict(row) : ""},
    number("bus GB/s", "busbw_gbs"), named("algorithm", "algorithm"), named("memory", "buffers"),
    number("least us", "min_us"), number("p99 us", "p99_us"), number("iteration us", "iteration_us"),
    {head: "wrong", value: (row) => row.wrong ?? "–", mark: (row) => row.wrong > 0 ? "bad" : ""},
  ], rows, "ratio: the other library's median over this one's, so above 1 this one is faster; wrong: elements, empty where not checked.");
}

function choicesSection(rows) {
  const ours = rows.filter((row) => row.library.startsWith("cohort") && row.algorithm);
  if (ours.length === 0 || ours.every((row) => row.choice === undefined || row.choice === null)) return null;
  // Neighbouring sizes with one choice are one line.
  const ranges = [];
  for (const row of ours) {
    const last = ranges.find((range) => range.buffers === row.buffers && range === ranges.findLast((each) => each.buffers === row.buffers));
    if (last && last.algorithm === row.algorithm && last.choice === row.choice) last.to = row.bytes;
    else ranges.push({from: row.bytes, to: row.bytes, buffers: row.buffers, algorithm: row.algorithm, choice: row.choice,
      why: reasons[row.choice] ?? row.choice});
  }
  return tableSection("Which algorithm, and why", [
    {head: "bytes", value: (row) => row.from === row.to ? sizeText(row.from) : `${sizeText(row.from)} to ${sizeText(row.to)}`},
    {head: "memory", text: true, value: (row) => row.buffers},
    {head: "algorithm", text: true, value: (row) => row.algorithm},
    {head: "why", text: true, value: (row) => `${row.choice}: ${row.why}`},
  ], ranges);
}

function comparisonSection(comparison) {
  const bound = comparison.fail_below;
  const chance = (row) => row.chance === null ? "–" : row.chance < 0.0001 ? "< 0.0001" : row.chance.toFixed(4);
  const section = tableSection("Beside the baseline", [
    {head: "bytes", value: (row) => sizeText(row.bytes)},
    {head: "baseline us", value: (row) => three(row.baseline_us)},
    {head: "now us", value: (row) => three(row.now_us)},
    {head: "speed", value: (row) => three(row.speed), mark: (row) => row.slower ? "bad" : ""},
    {head: "95 % interval", value: (row) => row.speed_low === null ? "–" : `${three(row.speed_low)} to ${three(row.speed_high)}`},
    {head: "chance", value: chance},
    {head: "verdict", text: true, value: (row) => row.chance === null ? "not tested" : row.slower ? "slower" : "not slower",
      mark: (row) => row.slower ? "bad" : ""},
  ], comparison.rows, `Speed: now, as a part of the baseline's, so below 1 is slower. ` + (bound === null ? "" :
    `Chance: of times like these if the speed were ${bound}, by a rank test over the rounds, corrected for the number of sizes` +
    (comparison.rows.some((row) => row.beside_peer) ? "; the size must also be slower beside the peer." : ".")));
  section.querySelector(".bar").after(element("p", {}, `Baseline: ${comparison.baseline}.`),
    ...comparison.differences.map((difference) => element("p", {class: "soft"}, `Another ${difference}.`)));
  return section;
}

// What is no sweep: every list of objects is a table, and what stands beside it are facts.
function generalSections(name, value) {
  if (Array.isArray(value) && value.length > 0 && value.every((each) => each !== null && typeof each === "object")) {
    const fields = [...new Set(value.flatMap((row) => Object.keys(row)))];
    const plain = (cell) => cell !== null && typeof cell === "object" ? JSON.stringify(cell) : three(cell);
    return [tableSection(name.replaceAll("_", " "), fields.map((field) => ({
      head: field.replaceAll("_", " "), value: (row) => plain(row[field]), text: value.some((row) => typeof row[field] === "string"),
    })), value)];
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return [];
  const single = Object.entries(value).filter(([, each]) => each === null || typeof each !== "object");
  const lists = Object.entries(value).filter(([, each]) => each !== null && typeof each === "object");
  return [
    single.length > 0 ? element("section", {}, element("h2", {}, name.replaceAll("_", " ")),
      facts(single.map(([fact, each]) => [fact.replaceAll("_", " "), three(each)]))) : null,
    ...lists.flatMap(([field, each]) => generalSections(field === "results" ? `${name}: results` : field, each)),
  ];
}

function show() {
  const environment = report.environment ?? {};
  const rows = Array.isArray(report.results) ? report.results : null;
  const title = rows && rows.length > 0 ? `${rows[0].collective} of ${rows[0].dtype}` : (environment.command_line ?? "cohort-bench").split(" ").slice(0, 2).join(" ");
  document.title = `${title}: cohort-bench`;
  const children = [element("h1", {}, title), report.subject ? element("p", {class: "soft"}, report.subject) : null];
  if (report.comparison) {
    const {verdict, fail_below: bound, slower} = report.comparison;
    children.push(element("p", {class: `verdict ${bound === null ? "" : slower ? "failed" : "passed"}`, id: "verdict"}, verdict));
  }
  if (rows) {
    const rounds = rows[0]?.rounds_us?.length ?? 1;
    const method = report.method ?? "Each member writes its input, calls, and compares the whole result with the exact one; only " +
      "the call is timed. Times are those of the slowest member: the mean of a loop's calls, and the median of " +
      `${rows[0]?.loops ?? "several"} loops${rounds > 1 ? ` in each of ${rounds} rounds` : ""}, in which the libraries take turns.`;
    children.push(element("p", {id: "method"}, method), plotsSection(seriesOf(rows)));
    if (report.comparison) children.push(comparisonSection(report.comparison));
    children.push(resultsSection(rows), choicesSection(rows));
  } else {
    for (const [name, value] of Object.entries(report))
      if (!["environment", "notes"].includes(name)) children.push(...generalSections(name, value));
  }
  if ((report.notes ?? []).length > 0)
    children.push(element("section", {}, element("h2", {}, "Notes"), ...report.notes.map((note) => element("p", {}, note))));
  children.push(environmentSection(environment));
  main.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}
show();
