"""Random numbers of a step: the same however it is split, new in every step, and random."""

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import partita
from partita.native import library
from partita.random import Draws


class Net(nn.Module):
    def __init__(self, p=0.25):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Dropout(p), nn.Linear(64, 4))

    def forward(self, x, target):
        return self.body(x)


def error(output, batch):
    return (output - batch["target"]).pow(2).sum() * 0.01


def case(p=0.25):
    torch.manual_seed(0)
    return Net(p), {"x": torch.randn(8, 6, 8), "target": torch.randn(8, 6, 4)}


def test_a_seed_gives_its_numbers():
    module, batch = case()
    model = partita.capture(module, batch, error)
    first, again, other = (model.run(module, batch, seed=seed) for seed in (0, 0, 1))
    assert first.loss == again.loss != other.loss
    assert first.buffers["random.state"] == 1
    assert not model.opaque_ops


def test_no_dropout_no_state():
    module, batch = case(p=0.0)
    model = partita.capture(module, batch, error)
    assert "random.state" not in [t["name"] for t in model.tensors]
    loss = error(module(**batch), batch)
    assert model.run(module, batch).loss == loss.item()


def test_the_gradient_is_that_of_the_mask():
    module, batch = case()
    module, batch = module.double(), {key: value.double() for key, value in batch.items()}
    model = partita.capture(module, batch, error)
    weight, step = module.body[0].weight, 1e-6
    got = model.run(module, batch).grads["body.0.weight"][3, 2].item()
    losses = []
    for sign in (1, -1):
        with torch.no_grad():
            weight[3, 2] += sign * step
            losses.append(model.run(module, batch).loss)
            weight[3, 2] -= sign * step
    assert got == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-6)


PLANS = {
    "dp2": ("dp", {"ranks": 2}),
    "tp2": ("tp", {"ranks": 2}),
    "dp2 with micro-batches": ("dp", {"ranks": 2, "microbatches": 2}),
}


@pytest.mark.parametrize("name", PLANS)
def test_any_split_gives_the_same_numbers(name):
    recipe, options = PLANS[name]
    module, batch = case()
    model = partita.capture(module, batch, error)
    plan = partita.recipe(recipe, model, **options)
    one = library().Session(model.to_json(), model.weights(module), optimizer={"name": "sgd", "lr": 0.1,
                                                                               "weight_decay": 0.0})
    many = partita.parallelize(module, batch, torch.optim.SGD(module.parameters(), 0.1), plan=plan, loss=error)
    losses = [(one.step(batch), many(batch)) for _ in range(3)]
    for whole, split in losses:
        assert split == pytest.approx(whole, rel=1e-5)
    assert len({whole for whole, _ in losses}) == 3


def test_attention_dropout_of_gpt2():
    torch.manual_seed(0)
    module = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=32, n_head=4, vocab_size=96, n_positions=16, bos_token_id=0,
                                        eos_token_id=0))
    ids = torch.randint(0, 96, (4, 16))
    batch = {"input_ids": ids, "labels": ids}
    model = partita.capture(module, batch)
    losses = [model.run(module, batch, seed=seed).loss for seed in range(20)]
    module.eval()
    assert len(set(losses)) == 20
    assert sum(losses) / 20 == pytest.approx(module(**batch).loss.item(), rel=0.02)
    assert not model.opaque_ops


def test_layers_dropped_at_random_are_one_draw_each():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 4)

        def forward(self, x, target):
            keep = torch.rand(x.shape[0], 1, 1) > 0.5
            noise = torch.randn_like(x) * 0.1 + torch.randint(0, 3, (8,))
            return self.linear(x * keep + noise)

    _, batch = case()
    module = Deep()
    model = partita.capture(module, batch, error)
    assert model.run(module, batch, seed=3).loss == model.run(module, batch, seed=3).loss


def test_other_draws_are_refused():
    class Shuffle(Net):
        def forward(self, x, target):
            return super().forward(x, target)[torch.randperm(8)]

    with pytest.raises(partita.InputError, match="randperm.* draws random numbers that no plan could repeat"):
        partita.capture(Shuffle(), case()[1], error)


def test_the_numbers_are_uniform_and_independent():
    draws = Draws(torch.tensor(5))
    first, second = (draws.bits((256, 512)).double() / 2**24 for _ in range(2))
    later = Draws(torch.tensor(6)).bits((256, 512)).double() / 2**24
    assert abs(first.mean() - 0.5) < 0.003 and abs(first.var() - 1 / 12) < 0.001
    counts = torch.histc(first, 64, 0, 1)
    assert ((counts - 2048) ** 2 / 2048).sum() < 110  # chi-square of 63 degrees, one in 5000 is above
    for other in (second, later, first.roll(1, 0), first.roll(1, 1)):
        assert abs(torch.corrcoef(torch.stack([first.flatten(), other.flatten()]))[0, 1]) < 0.012
    # Sums of hashes could repeat over rectangles.
    signs = (first < 0.5).double() * 2 - 1
    assert abs((signs[:-1, :-1] * signs[1:, :-1] * signs[:-1, 1:] * signs[1:, 1:]).mean()) < 0.012
    normal = draws.normal((512, 512))
    assert abs(normal.mean()) < 0.01 and abs(normal.std() - 1) < 0.01
