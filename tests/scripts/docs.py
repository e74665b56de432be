#!/usr/bin/env python3
"""The documentation says what is true: links, figures, sentences, tables from the schemas, and commands with their output.
Planted mistakes show that each check can fail."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
LONG = "This sentence goes on " + "and on " * 20 + "until it is too long."
# What is planted in a page of how-tos, and what must be said of it.
PLANTED = (
    ("a link to nothing", "[gone](gone.md)", ":3:1: link: there is no gone.md"),
    ("an anchor that is not there", "[gone](#gone)", "has no heading for #gone"),
    ("a link out of the repository", "[out](../../../)", "leaves the repository"),
    ("a sentence of 49 words", LONG, "49 words; allowed: 35"),
    ("commands without a mark", "```\ntandem train x.yaml\n```", "neither `run` nor `not run`"),
    ("no reason", "<!-- not run: -->\n```\ntandem train x.yaml\n```", "without a reason"),
    ("a figure that changed", "It took 0.215 s.\n<!-- stands in source.md: 0.215 -->", "'0.215' does not stand in source.md"),
    ("a figure that is not said", "It took 5 s.\n<!-- stands in source.md: 0.300 -->", "'0.300' is not said on the page"),
    ("another output", "<!-- run -->\n```\n$ echo one two\none three\n```", "the page has 'one three' where the command prints 'one two'"),
    ("a number that is off", "<!-- run -->\n```\n$ echo 103 ms\n100 ms\n```", "'100 ms' where the command prints '103 ms'"),
    ("a line too few", "<!-- run -->\n```\n$ printf 'a\\nb\\n'\na\n```", "'(the end)' where the command prints 'b'"),
    ("a line too many", "<!-- run -->\n```\n$ echo a\na\nb\n```", "'b' where the command prints '(the end)'"),
    ("an exit code", "<!-- run -->\n```\n$ exit 3\n```", "exit code 3, not 0"),
    ("a mark that says nothing", "<!-- run: quickly -->\n```\n$ true\n```", "'quickly' is no mark"),
)
# What must pass.
SOUND = """# Sound

[here](#sound), [there](../../source.md), `[no](link.md)`. It took 0.300 s. <!-- stands in source.md: 0.300 -->

<!-- file: a.txt -->
```text
words 100 here
```

<!-- run -->
```
$ cat a.txt
words 101 here
$ printf 'first\\nsecond 7\\nlast\\n'
...
second 7
...
$ echo of many words the last
of ... last
```

<!-- run: exit 3, numbers any -->
```
$ echo 5 s; exit 3
500 s
```
"""
failures = []


def run(script, *arguments):
    command = [sys.executable, SOURCE / "scripts" / script, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, check=False)


def check(name, condition, detail=""):
    if not condition:
        failures.append(f"{name}: {detail}")


def little_docs(folder, page):
    root = pathlib.Path(folder)
    shutil.rmtree(root / "docs", ignore_errors=True)
    (root / "docs" / "how-to").mkdir(parents=True)
    (root / "README.md").write_text("# Readme\n", encoding="utf-8")
    (root / "source.md").write_text("A step takes 0.300 s.\n", encoding="utf-8")
    (root / "docs" / "how-to" / "page.md").write_text(page, encoding="utf-8")
    # The planted pages run shell commands alone.
    (root / "bin").mkdir(exist_ok=True)
    (root / "bin" / "tandem-simulate").touch()
    return root


def planted():
    with tempfile.TemporaryDirectory() as folder:
        root = little_docs(folder, SOUND)
        result = run("check_docs.py", "--root", root, "--build", root)
        check("a sound page", result.returncode == 0, result.stdout + result.stderr)
        check("a sound page", "4 commands ran" in result.stdout, result.stdout)
        for name, text, message in PLANTED:
            root = little_docs(folder, f"# Page\n\n{text}\n")
            result = run("check_docs.py", "--root", root, "--build", root)
            check(name, result.returncode == 1 and message in result.stdout, result.stdout + result.stderr)
        few = little_docs(folder, "# Page\n\n" + "This one sentence has no fewer words than these sixteen, which is one more than allowed. " * 3)
        check("a median", "the median of all pages" in run("check_docs.py", "--root", few, "--no-run").stdout)


def reference_copy(folder):
    """What docs_reference.py reads, in a folder of its own."""
    root = pathlib.Path(folder)
    shutil.copytree(SOURCE / "docs" / "reference", root / "docs" / "reference")
    shutil.copytree(SOURCE / "core" / "policies", root / "core" / "policies")
    for name in ("scenario.schema.json", "profile.schema.json"):
        shutil.copy(SOURCE / "docs" / name, root / "docs")
    return root


def change(path, old, new):
    if new is None:
        path.unlink()
    elif not old:
        path.write_text(new, encoding="utf-8")
    else:
        text = path.read_text(encoding="utf-8")
        check(f"{path.name} has {old}", old in text)
        path.write_text(text.replace(old, new), encoding="utf-8")


# What is changed in such a folder, and what must be said of it: a file, what stands there, what is to stand there (None: the
# file goes; an empty text: all of it), the message.
PAGES = "docs/reference/policies"
STALE = (
    ("a default that changed", "docs/scenario.schema.json", '"default": 1024', '"default": 1025',
     "docs/reference/policies/one_bit_adam.md:1:1: reference: it is not what the schemas say"),
    ("a policy without a page", f"{PAGES}/l2l.md", "", None, "policy l2l has no page"),
    ("a page without a policy", f"{PAGES}/l3l.md", "", "# l3l\n", "l3l.md:1:1: reference: no policy is called l3l"),
    ("a policy that the schema does not know", "core/policies/resident.cpp", "TANDEM_POLICY(resident,", "TANDEM_POLICY(here,",
     "policy here has no page"),
    ("an option that the schema does not know", "core/policies/split_update.cpp", '"device_percent")', '"device_percent", "more")',
     "x-options.split_update: it has ['device_percent']; core/policies has ['device_percent', 'more']"),
    ("an index that lacks a page", "docs/reference/policies.md", "(policies/g10.md)", "(g10)", "it does not link to policies/g10.md"),
    ("a page without a place for keys", f"{PAGES}/g10.md", "<!-- end of keys -->", "", "it has no place for its keys"),
)


def reference():
    result = run("docs_reference.py", "--check")
    check("tables of the schemas", result.returncode == 0, result.stdout + result.stderr)
    with tempfile.TemporaryDirectory() as folder:
        root = reference_copy(folder)
        path = root / "docs" / "scenario.schema.json"
        schema = json.loads(path.read_text(encoding="utf-8"))
        schema["properties"]["steps"]["default"] = 5
        path.write_text(json.dumps(schema), encoding="utf-8")
        result = run("docs_reference.py", "--root", root, "--check")
        check("a schema that changed", result.returncode == 1 and "docs/reference/scenario.md:1:1" in result.stdout, result.stdout)
        check("writes", run("docs_reference.py", "--root", root, "--write").returncode == 0)
        check("what it wrote is current", run("docs_reference.py", "--root", root, "--check").returncode == 0)
    for name, file, old, new, message in STALE:
        with tempfile.TemporaryDirectory() as folder:
            root = reference_copy(folder)
            change(root / file, old, new)
            result = run("docs_reference.py", "--root", root, "--check")
            check(name, result.returncode == 1 and message in result.stdout, result.stdout + result.stderr)


def values_of(node):
    """Of an option by the schema: [(value, whether it is allowed)], at the ends of what it allows and beyond them."""
    values = []
    for part in node.get("oneOf", [node]):
        values += [(word, True) for word in part.get("enum", [])]
        if part.get("type") in ("integer", "number"):
            low, high = part["minimum"], part["maximum"]
            values += [(low, True), (high, True), (low - 1, False), (high + 1, False)]
        if part.get("type") == "boolean":
            values += [(True, True), (False, True)]
    return values + ([("nonsense", False)] if values else [])


# Ends of a range that something else bounds more tightly, on the network below.
BOUND_ELSEWHERE = {("lsp_offload", "nonzeros", 32767), ("l2l", "recompute_blocks", -1)}
ROOMY = ("machine: round_numbers\nlimits: {device_bytes: 4GiB, host_bytes: 16GiB}\nsteps: 3\n"
         "workload: {family: gpt, layers: 4, hidden: 128, heads: 2, vocabulary: 128, sequence: 64, batch: 4, precision: bf16}\n")
GENERATING = {source.stem for source in (SOURCE / "core" / "policies" / "generation").glob("*.cpp")}


def roomy(policy):
    """Of a policy that generates, a scenario that does."""
    return ROOMY + ("generate: {prompt: 9, new_tokens: 3}\n" if policy in GENERATING else "")


def options():
    """The programs allow what the schema says that options may be, nothing beyond it, and its defaults are theirs."""
    schema = json.loads((SOURCE / "docs" / "scenario.schema.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for policy, of_policy in schema["properties"]["policy"]["x-options"].items():
            for option, node in of_policy.items():
                for value, allowed in values_of(node):
                    if (policy, option, value) not in BOUND_ELSEWHERE:
                        path = pathlib.Path(folder) / f"{len(files)}.yaml"
                        path.write_text(f"{roomy(policy)}policy: {json.dumps({'name': policy, option: value})}\n", encoding="utf-8")
                        files[path.name] = (f"{policy}: {option}: {value}", allowed)
        command = [str(BUILD / "bin" / "tandem"), "check", *files]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        refused = {line.partition(":")[0]: line for line in result.stderr.splitlines()}
        for name, (what, allowed) in files.items():
            says = "allows" if allowed else "refuses"
            check(f"option {what}, which the schema {says}", (name not in refused) == allowed, refused.get(name, "it is allowed"))
        defaults(schema["properties"]["policy"]["x-options"], pathlib.Path(folder))


def defaults(of_all, folder):
    for policy, of_policy in of_all.items():
        given = {option: node["default"] for option, node in of_policy.items() if "default" in node and option != "network"}
        path = folder / "scenario.yaml"
        texts = []
        for options_given in ({}, given):
            path.write_text(f"{roomy(policy)}policy: {json.dumps({'name': policy, **options_given})}\n", encoding="utf-8")
            command = [str(BUILD / "bin" / "tandem"), "simulate", path.name, "--quiet", "--json", "-"]
            result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
            check(f"{policy} {options_given}", result.returncode == 0, result.stderr)
            found = json.loads(result.stdout) if result.returncode == 0 else {}
            texts.append([found.get(key) for key in ("step_time_s", "bytes_moved", "peak_bytes")])
        check(f"defaults of {policy}", texts[0] == texts[1], f"{given}: {texts}")


def main():
    planted()
    reference()
    options()
    result = run("check_docs.py", "--build", BUILD)
    print(result.stdout + result.stderr, end="")
    check("the documentation", result.returncode == 0, "see above")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
