"""partita.parallelize: thread ranks train what one device trains."""

import copy
import itertools

import pytest
import torch

import partita
from test_capture import gpt2, llama, token_batch

STEPS = 3
OPTIMIZERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, 1e-3),
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.01),
}


def batch_of(rows):
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, 512, (rows, 16), generator=generator)
    labels = ids.clone()
    labels[0, 2:] = -100  # micro-batches and ranks then count different numbers of tokens
    return {"input_ids": ids, "labels": labels}


def train(module, batch, optimizer):
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(**batch).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def assert_same_training(module, batch, plan, make_optimizer, tolerance):
    reference = copy.deepcopy(module)
    want = train(reference, batch, make_optimizer(reference.parameters()))
    step = partita.parallelize(module, batch, make_optimizer(module.parameters()), plan=plan)
    assert [step(batch) for _ in range(STEPS)] == pytest.approx(want, rel=tolerance)
    return step, reference


# SGD: its updates are as exact as its gradients. AdamW divides by their size, so where a gradient is zero but for
# rounding, any two orders of summation differ by as much as a step. float64, although the models compute their loss
# in float32, so that an update is not rounded away beside its parameter.
@pytest.mark.parametrize("recipe,flags", [("dp", {}), ("tp", {}), ("zero3", {}), ("pipeline", {"microbatches": 2})])
@pytest.mark.parametrize("build", [gpt2, lambda: llama(tied=False)], ids=["gpt2", "llama"])
def test_recipes_train_like_one_device(build, recipe, flags):
    torch.manual_seed(0)
    module, batch = build().double(), batch_of(4)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    plan = partita.recipe(recipe, partita.capture(module, batch), ranks=2, **flags)
    step, reference = assert_same_training(module, batch, plan, OPTIMIZERS["sgd"], 1e-6)
    trained = dict(step.module().named_parameters())
    largest = max((want - before[name]).abs().max() for name, want in reference.named_parameters())
    for name, want in reference.named_parameters():
        update = (want - before[name]).abs().max().clamp(min=1e-4 * largest)
        assert (trained[name] - want).abs().max() <= 1e-5 * update, name
    assert len(step.peak_bytes()) == 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 4)

    def forward(self, x):
        return self.linear(x)


def net_batch():
    return {"x": torch.randn(8, 6), "y": torch.randint(0, 4, (8,))}


def test_the_learning_rate_of_a_scheduler_counts():
    torch.manual_seed(0)
    module, batch = Net().double(), net_batch()
    batch["x"] = batch["x"].double()
    reference = copy.deepcopy(module)

    def loss(output, batch):
        return torch.nn.functional.cross_entropy(output, batch["y"])

    want, optimizer = [], torch.optim.SGD(reference.parameters(), 0.5)
    halving = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(4):
        optimizer.zero_grad()
        value = loss(reference(batch["x"]), batch)
        value.backward()
        optimizer.step()
        halving.step()
        want.append(value.item())
    optimizer = torch.optim.SGD(module.parameters(), 0.5)
    halving = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step, got = partita.parallelize(module, batch, optimizer, ranks=2, loss=loss), []
    for _ in range(4):
        got.append(step(batch))
        halving.step()
    assert got == pytest.approx(want, rel=1e-12)


def test_what_forward_does_not_take_needs_a_loss_that_reads_it():
    with pytest.raises(partita.InputError, match="does not take y of the batch"):
        partita.capture(Net(), net_batch())


WRONG = {
    "no cluster": (lambda m: torch.optim.AdamW(m.parameters()), {}, "neither plan"),
    "optimizer": (lambda m: torch.optim.Adagrad(m.parameters()), {"ranks": 2}, "Adagrad is not known"),
    "class": (lambda m: torch.optim.AdamW, {"ranks": 2}, "it is the class AdamW"),
    "amsgrad": (lambda m: torch.optim.AdamW(m.parameters(), amsgrad=True), {"ranks": 2}, "amsgrad is set"),
    "some parameters": (lambda m: torch.optim.SGD(itertools.islice(m.parameters(), 1), 1.0), {"ranks": 2},
                        "does not have transformer.wpe.weight"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses_end_with_a_sentence(name):
    make_optimizer, options, sentence = WRONG[name]
    module = gpt2()
    with pytest.raises(partita.InputError, match=sentence):
        partita.parallelize(module, token_batch(), make_optimizer(module), **options)
    assert all(p.numel() for p in module.parameters())


def test_the_planner_counts_momentum():
    batch = batch_of(4)
    whole = partita.plan(partita.capture(gpt2(), batch), "1xcpu", optimizer="momentum").peak_bytes[0]
    module = gpt2()
    step = partita.parallelize(module, batch, OPTIMIZERS["sgd"](module.parameters()), cluster="2xcpu", memory=f"{whole * 6 // 10}B")
    step(batch)
    assert step.plan.data["optimizer"]["momentum"] == 0.9
    assert step.peak_bytes() == step.plan.peak_bytes
