"""Runs write_summaries, and reads its JSON lines and its CSV file with Python's own modules.

    text_files.py WRITE_SUMMARIES
"""
import csv, json, math, pathlib, subprocess, sys, tempfile

expected = [("train/loss", step, -1.0) for step in range(3)]  # later ones were before the restart
expected += [("train/loss", step, 1 / (1 + step)) for step in (3, 4, 5)]
expected += [
    ("nan, \"quoted\"", -1, math.nan),
    ("weights", 3, [[1, 2.8, 3], [2.8, 4.6, 1], [4.6, 6.4, 0], [6.4, 8.2, 0], [8.2, 10, 1]]),
    ("note", 4, "some **text**,\n\"\u00e9\""),
    ("notes", 4, ["a", "b"]),
    ("matrix", 5, [[1, 2, 3], [4, 5, 6]]),
]


def alike(value, other):
    if isinstance(other, list):
        return len(value) == len(other) and all(map(alike, value, other))
    if isinstance(other, str):
        return value == other
    return float(value) == other or math.isclose(float(value), other) or (
        math.isnan(float(value)) and math.isnan(other))


def require(found, what):
    found = [line for line in found if not line[0].startswith("_hparams_/")]
    assert len(found) == len(expected), (what, found)
    for line, wanted in zip(found, expected):
        assert line[:2] == wanted[:2] and alike(line[2], wanted[2]), (what, line, wanted)


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder], check=True)
    lines = [json.loads(line) for line in (pathlib.Path(folder) / "log.jsonl").read_text("utf-8").splitlines()]
    require([(line["tag"], line["step"], line["value"]) for line in lines], "JSON lines")
    assert all(line["wall_time"] > 1e9 for line in lines)

    with open(pathlib.Path(folder) / "log.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    number = lambda text: json.loads(text) if text[0] in '["' else float(text)
    require([(row["tag"], int(row["step"]), number(row["value"])) for row in rows], "CSV")
print("Python has read JSON lines and CSV")
