"""Pages of documentation as data: lines, fences with the marks before them, links, headings, sentences. Knows Markdown
as it is written here, and nothing of programs."""
import dataclasses
import pathlib
import re

COMMENT = re.compile(r"<!--\s*(.*?)\s*-->")
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+(?:\([^()\s]*\))?)\)")
HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
END_OF_SENTENCE = re.compile(r"(?<=[.?!])[\"')\]*]*\s+(?=[^a-z\s])")


@dataclasses.dataclass
class Fence:
    """A fenced block: its language, its lines, the line (from 1) that opens it, and the comment right before it."""
    language: str
    lines: list
    line: int
    mark: str


@dataclasses.dataclass
class Page:
    name: str      # the path from the root, as messages show it
    path: pathlib.Path
    text: list     # (line number, text) of all that is in no fence
    fences: list

    def links(self):
        """(line, column, target) of each link and picture outside code."""
        for number, line in self.text:
            for match in LINK.finditer(re.sub(r"`[^`]*`", lambda code: "x" * len(code.group()), line)):
                yield number, match.start() + 1, match.group(2)

    def anchors(self):
        """The anchors of all headings, as GitHub names them."""
        found = {}
        for _, line in self.text:
            match = HEADING.match(line)
            if match:
                slug = slug_of(match.group(2))
                count = found.get(slug, -1) + 1
                found[slug] = count
                if count:
                    found[f"{slug}-{count}"] = 0
        return set(found)

    def comments(self):
        """(line, text) of each comment."""
        for number, line in self.text:
            for match in COMMENT.finditer(line):
                yield number, match.group(1)


def plain(text):
    """What a reader sees of a line: links as their text, code as one word."""
    text = COMMENT.sub(" ", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", text)
    text = LINK.sub(lambda match: match.group(1), text)
    return re.sub(r"`[^`]*`", "Code", text)


def slug_of(heading):
    text = LINK.sub(lambda match: match.group(1), heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def read_page(root, path):
    text, fences, inside, mark = [], [], None, ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if inside is not None:
            if line.strip() == "```":
                fences.append(inside)
                inside, mark = None, ""
            else:
                inside.lines.append(line)
        elif line.lstrip().startswith("```"):
            inside = Fence(line.strip()[3:].strip(), [], number, mark)
        else:
            text.append((number, line))
            comment = COMMENT.fullmatch(line.strip())
            mark = comment.group(1) if comment else mark if not line.strip() else ""
    if inside is not None:
        fences.append(inside)
    return Page(path.relative_to(root).as_posix(), path, text, fences)


def all_pages(root):
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [read_page(root, path) for path in paths if path.is_file()]


def paragraphs(page):
    """(line, text, is_cell) of each paragraph, item of a list and cell of a table; no headings."""
    started, parts = 0, []

    def finished():
        if parts:
            yield started, " ".join(parts), False
            parts.clear()

    last = 0
    for number, line in page.text:
        stripped = line.strip()
        if number != last + 1 or not stripped or HEADING.match(line) or stripped.startswith("|") or ITEM.match(line):
            yield from finished()
        last = number
        if not stripped or HEADING.match(line):
            continue
        if stripped.startswith("|"):
            for cell in plain(stripped).strip("|").split("|"):
                if not re.fullmatch(r"\s*:?-+:?\s*", cell):
                    yield number, cell.strip(), True
            continue
        if not parts:
            started = number
        parts.append(plain(ITEM.sub("", line, count=1) if ITEM.match(line) else stripped))
    yield from finished()


def sentences(page):
    """(line of the paragraph, words, is_cell) of each sentence."""
    for line, text, is_cell in paragraphs(page):
        for sentence in END_OF_SENTENCE.split(text):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if words:
                yield line, len(words), is_cell
