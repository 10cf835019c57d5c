"""Pages of the examples: what the program says of itself, how it is run and what it prints then, and its sources."""

import re
import subprocess
import sys

LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".cu": "cuda", ".py": "python"}


def page_of(path):
    """The page of examples/NAME/... or examples/NAME.cpp."""
    name = path.split("/")[1] if "/" in path else ""
    return f"examples/{name.split('.')[0]}.md" if name else "examples/index.md"


def opening_comment(text):
    """The comment that a source begins with, without its signs."""
    if text.startswith('"""'):
        return text[3:text.index('"""', 3)].strip("\n").split("\n")
    lines = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    return lines


def markdown(lines, language=""):
    """A comment as Markdown: what is indented is code, and signs mean themselves."""
    result, code = [], []

    def end_code():
        while code and not code[-1].strip():
            code.pop()
        if code:
            indent = min(len(line) - len(line.lstrip()) for line in code if line.strip())
            result.extend([f"```{language}", *(line[indent:] for line in code), "```", ""])
            code.clear()

    in_list = False
    for line in lines:
        indented = line.startswith("  ") and not in_list
        if indented or (code and not line.strip()):
            code.append(line)
            continue
        end_code()
        in_list = line.startswith(("- ", "* ")) or bool(re.match(r"\d+\. ", line)) or (in_list and line.startswith("  "))
        result.append("".join(part if i % 2 else re.sub(r"([*_<\[\]|])", r"\\\1", part)
                              for i, part in enumerate(re.split(r"(`[^`]*`)", line))))
        if in_list and result[-1].startswith("\\* "):
            result[-1] = result[-1][1:]
    end_code()
    return "\n".join(result)


def sources(folder):
    if folder.is_file():
        return [folder]
    files = [path for path in sorted(folder.iterdir()) if path.suffix in LANGUAGES]
    return sorted(files, key=lambda path: path.stem != "main")


def write(site):
    root = site.root
    names = []
    for folder in sorted((root / "examples").iterdir()):
        files = sources(folder) if folder.is_dir() or folder.suffix == ".cpp" else []
        if not files:
            continue
        name = folder.stem
        names.append(name)
        head = opening_comment(files[0].read_text())
        page = [f"# {name}", "", markdown(head, "sh" if any("build/bin" in line for line in head) else "")]
        transcript = root / "docs/site/output" / f"{name}.txt"
        if transcript.exists():
            page += ["", "## What it prints", "", "```console", transcript.read_text().rstrip("\n"), "```"]
        for path in files:
            place = path.relative_to(root).as_posix()
            language = LANGUAGES[path.suffix]
            shown = "c++" if language == "cuda" else language
            page += ["", f"## {place}", "", f"`````{shown}", path.read_text().rstrip("\n"), "`````"]
        site.write(f"examples/{name}.md", "\n".join(page) + "\n")
    site.write("examples/index.md", index(root, names))


def index(root, names):
    lines = ["# Examples", "", "Whole programs, each with what it prints. `launch/build.sh release 2` builds them, in `build/bin/`.", ""]
    for name in names:
        folder = root / "examples" / name
        head = opening_comment(sources(folder if folder.is_dir() else folder.with_suffix(".cpp"))[0].read_text())
        paragraph = markdown(head).split("\n\n")[0].split("```")[0]
        sentence = re.split(r"(?<=[.:])\s", paragraph.replace("\n", " "))[0].rstrip(":.")
        lines.append(f"- [{name}]({name}.md): {sentence[0].lower() + sentence[1:]}")
    lines += ["", "```{toctree}", ":hidden:", "", *names, "```", ""]
    return "\n".join(lines)


def shown(lines):
    """What a page keeps of an output: without times, which are the machine's, and without a line that is drawn anew."""
    lines = [re.sub(r"\s+(in )?[\d.]+ m?s\b", "", line).rstrip() for line in lines if not re.search(r"\[=*>? *\] ", line)]
    lines = [line for line in lines if line]
    return lines if len(lines) <= 12 else [*lines[:4], "...", *lines[-4:]]


def record(path):
    """Runs the commands of a transcript again, and writes what they print now."""
    result = []
    for line in path.read_text().split("\n"):
        if line.startswith("$ "):
            done = subprocess.run(["bash", "-c", line[2:]], stdout=subprocess.PIPE, text=True, check=True)
            result += [line, *shown(done.stdout.split("\n"))]
    path.write_text("\n".join(result) + "\n")


if __name__ == "__main__":
    import pathlib
    for argument in sys.argv[1:]:
        record(pathlib.Path(argument))
