#!/usr/bin/env python3
"""Every notebook runs from its first cell to its last, with what it asserts, and so do the solutions. They are stored without
outputs, and have the parts that the class goes by. Their time is that of kernels, which start in two seconds each.
"""
import concurrent.futures
import importlib.util
import os
import pathlib
import re
import resource
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
FOLDER = SOURCE / "notebooks"
NEEDED = ("nbclient", "nbformat", "ipykernel", "matplotlib", "numpy", "scipy")
LESSONS = sorted(FOLDER.glob("*.ipynb"))


def can_run():
    """A sanitized simulator is asked the same by other scripts, and cannot be loaded into a plain Python."""
    return (not os.environ.get("TANDEM_SANITIZED") and all(map(importlib.util.find_spec, NEEDED))
            and list((BUILD / "python").glob("_tandem_sim.*")) and (BUILD / "bin" / "tandem-simulate").exists())


def read(path):
    import nbformat
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def execute(notebook, folder):
    """What is wrong, and seconds of CPU that the kernel and its programs took; "" where all cells ran."""
    import nbclient
    import traitlets.config
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wrong = ""
    with tempfile.TemporaryDirectory() as sockets:  # files, where ports could be taken by others
        settings = traitlets.config.Config({"ConnectionFileMixin": {"transport": "ipc", "ip": os.path.join(sockets, "kernel")}})
        try:
            nbclient.NotebookClient(notebook, config=settings, kernel_name="python3", timeout=300,
                                    resources={"metadata": {"path": str(folder)}}).execute()
        except (nbclient.exceptions.CellExecutionError, nbclient.exceptions.DeadKernelError, RuntimeError, TimeoutError) as error:
            wrong = str(error)[-1500:] or type(error).__name__
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wrong, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(path):
    return execute(read(path), path.parent)


def wrong_number_is_found():
    """A sum by hand with another bus than the machine's must fail, or no assertion of a notebook is worth anything."""
    path = FOLDER / "02_one_layer_by_hand.ipynb"
    notebook = read(path)
    for cell in notebook.cells:
        cell.source = cell.source.replace("BUS = 10 * GB", "BUS = 20 * GB")
    return "AssertionError" in execute(notebook, path.parent)[0]


def form(path):
    """What a notebook lacks of what all of them have."""
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    if any(cell.outputs or cell.execution_count for cell in code):
        yield "is stored with outputs; allowed: none (jupyter nbconvert --clear-output --inplace)"
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not link.startswith("http") and not (path.parent / link).exists():
            yield f"links to {link}, which is not there"
    if path.parent != FOLDER:
        return
    if "**At the end you will know**" not in notebook.cells[0].source:
        yield "does not begin with what one will know at the end"
    exercises = notebook.cells[-1].source.partition("## Exercises")[2]
    count = len(re.findall(r"^\d\. \*\*", exercises, re.MULTILINE))
    if not 2 <= count <= 3:
        yield f"ends with {count} exercises; allowed: two or three"
    solution = path.parent / "solutions" / path.name
    if not solution.exists():
        yield "has no solutions"
    elif (solved := sum(cell.source.count("\n## ") + cell.source.startswith("## ") for cell in read(solution).cells
                        if cell.cell_type == "markdown")) != count:
        yield f"has {count} exercises, and its solutions {solved}"


def main(folder):
    """`folder`: for what kernels write beside their outputs."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "MPLCONFIGDIR"):
        os.environ[name] = folder
    paths = [*LESSONS, *sorted((FOLDER / "solutions").glob("*.ipynb"))]
    failures = [f"{path.relative_to(FOLDER)}: {what}" for path in paths for what in form(path)]
    if not paths:
        failures.append("no notebooks")
    with concurrent.futures.ProcessPoolExecutor(min(len(paths), os.cpu_count() or 1, 4)) as processes:
        planted = processes.submit(wrong_number_is_found)
        for path, (wrong, cpu_s) in zip(paths, processes.map(run, paths), strict=True):
            print(f"{path.relative_to(FOLDER)}: {cpu_s:.1f} s of CPU")
            if wrong:
                failures.append(f"{path.relative_to(FOLDER)}: {wrong}")
        if not planted.result():
            failures.append("02 with a wrong number ran to its end")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    print(f"notebooks: {len(paths)} run, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    if not can_run():
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)
