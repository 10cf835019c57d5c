"""Doxygen's XML as declarations for Sphinx's C++ domain: what each public header declares, in the order of the header."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

from sphinx.domains.cpp import DefinitionError, DefinitionParser

DIRECTIVES = {"function": "function", "variable": "var", "typedef": "type", "enum": "enum", "class": "class", "struct": "struct",
              "concept": "concept", "define": "macro", "union": "union"}


@dataclasses.dataclass
class Declaration:
    directive: str  # of the C++ domain
    name: str
    signature: str
    text: str  # Markdown
    file: str
    line: int
    parts: list = dataclasses.field(default_factory=list)


def words(element):
    """The text of an element, without its marks."""
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def escaped(text):
    return re.sub(r"([*_<\[\]|`])", r"\\\1", text)


def markdown(element):
    """A description as Markdown."""
    out = [escaped(element.text or "")] if element.tag != "verbatim" else []
    for child in element:
        if child.tag == "computeroutput":
            out.append(f"`{words(child)}`")
        elif child.tag == "ref":
            out.append(escaped(words(child)))
        elif child.tag == "verbatim":
            out.append(f"\n\n```cpp\n{child.text.strip(chr(10))}\n```\n\n")
        elif child.tag == "itemizedlist":
            out.append("\n\n" + "\n".join("- " + markdown(item).strip() for item in child) + "\n\n")
        elif child.tag == "parameterlist":
            for item in child:
                name = words(item.find("parameternamelist"))
                said = markdown(item.find("parameterdescription")).strip()
                shown = f"`{name}`" if re.match(r"[A-Z]\w+$", name) else escaped(name)
                out.append(f"\n\n*Throws* {shown} {said}")
        elif child.tag == "para":
            out.append("\n\n" + markdown(child) + "\n\n")
        else:
            out.append(markdown(child))
        out.append(escaped(child.tail or ""))
    return re.sub(r"\n{3,}", "\n\n", "".join(out))


def description(definition):
    parts = [markdown(definition.find(name)).strip() for name in ("briefdescription", "detaileddescription")
             if definition.find(name) is not None]
    text = "\n\n".join(part for part in parts if part)
    return re.sub(r"^[ \t]+", "", text, flags=re.M) if "```" not in text else text


def template_of(definition):
    parameters = definition.find("templateparamlist")
    if parameters is None:
        return ""
    shown = []
    for parameter in parameters:
        kind, name, default = (words(parameter.find(tag)) for tag in ("type", "declname", "defval"))
        shown.append(" ".join(part for part in (kind, name) if part) + (f" = {default}" if default else ""))
    return f"template <{', '.join(shown)}> "


def accepted(directive, signature):
    """Whether Sphinx can read it."""
    if directive in ("macro", "enum", "enumerator", "concept"):
        return True
    class Config:
        cpp_id_attributes = cpp_paren_attributes = ()
    kind = {"function": "function", "var": "member", "type": "type", "class": "class", "struct": "class", "union": "union"}[directive]
    parser = DefinitionParser(signature, location=None, config=Config)
    try:
        parser.parse_declaration(kind, directive)
        parser.skip_ws()
        parser.assert_end()
        return True
    except DefinitionError:
        return False


def spaced(signature):
    """A signature with blanks where people write them."""
    signature = " ".join(signature.split())
    signature = re.sub(r"(?<!operator)< (?=\S)", "<", signature)
    signature = re.sub(r"(?<=[\w>&*.)]) >(?!=)", ">", signature)
    return signature.replace("&noexcept", "& noexcept")


def first_accepted(directive, candidates):
    for candidate in candidates:
        candidate = spaced(candidate)
        if accepted(directive, candidate):
            return candidate
    return None


def tidy(text):
    text = re.sub(r"\b(inline|friend|\[\[[^\]]*\]\]|COHORT_\w+\([^)]*\))\s+", "", text)
    return text.replace(" )", ")").replace("( ", "(")


def function(definition):
    name, template = words(definition.find("name")), template_of(definition)
    result = tidy(words(definition.find("type")))
    arguments = words(definition.find("argsstring"))
    attributes = " ".join(word for word, attribute, value in (
        ("static", "static", "yes"), ("virtual", "virt", "virtual"), ("virtual", "virt", "pure-virtual"), ("explicit", "explicit", "yes"))
        if definition.get(attribute) == value and word not in result.split())
    trailing = ""
    arguments, arrow, ending = arguments.partition("->") if result == "auto" else (arguments, "", "")
    if arrow:
        trailing = " -> " + ending
    without_defaults = re.sub(r"\s*=\s*[^,()]*(\([^()]*\))?(?=[,)])", "", arguments)
    plain = re.sub(r"requires .*$", "", arguments)
    heads = [f"{template}{attributes} {result} {name}", f"{template}{result} {name}", f"{result} {name}"]
    return [head + tail for tail in (arguments + trailing, plain, without_defaults, "()") for head in heads]


def member(definition):
    kind, name = definition.get("kind"), words(definition.find("name"))
    template, initializer = template_of(definition), words(definition.find("initializer"))
    result, arguments = tidy(words(definition.find("type"))), words(definition.find("argsstring"))
    if kind in ("function", "friend"):
        if kind == "friend" and "(" not in arguments:
            return None
        candidates = function(definition)
        kind = "function"
    elif kind == "variable":
        static = "static " if definition.get("static") == "yes" else ""
        head = f"{template}{static}{result} {name}{arguments}"
        if len(initializer) > 60:
            initializer = ""
        candidates = [f"{head} {initializer}", head, f"{result} {name}"]
    elif kind == "typedef":
        type_name = re.sub(r"^using\s+", "", result)
        candidates = [f"{template}{name} = {type_name}", f"{template}{name}", name]
    elif kind == "enum":
        candidates = [name]
    elif kind == "define":
        parameters = [words(p.find("defname")) for p in definition.findall("param")]
        candidates = [f"{name}({', '.join(parameters)})" if parameters else name]
    else:
        return None
    directive = DIRECTIVES[kind]
    signature = first_accepted(directive, candidates)
    if signature is None:
        raise SystemExit(f"docs/site/doxygen.py: Sphinx reads no form of {candidates[0]}")
    location = definition.find("location")
    result = Declaration(directive, name, signature, description(definition), location.get("file"), int(location.get("line")))
    for value in definition.findall("enumvalue"):
        result.parts.append(Declaration("enumerator", words(value.find("name")), words(value.find("name")), description(value),
                                        result.file, result.line))
    return result


def compound(definition):
    """A class or a concept, with its members but without classes within it."""
    kind, name = definition.get("kind"), words(definition.find("compoundname"))
    short, template = name.rsplit("::", 1)[-1], template_of(definition)
    if kind == "concept":
        candidates = [f"{template}{name}"]
    else:
        bases = ", ".join(words(base) for base in definition.findall("basecompoundref") if base.get("prot") == "public")
        bases = "" if "detail::" in bases else bases
        final = " final" if definition.get("final") == "yes" else ""
        candidates = [f"{template}{name}{final}{' : ' + bases if bases else ''}", f"{template}{name}", name]
    directive = DIRECTIVES[kind]
    location = definition.find("location")
    result = Declaration(directive, short, first_accepted(directive, candidates), description(definition),
                         location.get("file"), int(location.get("line")))
    for section in definition.findall("sectiondef"):
        for part in section.findall("memberdef"):
            if part.get("prot") in ("public", "protected") and (declaration := member(part)) is not None:
                result.parts.append(declaration)
    result.parts = once(sorted(result.parts, key=lambda part: part.line))
    return result


def once(parts):
    """Without definitions that repeat a declaration, and without what is for the library itself."""
    seen, kept = set(), []
    for part in parts:
        arguments = part.signature[part.signature.find("(", part.signature.find(part.name)):]
        arguments = re.sub(r"\s*(override|final|noexcept|= 0|= default)\b.*", "", arguments)
        key = (part.directive, part.name, arguments if part.directive == "function" else "")
        if key not in seen and "detail::" not in part.signature:
            kept.append(part)
        seen.add(key)
    return kept


def declarations(xml):
    """All of them, by header."""
    files, seen = {}, set()
    for path in sorted(xml.glob("*.xml")):
        if path.name.startswith(("dir_", "index", "Doxyfile", "md_")):
            continue
        for definition in ElementTree.parse(path).getroot().findall("compounddef"):
            kind = definition.get("kind")
            if "detail::" in words(definition.find("compoundname")) or definition.get("prot") == "private":
                continue
            found = []
            if kind in ("class", "struct", "union", "concept"):
                found = [compound(definition)]
            elif kind in ("namespace", "file"):
                for part in definition.iter("memberdef"):
                    if part.get("id") not in seen and (declaration := member(part)) is not None:
                        seen.add(part.get("id"))
                        if kind == "namespace":
                            declaration.name = words(definition.find("compoundname")) + "::" + declaration.name
                        found.append(declaration)
            for declaration in found:
                files.setdefault(declaration.file, []).append(declaration)
    return {file: once(sorted(found, key=lambda declaration: declaration.line)) for file, found in files.items()}
