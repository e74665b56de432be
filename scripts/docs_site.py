"""Hooks of MkDocs: the README is the site's first page, and links to files that are not documentation (sources, scenarios)
go to `repo_url` where mkdocs.yml names one; else their text stays."""
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST = "index.md"
# A link, or a stretch of code that is to stay as it is.
LINK_OR_CODE = re.compile(r"(`+)(?:(?!\1).)+\1|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def on_files(files, config):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, FIRST, content=rewritten(readme, "", config.repo_url)))
    return files


def on_page_markdown(markdown, page, config, files):
    if page.file.src_uri == FIRST:
        return markdown
    return rewritten(markdown, posixpath.join("docs", posixpath.dirname(page.file.src_uri)), config.repo_url)


def rewritten(markdown, folder, repository):
    """`folder`: where the page lies, from the root of the repository."""
    parts = re.split(r"(^ *```.*?^ *```[^\n]*$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else LINK_OR_CODE.sub(lambda match: link(match, folder, repository), part)
                   for number, part in enumerate(parts))


def link(match, folder, repository):
    code, picture, text, target = match.group(1), match.group(2), match.group(3), match.group(4)
    if code or re.match(r"[a-z]+:|#", target):
        return match.group()
    name, mark, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(folder, name))
    if path == "docs" or path.startswith("docs/"):
        if folder:
            return match.group()
        return f"{picture}[{text}]({path[len('docs/'):]}{mark}{anchor})"
    if path == "README.md":
        return f"[{text}]({posixpath.relpath(FIRST, posixpath.relpath(folder, 'docs'))}{mark}{anchor})"
    return f"[{text}]({repository.rstrip('/')}/blob/HEAD/{path}{mark}{anchor})" if repository else text
