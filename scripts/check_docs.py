#!/usr/bin/env python3
"""Checks the documentation: links and anchors, how long sentences are, that figures stand where they are said to be from,
and that marked commands print what the page says (docs_blocks.py has the marks).

  check_docs.py [--root DIR] [--build DIR] [--no-run | --slow] [--measure]
Exit code 1 where something is wrong, each a line `file:line:column: what: problem`.
"""
import argparse
import pathlib
import re
import resource
import statistics
import sys
import urllib.parse

import docs_blocks
import docs_pages

# For people: sentences are measured. Where figures are promised, every block of commands is marked.
FOR_PEOPLE = ("README.md", "docs/start/", "docs/how-to/", "docs/explanation/", "docs/reference/", "docs/evidence/",
              *(f"docs/{name}.md" for name in ("accuracy", "adapting", "explain", "fine_tuning", "import", "my_model", "performance",
                                               "planning", "python", "report", "sweep")))
MARKED = ("README.md", "docs/start/", "docs/how-to/", "docs/reference/policies/",
          *(f"docs/{name}.md" for name in ("accuracy", "adaptive", "analyze", "figures", "performance")))
MEDIAN_WORDS, MOST_WORDS = 15, 35
DATA = ("yaml", "json", "python", "cpp", "csv", "text")


def report(problems, page, line, text, column=1):
    problems.append(f"{page.name}:{line}:{column}: {text}")


def check_links(root, pages, problems):
    by_path = {page.path.resolve(): page for page in pages}
    for page in pages:
        for line, column, target in page.links():
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = urllib.parse.unquote(target).partition("#")
            path = (page.path.parent / name).resolve() if name else page.path.resolve()
            if not path.exists():
                report(problems, page, line, f"link: there is no {target}", column)
            elif not path.is_relative_to(root.resolve()):
                report(problems, page, line, f"link: {target} leaves the repository", column)
            elif anchor and path in by_path and anchor not in by_path[path].anchors():
                report(problems, page, line, f"link: {name or page.name} has no heading for #{anchor}", column)


def check_sentences(pages, problems, measure):
    all_lengths = []
    for page in pages:
        if not page.name.startswith(FOR_PEOPLE):
            continue
        lengths = []
        for line, words, is_cell in docs_pages.sentences(page):
            if words > MOST_WORDS:
                report(problems, page, line, f"sentence: {words} words; allowed: {MOST_WORDS}")
            if not is_cell:
                lengths.append(words)
        all_lengths += lengths
        if measure and lengths:
            print(f"{page.name}: {len(lengths)} sentences, median {statistics.median(lengths):g} words, longest {max(lengths)}")
    median = statistics.median(all_lengths) if all_lengths else 0
    if median > MEDIAN_WORDS:
        problems.append(f"README.md:1:1: sentence: the median of all pages for people is {median:g} words; "
                        f"allowed: {MEDIAN_WORDS}")
    return median


def check_marks(pages, problems):
    for page in pages:
        if not page.name.startswith(MARKED):
            continue
        for fence in page.fences:
            if fence.language not in DATA and not re.match(r"(run|not run|file|set)\b", fence.mark):
                report(problems, page, fence.line, "mark: a block of commands says neither `run` nor `not run`")
            if fence.mark.startswith("not run") and not fence.mark.partition(":")[2].strip():
                report(problems, page, fence.line - 1, "mark: `not run` without a reason")


def check_figures(root, pages, problems):
    """`stands in FILE: A; B`: the page's figures A and B are those of FILE."""
    for page in pages:
        whole = "\n".join(docs_pages.COMMENT.sub("", line) for _, line in page.text)
        for line, comment in page.comments():
            match = re.fullmatch(r"stands in (\S+): (.*)", comment)
            if not match:
                continue
            source = root / match.group(1)
            text = source.read_text(encoding="utf-8") if source.is_file() else ""
            for figure in (part.strip() for part in match.group(2).split(";")):
                if figure not in text:
                    report(problems, page, line, f"figure: '{figure}' does not stand in {match.group(1)}")
                if figure.split()[-1] not in whole and figure not in whole:
                    report(problems, page, line, f"figure: '{figure}' is not said on the page")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=here)
    parser.add_argument("--build", type=pathlib.Path, default=here / "build")
    parser.add_argument("--no-run", action="store_true", help="check no command")
    parser.add_argument("--slow", action="store_true", help="commands that take long, too")
    parser.add_argument("--only", action="append", help="run the commands of this page alone; may be repeated")
    parser.add_argument("--measure", action="store_true", help="print each page's sentences")
    arguments = parser.parse_args()
    pages = docs_pages.all_pages(arguments.root)
    problems = []
    check_links(arguments.root, pages, problems)
    median = check_sentences(pages, problems, arguments.measure)
    check_marks(pages, problems)
    check_figures(arguments.root, pages, problems)
    print(f"{len(pages)} pages; median sentence of pages for people: {median:g} words")
    if not arguments.no_run:
        runner = docs_blocks.Runner(arguments.root, arguments.build, arguments.slow)
        for page in pages:
            if arguments.only and page.name not in arguments.only:
                continue
            for line, text in runner.page(page):
                report(problems, page, line, text)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{runner.ran} commands ran in {used.ru_utime + used.ru_stime:.0f} s of CPU time, {runner.skipped} were skipped")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
