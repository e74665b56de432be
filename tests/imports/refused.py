"""Modules that cannot be imported, with what the refusal must say."""
import torch
from torch import nn
from torch.nn import functional


class Wrong(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.stem, self.inner = nn.Linear(8, 8), inner

    def forward(self, x):
        return self.inner(self.stem(x)).square().mean()


class Branch(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x):
        choice, out = x.argmax(-1) % 2, torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (choice == i).nonzero().squeeze(-1)
            out = out.index_add(0, rows, expert(x[rows]))
        return out


class Spectrum(nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x)


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * self.scale.detach()


class ChangesInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 8)

    def forward(self, x):
        x.mul_(2)
        return self.stem(x).mean()


class NoLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 8)

    def forward(self, x):
        return self.stem(x)


def _given(module):
    return lambda: (module, (torch.randn(4, 8),))


# By name: what gives the module, and words of the refusal.
CASES = {
    "branch": (_given(Wrong(Branch())), ["inner", "decides what to compute by a value of its data", "torch.where"]),
    "experts": (_given(Wrong(Experts())), ["inner", "nonzero", "use the batched experts"]),
    "operator": (_given(Wrong(Spectrum())), ["svd", "cannot be imported", "docs/import.md"]),
    "noise": (_given(Wrong(Noise())), ["randn", "random numbers are drawn by dropout alone"]),
    "running_statistics": (_given(Wrong(nn.BatchNorm1d(8))), ["inner", "in place", "batch norm"]),
    "changes_input": (_given(ChangesInput()), ["changes", "in place", "clone()"]),
    "no_gradient": (_given(Wrong(Unused())), ["inner.scale", "without a gradient", "freeze it"]),
    "no_loss": (_given(NoLoss()), ["gives no loss"]),
    "two_types": (_given(Wrong(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4).half()))), ["torch.float16, torch.float32", "--dtype"]),
}
