"""Modules by hand, each with example inputs: what imports are tried on without any package but torch."""
import torch
from torch import nn
from torch.nn import functional

from unet import UNet


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (y.view(batch, tokens, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(width, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.up, self.down, self.dropout = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.down(functional.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    """With an output layer that is the table of tokens."""

    def __init__(self, vocabulary, width, heads, layers, tokens, dropout=0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("fade", torch.linspace(1, 0.5, tokens).view(1, tokens, 1))

    def forward(self, ids, labels):
        x = self.tokens(ids) * self.fade + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


def _seeded(make):
    torch.manual_seed(0)
    return make()


def _integers(below, *shape):
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(1))


def gpt():
    return _seeded(lambda: Gpt(50, 32, 4, 3, 16)), (_integers(50, 4, 16), _integers(50, 4, 16))


def small():
    """tests/data/imported/small is made of this one."""
    return _seeded(lambda: Gpt(11, 8, 2, 3, 5, 0.1)), (_integers(11, 2, 5), _integers(11, 2, 5))


class Cell(nn.Module):
    """Of nobody's making: a gated mix with a decayed running sum of what came before."""

    def __init__(self, width):
        super().__init__()
        self.gate, self.step = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x, decay):
        gate = torch.sigmoid(self.gate(x))
        return x * (1 - gate) + torch.tanh(torch.cumsum(self.step(x) * decay, 1) * self.scale) * gate


class RunningSums(nn.Module):
    def __init__(self, width=20, cells=4, words=31, length=9):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.cells = nn.ModuleList(Cell(width) for _ in range(cells))
        self.register_buffer("decay", torch.linspace(1, 0.5, length).view(1, length, 1))

    def forward(self, ids, labels):
        x = self.words(ids)
        for cell in self.cells:
            x = cell(x, self.decay)
        scores = self.head(x.amax(1))
        return functional.cross_entropy(scores, labels) + 0.01 * scores.square().mean()


def running_sums():
    return _seeded(RunningSums), (_integers(31, 5, 9), _integers(31, 5))


def unet():
    noise = torch.Generator().manual_seed(2)
    images = [torch.randn(2, 3, 16, 16, generator=noise) for _ in range(2)]
    return _seeded(UNet), tuple(images)
