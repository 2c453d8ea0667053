"""The C++ executor gives what eager PyTorch gives, bit for bit."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import partita
from partita.native import library


def gpt2(dtype=torch.float32):
    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=512, n_positions=32, resid_pdrop=0,
                                      embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)).to(dtype)


def llama(dtype=torch.float32):
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, hidden_size=64, intermediate_size=172,
                                        num_attention_heads=4, num_key_value_heads=2, vocab_size=512,
                                        max_position_embeddings=32, bos_token_id=0, eos_token_id=0)).to(dtype)


class ConvNet(torch.nn.Module):
    """Buffers that change, a parameter nothing uses, a constant, a list of indices, a split."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8, 5)
        self.unused = torch.nn.Parameter(torch.ones(2))
        self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, image, target):
        hidden = torch.relu(self.norm(self.conv(image))).mean((2, 3))
        left, right = hidden.split(4, 1)
        hidden = torch.cat([left * self.scale, right[:, torch.tensor([3, 1, 0, 2])]], 1)
        return torch.nn.functional.cross_entropy(self.head(hidden), target)


def tokens():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 512, (3, 16), generator=generator)
    labels = ids.clone()
    labels[0, :7] = -100
    labels[2, 3] = -100
    return {"input_ids": ids, "labels": labels}


def images():
    generator = torch.Generator().manual_seed(1)
    return {"image": torch.randn(4, 3, 8, 8, generator=generator), "target": torch.tensor([0, 4, 2, 2])}


CASES = {
    "gpt2": (gpt2, tokens, lambda out: out.loss),
    "gpt2-float64": (lambda: gpt2(torch.float64), tokens, lambda out: out.loss),
    "llama": (llama, tokens, lambda out: out.loss),
    "conv": (ConvNet, images, lambda out: out),
}


def build(name):
    make, batch, loss_of = CASES[name]
    torch.manual_seed(0)
    module = make()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    return module, batch(), loss_of


def values(module, model):
    return {**dict(module.named_parameters()), **dict(module.named_buffers()), **model.constants}


def captured(name):
    module, batch, loss_of = build(name)
    model = partita.capture(module, batch, loss=None if name != "conv" else (lambda out, batch: out))
    return module, batch, loss_of, model


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", CASES)
def test_equal_to_eager(name, threads):
    module, batch, loss_of, model = captured(name)
    loss, gradients, buffers = library().run_step(model.to_json(), values(module, model), batch)
    expected = loss_of(module(**batch))
    expected.backward()
    assert loss == expected.item()
    assert set(gradients) == {n for n, p in module.named_parameters() if p.grad is not None}
    for parameter, gradient in gradients.items():
        assert torch.equal(gradient, module.get_parameter(parameter).grad), parameter
    for buffer, value in buffers.items():
        assert torch.equal(value, module.get_buffer(buffer)), buffer
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("optimizer", [
    ({"name": "adamw", "lr": 1e-2, "weight_decay": 0.1},
     lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.1, fused=True)),
    ({"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0},
     lambda p: torch.optim.SGD(p, 0.1, 0.9, fused=True)),
    ({"name": "sgd", "lr": 0.1, "weight_decay": 0.01},
     lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01, fused=True)),
], ids=["adamw", "momentum", "sgd"])
def test_training_is_equal_to_eager(name, optimizer):
    module, batch, loss_of, model = captured(name)
    spec, make = optimizer
    session = library().Session(model.to_json(), values(module, model), optimizer=spec)
    theirs = make(module.parameters())
    for _ in range(4):
        loss = session.step(batch)
        theirs.zero_grad()
        expected = loss_of(module(**batch))
        expected.backward()
        theirs.step()
        assert loss == expected.item()
    for parameter, value in session.parameters().items():
        assert torch.equal(value, module.get_parameter(parameter)), parameter


def test_the_callers_modes_do_not_matter():
    module, batch, _, model = captured("gpt2")
    session = library().Session(model.to_json(), values(module, model))
    plain = session.step(batch)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        assert session.step(batch) == plain
        assert torch.is_autocast_enabled("cpu") and not torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    gradients = session.gradients()
    assert not any(gradient.is_inference() for gradient in gradients.values())


class Wide(TorchDispatchMode):
    """Makes every new tensor in float64."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        return func(*args, **{**kwargs, **({"dtype": torch.float64} if kwargs.get("dtype") is torch.float32 else {})})


def test_a_session_opens_under_a_dispatch_mode():
    module, batch, _, model = captured("gpt2")
    optimizer = {"name": "adamw", "lr": 1e-2}
    plain = library().Session(model.to_json(), values(module, model), optimizer=optimizer)
    with Wide():
        session = library().Session(model.to_json(), values(module, model), optimizer=optimizer)
    assert [session.step(batch) for _ in range(2)] == [plain.step(batch) for _ in range(2)]


def test_wrong_inputs_are_named():
    module, batch, _, model = captured("gpt2")
    given = values(module, model)
    with pytest.raises(partita.InputError, match="model:9:84: the file ends"):
        library().run_step(model.to_json()[:1000], given, batch)
    with pytest.raises(partita.InputError, match="batch: no value for labels"):
        library().run_step(model.to_json(), given, {"input_ids": batch["input_ids"]})
    with pytest.raises(partita.InputError, match='optimizer: unknown key "weight_decai"; did you mean .weight_decay.'):
        library().Session(model.to_json(), given, optimizer={"weight_decai": 1.0})
    with pytest.raises(partita.InputError, match="is on meta, the runtime needs it on the CPU"):
        library().run_step(model.to_json(), given, {name: value.to("meta") for name, value in batch.items()})
