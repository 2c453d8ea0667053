"""Wrong calls of the Python package that users really make: each answer says what is wrong and what to try."""

import math

import numpy
import pytest
import torch
from torch import nn

import partita
from small_lm import batch, lm
from test_step_keeps import adamw, plan_of, started


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 1)

    def forward(self, x):
        y = self.linear(x).mean()
        return y * 2 if x.sum() > 0 else y


def parallelized(module=None, data=None, optimizer=None, **options):
    module = lm() if module is None else module
    options = options or {"ranks": 2}
    return partita.parallelize(module, data if data is not None else batch(), optimizer or adamw(module), **options)


def stepping(call, **options):
    def run():
        step = started(lm(), **options)
        return call(step)

    return run


def net():
    return nn.Sequential(nn.Linear(6, 4))


def begun(**options):
    module = net()
    return partita.parallelize(module, (X, Y), adamw(module), ranks=2, loss=nn.CrossEntropyLoss(), **options)


def hooked(module):
    module[0].weight.register_post_accumulate_grad_hook(print)
    return module


class Tied(nn.Sequential):
    def parameters_of_both_names(self):
        return [parameter for _, parameter in self.named_parameters(remove_duplicate=False)]


def tied():
    module = Tied(nn.Linear(6, 6), nn.Linear(6, 6))
    module[1].weight = module[0].weight
    return module


def of_scale(scale):
    module = lm()
    plan = partita.recipe("dp", partita.capture(module, batch()), ranks=2, precision=f"loss_scale={scale}")
    return partita.parallelize(module, batch(), adamw(module), plan=plan)


X, Y = torch.randn(8, 6), torch.randint(0, 4, (8,))

WRONG = {
    "where to run is not said": (lambda: parallelized(clip=1.0), "neither plan, cluster nor ranks is given"),
    "both cluster and ranks": (lambda: parallelized(cluster="2xcpu", ranks=2), "both given; give one"),
    "plan and cluster": (lambda: parallelized(plan=plan_of(lm()), cluster="2xcpu"), "the plan decides; leave cluster out"),
    "plan and memory": (lambda: parallelized(plan=plan_of(lm()), memory="1GiB"), "the plan decides; leave memory out"),
    "plan of another kind": (lambda: parallelized(plan=3), "plan is a int; give what partita.plan"),
    "plan file that is not there": (lambda: parallelized(plan="missing.json"), "missing.json: it cannot be read"),
    "plan for another module": (lambda: parallelized(lm(size=8), plan=plan_of(lm())), "made for LM.*make the plan again"),
    "cluster misspelt": (lambda: parallelized(cluster="4xcpus"), "cpu"),
    "GPUs that are not here": (lambda: parallelized(cluster="2xH100-80GB"), "threads of this CPU; plan for that cluster"),
    "memory without sense": (lambda: parallelized(cluster="2xcpu", memory="lots"), "lots"),
    "optimizer class": (lambda: parallelized(optimizer=torch.optim.AdamW), "it is the class AdamW; make one"),
    "optimizer unknown": (lambda: parallelized(m := lm(), optimizer=torch.optim.Adagrad(m.parameters())),
                          "Adagrad is not known; use one of torch.optim.AdamW"),
    "optimizer of another module": (lambda: parallelized(lm(), optimizer=adamw(lm())), "it does not have"),
    "optimizer with strangers": (lambda: parallelized(m := lm(), optimizer=torch.optim.SGD([*m.parameters(), *lm().parameters()], 0.1)),
                                 "that are not the module's"),
    "optimizer is a number": (lambda: parallelized(optimizer=3e-4), "it is a float; give a torch optimizer"),
    "amsgrad": (lambda: parallelized(m := lm(), optimizer=adamw(m, amsgrad=True)), "amsgrad is set; leave it off"),
    "clip of zero": (lambda: parallelized(ranks=2, clip=0), "clip=0 is no number above 0"),
    "clip as text": (lambda: parallelized(ranks=2, clip="1"), "clip='1' is no number above 0"),
    "clip of no number": (lambda: parallelized(ranks=2, clip=float("nan")), "clip=nan is no number above 0; leave it out"),
    "clip below zero": (lambda: parallelized(ranks=2, clip=-1.0), "clip=-1.0 is no number above 0; leave it out"),
    "clip of True": (lambda: parallelized(ranks=2, clip=True), "clip=True is no number above 0"),
    "one parameter twice": (lambda: parallelized(m := tied(), (X, Y), torch.optim.SGD(m.parameters_of_both_names(), 0.1)),
                            "group 0 has 0.weight = 1.weight twice, and torch would step it twice; give every tensor once"),
    "loss scale that overflows": (lambda: of_scale(2.0 ** 600), "loss_scale is 4.14952e[+]180.*overflow; give one up to 3.27339e[+]150"),
    "precision unknown": (lambda: parallelized(ranks=2, precision="fp8"), "'fp8' is not known; write one of bf16, fp16"),
    "precision of a float32 module": (lambda: parallelized(ranks=2, precision="bf16"), "call module.to"),
    "compiled module": (lambda: parallelized(torch.compile(lm())), "give the module itself, before torch.compile"),
    "wrapped module": (lambda: parallelized(nn.DataParallel(lm())), "give the module inside"),
    "no module": (lambda: partita.parallelize(lambda x: x, batch(), None, ranks=2), "module is a function; give a torch.nn.Module"),
    "labels without a loss": (lambda: parallelized(net(), (X, Y)), "does not take input.1 of the batch.*needs loss="),
    "no loss in the output": (lambda: parallelized(net(), (X,)), "has no .loss and is no scalar"),
    "loss that is no scalar": (lambda: parallelized(net(), (X, Y), ranks=2, loss=nn.CrossEntropyLoss(reduction="none")),
                               "return a scalar"),
    "loss that is no callable": (lambda: parallelized(net(), (X, Y), ranks=2, loss="mse"), "it is a str; give a callable"),
    "loss module without a target": (lambda: parallelized(net(), (X,), ranks=2, loss=nn.CrossEntropyLoss()),
                                     "leaves 0 tensors that forward does not take; give it one"),
    "arrays": (lambda: parallelized(data={"input_ids": numpy.zeros((4, 8))}), "torch.from_numpy"),
    "empty batch": (lambda: parallelized(data={}), "holds no tensor|nothing was given"),
    "nothing to train": (lambda: parallelized(m := lm().requires_grad_(False), optimizer=adamw(m)),
                         "no parameter requires a gradient"),
    "values decide": (lambda: parallelized(Branching(), {"x": X}), "bake=True"),
    "step without a batch": (stepping(lambda step: step()), "nothing was given; give the batch"),
    "step of None": (stepping(lambda step: step(None)), "it is a NoneType"),
    "step of arrays": (stepping(lambda step: step({k: v.numpy() for k, v in batch().items()})), "torch.from_numpy"),
    "misspelt input": (stepping(lambda step: step({"input_id": batch()["input_ids"], "labels": batch()["labels"]})),
                       "it has input_id, labels; give input_ids, labels"),
    "ids of 32 bits": (stepping(lambda step: step({**batch(), "input_ids": batch()["input_ids"].int()})), "try .long"),
    "position and keywords": (stepping(lambda step: step(batch(), labels=1)), "by position and as keywords"),
    "a tuple for a dict": (stepping(lambda step: step(batch()["input_ids"], batch()["labels"])), "captured with input_ids"),
    "state of another kind": (stepping(lambda step: step.load_state_dict([])), "give what step.state_dict"),
    "a module for its model": (lambda: partita.plan(net(), "2xcpu"), "model: it is a Sequential; give what partita.capture returned"),
    "unknown recipe": (lambda: partita.recipe("dpp", partita.capture(lm(), batch()), ranks=2), "dpp.*did you mean"),
    "more ranks than samples": (lambda: plan_of_five(), "cannot feed 5 pieces"),
    "input that asks for gradients": (lambda: partita.capture(net(), (X.clone().requires_grad_(), Y), nn.CrossEntropyLoss()),
                                      r"batch input: it requires a gradient.*give it with .detach\(\)"),
    "later input that asks for gradients": (lambda: begun()(X * torch.ones(6, requires_grad=True), Y),
                                            r"batch 0: it requires a gradient.*give it with .detach\(\)"),
    "hook on a parameter, captured alone": (lambda: partita.capture(hooked(net()), (X, Y), nn.CrossEntropyLoss()),
                                            "0.weight: it has a hook on its gradient, which ranks do not call; remove"),
    "file name of a model": (lambda: partita.capture(lm(), batch()).save("model.json"), "call it model.model.json"),
}


def plan_of_five():
    model = partita.capture(lm(), batch())
    return partita.parallelize(module := lm(), batch(), adamw(module), plan=partita.recipe("dp", model, ranks=5))


def test_an_infinite_clip_clips_nothing_whatever_the_plan_says():
    plan = partita.recipe("dp", partita.capture(lm(), batch()), ranks=2, clip=0.1)
    assert "clip" not in parallelized(plan=plan, clip=math.inf).plan.data["optimizer"]
    assert parallelized(ranks=2, clip=math.inf)(batch()) == parallelized(ranks=2)(batch())


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_end_with_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, sentence = WRONG[name]
    with pytest.raises(partita.InputError, match=f"(?s){sentence}") as error:
        call()
    assert type(error.value).__module__ == "partita.errors"


def test_bake_can_be_followed():
    torch.manual_seed(0)
    module = Branching()
    with pytest.warns(UserWarning, match="decides by values"):
        step = partita.parallelize(module, {"x": X}, torch.optim.SGD(module.parameters(), 0.1), ranks=2, bake=True)
    assert isinstance(step({"x": X}), float)


def test_torchrun_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(partita.InputError, match="WORLD_SIZE is 2.*start the script with python"):
        parallelized()


def test_who_wins_is_said(tmp_path):
    module = lm()
    plan = plan_of(module, clip=0.5, optimizer="sgd")
    plan.save(tmp_path / "plan.json")
    with pytest.warns(UserWarning) as said:
        step = partita.parallelize(module, batch(), adamw(module), plan=tmp_path / "plan.json")
    texts = [str(w.message) for w in said]
    assert any("made for sgd, the optimizer is adamw; the optimizer counts" in text for text in texts)
    assert any("clipped to 0.5, as the plan says" in text for text in texts)
    step(batch())
    assert step.plan.data["optimizer"]["name"] == "adamw"


def test_reprs_are_short():
    module = lm()
    model = partita.capture(module, batch())
    step = started(module)
    step(batch())
    for one in (model, step, step.plan, step.metrics):
        assert len(repr(one)) < 300, one
    assert repr(model).startswith("<partita.Model LM: ") and "batch input_ids int64[4, 8]" in repr(model)
    assert "dp2" in repr(step) and "step 1" in repr(step)
