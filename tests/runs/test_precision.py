"""Clipping, master copies and the loss scale, each against PyTorch's own way of doing it."""

import pytest
import torch

import partita
from partita.plan import recipe

PLANS = [("dp", {}), ("zero3", {}), ("tp", {}), ("pipeline", {"microbatches": 2}), ("zero1", {"microbatches": 2})]


class Net(torch.nn.Module):
    """Two layers with a tied head, so that one parameter lies on two stages."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(12, 16)
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, tokens, labels):
        x = self.embed(tokens)
        x = self.norm(x + self.down(torch.relu(self.up(x))))
        logits = (x @ self.embed.weight.T).flatten(0, 1)
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return torch.nn.functional.cross_entropy(wide, labels.flatten())


def batches(count):
    draw = torch.Generator().manual_seed(1)
    return [{
  "tokens" : torch.randint(12, (4, 6), generator = draw),
      "labels" : torch.randint(12, (4, 6), generator = draw)}
            for _ in range(count)]


def net(dtype=torch.float32):
    torch.manual_seed(0)
    return Net().to(dtype)


def parallel(module, name, options, **settings):
    optimizer = torch.optim.AdamW(module.parameters(), 1e-2)
    plan = recipe(name, partita.capture(module, batches(1)[0]), ranks=2, **options)
    return partita.parallelize(module, batches(1)[0], optimizer, plan=plan, **settings)


def eager(module, clip, master=False):
    """Losses and parameters of the same steps in PyTorch; with `master` the optimizer holds float32 copies."""
    held = [p.detach().float().clone().requires_grad_() for p in module.parameters()] if master else list(module.parameters())
    optimizer, losses = torch.optim.AdamW(held, 1e-2), []
    for batch in batches(3):
        module.zero_grad()
        loss = module(**batch)
        loss.backward()
        if master:
            for copied, parameter in zip(held, module.parameters()):
                copied.grad = parameter.grad.float()
        if clip:
            torch.nn.utils.clip_grad_norm_(held, clip)
        optimizer.step()
        if master:
            for copied, parameter in zip(held, module.parameters()):
                parameter.data.copy_(copied.data)
        losses.append(loss.item())
    return losses, dict(module.named_parameters())


@pytest.mark.parametrize("name, options", PLANS)
def test_clip_equals_pytorch(name, options):
    losses, wanted = eager(net(torch.float64), clip=0.05)
    step = parallel(net(torch.float64), name, options, clip=0.05)
    assert [step(batch) for batch in batches(3)] == pytest.approx(losses, abs=1e-12)
    for parameter, value in step.module().named_parameters():
        torch.testing.assert_close(value, wanted[parameter], rtol=1e-9, atol=1e-11)


def test_clip_of_one_changes_little_and_of_a_tenth_much():
    free, _ = eager(net(torch.float64), clip=None)
    tight, _ = eager(net(torch.float64), clip=0.05)
    assert abs(free[2] - tight[2]) > 1e-6  # else the test above shows nothing


@pytest.mark.parametrize("name, options", PLANS)
def test_master_copies_follow_pytorch(name, options):
    losses, wanted = eager(net(torch.bfloat16), clip=None, master=True)
    step = parallel(net(torch.bfloat16), name, options, precision="bf16")
    assert [step(batch) for batch in batches(3)] == pytest.approx(losses, rel=2e-2)
    for parameter, value in step.module().named_parameters():
        assert value.dtype == torch.bfloat16
        torch.testing.assert_close(value, wanted[parameter].data, rtol=5e-2, atol=2e-2)


def test_small_updates_are_lost_without_a_master_copy_and_kept_with_one():
    changed = {}
    for precision in (None, "bf16"):
        module = net(torch.bfloat16)
        module.norm.weight.data.fill_(256.0)  # neighbours of 256 in bfloat16 are 2 apart, a step is 0.01
        step = parallel(module, "dp", {}, precision=precision)
        for batch in batches(1) * 150:
            step(batch)
        changed[precision] = (step.module().norm.weight != 256.0).any().item()
    assert changed == {None: False, "bf16": True}


@pytest.mark.parametrize("clip", [None, 0.05])
def test_overflow_skips_the_step_and_halves_the_scale(clip):
    batch = batches(1)[0]
    free = parallel(net(), "pipeline", {"microbatches": 2}, clip=clip)
    wanted = [free(batch) for _ in range(4)]
    # 2^129 is infinite in float32, and so is half of it.
    plan = free.plan.data | {"precision": {"loss_scale": 2.0**129}}
    module = net()
    scaled = partita.parallelize(module, batch, torch.optim.AdamW(module.parameters(), 1e-2), plan=partita.Plan(plan))
    losses = [scaled(batch) for _ in range(12)]
    skipped = next(k for k in range(12) if losses[k + 1] != losses[k])
    assert skipped >= 2
    assert losses[skipped:skipped + 4] == pytest.approx(wanted, rel=1e-5)


def test_half_precision_trains_with_a_loss_scale():
    module = net(torch.float16)
    step = parallel(module, "dp", {}, precision="fp16")
    losses = [step(batch) for batch in batches(1) * 30]
    assert losses[-1] < 0.5 * losses[0]


def test_a_float32_module_needs_autocast():
    with pytest.raises(partita.InputError, match="embed.weight is torch.float32, bf16 needs torch.bfloat16; call module.to"):
        parallel(net(), "dp", {}, precision="bf16")
