"""Follows every link within a site of HTML pages: the file must be there, and have the anchor.

    check_links.py FOLDER
"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append((self.getpos()[0], value))
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    if not pages:
        raise SystemExit(f"check_links: no page in {root}")
    broken = links = 0
    for path, page in pages.items():
        for line, link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.scheme in ("http", "https") and line and link.endswith((".css", ".js")):
                    print(f"{path.relative_to(root)}:{line}: loads {link} from the network")
                    broken += 1
                continue
            links += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                why = "no such file"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                why = "no such anchor"
            else:
                continue
            print(f"{path.relative_to(root)}:{line}: {link}: {why}")
            broken += 1
    print(f"check_links: {len(pages)} pages, {links} links, {broken} broken")
    return broken > 0


sys.exit(main())
