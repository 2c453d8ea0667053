"""torch.nn by itself: recurrent nets, its own Transformer, convolutions."""

import torch
from torch import nn
from torch.nn import functional

from .case import BATCH, SEQUENCE, VOCABULARY, Case, ids


def tokens():
    return {"ids": ids(), "labels": ids()}


def pictures():
    return {"image": torch.randn(4, 3, 12, 12), "labels": torch.randint(0, 5, (4,))}


def numbers():
    return (torch.randn(6, 10), torch.randn(6, 4))


class Recurrent(nn.Module):
    """Embedding, a recurrent net, a linear head."""

    def __init__(self, cell, **options):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.cell = cell(16, 16, batch_first=True, **options)
        self.head = nn.Linear(32 if options.get("bidirectional") else 16, VOCABULARY)

    def forward(self, ids, labels):
        hidden, _ = self.cell(self.embedding(ids))
        return functional.cross_entropy(self.head(hidden).flatten(0, 1), labels.flatten())


class Cells(nn.Module):
    """A Python loop over LSTM cells."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.cell = nn.LSTMCell(16, 16)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, ids, labels):
        state, loss = None, 0
        for token, label in zip(self.embedding(ids).unbind(1), labels.unbind(1)):
            state = self.cell(token, state)
            loss = loss + functional.cross_entropy(self.head(state[0]), label)
        return loss / SEQUENCE


class Translator(nn.Module):
    """torch.nn.Transformer with a causal decoder."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 32)
        self.transformer = nn.Transformer(32, 4, 2, 2, 48, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, VOCABULARY)

    def forward(self, ids, labels):
        mask = nn.Transformer.generate_square_subsequent_mask(SEQUENCE)
        hidden = self.transformer(self.embedding(ids), self.embedding(labels), tgt_mask=mask, tgt_is_causal=True)
        return functional.cross_entropy(self.head(hidden).flatten(0, 1), labels.flatten())


class Encoder(nn.Module):
    """torch.nn.TransformerEncoder with a padding mask."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 48, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, VOCABULARY)

    def forward(self, ids, labels):
        hidden = self.encoder(self.embedding(ids), src_key_padding_mask=ids == 0)
        return functional.cross_entropy(self.head(hidden).flatten(0, 1), labels.flatten())


class ConvNet(nn.Module):
    """Convolution, BatchNorm, pooling, twice."""

    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), norm(8), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(8, 8, 3), norm(8), nn.SiLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Linear(32, 5)

    def forward(self, image, labels):
        return functional.cross_entropy(self.head(self.body(image)), labels)


class UNet(nn.Module):
    """Down, up by a transposed convolution and by interpolation, with a skip."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.out = nn.Conv2d(16, 5, 1)

    def forward(self, image, labels):
        hidden = functional.leaky_relu(self.norm(self.down(image)))
        smooth = functional.interpolate(hidden, scale_factor=2, mode="bilinear", align_corners=False)
        scores = self.out(torch.cat([self.up(hidden), smooth], 1)).mean((2, 3))
        return functional.cross_entropy(scores, labels)


def mlp():
    return nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def squared_error(output, batch):
    return functional.mse_loss(output, batch[1])


class Regression(nn.Module):
    """A net that takes its target, so that the batch holds it."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x, target):
        return self.body(x)


def its_output(output, batch):
    return output


PLAIN = [
    Case("mlp", lambda: Regression(mlp()), numbers, squared_error),
    Case("lstm", lambda: Recurrent(nn.LSTM, num_layers=2), tokens, its_output),
    Case("lstm, both ways", lambda: Recurrent(nn.LSTM, bidirectional=True), tokens, its_output),
    Case("gru", lambda: Recurrent(nn.GRU, num_layers=2), tokens, its_output),
    Case("rnn", lambda: Recurrent(nn.RNN), tokens, its_output),
    Case("lstm cells", Cells, tokens, its_output),
    Case("nn.Transformer", Translator, tokens, its_output),
    Case("nn.TransformerEncoder", Encoder, tokens, its_output),
    Case("convnet", ConvNet, pictures, its_output),
    Case("convnet, instance norm", lambda: ConvNet(lambda n: nn.InstanceNorm2d(n, track_running_stats=True)), pictures,
         its_output),
    Case("u-net", UNet, pictures, its_output),
]
