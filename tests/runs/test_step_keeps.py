"""A Step never loses and never lies: what happens to parameters, states and counters when something goes wrong."""

import copy
import pickle

import pytest
import torch
from torch import nn

import partita
from small_lm import LM, assert_equal, batch, copied, lm, plain_step

RANKS = 2


class WithUnused(LM):
    def __init__(self, **options):
        super().__init__(**options)
        self.unused, self.spare = nn.Parameter(torch.randn(7)), nn.Linear(3, 3)


def adamw(module, **options):
    return torch.optim.AdamW(module.parameters(), 1e-2, **options)


def plan_of(module, name="dp", **flags):
    return partita.recipe(name, partita.capture(module, batch()), ranks=RANKS, **flags)


def started(module, optimizer=None, **options):
    options = options or {"plan": plan_of(module)}
    return partita.parallelize(module, batch(), optimizer or adamw(module), **options)


def test_parameters_the_loss_does_not_use_come_back_as_they_were():
    torch.manual_seed(0)
    module = WithUnused()
    before = copied(module)
    step = started(module, adamw(module, weight_decay=0.5))
    step(batch()), step(batch())
    after = step.module().state_dict()
    for name in ("unused", "spare.weight", "spare.bias"):
        assert torch.equal(after[name], before[name]), name
    assert not torch.equal(after["norm.weight"], before["norm.weight"])


BAD = {"token": ("input_ids", 5000), "negative token": ("input_ids", -1), "label": ("labels", 5000)}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("recipe,flags", [("dp", {}), ("zero3", {}), ("pipeline", {"microbatches": 2})])
def test_a_bad_token_is_named_and_loses_nothing(name, recipe, flags):
    where, value = BAD[name]
    module, other = lm(), lm()
    step = started(module, plan=plan_of(module, recipe, **flags))
    same = started(other, plan=plan_of(other, recipe, **flags))
    step(batch()), same(batch())
    bad = batch()
    bad[where][1, 3] = value
    with pytest.raises(partita.InputError, match=rf"{where}\[1, 3\].*{value}"):
        step(bad)
    assert [step(batch()), step(batch())] == [same(batch()), same(batch())]
    assert_equal(step.module().state_dict(), same.module().state_dict())


class Failing(LM):
    """Looks a row up at a number that only the step itself knows, and keeps running statistics."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 16)
        self.running = nn.BatchNorm1d(16)

    def forward(self, input_ids, labels, scale):
        x = self.running(self.embedding(input_ids).mean(1)) + self.table((scale * self.running.running_var.mean()).long()).mean(0)
        logits = self.head(self.norm(x.unsqueeze(1) + self.embedding(input_ids)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


@pytest.mark.parametrize("recipe,flags", [("dp", {}), ("zero1", {}), ("zero3", {}), ("pipeline", {"microbatches": 1})])
@pytest.mark.parametrize("first", [True, False])
def test_a_step_that_fails_anyway_leaves_the_last_finished_one(recipe, flags, first):
    torch.manual_seed(0)
    good = {**batch(), "scale": torch.ones(4)}
    bad = {**good, "scale": torch.tensor([1.0, 1.0, 1.0, 500.0])}  # the last rank fails, the others may be ahead
    module = Failing()
    other = copy.deepcopy(module)
    plan = partita.recipe(recipe, partita.capture(module, good), ranks=RANKS, **flags)
    step, same = (partita.parallelize(m, good, adamw(m), plan=plan, clip=1.0) for m in (module, other))
    if not first:
        assert step(good) == same(good)
    with pytest.raises(partita.RunError, match="table.*nothing was updated, and the next batch can be given"):
        step(bad)
    assert [step(good), step(good)] == [same(good), same(good)]
    with pytest.raises(partita.RunError):
        step(bad)
    assert_equal(step.module().state_dict(), same.module().state_dict())
    assert_equal(flat(step.state_dict()), flat(same.state_dict()))


def flat(state, path=""):
    if isinstance(state, torch.Tensor):
        return {path: state}
    items = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, (list, tuple)) else None
    if items is None:
        return {path: torch.tensor(float(state)) if isinstance(state, (int, float)) else torch.tensor(hash(str(state)))}
    return {name: value for key, item in items for name, value in flat(item, f"{path}/{key}").items()}


def test_the_module_is_guarded_until_it_is_given_back_and_after_the_next_step_again():
    module = lm()
    before = copied(module)
    step = started(module)
    assert sum(p.numel() for p in module.parameters()) == sum(v.numel() for v in before.values()) - 64 * 16  # tied once
    for round in range(2):
        for use in (module.state_dict, lambda: module(**batch()), lambda: copy.deepcopy(module),
                    lambda: module.load_state_dict(before)):
            with pytest.raises(partita.InputError, match=r"call step.module\(\)"):
                use()
        given = copied(step.module())
        if round == 0:
            assert_equal(given, before)
        assert module(**batch()).isfinite()
        step(batch())
    assert not torch.equal(step.module().state_dict()["norm.weight"], given["norm.weight"])


def test_a_written_stand_in_is_noticed():
    module = lm()
    step = started(module)
    with torch.no_grad():
        module.norm.weight.data.fill_(0.0)
    with pytest.raises(partita.InputError, match="norm.weight was changed while the ranks"):
        step(batch())


@pytest.mark.parametrize("recipe", ["dp", "zero1", "zero3", "tp", "pipeline"])
def test_edits_between_steps_are_taken_over(recipe):
    module, plain = lm(), lm()
    step, optimizer = started(module, plan=plan_of(module, recipe)), adamw(plain)
    assert step(batch()) == pytest.approx(plain_step(plain, optimizer, batch())[0], rel=1e-5)
    for edited in (step.module(), plain):
        with torch.no_grad():
            for p in edited.parameters():
                p.mul_(0.5)
            edited.blocks[0].up.weight.data.zero_()
    for _ in range(3):
        assert step(batch()) == pytest.approx(plain_step(plain, optimizer, batch())[0], rel=1e-5)
    step.module().load_state_dict(lm(seed=5).state_dict())
    plain.load_state_dict(lm(seed=5).state_dict())
    assert step(batch()) == pytest.approx(plain_step(plain, optimizer, batch())[0], rel=1e-5)


def test_edits_of_frozen_parameters_are_taken_over():
    module, plain = lm(), lm()
    for one in (module, plain):
        one.blocks[0].requires_grad_(False)
    step, optimizer = started(module), adamw(plain)
    assert step(batch()) == pytest.approx(plain_step(plain, optimizer, batch())[0], rel=1e-5)
    for one in (module, plain):
        with torch.no_grad():
            one.blocks[0].up.weight.mul_(3.0)
    assert step(batch()) == pytest.approx(plain_step(plain, optimizer, batch())[0], rel=1e-5)


def test_two_steps_of_one_module_share_parameters_and_states():
    module, plain = lm(), lm()
    optimizer, reference = adamw(module), adamw(plain)
    one = started(module, optimizer)
    with pytest.raises(partita.InputError, match="with the ranks of another step"):
        started(module, optimizer, ranks=2)
    want = [plain_step(plain, reference, batch())[0] for _ in range(4)]
    got = [one(batch())]
    one.module()
    two = partita.parallelize(module, batch(), optimizer, ranks=2)
    got.append(two(batch()))
    with pytest.raises(partita.InputError, match="with the ranks of another step"):
        one(batch())
    two.module()
    got.append(one(batch()))
    one.module()
    got.append(two(batch()))
    assert got == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("make", [lambda p: torch.optim.AdamW(p, 1e-2), lambda p: torch.optim.Adam(p, 1e-2),
                                  lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)], ids=["adamw", "adam", "sgd"])
def test_optimizer_state_goes_in_and_out(make):
    module, plain = lm(), lm()
    optimizer, reference = make(module.parameters()), make(plain.parameters())
    for one, its in ((module, optimizer), (plain, reference)):
        plain_step(one, its, batch())
    step = started(module, optimizer)
    assert step(batch()) == pytest.approx(plain_step(plain, reference, batch())[0], rel=1e-5)
    saved, want = optimizer.state_dict()["state"], reference.state_dict()["state"]
    assert saved.keys() == want.keys()
    for number in want:
        for key in want[number]:
            torch.testing.assert_close(saved[number][key], want[number][key], rtol=1e-4, atol=1e-6)
    assert step(batch()) == pytest.approx(plain_step(plain, reference, batch())[0], rel=1e-5)
    module, losses = step.module(), []
    for _ in range(2):
        losses.append(plain_step(module, optimizer, batch())[0] - plain_step(plain, reference, batch())[0])
    assert losses == pytest.approx([0, 0], abs=1e-5)


def test_different_numbers_of_steps_are_refused():
    module = lm()
    optimizer = adamw(module)
    plain_step(module, optimizer, batch())
    optimizer.state[module.norm.weight]["step"] += 1
    with pytest.raises(partita.InputError, match="different numbers of steps"):
        started(module, optimizer)
    assert module(**batch()).isfinite()


CHANGES = {
    "unfrozen": (lambda m: m.norm.weight.requires_grad_(False), "requires_grad of norm.weight was changed"),
    "other dtype": (lambda m: m.half(), "is torch.float16.* now and was torch.float32"),
    "other object": (lambda m: setattr(m.norm, "weight", nn.Parameter(torch.ones(16))),
                     "another parameter is in the place of norm.weight"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_that_need_a_new_step_are_refused(name):
    change, sentence = CHANGES[name]
    module = lm()
    step = started(module)
    step(batch())
    change(step.module())
    with pytest.raises(partita.InputError, match=sentence):
        step(batch())


def test_a_step_in_eval_mode_trains_as_the_module_would(capsys):
    module, plain = lm(dropout=0.5), lm(dropout=0.5)
    step, optimizer = started(module), adamw(plain)
    module.eval(), plain.eval()
    assert step(batch()) == pytest.approx(plain_step(plain, optimizer, batch())[0], rel=1e-5)
    assert "in another mode" in capsys.readouterr().err
    assert step.evaluate(batch()) == pytest.approx(plain(**batch()).item(), rel=1e-5)


def test_states_of_parameters_that_the_step_does_not_train_stay():
    torch.manual_seed(0)
    module = WithUnused()
    optimizer = adamw(module)
    optimizer.state[module.unused] = {"step": torch.tensor(3.0), "exp_avg": torch.ones(7), "exp_avg_sq": torch.ones(7)}
    step = started(module, optimizer)
    step(batch())
    saved = optimizer.state_dict()["state"]
    assert len(saved) == len(list(module.parameters())) - 2
    step.module()
    assert optimizer.state[module.unused]["exp_avg"].sum() == 7


def test_a_step_itself_is_neither_copied_nor_pickled():
    step = started(lm())
    for use in (copy.deepcopy, pickle.dumps):
        with pytest.raises(partita.InputError, match="state_dict"):
            use(step)


def test_the_norm_of_gradients_that_are_gone_is_none():
    step = started(lm())
    step(batch())
    step.module(), step.evaluate(batch())
    assert step.metrics.grad_norm is None


class Remembers(nn.Module):
    """Keeps the mean of its last output in a buffer that it never reads."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("seen", torch.full((3,), 7.0))

    def forward(self, x):
        y = self.linear(x)
        self.seen = y.detach().mean(0)
        return y.square().sum()


@pytest.mark.parametrize("recipe", ["dp", "tp"])
def test_a_buffer_that_is_written_and_never_read_comes_back(recipe):
    module, plain, batch = Remembers(), Remembers(), (torch.randn(4, 4),)
    plain.load_state_dict(module.state_dict())
    plan = partita.recipe(recipe, partita.capture(module, batch), ranks=2, optimizer="sgd")
    step = partita.parallelize(module, batch, torch.optim.SGD(module.parameters(), 0.1), plan=plan)
    assert torch.equal(step.module().seen, torch.full((3,), 7.0))
    step(batch)
    plain(*batch)
    torch.testing.assert_close(step.module().seen, plain.seen)
