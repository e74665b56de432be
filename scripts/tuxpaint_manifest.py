#!/usr/bin/env python3
"""Writes a manifest of Tux Paint's stamps (Debian's tuxpaint-stamps-default): one row a stamp, with its picture, its
English sound and its English caption. The stamps are GPL-2: the manifest names their files, and copies none of them.
"""
import argparse
import csv
import sys
from pathlib import Path

EPILOG = """columns: sample (the stamp's path in the folder, without an ending), image (PNG; SVG where there is no PNG),
audio, text (the first line of the .txt). Paths are absolute. A cell is empty where a stamp lacks it.
audio is the spoken description (NAME_desc.ogg); where there is none, the stamp's own sound (NAME.ogg, then NAME.wav),
which may be an animal's or a machine's. Few stamps are described in English, most in French, Russian, Romanian and
Catalan: with --audio-language fr it is NAME_desc_fr.ogg, or NAME_fr.ogg; captions stay English."""

COLUMNS = ("sample", "image", "audio", "text")


def endings_of(language):
    """In the order in which they are preferred."""
    suffix = "" if language == "en" else "_" + language
    return {"image": (".png", ".svg"), "audio": tuple(f"{kind}{suffix}{ending}" for kind, ending in
                                                      (("_desc", ".ogg"), ("", ".ogg"), ("", ".wav")))}


def first_of(stem, endings):
    for ending in endings:
        path = Path(str(stem) + ending)
        if path.is_file():
            return str(path)
    return ""


def caption_of(stem):
    path = Path(str(stem) + ".txt")
    if not path.is_file():
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return " ".join(file.readline().split())


def rows_of(folder, language):
    stems = {str(path)[:-len(path.suffix)] for path in folder.rglob("*") if path.suffix in (".png", ".svg", ".txt")}
    for stem in sorted(stems):
        yield {"sample": str(Path(stem).relative_to(folder)), "text": caption_of(stem),
               **{column: first_of(stem, endings) for column, endings in endings_of(language).items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, type=Path, help="the CSV file to write")
    parser.add_argument("--stamps", type=Path, default=Path("/usr/share/tuxpaint/stamps"), help="(default: %(default)s)")
    parser.add_argument("--audio-language", default="en", metavar="CODE", help="of the sound (default: %(default)s)")
    options = parser.parse_args()
    folder = options.stamps.resolve()
    if not folder.is_dir():
        sys.exit(f"tuxpaint_manifest.py: {folder}: is no folder; `sudo apt-get install tuxpaint-stamps-default` brings it")
    rows = list(rows_of(folder, options.audio_language))
    if not rows:
        sys.exit(f"tuxpaint_manifest.py: {folder}: holds no stamp")
    with open(options.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    have = {column: sum(bool(row[column]) for row in rows) for column in COLUMNS[1:]}
    description = endings_of(options.audio_language)["audio"][0]
    spoken = sum(row["audio"].endswith(description) for row in rows)
    everything = sum(all(row.values()) for row in rows)
    print(f"{len(rows)} stamps: {have['image']} with an image, {have['audio']} with a sound ({spoken} of them a "
          f"description), {have['text']} with a caption; {everything} with all three")
    print(options.output)


if __name__ == "__main__":
    main()
