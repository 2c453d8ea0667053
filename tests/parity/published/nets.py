"""Image models as torchvision builds them (same parameters, same ops) and the layer of Korthikanti et al. 2022."""

import torch
from torch import nn
from torch.nn import functional


def conv_norm(inside, out, kernel, stride=1):
    return nn.Sequential(nn.Conv2d(inside, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out))


class Residual(nn.Module):
    """Two convolutions of 3 x 3, or with `bottleneck` 1 x 1, 3 x 3 and 1 x 1 to four times the width."""

    def __init__(self, inside, width, stride, bottleneck):
        super().__init__()
        out = width * (4 if bottleneck else 1)
        steps = ([(inside, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if bottleneck
                 else [(inside, width, 3, stride), (width, out, 3, 1)])
        self.steps = nn.ModuleList(conv_norm(*step) for step in steps)
        self.shortcut = conv_norm(inside, out, 1, stride) if stride > 1 or inside != out else None
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = x
        for step in self.steps[:-1]:
            y = self.relu(step(y))
        y = self.steps[-1](y)
        return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    def __init__(self, depths, bottleneck):
        super().__init__()
        self.stem = nn.Sequential(*conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        blocks, inside = [], 64
        for stage, depth in enumerate(depths):
            for block in range(depth):
                width = 64 << stage
                blocks.append(Residual(inside, width, 2 if stage and not block else 1, bottleneck))
                inside = width * (4 if bottleneck else 1)
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inside, 1000)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Dense(nn.Module):
    """A layer of DenseNet: what it makes is put beside what it was given."""

    def __init__(self, inside, growth):
        super().__init__()
        self.body = nn.Sequential(nn.BatchNorm2d(inside), nn.ReLU(), nn.Conv2d(inside, 4 * growth, 1, bias=False),
                                  nn.BatchNorm2d(4 * growth), nn.ReLU(),
                                  nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def densenet(growth, depths, width):
    layers = [*conv_norm(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for stage, depth in enumerate(depths):
        for _ in range(depth):
            layers.append(Dense(width, growth))
            width += growth
        if stage + 1 < len(depths):
            layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
            width //= 2
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(width, 1000))


def alexnet():
    body = [nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(),
            nn.MaxPool2d(3, 2), nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(), nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(), nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6)]
    head = [nn.Linear(9216, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)]
    return nn.Sequential(*body, nn.Flatten(), *head)


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.spread = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.mix = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.scale = nn.Parameter(torch.ones(width, 1, 1))

    def forward(self, x):
        return x + self.scale * self.mix(self.spread(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext(depths, widths):
    layers, inside = [], 3
    for stage, (depth, width) in enumerate(zip(depths, widths)):
        cut = nn.Conv2d(inside, width, *((2, 2) if stage else (4, 4)))
        layers += [ChannelNorm(inside), cut] if stage else [cut, ChannelNorm(width)]
        layers += [ConvNeXtBlock(width) for _ in range(depth)]
        inside = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), ChannelNorm(inside), nn.Flatten(), nn.Linear(inside, 1000))


def hugging_face(model, **sizes):
    import transformers

    cls = getattr(transformers, model)
    return lambda: Logits(cls(cls.config_class(num_labels=1000, **sizes)))


class Logits(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(x).logits


NETS = {
    "torchvision resnet18": lambda: ResNet((2, 2, 2, 2), False),
    "torchvision resnet34": lambda: ResNet((3, 4, 6, 3), False),
    "torchvision resnet50": lambda: ResNet((3, 4, 6, 3), True),
    "torchvision resnet101": lambda: ResNet((3, 4, 23, 3), True),
    "torchvision resnet152": lambda: ResNet((3, 8, 36, 3), True),
    "torchvision alexnet": alexnet,
    "torchvision densenet121": lambda: densenet(32, (6, 12, 24, 16), 64),
    "torchvision densenet161": lambda: densenet(48, (6, 12, 36, 24), 96),
    "torchvision convnext_tiny": lambda: convnext((3, 3, 9, 3), (96, 192, 384, 768)),
    "torchvision convnext_small": lambda: convnext((3, 3, 27, 3), (96, 192, 384, 768)),
    "torchvision convnext_base": lambda: convnext((3, 3, 27, 3), (128, 256, 512, 1024)),
    "torchvision efficientnet_b0": hugging_face("EfficientNetForImageClassification", width_coefficient=1.0,
                                                depth_coefficient=1.0, hidden_dim=1280, image_size=224),
}


class Dropout(nn.Module):
    """With a mask of one byte an element, as the formulas of arXiv 2205.05198 count it."""

    def forward(self, x):
        return torch.where(torch.rand(x.shape, dtype=torch.float32) > 0.1, x / 0.9, 0.0)


class MegatronLayer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.norm_mlp = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.dropout = Dropout()

    def attend(self, x):
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = torch.softmax(query @ key.transpose(2, 3) * query.shape[-1] ** -0.5, -1)
        return self.out((self.dropout(scores) @ value).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.dropout(self.attend(self.norm(x)))
        return x + self.dropout(self.down(functional.gelu(self.up(self.norm_mlp(x)))))


def megatron_layers(hidden, heads, layers=3):
    """The middle one of three has a layer before and one after it, as in the formulas."""
    return nn.Sequential(*(MegatronLayer(hidden, heads) for _ in range(layers)))
