"""What a hostile reviewer found: ways in which a Step lost or lied, each mended."""

import copy
import threading

import pytest
import torch
from torch import nn

import partita
from small_lm import batch, lm
from test_step_keeps import adamw, started

X, Y = torch.randn(8, 8, generator=torch.Generator().manual_seed(3)), torch.arange(8) % 4
LOSS = nn.CrossEntropyLoss()


def net(dropout=0.0):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 4))


def begun(module, optimizer=None, **options):
    return partita.parallelize(module, (X, Y), optimizer or adamw(module), ranks=2, loss=LOSS, **options)


def plain(module, optimizer):
    optimizer.zero_grad()
    loss = LOSS(module(X), Y)
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.mark.parametrize("first", ["train", "eval"])
def test_a_module_changes_its_mode_and_back(first):
    module = net(dropout=0.5)
    getattr(module, first)()
    step = begun(module)
    for mode in ("train", "eval", "train", "eval", "train"):
        getattr(module, mode)()
        step(X, Y)
    assert all(p.isfinite().all() for p in step.module().parameters())


class Sometimes(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.extra, self.two = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        x = self.one(x)
        return self.two(self.extra(x) if len(x) >= 8 else x)


def test_a_shape_that_trains_other_parameters_is_refused_and_loses_nothing():
    torch.manual_seed(0)
    module = Sometimes()
    step = begun(module)
    step(X, Y)
    with pytest.raises(partita.InputError, match="trains extra.bias differently from the first one"):
        step(X[:6], Y[:6])
    assert step(X, Y) > 0 and all(p.isfinite().all() for p in step.module().parameters())


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return self.linear(x) if self.training else self.linear(x) * self.scale


def test_evaluation_reads_what_training_does_not():
    torch.manual_seed(0)
    module = Scaled()
    step = begun(module)
    value = step.evaluate(X, Y)
    module = step.module().eval()
    assert value == pytest.approx(LOSS(module(X), Y).item(), rel=1e-6)


def test_batch_norm_under_tensor_parallel_before_the_first_step():
    def made():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 10))
        plan = partita.recipe("tp", partita.capture(module, data, LOSS), ranks=2)
        return partita.parallelize(module, data, adamw(module), plan=plan, loss=LOSS)

    data = (torch.randn(8, 3, 8, 8), torch.randint(0, 10, (8,)))
    step = made()
    before = step.state_dict()
    want = [step(data), step(data)]
    assert made().module() is not None and made().evaluate(data) > 0
    again = made()
    again.load_state_dict(before)
    assert [again(data), again(data)] == want
    assert isinstance(made()(data[0][:6], data[1][:6]), float)


def test_a_frozen_batch_norm_trains():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    module[1].eval()
    other = copy.deepcopy(module)
    plan = partita.recipe("dp", partita.capture(module, (X, Y), LOSS), ranks=2)
    step, optimizer = partita.parallelize(module, (X, Y), adamw(module), plan=plan, loss=LOSS), adamw(other)
    assert [step(X, Y) for _ in range(3)] == pytest.approx([plain(other, optimizer) for _ in range(3)], rel=1e-5)


def test_a_checkpoint_before_the_first_update_with_master_copies():
    module, other = net().bfloat16(), net().bfloat16()
    data = (X.bfloat16(), Y)
    make = lambda m: partita.parallelize(m, data, adamw(m), ranks=2, loss=LOSS, precision="bf16")
    step, same = make(module), make(other)
    step.load_state_dict(step.state_dict())
    assert [step(data) for _ in range(4)] == [same(data) for _ in range(4)]


def test_edits_of_half_precision_stay():
    module = net().bfloat16()
    data = (X.bfloat16(), Y)
    step = partita.parallelize(module, data, torch.optim.SGD(module.parameters(), 1e-3), ranks=2, loss=LOSS, precision="bf16")
    step(data)
    with torch.no_grad():
        step.module()[3].weight.zero_()
    step(data), step(data)
    assert step.module()[3].weight.abs().max() < 0.01


@pytest.mark.parametrize("reset", ["load", "clear", "optimizer"])
def test_states_can_be_reset(reset):
    module, other = net(), net()
    optimizer, reference = adamw(module), adamw(other)
    step = begun(module, optimizer)
    start, fresh = step.state_dict(), copy.deepcopy(optimizer.state_dict())
    want = [plain(other, reference) for _ in range(3)]
    [step(X, Y) for _ in range(3)]
    if reset == "load":
        step.load_state_dict(start)
    else:
        step.module().load_state_dict(start["model"])
        if reset == "clear":
            optimizer.state.clear()
        else:
            step.load_state_dict({"model": start["model"]})
            optimizer.load_state_dict(fresh)
    assert [step(X, Y) for _ in range(3)] == pytest.approx(want, rel=1e-5)


def test_what_was_loaded_into_the_optimizer_is_not_overwritten():
    module = net()
    optimizer = adamw(module)
    step = begun(module, optimizer)
    step(X, Y)
    saved = copy.deepcopy(optimizer.state_dict())
    step(X, Y), step(X, Y)
    optimizer.load_state_dict(saved)
    assert optimizer.state_dict()["state"][0]["step"] == 1
    step(X, Y)
    assert optimizer.state_dict()["state"][0]["step"] == 2


def test_parts_of_a_module_that_another_step_has():
    module = net()
    step = begun(module)
    with pytest.raises(partita.InputError, match="with the ranks of another step"):
        partita.parallelize(module[3], (torch.randn(8, 16), Y), adamw(module[3]), ranks=2, loss=LOSS)
    for use in (module[0].state_dict, lambda: module[0](X), lambda: copy.deepcopy(module[3])):
        with pytest.raises(partita.InputError, match=r"call step.module\(\)"):
            use()
    assert step(X, Y) > 0


class Clamped(nn.Linear):
    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(-0.1, 0.1)
        return super().forward(x)


def test_a_forward_that_changes_a_parameter_is_refused():
    with pytest.raises(partita.InputError, match="changes the parameter .* itself"):
        begun(Clamped(8, 4))


def test_hooks_on_gradients_are_refused():
    module = net()
    module[0].weight.register_hook(lambda gradient: gradient * 0)
    with pytest.raises(partita.InputError, match="has a hook on its gradient"):
        begun(module)


def test_later_changes_of_the_optimizer_are_refused():
    module = net()
    optimizer = torch.optim.SGD([{"params": module[0].parameters()}, {"params": module[3].parameters(), "lr": 0.2}], 0.1)
    step = begun(module, optimizer)
    step(X, Y)
    optimizer.param_groups[0]["maximize"] = True
    with pytest.raises(partita.InputError, match="maximize is set"):
        step(X, Y)
    optimizer.param_groups[0]["maximize"] = False
    optimizer.param_groups[1]["params"].append(optimizer.param_groups[0]["params"].pop())
    with pytest.raises(partita.InputError, match="groups hold other parameters"):
        step(X, Y)


def test_an_sgd_counts_its_updates():
    module = net()
    step = begun(module, torch.optim.SGD(module.parameters(), 0.1, momentum=0.9))
    for _ in range(3):
        step(X, Y)
        step.module()
    assert step.state_dict()["partita"]["updates"] == 3


def test_frozen_parameters_edited_through_data():
    module, other = net(), net()
    for one in (module, other):
        one[0].requires_grad_(False)
    step = begun(module)
    step(X, Y)
    for one in (step.module(), other):
        one[0].weight.data.mul_(3)
    other.load_state_dict(module.state_dict())
    assert step(X, Y) == pytest.approx(LOSS(other(X), Y).item(), rel=1e-5)


GARBAGE = [{"model": {}}, {"model": 3}, {"model": "own", "optimizer": {}}, {"model": "own", "optimizer": {"state": {}, "param_groups": []}},
           {"model": "own", "partita": 4}, {"model": "own", "optimizer": "sgd"}, {"model": "own", "optimizer": "other shape"}]


@pytest.mark.parametrize("wrong", GARBAGE, ids=str)
def test_a_state_that_is_none_is_refused_and_changes_nothing(wrong):
    module = net()
    optimizer = adamw(module)
    step = begun(module, optimizer)
    step(X, Y)
    state = copy.deepcopy(step.state_dict())
    wrong = {**wrong, **({"model": net().state_dict()} if wrong["model"] == "own" else {})}
    if wrong.get("optimizer") in ("sgd", "other shape"):
        bad = copy.deepcopy(state["optimizer"])
        for entry in bad["state"].values():
            if wrong["optimizer"] == "sgd":
                entry.clear()
                entry["momentum_buffer"] = torch.zeros(1)
            else:
                entry["exp_avg"] = torch.zeros(2, 2, 2)
        wrong = {**wrong, "optimizer": bad}
    with pytest.raises(partita.InputError):
        step.load_state_dict(wrong)
    after = step.state_dict()
    assert all(torch.equal(after["model"][name], state["model"][name]) for name in state["model"])
    assert after["partita"] == state["partita"] and step(X, Y) > 0


def test_a_batch_that_lies_otherwise_in_memory():
    module = lm()
    step = started(module)
    ids = torch.cat([batch()["input_ids"], batch(seed=5)["input_ids"]], 1)
    assert step(input_ids=ids[:, ::2], labels=ids[:, 1::2]) > 0
    assert step(labels=batch()["labels"], input_ids=batch()["input_ids"]) > 0  # in another order


def test_inference_mode_around_a_call():
    module = net()
    step = begun(module)
    with torch.inference_mode():
        step.evaluate(X, Y)
        step(X[:6], Y[:6])
        module = step.module()
    plain(module, torch.optim.SGD(module.parameters(), 0.1))


def test_two_threads():
    module, errors = net(), []

    def call():
        try:
            for _ in range(20):
                step(X, Y)
        except partita.InputError as error:
            errors.append(str(error))

    step = begun(module)
    threads = [threading.Thread(target=call) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all("another call of it is running" in error for error in errors)
    assert step(X, Y) > 0


def test_a_loss_with_other_arguments_is_named():
    with pytest.raises(partita.InputError, match=r"it takes \(output, x, y\), and is called with \(output, batch\)"):
        partita.parallelize(module := net(), (X, Y), adamw(module), ranks=2, loss=lambda output, x, y: output.mean())


def test_random_numbers_go_on_after_a_load_in_eval_mode():
    step = begun(net(dropout=0.5))
    step(X, Y), step(X, Y)
    state = step.state_dict()
    other = net(dropout=0.5).eval()
    again = begun(other)
    again.load_state_dict(state)
    other.train()
    assert again(X, Y) == pytest.approx(step(X, Y), rel=1e-5)


def test_what_another_mode_does_not_use_is_kept():
    """Batch norm counts batches while it trains; a step in eval mode has no use for the count."""
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    x = torch.linspace(-1, 1, 24).reshape(6, 4)
    square = lambda output, batch: output.square().mean()
    step = partita.parallelize(module, (x,), torch.optim.SGD(module.parameters(), 0.1), loss=square, plan=partita.recipe(
        "dp", partita.capture(module, (x,), square), ranks=2))
    step((x,))
    module.eval()
    step((x,))
    assert step.state_dict()["model"]["1.num_batches_tracked"] == 1
    module.train()
    step((x,))
    assert step.module()[1].num_batches_tracked == 2


class Halved(torch.optim.SGD):
    def _init_group(self, *args):
        return super()._init_group(*args)


def _replace_step(optimizer):
    optimizer.step = lambda: None


def _couple(optimizer):
    optimizer.param_groups[0]["decoupled_weight_decay"] = False


@pytest.mark.parametrize("kind, change, said", [
    (torch.optim.SGD, lambda o: o.register_step_pre_hook(lambda *_: None), "hook on its step"),
    (torch.optim.SGD, lambda o: o.register_step_post_hook(lambda *_: None), "hook on its step"),
    (torch.optim.SGD, _replace_step, "step was replaced"),
    (Halved, lambda o: None, "Halved is not known"),
    (torch.optim.AdamW, _couple, "decoupled_weight_decay is not set"),
])
def test_optimizers_that_do_more_than_their_class(kind, change, said):
    module = nn.Linear(4, 4)
    optimizer = kind(module.parameters(), 0.1)
    change(optimizer)
    with pytest.raises(partita.InputError, match=said):
        partita.parallelize(module, (torch.ones(4, 4),), optimizer, loss=lambda output, _: output.mean(), ranks=2)


def test_schedulers_are_no_other_step():
    module = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    square, x = lambda output, _: output.square().mean(), torch.ones(4, 4)
    plan = partita.recipe("dp", partita.capture(module, (x,), square), ranks=2)
    step = partita.parallelize(module, (x,), optimizer, loss=square, plan=plan)
    step((x,))
    scheduler.step()
    step((x,))
    assert step.metrics.lr == pytest.approx(0.01)
