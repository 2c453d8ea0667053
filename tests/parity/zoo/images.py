"""Nets that make images: U-Nets, a diffusion transformer, a variational autoencoder, two nets against each other."""

import math

import torch
from torch import nn
from torch.nn import functional

from .case import Case
from .plain import its_output

ROWS = 4


def noised(rows=ROWS):
    """An image, the noise in it, and when of the diffusion it is."""
    return {"image": torch.randn(rows, 3, 16, 16), "time": torch.rand(rows), "noise": torch.randn(rows, 3, 16, 16)}


def labelled(rows=ROWS):
    return {"image": torch.randn(rows, 3, 16, 16), "labels": torch.randint(0, 4, (rows, 16, 16))}


def pictures_with_noise():
    return {"image": torch.randn(ROWS, 3, 16, 16), "noise": torch.randn(ROWS, 8)}


def waves(time, width):
    """Sines and cosines of the time, in falling frequencies."""
    speeds = torch.exp(-math.log(100) * torch.arange(width // 2) / (width // 2))
    angles = time[:, None] * speeds
    return torch.cat([angles.sin(), angles.cos()], 1)


class Residual(nn.Module):
    """Group norm and convolution, twice, shifted by the time."""

    def __init__(self, inputs, outputs, width=16):
        super().__init__()
        self.first, self.second = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm_first, self.norm_second = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.time, self.skip = nn.Linear(width, outputs), nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, time):
        hidden = self.first(functional.silu(self.norm_first(x))) + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.second(functional.silu(self.norm_second(hidden)))


class SpatialAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.all, self.out = nn.GroupNorm(4, width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        rows, width, high, wide = x.shape
        q, k, v = (part.flatten(2).transpose(1, 2) for part in self.all(self.norm(x)).chunk(3, 1))
        mixed = functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        return x + self.out(mixed.transpose(1, 2).reshape(rows, width, high, wide))


class DiffusionUNet(nn.Module):
    """As a denoiser has it: two levels down, attention, two up by interpolation, a skip at each level."""

    def __init__(self, width=8):
        super().__init__()
        self.enter, self.time = nn.Conv2d(3, width, 3, padding=1), nn.Linear(16, 16)
        self.down_0, self.down_1 = Residual(width, width), Residual(width, 2 * width)
        self.shrink_0, self.shrink_1 = (nn.Conv2d(n, n, 3, stride=2, padding=1) for n in (width, 2 * width))
        self.middle, self.attention = Residual(2 * width, 2 * width), SpatialAttention(2 * width)
        self.up_1, self.up_0 = Residual(4 * width, 2 * width), Residual(3 * width, width)
        self.norm, self.leave = nn.GroupNorm(4, width), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, image, time, noise):
        time = self.time(waves(time, 16))
        wide = self.down_0(self.enter(image + noise), time)
        half = self.down_1(self.shrink_0(wide), time)
        x = self.attention(self.middle(self.shrink_1(half), time))
        x = self.up_1(torch.cat([functional.interpolate(x, scale_factor=2, mode="nearest"), half], 1), time)
        x = self.up_0(torch.cat([functional.interpolate(x, scale_factor=2, mode="nearest"), wide], 1), time)
        return functional.mse_loss(self.leave(functional.silu(self.norm(x))), noise)


def twice(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


class SegmentingUNet(nn.Module):
    """As first published: BatchNorm, max pools down, transposed convolutions up, a class for every pixel."""

    def __init__(self, width=8):
        super().__init__()
        self.down_0, self.down_1, self.bottom = twice(3, width), twice(width, 2 * width), twice(2 * width, 4 * width)
        self.rise_1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.rise_0 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.up_1, self.up_0, self.head = twice(4 * width, 2 * width), twice(2 * width, width), nn.Conv2d(width, 4, 1)

    def forward(self, image, labels):
        wide = self.down_0(image)
        half = self.down_1(functional.max_pool2d(wide, 2))
        x = self.rise_1(self.bottom(functional.max_pool2d(half, 2)))
        x = self.rise_0(self.up_1(torch.cat([x, half], 1)))
        return functional.cross_entropy(self.head(self.up_0(torch.cat([x, wide], 1))), labels)


class BilinearUNet(nn.Module):
    """Group norm, strided convolutions down, bilinear interpolation up."""

    def __init__(self, width=8):
        super().__init__()
        self.enter, self.down = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.deeper = nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.norms = nn.ModuleList([nn.GroupNorm(2, n) for n in (width, 2 * width, 2 * width, 2 * width, width)])
        self.up_1, self.up_0 = nn.Conv2d(4 * width, 2 * width, 3, padding=1), nn.Conv2d(3 * width, width, 3, padding=1)
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, image, labels):
        wide = functional.gelu(self.norms[0](self.enter(image)))
        half = functional.gelu(self.norms[1](self.down(wide)))
        x = functional.gelu(self.norms[2](self.deeper(half)))
        for level, skip, up in ((3, half, self.up_1), (4, wide, self.up_0)):
            x = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = functional.gelu(self.norms[level](up(torch.cat([x, skip], 1))))
        return functional.cross_entropy(self.head(x), labels)


class ModulatedBlock(nn.Module):
    """A transformer block whose norms are scaled, shifted and gated by a condition (adaLN-Zero)."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.modulation = heads, nn.Linear(width, 6 * width)
        self.norm_first, self.norm_second = (nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 48), nn.Linear(48, width)

    def forward(self, x, condition):
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.modulation(functional.silu(condition))[:, None].chunk(6, 2)
        x = x + gate * self._attend(self.norm_first(x) * (1 + scale) + shift)
        hidden = functional.gelu(self.wide(self.norm_second(x) * (1 + scale_mlp) + shift_mlp), approximate="tanh")
        return x + gate_mlp * self.narrow(hidden)

    def _attend(self, x):
        q, k, v = self.all(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class DiffusionTransformer(nn.Module):
    """Patches, blocks modulated by time and class, patches back into an image (DiT)."""

    def __init__(self, width=32, patch=4):
        super().__init__()
        self.patch, self.patches = patch, nn.Conv2d(3, width, patch, stride=patch)
        self.position = nn.Parameter(torch.randn(1, (16 // patch) ** 2, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width))
        self.classes = nn.Embedding(5, width)
        self.blocks = nn.ModuleList([ModulatedBlock(width) for _ in range(2)])
        self.norm, self.last = nn.LayerNorm(width, elementwise_affine=False), nn.Linear(width, 3 * patch * patch)
        self.modulation = nn.Linear(width, 2 * width)

    def forward(self, image, time, noise, labels):
        x = self.patches(image + noise).flatten(2).transpose(1, 2) + self.position
        condition = self.time(waves(time, 16)) + self.classes(labels)
        for block in self.blocks:
            x = block(x, condition)
        shift, scale = self.modulation(functional.silu(condition))[:, None].chunk(2, 2)
        x = self.last(self.norm(x) * (1 + scale) + shift).transpose(1, 2)
        return functional.mse_loss(functional.fold(x, (16, 16), self.patch, stride=self.patch), noise)


class Autoencoder(nn.Module):
    """A variational one: the noise is of the batch, the loss has a divergence."""

    def __init__(self, width=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU(),
                                     nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten())
        self.moments, self.widen = nn.Linear(2 * width * 16, 16), nn.Linear(8, 2 * width * 16)
        self.decoder = nn.Sequential(nn.Unflatten(1, (2 * width, 4, 4)), nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
                                     nn.ReLU(), nn.ConvTranspose2d(width, 3, 4, 2, 1))

    def forward(self, image, noise):
        mean, log_variance = self.moments(self.encoder(image)).chunk(2, 1)
        made = self.decoder(self.widen(mean + noise * torch.exp(0.5 * log_variance)))
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        return functional.mse_loss(made, image) + 0.01 * divergence


class Adversaries(nn.Module):
    """A generator and a critic in one step: each has its own term, and the other is detached from it."""

    def __init__(self, width=8):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(8, 2 * width * 16), nn.Unflatten(1, (2 * width, 4, 4)),
                                       nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.BatchNorm2d(width), nn.ReLU(),
                                       nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())
        self.critic = nn.Sequential(nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 4, 2, 1),
                                    nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2 * width * 16, 1))

    def forward(self, image, noise):
        made = self.generator(noise)
        fixed = {name: value.detach() for name, value in self.critic.named_parameters()}
        fooled = functional.softplus(-torch.func.functional_call(self.critic, fixed, (made,))).mean()
        told = functional.softplus(-self.critic(image)).mean() + functional.softplus(self.critic(made.detach())).mean()
        return fooled + told


class Upscaler(nn.Module):
    """Super-resolution by sub-pixel convolutions."""

    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.PReLU(), nn.Conv2d(width, width, 3, padding=1))
        self.head = nn.Sequential(nn.Conv2d(width, 4 * 3, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, image, noise):
        small = functional.avg_pool2d(image, 2)
        return functional.l1_loss(self.head(self.body(small)), image)


def noised_and_labelled():
    return {**noised(), "labels": torch.randint(0, 5, (ROWS,))}


IMAGES = [
    Case("u-net, diffusion", DiffusionUNet, noised, its_output),
    Case("u-net, segmentation", SegmentingUNet, labelled, its_output),
    Case("u-net, bilinear", BilinearUNet, labelled, its_output),
    Case("diffusion transformer", DiffusionTransformer, noised_and_labelled, its_output),
    Case("variational autoencoder", Autoencoder, pictures_with_noise, its_output),
    Case("adversarial pair", Adversaries, pictures_with_noise, its_output),
    Case("upscaler", Upscaler, pictures_with_noise, its_output),
]
