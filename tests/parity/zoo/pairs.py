"""Two nets that meet: text and image towers, speech and text, queries and features, latents and inputs."""

import torch
from torch import nn
from torch.nn import functional

from .case import VOCABULARY, Case, ids
from .plain import its_output

ROWS, WIDTH = 4, 32


def captioned():
    return {"image": torch.randn(ROWS, 3, 16, 16), "text": ids(rows=ROWS, sequence=8)}


def spoken():
    return {"sound": torch.randn(ROWS, 8, 32), "text": ids(rows=ROWS, sequence=8)}


def boxed():
    """Each wanted box belongs to the query of the same number."""
    return {"image": torch.randn(ROWS, 3, 16, 16), "classes": torch.randint(0, 5, (ROWS, 6)), "boxes": torch.rand(ROWS, 6, 4)}


def classified():
    return {"image": torch.randn(ROWS, 3, 16, 16), "labels": torch.randint(0, 5, (ROWS,))}


def encoder(layers=2):
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 48, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def decoder(layers=2):
    layer = nn.TransformerDecoderLayer(WIDTH, 4, 48, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerDecoder(layer, layers)


def causal_mask(length):
    return nn.Transformer.generate_square_subsequent_mask(length)


class Towers(nn.Module):
    """Every text against every image of the batch (CLIP)."""

    def __init__(self):
        super().__init__()
        self.patches, self.words = nn.Conv2d(3, WIDTH, 4, stride=4), nn.Embedding(VOCABULARY, WIDTH)
        self.seen, self.read = (nn.Parameter(torch.randn(1, n, WIDTH) * 0.02) for n in (16, 8))
        self.image_tower, self.text_tower = encoder(), encoder()
        self.image_head, self.text_head = nn.Linear(WIDTH, 16, bias=False), nn.Linear(WIDTH, 16, bias=False)
        self.scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, image, text):
        seen = self.image_tower(self.patches(image).flatten(2).transpose(1, 2) + self.seen).mean(1)
        read = self.text_tower(self.words(text) + self.read, mask=causal_mask(8), is_causal=True)[:, -1]
        seen, read = functional.normalize(self.image_head(seen), dim=1), functional.normalize(self.text_head(read), dim=1)
        scores, same = self.scale.exp() * seen @ read.t(), torch.arange(len(image))
        return (functional.cross_entropy(scores, same) + functional.cross_entropy(scores.t(), same)) / 2


class Listener(nn.Module):
    """Convolutions over a spectrogram, an encoder, a causal decoder with tied words (Whisper)."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(8, WIDTH, 3, padding=1), nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.heard, self.written = (nn.Parameter(torch.randn(1, n, WIDTH) * 0.02) for n in (16, 8))
        self.words, self.encoder, self.decoder = nn.Embedding(VOCABULARY, WIDTH), encoder(), decoder()

    def forward(self, sound, text):
        heard = functional.gelu(self.second(functional.gelu(self.first(sound)))).transpose(1, 2)
        memory = self.encoder(heard + self.heard)
        before = functional.pad(text[:, :-1], (1, 0), value=1)
        hidden = self.decoder(self.words(before) + self.written, memory, tgt_mask=causal_mask(8), tgt_is_causal=True)
        return functional.cross_entropy((hidden @ self.words.weight.t()).flatten(0, 1), text.flatten())


class ConformerBlock(nn.Module):
    """Half a feed-forward, attention, a depthwise convolution behind a gate, the other half."""

    def __init__(self):
        super().__init__()
        self.before, self.after = (nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 48), nn.SiLU(), nn.Linear(48, WIDTH))
                                   for _ in range(2))
        self.norm_attention, self.attention = nn.LayerNorm(WIDTH), nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm, self.open, self.close = nn.LayerNorm(WIDTH), nn.Conv1d(WIDTH, 2 * WIDTH, 1), nn.Conv1d(WIDTH, WIDTH, 1)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, 5, padding=2, groups=WIDTH)
        self.batch_norm, self.last = nn.BatchNorm1d(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = x + 0.5 * self.before(x)
        seen = self.norm_attention(x)
        x = x + self.attention(seen, seen, seen, need_weights=False)[0]
        gated = functional.glu(self.open(self.norm(x).transpose(1, 2)), dim=1)
        x = x + self.close(functional.silu(self.batch_norm(self.depthwise(gated)))).transpose(1, 2)
        return self.last(x + 0.5 * self.after(x))


class Conformer(nn.Module):
    """Speech to text; two frames for each token."""

    def __init__(self):
        super().__init__()
        self.enter, self.head = nn.Conv1d(8, WIDTH, 3, stride=2, padding=1), nn.Linear(WIDTH, VOCABULARY)
        self.blocks = nn.Sequential(ConformerBlock(), ConformerBlock())

    def forward(self, sound, text):
        scores = self.head(self.blocks(self.enter(sound).transpose(1, 2)))
        return functional.cross_entropy(scores.flatten(0, 1), text.repeat_interleave(2, 1).flatten())


class Transducer(nn.Module):
    """An LSTM over sound, a GRU over text, a joint net over every pair of them (RNN-T without its lattice)."""

    def __init__(self):
        super().__init__()
        self.words, self.joint = nn.Embedding(VOCABULARY, 16), nn.Linear(WIDTH, VOCABULARY)
        self.encoder = nn.LSTM(8, WIDTH, num_layers=2, batch_first=True)
        self.predictor = nn.GRU(16, WIDTH, batch_first=True)

    def forward(self, sound, text):
        heard, _ = self.encoder(sound.transpose(1, 2)[:, ::4])
        written, _ = self.predictor(self.words(text))
        scores = self.joint(torch.tanh(heard[:, :, None] + written[:, None]))
        wanted = text[:, None].expand(-1, scores.shape[1], -1)
        return functional.cross_entropy(scores.flatten(0, 2), wanted.flatten())


class Detector(nn.Module):
    """Learned queries that read features of an image; a class and a box each (DETR, with the matching given)."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16), nn.ReLU(),
                                      nn.Conv2d(16, WIDTH, 3, stride=2, padding=1))
        self.position, self.queries = (nn.Parameter(torch.randn(1, n, WIDTH) * 0.1) for n in (16, 6))
        self.encoder, self.decoder = encoder(1), decoder(1)
        self.classes, self.boxes = nn.Linear(WIDTH, 5), nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))

    def forward(self, image, classes, boxes):
        memory = self.encoder(self.backbone(image).flatten(2).transpose(1, 2) + self.position)
        found = self.decoder(self.queries.expand(len(image), -1, -1), memory)
        told = functional.cross_entropy(self.classes(found).transpose(1, 2), classes)
        return told + functional.l1_loss(torch.sigmoid(self.boxes(found)), boxes)


class Latents(nn.Module):
    """A few latents read all pixels, then each other (Perceiver)."""

    def __init__(self):
        super().__init__()
        self.enter, self.latents = nn.Linear(3, WIDTH), nn.Parameter(torch.randn(1, 6, WIDTH) * 0.1)
        self.position = nn.Parameter(torch.randn(1, 256, WIDTH) * 0.1)
        self.read = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm, self.think, self.head = nn.LayerNorm(WIDTH), encoder(), nn.Linear(WIDTH, 5)

    def forward(self, image, labels):
        pixels = self.enter(image.flatten(2).transpose(1, 2)) + self.position
        x = self.latents.expand(len(image), -1, -1)
        for _ in range(2):  # the same weights each time
            x = self.think(x + self.read(self.norm(x), pixels, pixels, need_weights=False)[0])
        return functional.cross_entropy(self.head(x.mean(1)), labels)


PAIRS = [
    Case("image and text towers", Towers, captioned, its_output),
    Case("listener", Listener, spoken, its_output),
    Case("conformer", Conformer, spoken, its_output),
    Case("transducer", Transducer, spoken, its_output),
    Case("detector", Detector, boxed, its_output),
    Case("latents", Latents, classified, its_output),
]
