"""A small U-Net: values pass from the way down to the way up beside all that lies between."""
import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x):
        inner = self.conv1(functional.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(functional.silu(self.norm2(inner)))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        wide = 2 * width
        self.stem, self.out = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.down = nn.ModuleList([Residual(width, width), Residual(width, wide), Residual(wide, wide)])
        self.pool = nn.ModuleList([nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(wide, wide, 3, 2, 1)])
        self.middle = Residual(wide, wide)
        self.up = nn.ModuleList([Residual(4 * width, wide), Residual(4 * width, width), Residual(wide, width)])

    def forward(self, image, noise):
        x, skips = self.stem(image), []
        for i, down in enumerate(self.down):
            x = down(x)
            skips.append(x)
            x = self.pool[i](x) if i < len(self.pool) else x
        x = self.middle(x)
        for i, up in enumerate(self.up):
            x = up(torch.cat([x, skips.pop()], 1))
            x = functional.interpolate(x, scale_factor=2, mode="nearest") if i < len(self.pool) else x
        return functional.mse_loss(self.out(x), noise)
