"""Pages of the reference, one for each public header: the comment that it opens with, and all names that it declares, as
Doxygen has read them."""

import re

from doxygen import declarations
from examples import markdown, opening_comment

LAYERS = {  # lowest first, and then what stands beside the layers
    "base": "errors, settings, log messages",
    "cluster": "workers, tasks and who they are",
    "device": "devices, tensors and their memory",
    "remote": "messages between tasks",
    "collective": "communicators and their calls",
    "value": "variables and values of several replicas",
    "rpc": "methods that tasks call of each other",
    "strategy": "strategies, replicas and reductions",
    "input": "datasets and how they are divided",
    "train": "optimizers, losses, metrics",
    "summary": "event files and tables",
    "server": "parameter servers",
    "checkpoint": "checkpoints",
    "coordinator": "functions that a chief schedules",
    "trainer": "fit, evaluate, predict, callbacks",
    "mpi": "sessions under mpirun and srun",
    "rendezvous": "sessions without MPI",
    "resolvers": "who is who, from the launcher",
    "cuda": "GPUs",
    "nccl": "NCCL",
    "torch": "modules of libtorch",
    "eigen": "tensors as matrices of Eigen",
}


def page_of(header):
    """The page of cohort/LAYER/.../NAME.h."""
    return "reference/" + header.removeprefix("cohort/").removesuffix(".h") + ".md"


def headers(root):
    include = root / "include"
    return sorted(path.relative_to(include).as_posix() for path in (include / "cohort").rglob("*.h")
                  if "detail" not in path.parts)


def title(header, text):
    """A class of the file's name, or the file's name in words."""
    stem = header.rsplit("/", 1)[1].removesuffix(".h")
    camel = "".join(word.capitalize() for word in stem.split("_"))
    for name in re.findall(r"^\s*(?:class|struct|enum class|concept)\s+(?:\[\[\w+\]\] )?(\w+)", text, re.M):
        if name.lower() == camel.lower():
            return name
    return stem.replace("_", " ")


def nested(declaration, depth=0):
    """A declaration as a directive of Sphinx, with its members within."""
    fence = "`" * (9 - 2 * depth)
    domain = "c" if declaration.directive == "macro" else "cpp"
    lines = [f"{fence}{{{domain}:{declaration.directive}}} {declaration.signature}", "", declaration.text, ""]
    for part in declaration.parts:
        lines += [nested(part, depth + 1), ""]
    return "\n".join([*lines, fence])


def namespace_of(declaration):
    return declaration.name.rsplit("::", 1)[0] if "::" in declaration.name else ""


def page(header, text, found):
    lines = [f"# {title(header, text)}", "", "```cpp", f"#include <{header}>", "```", "", markdown(opening_comment(text), "cpp"), ""]
    for declaration in found:
        space = namespace_of(declaration) if declaration.directive not in WITH_NAMESPACE else ""
        lines += ["```{cpp:namespace} " + (space or "NULL"), "```", "", nested(declaration), ""]
    return "\n".join(lines)


# Their signatures are whole names.
WITH_NAMESPACE = ("class", "struct", "union", "concept", "macro")


def short_names(found):
    names = list(dict.fromkeys(re.sub(r"^cohort::", "", declaration.signature.removeprefix("template ").split("> ")[-1].split(" ")[0].split("(")[0])
                               if declaration.directive in WITH_NAMESPACE else declaration.name.removeprefix("cohort::")
                               for declaration in found))
    return ", ".join(f"`{name}`" for name in names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def listed(names):
    return ["", "```{toctree}", ":hidden:", "", *names, "```", ""]


def write(site, xml):
    found = declarations(xml)
    layers = {}
    for header in headers(site.root):
        parts = header.split("/")
        if len(parts) == 2:
            continue  # cohort.h, which includes the others
        if parts[1] not in LAYERS:
            raise SystemExit(f"docs/site/reference.py: LAYERS lacks {parts[1]}")
        layers.setdefault(parts[1], []).append(header)
        text = (site.root / "include" / header).read_text()
        site.write(page_of(header), page(header, text, found.get(header, [])))
    present = [layer for layer in LAYERS if layer in layers]
    site.write("reference/index.md", "\n".join([
        "# Reference", "",
        "Every public name, by the header that declares it. Programs include `<cohort/cohort.h>`, which has all that a training "
        "program needs, and one header for the way it starts: `<cohort/mpi/session.h>` under mpirun or srun. A layer uses only "
        "those above it in this list; what stands after `trainer` is beside the layers.", "",
        "| layer | what |", "|---|---|", *(f"| [{layer}]({layer}.md) | {LAYERS[layer]} |" for layer in present), *listed(present)]))
    for layer in present:
        pages = {header: page_of(header).removeprefix("reference/") for header in layers[layer]}
        site.write(f"reference/{layer}.md", "\n".join([
            f"# {layer}", "", LAYERS[layer][0].upper() + LAYERS[layer][1:] + ".", "", "| header | names |", "|---|---|",
            *(f"| [{header}]({place}) | {short_names(found.get(header, []))} |" for header, place in pages.items()),
            *listed(place.removesuffix(".md") for place in pages.values())]))
    classes = {name for file in found.values() for declaration in file if declaration.directive in ("class", "struct")
               for name in [re.search(r"cohort::[\w:]+", declaration.signature)[0]]}
    site.write("names.txt", "\n".join(sorted(classes)) + "\n")
