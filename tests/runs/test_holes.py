"""Training that was wrong once although the certificate accepted it: three steps beside PyTorch's own."""

import copy

import pytest
import torch
from torch import nn

import partita

STEPS, LR = 3, 0.1


def eager(module, batch, clip):
    optimizer = torch.optim.SGD(module.parameters(), LR)
    for _ in range(STEPS):
        optimizer.zero_grad()
        module(*batch).backward()
        if clip:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
    return module


def assert_trains_alike(module, batch, recipe="dp", ranks=2, clip=None, **options):
    reference = eager(copy.deepcopy(module), batch, clip)
    plan = partita.recipe(recipe, partita.capture(module, batch), ranks=ranks, optimizer="sgd", **options)
    step = partita.parallelize(module, batch, torch.optim.SGD(module.parameters(), LR), plan=plan, clip=clip)
    for _ in range(STEPS):
        step(batch)
    trained = step.module()
    for (name, have), want in zip(trained.state_dict().items(), reference.state_dict().values()):
        torch.testing.assert_close(have, want, rtol=1e-9, atol=1e-11, msg=lambda text, name=name: f"{name}: {text}")


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


class Diagonal(nn.Module):
    def __init__(self):
        super().__init__()
        self.p1, self.p2 = nn.Parameter(drawn(8, 8)), nn.Parameter(drawn(8))

    def forward(self, x, y):
        return nn.functional.mse_loss(x @ (self.p1 + torch.diag_embed(self.p2)), y)


class _Same(torch.autograd.Function):
    """Backward gives two parameters one gradient, through an op whose schema does not say so."""

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, grad):
        return grad, torch.ops.partita_holes.lying(grad)


@pytest.fixture(scope="module")
def lying_op():
    with torch.library._scoped_library("partita_holes", "DEF") as library:
        library.define("lying(Tensor x) -> Tensor")
        library.impl("lying", lambda x: x.view(x.shape), "CPU")
        library.impl("lying", torch.empty_like, "Meta")
        yield


class Lying(nn.Module):
    def __init__(self):
        super().__init__()
        self.p1, self.p2 = nn.Parameter(drawn(8, 8)), nn.Parameter(drawn(8, 8))

    def forward(self, x, y):
        return nn.functional.mse_loss(x @ _Same.apply(self.p1, self.p2), y)


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(drawn(8, 4, 2))

    def forward(self, x, y):
        turned = torch.view_as_complex(self.p).conj() * 2
        return nn.functional.mse_loss(x @ torch.view_as_real(turned).flatten(1), y)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(drawn(8, 8))
        self.register_buffer("n", torch.zeros((), dtype=torch.float64))

    def forward(self, x, y):
        self.n.add_(torch.full((), 1.0, dtype=torch.float64))
        return nn.functional.mse_loss(x @ self.p, y)


@pytest.fixture
def batch():
    torch.manual_seed(0)
    return drawn(4, 8), drawn(4, 8)


@pytest.mark.parametrize("recipe,ranks", [("dp", 1), ("dp", 2), ("zero1", 2), ("zero3", 2)])
@pytest.mark.parametrize("build", [Diagonal, Complex])
def test_gradients_that_are_views_are_clipped_once(build, recipe, ranks, batch):
    assert_trains_alike(build(), batch, recipe, ranks, clip=0.5)


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_op_that_returns_what_it_was_given_is_copied(lying_op, ranks, batch):
    assert_trains_alike(Lying(), batch, ranks=ranks, clip=0.5)


def test_the_loss_scale_is_on_the_gradient_of_the_loss(batch):
    model = partita.capture(Counting(), batch)
    seed = model.tensors[model.seed]["name"]
    assert any(op["target"] == "aten.ones_like.default" and model.tensors[op["out"][0]]["name"] == seed for op in model.ops)
    assert_trains_alike(Counting(), batch, precision="loss_scale=8")


def test_schemas_tell_views(batch):
    model = partita.capture(Complex(), batch)
    views = {op["target"]: op.get("view", False) for op in model.ops}
    assert views["aten.view_as_real.default"] and not views["aten._conj.default"]


class NoElements(nn.Module):
    """Adds a sum of no elements, of which every part is the whole."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8).double()

    def forward(self, x, y):
        out = self.fc(x)
        return nn.functional.mse_loss(out, y) + out[:, :0].sum()


@pytest.mark.parametrize("recipe", ["dp", "zero3"])
def test_a_sum_of_no_elements_counts_once(recipe, batch):
    model = partita.capture(NoElements(), batch)
    found = partita.verify(model, partita.recipe(recipe, model, ranks=2), dtype="float64")
    assert found["equal"], found


class PerSample(nn.Module):
    """Its parameter has a row for every sample of the batch."""

    def __init__(self, samples):
        super().__init__()
        self.p = nn.Parameter(drawn(samples, 8))

    def forward(self, x, y):
        return (self.p * x).square().sum() + y.sum()


def test_micro_batches_do_not_cut_a_trained_parameter(batch):
    model = partita.capture(PerSample(len(batch[0])), batch)
    assert partita.verify(model, partita.recipe("dp", model, ranks=2), dtype="float64")["equal"]
    with pytest.raises(partita.InputError, match="which trained parameter p has too; use 1 micro-batch"):
        partita.recipe("dp", model, ranks=2, microbatches=2)
