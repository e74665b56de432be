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


def reference():
    result = run("docs_reference.py", "--check")
    check("tables of the schemas", result.returncode == 0, result.stdout + result.stderr)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        for name in ("scenario.schema.json", "profile.schema.json"):
            shutil.copy(SOURCE / "docs" / name, root / "docs")
        check("writes", run("docs_reference.py", "--root", root, "--write").returncode == 0)
        check("what it wrote is current", run("docs_reference.py", "--root", root, "--check").returncode == 0)
        path = root / "docs" / "scenario.schema.json"
        schema = json.loads(path.read_text(encoding="utf-8"))
        schema["properties"]["steps"]["default"] = 5
        path.write_text(json.dumps(schema), encoding="utf-8")
        result = run("docs_reference.py", "--root", root, "--check")
        check("a schema that changed", result.returncode == 1 and "docs/reference/scenario.md:1:1" in result.stdout, result.stdout)


def main():
    planted()
    reference()
    result = run("check_docs.py", "--build", BUILD)
    print(result.stdout + result.stderr, end="")
    check("the documentation", result.returncode == 0, "see above")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
