"""Decoders by hand, and what is none, each with example inputs: what generating with imports is tried on."""
import torch
from torch import nn
from torch.nn import functional

WORDS, WIDTH = 31, 16


class RunningMeans(nn.Module):
    """Of nobody's making, and without attention: each token sees the mean of those before it. Its loss shifts its targets."""

    def __init__(self):
        super().__init__()
        self.words, self.up, self.norm = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)

    def features(self, ids):
        x = self.words(ids)
        count = torch.arange(1, ids.shape[1] + 1, device=ids.device, dtype=x.dtype).view(1, -1, 1)
        return self.norm(x + functional.gelu(self.up(torch.cumsum(x, 1) / count)))

    def logits(self, ids):
        return self.features(ids) @ self.words.weight.t()

    def forward(self, ids, labels):
        return functional.cross_entropy(self.logits(ids)[:, :-1].reshape(-1, WORDS), labels[:, 1:].reshape(-1))


class WithMask(RunningMeans):
    def forward(self, ids, mask, labels):
        x = self.features(ids) * mask.unsqueeze(-1)
        return functional.cross_entropy((x @ self.words.weight.t()).flatten(0, 1), labels.flatten())


class WithDropout(RunningMeans):
    def features(self, ids):
        return functional.dropout(super().features(ids), 0.1, training=self.training)


class Squared(RunningMeans):
    def forward(self, ids, labels):
        return functional.mse_loss(self.logits(ids), functional.one_hot(labels, WORDS).to(torch.float32))


def _made(kind, *more):
    torch.manual_seed(0)
    numbers = torch.Generator().manual_seed(1)
    ids, labels = (torch.randint(WORDS, (3, 8), generator=numbers) for _ in range(2))
    return kind(), (ids, *more, labels)


def running_means():
    return _made(RunningMeans)


def with_mask():
    return _made(WithMask, torch.ones(3, 8))


def with_dropout():
    return _made(WithDropout)


def squared():
    return _made(Squared)
