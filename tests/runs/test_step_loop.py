"""An ordinary training loop on a Step: groups, schedules, metrics, evaluation, other shapes, stop and resume."""

import copy
import io
import warnings

import pytest
import torch
from torch import nn

import partita
from small_lm import assert_equal, batch, copied, groups, lm, plain_step
from test_step_keeps import RANKS, adamw, flat, plan_of, started

OPTIMIZERS = {
    "adamw": lambda groups: torch.optim.AdamW(groups, 1e-2, betas=(0.8, 0.99)),
    "adam": lambda groups: torch.optim.Adam(groups, 1e-2),
    "sgd": lambda groups: torch.optim.SGD(groups, 0.1, momentum=0.9, dampening=0.2),
    "nesterov": lambda groups: torch.optim.SGD(groups, 0.1, momentum=0.9, nesterov=True),
    "plain sgd": lambda groups: torch.optim.SGD(groups, 0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("recipe,flags", [("dp", {}), ("zero1", {}), ("zero3", {}), ("tp", {}), ("pipeline", {"microbatches": 2})])
def test_groups_train_as_in_pytorch(name, recipe, flags):
    module, plain = lm().double(), lm().double()
    optimizer, reference = OPTIMIZERS[name](groups(module)), OPTIMIZERS[name](groups(plain))
    plan = partita.recipe(recipe, partita.capture(module, batch()), ranks=RANKS, **flags)
    step = partita.parallelize(module, batch(), optimizer, plan=plan)
    halving = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (optimizer, reference)]
    for k in range(4):
        assert step(batch(seed=k)) == pytest.approx(plain_step(plain, reference, batch(seed=k))[0], rel=1e-7)
        for one in halving:
            one.step()
    for (name, got), want in zip(step.module().named_parameters(), plain.parameters()):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-7, msg=name)


def test_a_scheduler_of_several_numbers_counts_and_nothing_warns():
    module, plain = lm(), lm()
    optimizer, reference = adamw(module), adamw(plain)
    step = started(module, optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedules = [torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.05, total_steps=10) for o in (optimizer, reference)]
        for k in range(5):
            assert step(batch(seed=k)) == pytest.approx(plain_step(plain, reference, batch(seed=k))[0], rel=1e-5)
            for one in schedules:
                one.step()
    optimizer.param_groups[0]["weight_decay"] = reference.param_groups[0]["weight_decay"] = 0.7
    for k in range(3):
        assert step(batch(seed=k)) == pytest.approx(plain_step(plain, reference, batch(seed=k))[0], rel=1e-5)


class MyAdamW(torch.optim.AdamW):
    pass


def test_a_subclass_that_steps_alike_is_taken_and_one_that_does_not_is_refused():
    module = lm()
    assert started(module, MyAdamW(module.parameters()))(batch()) > 0

    class Other(torch.optim.AdamW):
        def step(self, closure=None):
            pass

    module = lm()
    with pytest.raises(partita.InputError, match="Other is not known; use one of torch.optim.AdamW"):
        started(module, Other(module.parameters()), ranks=2)


@pytest.mark.parametrize("clip", [None, 0.05])
def test_metrics(clip):
    module, plain = lm(), lm()
    optimizer, reference = adamw(module), adamw(plain)
    step = started(module, optimizer, plan=plan_of(module), clip=clip)
    assert step.metrics is None
    first = None
    for k in range(3):
        loss = step(batch(seed=k))
        want, norm = plain_step(plain, reference, batch(seed=k), clip)
        first = first or step.metrics
        assert step.metrics.loss == loss == pytest.approx(want, rel=1e-5)
        assert step.metrics.grad_norm == pytest.approx(norm, rel=1e-4)
        assert step.metrics.step == k + 1 and step.metrics["lr"] == 1e-2 and not step.metrics.skipped
        assert step.metrics.tokens_per_second > 0 and step.metrics.peak_bytes == max(step.peak_bytes())
    assert dict(step.metrics)["loss"] == loss
    assert first.loss != loss


def test_optimizer_step_says_that_it_does_nothing():
    module = lm()
    optimizer = adamw(module)
    step = started(module, optimizer)
    step(batch())
    with pytest.warns(UserWarning, match="optimizer.step\\(\\) does nothing here"):
        optimizer.step()


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.norm, self.drop, self.two = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4)

    def forward(self, x):
        return self.two(self.drop(torch.relu(self.norm(self.one(x)))))


@pytest.mark.parametrize("recipe,flags", [("dp", {}), ("zero3", {}), ("tp", {}), ("pipeline", {"microbatches": 1})])
def test_evaluate_is_the_loss_in_eval_mode_and_changes_nothing(recipe, flags):
    torch.manual_seed(0)
    module, data = Normed(), (torch.randn(8, 6), torch.randint(0, 4, (8,)))
    loss = nn.CrossEntropyLoss()
    plan = partita.recipe(recipe, partita.capture(module, data, loss), ranks=RANKS, **flags)
    step = partita.parallelize(module, data, adamw(module), plan=plan, loss=loss)
    other = (torch.randn(3, 6), torch.randint(0, 4, (3,)))
    for _ in range(3):
        step(data)
        state = step.state_dict()
        losses = [step.evaluate(data), step.evaluate(*other), step.evaluate(data)]
        assert_equal(flat(step.state_dict()), flat(state))
        plain = step.module()
        assert plain.training
        plain.eval()
        with torch.no_grad():
            want = [loss(plain(x), y).item() for x, y in (data, other, data)]
        plain.train()
        assert losses == pytest.approx(want, rel=1e-5)


def test_evaluate_after_an_edit_uses_the_edit():
    module = lm()
    step = started(module)
    step(batch())
    before = step.evaluate(batch())
    with torch.no_grad():
        for p in step.module().parameters():
            p.mul_(0.5)
    after = step.evaluate(batch())
    assert after != before
    assert after == pytest.approx(step.module()(**batch()).item(), rel=1e-5)


@pytest.mark.parametrize("options", [{"recipe": "dp"}, {"recipe": "zero3"}, {"recipe": "pipeline", "microbatches": 2},
                                     {"ranks": 4}], ids=str)
def test_other_shapes_are_captured_once_on_the_same_parameters(options, capsys):
    module, plain = lm(), lm()
    optimizer, reference = adamw(module), adamw(plain)
    recipe = options.pop("recipe", None)
    options = {"plan": plan_of(module, recipe, **options)} if recipe else options
    step = partita.parallelize(module, batch(), optimizer, **options)
    for rows, tokens in [(4, 8), (3, 8), (4, 8), (1, 8), (4, 5), (3, 8), (4, 8)]:
        data = batch(rows, tokens, seed=rows)
        assert step(data) == pytest.approx(plain_step(plain, reference, data)[0], rel=1e-5)
    assert capsys.readouterr().err.count("captured and planned once") == 3
    for (name, got), want in zip(step.module().named_parameters(), plain.parameters()):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4, msg=name)


def test_forms_of_a_batch():
    torch.manual_seed(0)
    x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
    for loss in (nn.CrossEntropyLoss(), nn.functional.cross_entropy,
                 lambda output, batch: nn.functional.cross_entropy(output, batch[1])):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 4))
        plain = copy.deepcopy(module)
        step = partita.parallelize(module, [x, y], adamw(module), ranks=2, loss=loss)
        want = nn.functional.cross_entropy(plain(x), y).item()
        assert step((x, y)) == pytest.approx(want, rel=1e-6)
        assert step(x, y) < want and step([x, y]) < want
    module = lm()
    step = started(module)
    assert step(**batch()) > step(batch())


def model_of(precision, dropout):
    module = lm(dropout=dropout)
    return module.half() if precision == "fp16" else module.bfloat16() if precision == "bf16" else module


@pytest.mark.parametrize("recipe,flags", [("dp", {}), ("zero3", {}), ("pipeline", {"microbatches": 2})])
@pytest.mark.parametrize("name,precision", [("adamw", None), ("sgd", None), ("adamw", "fp16"), ("adamw", "bf16")])
def test_stop_and_resume_go_on_bit_for_bit(name, precision, recipe, flags):
    def begun(module):
        optimizer = OPTIMIZERS[name](groups(module))
        return partita.parallelize(module, batch(), optimizer, plan=plan, clip=1.0, precision=precision), optimizer

    plan = partita.recipe(recipe, partita.capture(model_of(precision, 0.1), batch()), ranks=RANKS, **flags)
    step, optimizer = begun(model_of(precision, 0.1))
    for k in range(3):
        step(batch(seed=k))
        optimizer.param_groups[0]["lr"] *= 0.9
    file = io.BytesIO()
    torch.save(step.state_dict(), file)
    want = [step(batch(seed=k)) for k in range(3, 6)]
    again, other = begun(model_of(precision, 0.1))
    again(batch(seed=9))  # it need not be new
    again.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
    assert other.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    assert [again(batch(seed=k)) for k in range(3, 6)] == want
    assert_equal(flat(again.state_dict()), flat(step.state_dict()))


def test_plain_pytorch_loads_it_and_it_loads_what_plain_pytorch_saved():
    module, plain = lm(), lm()
    optimizer, reference = OPTIMIZERS["adamw"](groups(module)), OPTIMIZERS["adamw"](groups(plain))
    step = started(module, optimizer)
    step(batch())
    state = step.state_dict()
    plain.load_state_dict(state["model"])
    reference.load_state_dict(state["optimizer"])
    for k in range(2):
        assert plain_step(plain, reference, batch(seed=k))[0] == pytest.approx(step(batch(seed=k)), rel=1e-5)
    step.load_state_dict({"model": plain.state_dict(), "optimizer": reference.state_dict()})
    for k in range(2):
        assert step(batch(seed=k)) == pytest.approx(plain_step(plain, reference, batch(seed=k))[0], rel=1e-5)


def test_a_state_that_does_not_fit_changes_nothing():
    module = lm()
    step = started(module)
    step(batch())
    before = flat(step.state_dict())
    for wrong in ({}, [], {"model": lm(size=8).state_dict()}, {"model": {}}, {**step.state_dict(), "partita": {"version": 9}}):
        with pytest.raises((partita.InputError, RuntimeError), match="state_dict|size mismatch|Missing key"):
            step.load_state_dict(wrong)
        assert_equal(flat(step.state_dict()), before)


def test_an_average_of_the_parameters():
    module, plain = lm(), lm()
    optimizer, reference = adamw(module), adamw(plain)
    averages = [torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5))
                for m in (module, plain)]
    step = started(module, optimizer)
    for k in range(3):
        step(batch(seed=k)), plain_step(plain, reference, batch(seed=k))
        averages[0].update_parameters(step.module()), averages[1].update_parameters(plain)
    for got, want in zip(averages[0].parameters(), averages[1].parameters()):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
