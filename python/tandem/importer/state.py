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


def _own_names(folder, text):
    """Of each module that has weights: its name, and those of its weights by what the module that was imported calls them."""
    programs = dict(re.findall(r"^- \{name: ([^,]+), program: ([^,]+),", text, re.M))
    for module, names in _modules(text):
        if names:
            yield module, dict(zip(names, _locals(folder, programs[module]), strict=True))


def _network(folder):
    with open(os.path.join(folder, "network.yaml"), encoding="utf-8") as file:
        return file.read()


def trained_names(folder):
    """What a run calls what it trains ("blocks_3.norm.weight"), by the imported module's own names, aliases among them."""
    text = _network(folder)
    names = {own: f"{module}.{local}" for module, weights in _own_names(folder, text) for own, local in weights.items()}
    return names | {name: names[own] for name, own in _aliases(text) if own in names}


def state_dict(folder, checkpoint=None):
    """For load_state_dict(strict=True) of the module that was imported into `folder`.

    `checkpoint`: a directory of checkpoints, of which the latest counts, or one of them; None: as it was imported. What was
    frozen is no part of it, and as it was imported.
    """
    text = _network(folder)
    state = {k: v for k, v in safetensors.read(os.path.join(folder, "tensors.safetensors")).items()
             if not k.startswith("constant.")}
    for module, names in _own_names(folder, text) if checkpoint is not None else ():
        path = os.path.join(_latest(checkpoint), module + ".safetensors")
        saved = safetensors.read(path) if os.path.exists(path) else {}
        for name, local in names.items():
            state[name] = saved.get(f"{module}.{local}", state[name])
    for name, own in _aliases(text):
        state[name] = state[own]
    return state
