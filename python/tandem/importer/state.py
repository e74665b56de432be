"""What was trained, under the imported module's own names. Must not know programs."""
import glob
import os
import re


from . import safetensors



def _modules(text):
    """Of each module of network.yaml, which this package wrote: its name, and the names of its weights."""
    for line in re.findall(r"^- \{name: [^\n]*program: [^\n]*$", text, re.M):
        weights = re.search(r"weights: \[([^\]]*)\]", line).group(1)
        yield re.match(r"- \{name: ([^,]+)", line).group(1), [w.strip().strip('"') for w in weights.split(",") if w.strip()]


def _aliases(text):
    return re.findall(r"^- \{name: ([^,]+), of: ([^,}]+)\}$", text, re.M)


def _latest(directory):
    complete = [d for d in glob.glob(os.path.join(directory, "step-*")) if os.path.exists(os.path.join(d, "manifest.json"))]
    return max(complete, default=directory)


def _locals(folder, program):
    with open(os.path.join(folder, "programs", program + ".yaml"), encoding="utf-8") as file:
        return re.findall(r"^- \{name: w\d+, of: ([^,]+),", file.read(), re.M)


def state_dict(folder, checkpoint=None):
    """For load_state_dict(strict=True) of the module that was imported into `folder`.

    `checkpoint`: a directory of checkpoints, of which the latest counts, or one of them; None: as it was imported.
    """
    with open(os.path.join(folder, "network.yaml"), encoding="utf-8") as file:
        text = file.read()
    state = {k: v for k, v in safetensors.read(os.path.join(folder, "tensors.safetensors")).items()
             if not k.startswith("constant.")}
    programs = dict(re.findall(r"^- \{name: ([^,]+), program: ([^,]+),", text, re.M))
    for module, names in _modules(text):
        if checkpoint is None or not names:
            continue
        saved = safetensors.read(os.path.join(_latest(checkpoint), module + ".safetensors"))
        for name, local in zip(names, _locals(folder, programs[module]), strict=True):
            state[name] = saved[f"{module}.{local}"]
    for name, own in _aliases(text):
        state[name] = state[own]
    return state
