"""Sphinx's configuration. launch/docs.sh copies it beside the pages that docs/site/assemble.py puts together."""

import pathlib
import re

from docutils import nodes
from sphinx import addnodes

here = pathlib.Path(__file__).parent
project = "Cohort"
copyright = "the authors of Cohort, Apache License 2.0"
extensions = ["myst_parser"]
exclude_patterns = ["files/**"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "text"
pygments_style = "friendly"
pygments_dark_style = "native"
html_theme = "furo"
html_title = "Cohort"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
toc_object_entries_show_parents = "hide"
cpp_id_attributes = []
cpp_maximum_signature_line_length = 100

# Names that are nobody's to link to: the standard library's, other libraries', template parameters, and what lies in
# namespaces for details.
nitpick_ignore_regex = [("cpp:.*", r".*")]

CLASSES = {}
for line in (here / "names.txt").read_text().split():
    CLASSES.setdefault(line.removeprefix("cohort::"), line)


def link_names(app, doctree):
    """Names of classes in the text of pages lead to the reference, the first time in each section."""
    if app.env.docname.startswith("reference/"):
        return
    for section in doctree.findall(nodes.section):
        seen = set()
        for literal in list(section.findall(nodes.literal)):
            owner = literal.parent
            while not isinstance(owner, (nodes.section, nodes.title, nodes.reference, addnodes.pending_xref, nodes.document)):
                owner = owner.parent
            name = re.sub(r"\(.*|\{.*", "", literal.astext())
            if owner is not section or name not in CLASSES or name in seen:
                continue
            seen.add(name)
            link = addnodes.pending_xref("", refdomain="cpp", reftype="any", reftarget=CLASSES[name], refexplicit=True,
                                         refdoc=app.env.docname, refwarn=False)
            link["cpp:parent_key"] = None
            literal.replace_self(link)
            link += literal


def name_anchors(app, doctree):
    """Sections can be reached by the names that their headings have elsewhere, as `#invalid_argument`."""
    for section in doctree.findall(nodes.section):
        slug = section.get("slug") or section[0].get("slug") if len(section) else None
        if slug and slug not in section["ids"]:
            section["ids"].append(slug)


def setup(app):
    app.connect("doctree-read", link_names)
    app.connect("doctree-read", name_anchors)
