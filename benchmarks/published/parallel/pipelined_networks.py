"""Networks of torchgpipe's benchmarks for `tandem import`: U-Net (5, 64) and ResNet-101.

What the importer has no operator for is replaced by what moves as many bytes: batch and instance norm by group norm of one channel a
group, max pooling by every other pixel, binary cross entropy by squares.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Conv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(outputs, outputs, affine=False)

    def forward(self, x):
        return F.leaky_relu(self.norm(self.conv(x)), 0.01)


class UNet(nn.Module):
    """Levels of `convs` convolutions down and up, each twice as wide as the one above; all convolutions are in one list, to be cut anywhere."""

    def __init__(self, depth, convs, width):
        super().__init__()
        self.depth, self.convs = depth, convs
        widths = [width * 2 ** i for i in range(depth)]
        sizes = [(before, w, w) for before, w in zip([3, *widths], widths)] + [(widths[-1], 2 * widths[-1], widths[-1])]
        sizes += [(2 * w, w // 2, w // 2) for w in reversed(widths)]
        self.layers = nn.ModuleList()
        for inputs, middle, outputs in sizes:
            between = [inputs] + [middle] * (convs - 1) + [outputs]
            self.layers.extend(Conv(a, b) for a, b in zip(between, between[1:]))
        self.segment = nn.Conv2d(width // 2, 1, 1, bias=False)

    def forward(self, x, target):
        kept = []
        for number, layer in enumerate(self.layers):
            level = number // self.convs
            if number % self.convs == 0 and 0 < level <= self.depth:
                kept.append(x)
                x = x[:, :, ::2, ::2]
            elif number % self.convs == 0 and level > self.depth:
                x = torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1)
            x = layer(x)
        return F.mse_loss(self.segment(x), target)


def unet(batch=2):
    return UNet(5, 5, 64), (torch.randn(batch, 3, 192, 192), torch.zeros(batch, 1, 192, 192))


def normed(inputs, outputs, kernel=1, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.GroupNorm(outputs, outputs))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.one, self.two, self.three = normed(inputs, width), normed(width, width, 3, stride), normed(width, 4 * width)
        self.skip = normed(inputs, 4 * width, 1, stride) if stride > 1 or inputs != 4 * width else nn.Identity()

    def forward(self, x):
        return F.relu(self.three(F.relu(self.two(F.relu(self.one(x))))) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.stem, self.layers, inputs = normed(3, 64, 7, 2), nn.ModuleList(), 64
        for stage, count in enumerate(blocks):
            for block in range(count):
                self.layers.append(Bottleneck(inputs, 64 * 2 ** stage, 2 if stage and not block else 1))
                inputs = 256 * 2 ** stage
        self.head = nn.Linear(inputs, 1000)

    def forward(self, x, labels):
        x = F.relu(self.stem(x))[:, :, ::2, ::2]
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


def resnet_101(batch=2):
    return ResNet((3, 4, 23, 3)), (torch.randn(batch, 3, 224, 224), torch.zeros(batch, dtype=torch.long))
