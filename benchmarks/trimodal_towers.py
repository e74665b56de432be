"""The forward pass of the family trimodal in plain torch, written from what the family says (core/model/families/):
CLIP's image and text towers, Whisper's encoder, an aligner each. Reads the parameters of a checkpoint by their names."""
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn import functional as F

STATES = ("adam_m", "adam_v")


class Towers:
    """image(), sound() and text() give rows of length 1 in the common space, [items, projection]; loss() that of a
    batch whose rows are of the same samples."""

    def __init__(self, checkpoint, workload):
        self.workload = workload
        self.weights = {name: tensor for path in sorted(Path(checkpoint).glob("*.safetensors"))
                        for name, tensor in load_file(path).items() if name.rsplit(".", 1)[-1] not in STATES}

    def linear(self, name, x):
        return F.linear(x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.weights[name + ".weight"], self.weights[name + ".bias"], 1e-5)

    def attention(self, q, k, v, heads, causal=False):
        split = [x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v)]
        return F.scaled_dot_product_attention(*split, is_causal=causal).transpose(1, 2).flatten(2)

    def clip_block(self, name, x, heads, causal):
        q, k, v = self.linear(name + ".qkv", self.norm(name + ".ln1", x)).chunk(3, -1)
        x = x + self.linear(name + ".projection", self.attention(q, k, v, heads, causal))
        up = self.linear(name + ".up", self.norm(name + ".ln2", x))
        return x + self.linear(name + ".down", up * torch.sigmoid(1.702 * up))

    def whisper_block(self, name, x, heads):
        before = self.norm(name + ".attention_norm", x)
        q, k, v = (self.linear(f"{name}.attention_{which}", before) for which in "qkv")
        x = x + self.linear(name + ".attention_out", self.attention(q, k, v, heads))
        up = self.linear(name + ".up", self.norm(name + ".feed_forward_norm", x))
        return x + self.linear(name + ".down", F.gelu(up))

    def aligned(self, modality, x):
        return F.normalize(self.linear(modality + "_aligner.projection", self.norm(modality + "_encoder_output.ln", x)),
                           dim=-1)

    def image(self, images):
        x = F.conv2d(images, self.weights["image_encoder_patches.patch.weight"], stride=self.workload["patch"])
        x = x.flatten(2).transpose(1, 2)
        first = self.weights["image_encoder_patches.class.weight"].expand(len(x), 1, -1)
        x = torch.cat((first, x), 1) + self.weights["image_encoder_patches.positions"]
        x = self.norm("image_encoder_patches.ln", x)
        for i in range(self.workload["image_layers"]):
            x = self.clip_block(f"image_encoder{i}", x, self.workload["image_heads"], causal=False)
        return self.aligned("image", x[:, 0])

    def sound(self, mels):
        for name, stride in (("conv1", 1), ("conv2", 2)):
            weight = "audio_encoder_frames." + name
            mels = F.gelu(F.conv1d(mels, self.weights[weight + ".weight"], self.weights[weight + ".bias"], stride, 1))
        x = mels.transpose(1, 2)
        x = x + sinusoids(*x.shape[1:])
        for i in range(self.workload["audio_layers"]):
            x = self.whisper_block(f"audio_encoder{i}", x, self.workload["audio_heads"])
        return self.aligned("audio", x.mean(1))

    def text(self, tokens):
        x = self.weights["text_encoder_embedding.tokens"][tokens] + self.weights["text_encoder_embedding.positions"]
        for i in range(self.workload["text_layers"]):
            x = self.clip_block(f"text_encoder{i}", x, self.workload["text_heads"], causal=True)
        return self.aligned("text", x[:, -1])

    @torch.no_grad()
    def rows(self, images, mels, tokens):
        return self.image(images), self.sound(mels), self.text(tokens)

    def loss(self, image, sound, text):
        right = torch.arange(len(image))
        kinds = []
        for i, (a, b) in enumerate(((image, text), (sound, text), (image, sound))):
            logits = a @ b.T * self.weights[f"head.loss.logit_scale{i}"].exp()
            kinds.append((F.cross_entropy(logits, right) + F.cross_entropy(logits.T, right)) / 2)
        return float(sum(kinds) / len(kinds))


def sinusoids(positions, width):
    """Whisper's: sines, then cosines, of wavelengths from 2 pi to 20,000 pi."""
    waves = torch.exp(-math.log(10000) / (width // 2 - 1) * torch.arange(width // 2))
    angles = torch.arange(positions)[:, None] * waves
    return torch.cat((angles.sin(), angles.cos()), 1)
