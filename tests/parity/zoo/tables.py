"""Nets over rows, rays and graphs: recommenders, tabular transformers, radiance fields, message passing."""

import torch
from torch import nn
from torch.nn import functional

from .case import Case
from .plain import its_output

ROWS = 8


def clicks():
    return {"numbers": torch.randn(ROWS, 6), "categories": torch.randint(0, 20, (ROWS, 3)),
            "bags": torch.randint(0, 20, (ROWS, 4)), "clicked": torch.rand(ROWS).round()}


def rays():
    return {"points": torch.randn(ROWS, 12, 3), "directions": torch.randn(ROWS, 3), "distances": torch.rand(ROWS, 12),
            "colours": torch.rand(ROWS, 3)}


def graph():
    """Edges among 10 nodes; some nodes have none."""
    return {"nodes": torch.randn(10, 8), "sources": torch.randint(0, 10, (24,)), "targets": torch.randint(0, 9, (24,)),
            "labels": torch.randint(0, 4, (10,))}


class Recommender(nn.Module):
    """Embeddings, embedding bags, dot products of all pairs, an MLP on top (DLRM)."""

    def __init__(self, width=8):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, width), nn.ReLU())
        self.tables = nn.ModuleList([nn.Embedding(20, width) for _ in range(3)])
        self.bag = nn.EmbeddingBag(20, width, mode="sum")
        self.top = nn.Sequential(nn.Linear(width + 10, 16), nn.ReLU(), nn.Linear(16, 1))
        self.register_buffer("pairs", torch.tril_indices(5, 5, -1))

    def forward(self, numbers, categories, bags, clicked):
        dense = self.bottom(numbers)
        found = [table(categories[:, k]) for k, table in enumerate(self.tables)]
        every = torch.stack([dense, *found, self.bag(bags)], 1)
        products = torch.bmm(every, every.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        scores = self.top(torch.cat([dense, products], 1)).squeeze(1)
        return functional.binary_cross_entropy_with_logits(scores, clicked)


class TabularTransformer(nn.Module):
    """Every column is a token: categories by embedding, numbers by a weight of their own."""

    def __init__(self, width=16):
        super().__init__()
        self.categories = nn.Embedding(3 * 20, width)
        self.weight, self.bias = nn.Parameter(torch.randn(6, width)), nn.Parameter(torch.zeros(6, width))
        self.first = nn.Parameter(torch.randn(1, 1, width))
        layer = nn.TransformerEncoderLayer(width, 4, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, 1)

    def forward(self, numbers, categories, bags, clicked):
        of_numbers = numbers[:, :, None] * self.weight + self.bias
        of_categories = self.categories(categories + torch.arange(3) * 20)
        tokens = torch.cat([self.first.expand(len(numbers), -1, -1), of_numbers, of_categories], 1)
        return functional.binary_cross_entropy_with_logits(self.head(self.body(tokens)[:, 0]).squeeze(1), clicked)


class FactorisationMachine(nn.Module):
    """Pairs of categories by their embeddings, beside an MLP (DeepFM)."""

    def __init__(self, width=8):
        super().__init__()
        self.linear, self.factors = nn.Embedding(20, 1), nn.Embedding(20, width)
        self.deep = nn.Sequential(nn.Linear(3 * width + 6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, numbers, categories, bags, clicked):
        found = self.factors(categories)
        pairs = 0.5 * (found.sum(1).square() - found.square().sum(1)).sum(1)
        deep = self.deep(torch.cat([found.flatten(1), numbers], 1)).squeeze(1)
        return functional.binary_cross_entropy_with_logits(self.linear(categories).sum((1, 2)) + pairs + deep, clicked)


class RadianceField(nn.Module):
    """Points on rays through an MLP with a skip, summed along each ray by what light is left (NeRF)."""

    def __init__(self, width=24):
        super().__init__()
        self.near, self.far = nn.Linear(3 + 24, width), nn.Linear(width + 3 + 24, width)
        self.density, self.colour = nn.Linear(width, 1), nn.Linear(width + 3, 3)

    def forward(self, points, directions, distances, colours):
        angles = (points[..., None] * 2.0 ** torch.arange(4)).flatten(2)
        x = torch.cat([points, angles.sin(), angles.cos()], 2)
        hidden = functional.relu(self.far(torch.cat([functional.relu(self.near(x)), x], 2)))
        opaque = 1 - torch.exp(-functional.softplus(self.density(hidden)).squeeze(2) * distances)
        light = torch.cumprod(torch.cat([torch.ones_like(opaque[:, :1]), 1 - opaque[:, :-1] + 1e-10], 1), 1)
        ahead = directions[:, None].expand(-1, points.shape[1], -1)
        made = torch.sigmoid(self.colour(torch.cat([hidden, ahead], 2)))
        return functional.mse_loss(((opaque * light)[..., None] * made).sum(1), colours)


class MessagePassing(nn.Module):
    """Means over neighbours by index_add, twice (GraphSAGE)."""

    def __init__(self, width=16):
        super().__init__()
        self.own = nn.ModuleList([nn.Linear(8, width), nn.Linear(width, 4)])
        self.theirs = nn.ModuleList([nn.Linear(8, width, bias=False), nn.Linear(width, 4, bias=False)])

    def forward(self, nodes, sources, targets, labels):
        x, degree = nodes, torch.zeros(len(nodes)).index_add(0, targets, torch.ones(len(targets))).clamp(min=1)
        for layer, (own, theirs) in enumerate(zip(self.own, self.theirs)):
            total = torch.zeros(len(x), x.shape[1]).index_add(0, targets, x[sources])
            x = own(x) + theirs(total / degree[:, None])
            x = functional.relu(x) if layer == 0 else x
        return functional.cross_entropy(x, labels)


class GraphAttention(nn.Module):
    """Attention over the edges of each node, by scatter_add (GAT)."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.values = heads, nn.Linear(8, heads * width)
        self.of_source, self.of_target = (nn.Parameter(torch.randn(heads, width)) for _ in range(2))
        self.head = nn.Linear(heads * width, 4)

    def forward(self, nodes, sources, targets, labels):
        values = self.values(nodes).unflatten(1, (self.heads, -1))
        scores = (values * self.of_source).sum(2)[sources] + (values * self.of_target).sum(2)[targets]
        weights = functional.leaky_relu(scores, 0.2).exp()
        place = targets[:, None].expand(-1, self.heads)
        total = torch.zeros(len(nodes), self.heads).scatter_add(0, place, weights) + 1e-9
        shares = weights / total[targets]
        mixed = torch.zeros_like(values).index_add(0, targets, shares[..., None] * values[sources])
        return functional.cross_entropy(self.head(functional.elu(mixed.flatten(1))), labels)


TABLES = [
    Case("recommender, embedding bags", Recommender, clicks, its_output),
    Case("tabular transformer", TabularTransformer, clicks, its_output),
    Case("factorisation machine", FactorisationMachine, clicks, its_output),
    Case("radiance field", RadianceField, rays, its_output),
    Case("graph net, index_add", MessagePassing, graph, its_output),
    Case("graph net, attention", GraphAttention, graph, its_output),
]
