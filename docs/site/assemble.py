"""Puts the sources of the site together in one folder: the pages of the tree with their links turned to where the pages
are in the site, the examples with their output, and a page for each public header.

    assemble.py ROOT XML OUT

XML is Doxygen's folder. Files that have not changed keep their time, so that Sphinx reads only what is new.
"""

import os
import pathlib
import re
import sys

import examples
import reference

FENCED = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[ \t]*$", re.M | re.S)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
NAMES = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
         "SECURITY.md": "security.md"}
SHARED = {".svg", ".png"}


class Site:
    """Where each file of the tree is in the site, and the files that have been written."""

    def __init__(self, root, out):
        self.root, self.out, self.written = root, out, set()

    def place(self, path):
        """Where a file of the tree is in the site, or None if it is no part of it."""
        if path in NAMES:
            return NAMES[path]
        parts = pathlib.PurePosixPath(path).parts
        if parts[0] == "docs" and parts[1:2] != ("site",):
            return "/".join(parts[1:])
        if parts[0] == "examples":
            return examples.page_of(path)
        if path.startswith("include/cohort/") and path.endswith(".h"):
            return reference.page_of(path.removeprefix("include/"))
        return None

    def write(self, name, content):
        path = self.out / name
        self.written.add(path)
        if isinstance(content, str):
            content = content.encode()
        if path.exists() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def remove_others(self):
        for path in self.out.rglob("*"):
            if path.is_file() and path not in self.written:
                path.unlink()

    def turned(self, origin, target):
        """What a link of the page `origin` to `target` is in the site."""
        address, hash_sign, anchor = target.partition("#")
        if not address or "://" in target or target.startswith("mailto:"):
            return target
        path = os.path.normpath(os.path.join(os.path.dirname(origin), address))
        here = os.path.dirname(self.place(origin))
        place = self.place(path)
        if place is None:  # a file to look at
            source = self.root / path
            if not source.is_file():
                raise SystemExit(f"{origin}: a link to {target}, which is not there")
            place = f"files/{path}.txt"
            self.write(place, source.read_bytes())
        return os.path.relpath(place, here or ".") + hash_sign + anchor

    def page(self, path):
        text = (self.root / path).read_text()

        def turn(part):
            return LINK.sub(lambda m: m[1] + self.turned(path, m[2]) + m[3], part)

        result, end = [], 0
        for block in FENCED.finditer(text):  # code is left as it is
            result += [turn(text[end:block.start()]), block[0]]
            end = block.end()
        self.write(self.place(path), "".join(result) + turn(text[end:]))


def main():
    root, xml, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    site = Site(root, out)
    for path in [*NAMES, *(str(p.relative_to(root)) for p in sorted((root / "docs").rglob("*.md")))]:
        if site.place(path):
            site.page(path)
    for path in (root / "docs").rglob("*"):
        if path.suffix in SHARED and "site" not in path.parts[len(root.parts):]:
            site.write(path.relative_to(root / "docs").as_posix(), path.read_bytes())
    site.write("index.md", (root / "docs/site/index.md").read_text())
    for name in ("conf.py", "style.css"):
        site.write(name if name == "conf.py" else f"static/{name}", (root / "docs/site" / name).read_bytes())
    examples.write(site)
    reference.write(site, xml)
    site.remove_others()


main()
