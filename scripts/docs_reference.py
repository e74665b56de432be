#!/usr/bin/env python3
"""Writes docs/reference/scenario.md and profile.md from the JSON Schemas in docs/, and the keys of each policy into its
page, docs/reference/policies/NAME.md, between the comments that say so.

  docs_reference.py [--root DIR] --write     write them
  docs_reference.py [--root DIR] --check     exit code 1 where they are not what the schemas say

Either ends with 1 where core/policies, the schema and the pages do not have the same policies with the same options.
"""
import argparse
import json
import pathlib
import re
import sys

NOTE = "<!-- Written by scripts/docs_reference.py --write from docs/{}. Change the schema, not this page. -->\n"
SCENARIO = """# Keys of a scenario

A scenario is one question: a machine, a workload, a policy. Only `machine` and `workload` are needed. `tandem check FILE` says
what is wrong with one, line by line, and editors can use [the schema](../scenario.schema.json). For a start:
[a scenario by example](scenario_by_example.md).

A value that has a unit needs one: `24GiB`, `300ms`. A dot stands for a map in a map: `data.pipeline.workers` is the key `workers` of
`pipeline` in `data`. With `--set` keys are written so, too.
"""
PROFILE = """# Keys of a hardware profile

A profile has every cost that a run pays on one machine. `tandem calibrate` writes one. To write one by hand, begin with
`derive_from` and say what differs: [my machine](../how-to/my_machine.md). `tandem check FILE` checks it, and editors can use
[the schema](../profile.schema.json).

Each number stands alone, or as `{value: 24GiB, source: "the specification"}`.
"""
INDEX = "docs/reference/policies.md"
PAGES = "docs/reference/policies"
KEYS = re.compile(r"(<!-- keys: [^>]*-->\n).*?(<!-- end of keys -->\n)", re.DOTALL)
# As the last line of a policy's source registers it: name, class, summary, options.
POLICY = re.compile(r"^TANDEM_(?:GENERATING_)?POLICY\((\w+),\s*\w+,\s*(.*?)\)$", re.MULTILINE | re.DOTALL)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Families that a key must be in to be told once, for all.
SHARED_BY = 15
HEAD = "| key | what it is | value | default |\n| --- | --- | --- | --- |\n"


class Tables:
    """Rows of keys. Resolves references into the profile's schema."""

    def __init__(self, profile):
        self.definitions, self.units = profile["$defs"], profile["x-units"]

    def resolved(self, node):
        """A node with what its reference says, where it says nothing itself."""
        if "$ref" not in node:
            return node
        name = node["$ref"].rpartition("/")[2]
        return {**self.resolved(self.definitions[name]), **node} if name in self.definitions else node

    def value(self, node):
        node = self.resolved(node)
        if "oneOf" in node or "anyOf" in node:
            parts = [self.value(part) for part in node.get("oneOf", node.get("anyOf")) if not part.get("x-sourced")]
            return " or ".join(dict.fromkeys(part for part in parts if part))
        if "enum" in node:
            return ", ".join(f"`{shown(word)}`" for word in node["enum"])
        if "x-registry" in node:
            return f"`tandem list {node['x-registry']}`"
        if "x-unit" in node:
            unit = self.units[node["x-unit"]]
            return f"{unit['noun']}, such as `{unit['example']}`" + bounds(node)
        kind = node.get("type")
        if kind == "array":
            return "list of: " + (self.value(node["items"]) if "items" in node else "values")
        names = {"integer": "whole number", "number": "number", "boolean": "`true`, `false`", "string": node.get("x-noun", "text"),
                 "object": "map"}
        if isinstance(kind, list):
            return " or ".join(names.get(one, one) for one in kind)
        return names.get(kind, "a profile" if "$ref" in node else "") + (bounds(node) if kind in ("integer", "number") else "")

    def rows(self, node, prefix="", required=()):
        """Rows of a map's keys, and of the maps in it."""
        node = self.resolved(node)
        text = ""
        for name, child in node.get("properties", {}).items():
            text += self.row(prefix + name, child, name in required or name in needed_of(node))
            text += self.inner(child, prefix + name)
        return text

    def inner(self, child, name):
        child = self.resolved(child)
        if branches := [part for part in child.get("oneOf", ()) if part.get("maxProperties")]:
            return "".join(self.rows(part, name + ".") for part in branches)
        if child.get("type") == "array":
            items = self.resolved(child.get("items", {}))
            return self.rows(items, name + "[].") if items.get("properties") else ""
        return self.rows(child, name + ".") if child.get("properties") and not child.get("x-sourced") else ""

    def row(self, name, node, required):
        node = self.resolved(node)
        default = "needed" if required else f"`{shown(node['default'])}`" if "default" in node else ""
        cells = [f"`{name}`", node.get("description", ""), self.value(node), default]
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def needed_of(node):
    """Keys of a map that are needed, or are where no other key stands instead of them."""
    return [*node.get("required", ()), *(key for rule in node.get("allOf", ()) for key in rule.get("else", {}).get("required", ()))]


def shown(value):
    return value if isinstance(value, str) else json.dumps(value)


def bounds(node):
    low = node.get("x-minimum", node.get("minimum"))
    high = node.get("x-maximum", node.get("maximum"))
    above, below = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    words = [f"{low} or more" if low is not None and high is None and below is None else "",
             f"{low} to {high}" if low is not None and high is not None else "",
             f"{low} or more, below {below}" if low is not None and below is not None else "",
             f"above {above}, at most {high}" if above is not None and high is not None else ""]
    found = next((word for word in words if word), "")
    return f"; {found}" if found else ""


def section(tables, name, node, level="##"):
    node = tables.resolved(node)
    text = f"\n{level} {name}\n\n{node.get('description', '')}\n"
    rows = tables.inner(node, name)
    if rows:
        text += "\n" + HEAD + rows
    return text


def workload(tables, node):
    families = {part["if"]["properties"]["family"]["const"]: part["then"] for part in node["allOf"]}
    count = {key: sum(key in family["propertyNames"]["enum"] for family in families.values()) for key in node["properties"]}
    shared = [key for key in node["properties"] if count[key] >= SHARED_BY]
    text = "\n## workload\n\nWhat is computed. Each family has keys of its own.\n\n### Keys of all families\n\n" + HEAD
    for key in shared:
        text += tables.row(f"workload.{key}", node["properties"][key], False) + tables.inner(node["properties"][key], f"workload.{key}")
    for name, family in families.items():
        keys = family["propertyNames"]["enum"]
        text += f"\n### {name}\n\n"
        lacks = [f"`{key}`" for key in shared if key not in keys]
        if lacks:
            text += "Of the keys of all families it has no " + ", ".join(lacks) + ".\n\n"
        own = [key for key in keys if key not in shared or key in family.get("properties", {})]
        text += HEAD if own else "It has no other keys.\n"
        for key in own:
            of_all = node["properties"].get(key, {})
            child = {**of_all, **family.get("properties", {}).get(key, {})}
            text += tables.row(f"workload.{key}", child, key in family.get("required", ())) + tables.inner(child, f"workload.{key}")
    return text


def option_rows(tables, options):
    """Of a policy; its rows alone, since they hold no maps."""
    return HEAD + "".join(tables.row(f"policy.{name}", node, False) for name, node in options.items())


def registered(root):
    """Options by policy, as the sources have them. CMake makes a policy of each file that this looks at."""
    folder = root / "core" / "policies"
    sources = [*folder.glob("*.cpp"), *folder.glob("generation/*.cpp"), *(path / f"{path.name}.cpp" for path in folder.iterdir() if path.is_dir())]
    found = {}
    for source in sources:
        match = POLICY.search(source.read_text(encoding="utf-8")) if source.is_file() else None
        if match:
            found[match.group(1)] = STRING.findall(match.group(2))[1:]
    return found


def policy_pages(root, tables, policy, problems):
    """The pages with their keys written anew. Tells what does not belong together."""
    options, sources = policy["x-options"], registered(root)
    index = (root / INDEX).read_text(encoding="utf-8")
    texts = {INDEX: (index, option_rows(tables, policy["x-options-of-all"]))}
    for name in sorted(options.keys() | sources.keys()):
        page = f"{PAGES}/{name}.md"
        if options.get(name, {}).keys() != set(sources.get(name, [])) or (name in options) != (name in sources):
            problems.append(f"core/scenario/scenario.base.json:1:1: properties.policy.x-options.{name}: it has "
                            f"{list(options.get(name, {}))}; core/policies has {sources.get(name, 'no such policy')}")
        if not (root / page).is_file():
            problems.append(f"{page}:1:1: reference: policy {name} has no page")
            continue
        rows = option_rows(tables, options[name]) if options.get(name) else "It has no options of its own.\n"
        texts[page] = (root / page).read_text(encoding="utf-8"), rows + "\nOf all policies: [`cpu_modules`](../policies.md#keys-of-all).\n"
        if f"(policies/{name}.md)" not in index:
            problems.append(f"{INDEX}:1:1: reference: it does not link to policies/{name}.md")
    for path in sorted((root / PAGES).glob("*.md")):
        if path.stem not in options.keys() | sources.keys():
            problems.append(f"{PAGES}/{path.name}:1:1: reference: no policy is called {path.stem}")
    for page, (text, _) in texts.items():
        if len(KEYS.findall(text)) != 1:
            problems.append(f"{page}:1:1: reference: it has no place for its keys, or several; allowed: one comment "
                            "`keys: ...`, and one `end of keys` below it")
    return {page: KEYS.sub(lambda match, rows=rows: match.group(1) + rows + match.group(2), text) for page, (text, rows) in texts.items()}


def pages(root, problems):
    scenario = json.loads((root / "docs/scenario.schema.json").read_text(encoding="utf-8"))
    profile = json.loads((root / "docs/profile.schema.json").read_text(encoding="utf-8"))
    tables = Tables(profile)
    of_scenario = NOTE.format("scenario.schema.json") + SCENARIO
    single = {name: node for name, node in scenario["properties"].items() if not tables.inner(node, name) and name != "workload"}
    of_scenario += "\n## Keys without a map\n\n" + HEAD
    of_scenario += "".join(tables.row(name, node, name in scenario["required"]) for name, node in single.items())
    for name, node in scenario["properties"].items():
        if name == "workload":
            of_scenario += workload(tables, node)
        elif name not in single:
            of_scenario += section(tables, name, node)
    of_profile = NOTE.format("profile.schema.json") + PROFILE
    single = {name: node for name, node in profile["properties"].items() if not tables.inner(node, name)}
    of_profile += "\n## Keys without a map\n\n" + HEAD
    of_profile += "".join(tables.row(name, node, name in profile["required"]) for name, node in single.items())
    for name, node in profile["properties"].items():
        if name not in single:
            of_profile += section(tables, name, node)
    return {"docs/reference/scenario.md": of_scenario, "docs/reference/profile.md": of_profile,
            **policy_pages(root, tables, scenario["properties"]["policy"], problems)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true")
    what.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    problems = []
    for name, text in pages(arguments.root, problems).items():
        path = arguments.root / name
        if arguments.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            problems.append(f"{name}:1:1: reference: it is not what the schemas say; scripts/docs_reference.py --write writes it again")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
