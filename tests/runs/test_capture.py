"""partita.capture: the graph it writes is the step PyTorch runs, bit for bit."""

import json
import re

import pytest
import torch
import torch.utils.checkpoint
from safetensors.torch import load_file
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import make_models
import partita
from replay import replay


def gpt2():
    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=512, n_positions=32, resid_pdrop=0,
                                      embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0))


def llama(tied):
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, hidden_size=64, intermediate_size=172,
                                        num_attention_heads=4, num_key_value_heads=2, vocab_size=512,
                                        max_position_embeddings=32, tie_word_embeddings=tied, bos_token_id=0,
                                        eos_token_id=0))


class BatchNormNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 5)
        self.unused = torch.nn.Parameter(torch.ones(2))
        self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, image):
        hidden = torch.relu(self.norm(self.conv(image))).mean((2, 3))
        return self.head(hidden * self.scale + torch.tensor([0.5, 0.25, 0.0, -1.0]))


def token_batch():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 512, (3, 16), generator=generator)
    labels = ids.clone()
    labels[0, :7] = -100
    labels[2, 3] = -100
    return {"input_ids": ids, "labels": labels}


def token_case(build):
    return build, token_batch(), None


def image_case():
    generator = torch.Generator().manual_seed(1)
    batch = (torch.randn(4, 3, 8, 8, generator=generator), torch.tensor([0, 4, 2, 2]))

    class WithTarget(BatchNormNet):
        def forward(self, image, target):
            return super().forward(image)

    return WithTarget, batch, lambda output, batch: torch.nn.functional.cross_entropy(output, batch[1])


CASES = {
    "gpt2": lambda: token_case(gpt2),
    "llama": lambda: token_case(lambda: llama(tied=False)),
    "llama-tied": lambda: token_case(lambda: llama(tied=True)),
    "batch-norm": image_case,
}


@pytest.fixture(params=CASES)
def case(request):
    build, batch, loss = CASES[request.param]()
    torch.manual_seed(0)
    return build(), batch, loss


def eager(module, batch, loss):
    output = module(**batch) if isinstance(batch, dict) else module(*batch)
    value = output.loss if loss is None else loss(output, batch)
    value.backward()
    return value.detach(), {n: p.grad for n, p in module.named_parameters() if p.grad is not None}


def named_values(module, model, batch):
    names = [t["name"] for t in model.tensors if t.get("role") == "batch"]
    tensors = batch.values() if isinstance(batch, dict) else batch
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return {**{k: v.detach().clone() for k, v in state.items()}, **dict(zip(names, tensors))}


def test_replay_is_bitwise_equal_to_eager(case):
    module, batch, loss = case
    model = partita.capture(module, batch, loss)
    values = named_values(module, model, batch)
    got_loss, got_gradients, got_buffers = replay(model.to_json(), values, model.constants)
    want_loss, want_gradients = eager(module, batch, loss)
    assert torch.equal(got_loss, want_loss)
    assert got_gradients.keys() == want_gradients.keys()
    for name, want in want_gradients.items():
        assert torch.equal(got_gradients[name], want), name
    buffers = dict(module.named_buffers())
    changed = {name for name in buffers if not torch.equal(buffers[name], values[name])}
    assert set(got_buffers) == changed
    for name in changed:
        assert torch.equal(got_buffers[name], buffers[name]), name


def test_twice_the_same_bytes(case):
    module, batch, loss = case
    assert partita.capture(module, batch, loss).to_json() == partita.capture(module, batch, loss).to_json()


def test_names(case):
    module, batch, loss = case
    model = partita.capture(module, batch, loss)
    names = [op["name"] for op in model.ops]
    assert len(names) == len(set(names))
    tensor_names = [t["name"] for t in model.tensors]
    assert len(tensor_names) == len(set(tensor_names))
    paths = {name for name, _ in module.named_modules()} | {"root", "loss"}
    for op in model.ops:
        path, rest = op["name"].split("/")
        assert path in paths
        assert re.fullmatch(r"\w+(\.\d+)?(\.grad\.\d+)?", rest)
        assert op.get("backward", False) or ".grad." not in rest
        if ".grad." in rest:
            assert op["name"].rsplit(".grad.", 1)[0] in names


def test_the_module_is_left_as_it_was(case):
    module, batch, loss = case
    before = {k: v.clone() for k, v in module.state_dict().items()}
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in module.modules()]
    cache = getattr(getattr(module, "config", None), "use_cache", None)
    partita.capture(module, batch, loss)
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in module.modules()] == hooks
    assert getattr(getattr(module, "config", None), "use_cache", None) == cache


def test_gradient_ops_carry_the_name_of_what_they_differentiate():
    ops = {op["name"]: op for op in partita.capture(gpt2(), token_batch()).ops}
    assert ops["transformer.h.1.attn.c_attn/addmm.grad.1"]["target"] == "aten.mm.default"
    assert ops["transformer.h.0.ln_1/native_layer_norm.grad.0"]["target"] == "aten.native_layer_norm_backward.default"
    # The residual stream's two gradients meet in the block that read it, not in the block that wrote it.
    assert ops["transformer.h.1.ln_1/native_layer_norm.grad.1"]["target"] == "aten.add.Tensor"
    # The tied table's two gradients meet at the embedding.
    assert ops["transformer.wte/embedding.grad.1"]["target"] == "aten.add.Tensor"
    assert ops["loss/nll_loss_forward"]["target"] == "aten.nll_loss_forward.default"


def test_ops_of_the_root_module():
    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.linear(x * 2).tanh()

    model = partita.capture(Root(), (torch.ones(2, 3),), lambda output, batch: output.sum())
    names = [op["name"] for op in model.ops if not op.get("backward")]
    assert names == ["root/mul", "linear/t", "linear/addmm", "root/tanh", "loss/sum"]


def test_every_trainable_parameter_has_a_gradient():
    module = llama(tied=False)
    module.model.norm.weight.requires_grad_(False)
    model = partita.capture(module, token_batch())
    trainable = [i for i, t in enumerate(model.tensors) if t.get("trainable")]
    assert [parameter for parameter, _ in model.gradients] == trainable
    assert len(trainable) == len(list(module.parameters())) - 1


def test_parameters_that_the_loss_does_not_use_have_no_gradient():
    build, batch, loss = image_case()
    model = partita.capture(build(), batch, loss)
    names = [model.tensors[parameter]["name"] for parameter, _ in model.gradients]
    assert "unused" not in names and "conv.weight" in names


def test_ranges():
    model = partita.capture(gpt2(), {**token_batch(), "attention_mask": torch.ones(3, 16, dtype=torch.int64)})
    ranges = {t["name"]: t["range"] for t in model.tensors if t.get("role") == "batch"}
    # Ignored labels (-100) are not drawn; a mask of ones stays one.
    assert ranges == {"input_ids": [0, 512], "labels": [0, 512], "attention_mask": [1, 2]}


def test_one_tensor_given_twice_stays_two_inputs():
    batch, module = token_batch(), gpt2()
    twice = partita.capture(module, {"input_ids": batch["input_ids"], "labels": batch["input_ids"]})
    assert twice.to_json() == partita.capture(module, batch).to_json()


def test_capture_works_under_no_grad():
    batch, module = token_batch(), gpt2()
    with torch.no_grad():
        inside = partita.capture(module, batch)
    assert inside.to_json() == partita.capture(module, batch).to_json()


def test_plain_values_in_the_batch_are_baked_in():
    class Scaled(torch.nn.Linear):
        def forward(self, x, factor):
            return super().forward(x) * factor

    model = partita.capture(Scaled(3, 3), {"x": X[0], "factor": 2.5}, total)
    assert [t["name"] for t in model.tensors if t.get("role") == "batch"] == ["x"]
    assert ["root/mul", [2.5]] in [[op["name"], op["args"][1:]] for op in model.ops]


def test_under_fake_tensors_the_same_bytes():
    with FakeTensorMode():
        module = gpt2()
    assert partita.capture(module, token_batch()).to_json() == partita.capture(gpt2(), token_batch()).to_json()


def test_the_default_dtype_of_the_process_is_no_part_of_a_step():
    class Waves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4, dtype=torch.float64))

        def forward(self, x):
            rates = torch.exp(torch.arange(4) * -0.7)  # whole numbers times a number: of the default dtype
            return ((x * self.weight + rates) ** 2 / torch.tensor(3)).sum()

    module, batch = Waves(), (torch.linspace(0, 1, 4, dtype=torch.float64),)
    torch.set_default_dtype(torch.float64)
    try:
        model, want = partita.capture(module, batch), module(*batch)
    finally:
        torch.set_default_dtype(torch.float32)
    assert model.run(module, batch).loss == want.item()


@pytest.mark.parametrize("name", make_models.MODELS)
def test_stored_models_are_what_capture_writes(name):
    assert (make_models.HERE / f"{name}.model.json").read_text() == make_models.make(name).to_json()


def test_save(tmp_path):
    build, batch, loss = image_case()
    model = partita.capture(build(), batch, loss)
    model.save(tmp_path / "net.model.json")
    written = json.loads((tmp_path / "net.model.json").read_text())
    assert written["ops"] == model.ops and written["format"] == "partita.model"
    constants = load_file(tmp_path / "net.constants.safetensors")
    assert {t["name"] for t in written["tensors"] if t.get("role") == "constant"} == constants.keys()
    assert any(torch.equal(c, torch.tensor([0.5, 0.25, 0.0, -1.0])) for c in constants.values())


class Branch(torch.nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.body = forward

    def forward(self, x):
        return self.body(self.inner(x))


def total(output, batch):
    return output.sum()


X = (torch.ones(2, 3),)
WRONG = {
    "no loss": (lambda: partita.capture(gpt2(), {"input_ids": torch.zeros(1, 4, dtype=torch.int64)}),
                "loss of GPT2LMHeadModel", "no .loss"),
    "list batch": (lambda: partita.capture(torch.nn.Linear(3, 3), [torch.ones(2, 3)], total), "batch", "it is a list"),
    "empty batch": (lambda: partita.capture(torch.nn.Linear(3, 3), {}, total), "batch", "no tensor"),
    "list in batch": (lambda: partita.capture(torch.nn.Linear(3, 3), {"input": [1.0]}, total), "batch input",
                      "it is a list"),
    "not a module": (lambda: partita.capture(torch.sum, X, total), "capture", "module is a"),
    "vector loss": (lambda: partita.capture(torch.nn.Linear(3, 3), X, lambda o, b: o), "loss of Linear", r"\[2, 3\]"),
    "number loss": (lambda: partita.capture(torch.nn.Linear(3, 3), X, lambda o, b: 1.0), "loss of Linear", "a float"),
    "detached loss": (lambda: partita.capture(torch.nn.Linear(3, 3), X, lambda o, b: o.detach().sum()),
                      "loss of Linear", "does not depend on any trainable"),
    "frozen": (lambda: partita.capture(torch.nn.Linear(3, 3).requires_grad_(False), X, total), "Linear",
               "no parameter requires"),
    "branch on data": (lambda: partita.capture(Branch(lambda y: y if y.sum() > 0 else -y), X, total), "root",
                       "depend on data"),
    "item": (lambda: partita.capture(Branch(lambda y: y * y.sum().item()), X, total), "root", "depend on data"),
    "nonzero": (lambda: partita.capture(Branch(lambda y: y[y > 0]), X, total), "root", "depends on data"),
    "meta device": (lambda: partita.capture(torch.nn.Linear(3, 3, device="meta"), X, total), "weight", "meta"),
    "file name": (lambda: partita.capture(torch.nn.Linear(3, 3), X, total).save("linear.json"), "linear.json",
                  "recognises"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses_end_with_a_sentence(name):
    call, where, what = WRONG[name]
    with pytest.raises(partita.InputError) as caught:
        call()
    assert caught.value.where == where
    assert re.search(what, caught.value.what)
    assert caught.value.remedy and str(caught.value).startswith(where)


class Scored(torch.nn.Module):
    def __init__(self, pack):
        super().__init__()
        self.linear, self.pack = torch.nn.Linear(3, 2), pack

    def forward(self, x):
        y = self.linear(x)
        return self.pack(y.square().mean(), y)


@pytest.mark.parametrize("pack", [lambda loss, y: loss, lambda loss, y: (loss, y), lambda loss, y: {"loss": loss, "y": y}])
def test_a_scalar_that_a_module_returns_is_its_loss(pack):
    module, batch = Scored(pack), {"x": torch.randn(4, 3)}
    model = partita.capture(module, batch)
    assert model.run(module, batch).loss == module.linear(batch["x"]).square().mean()


class Checkpointed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        hidden = torch.utils.checkpoint.checkpoint(lambda y: torch.tanh(self.first(y)), x, use_reentrant=False)
        return self.second(hidden).square().mean()


def test_a_checkpoint_runs_again_with_the_parameters_of_the_step():
    module, batch = Checkpointed(), (torch.randn(5, 3),)
    model = partita.capture(module, batch)
    assert model.constants == {}
    module(*batch).backward()
    found = model.run(module, batch).grads
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad)


def test_a_mask_of_ones_that_the_model_makes_is_left_out():
    from transformers import BartConfig, BartForConditionalGeneration

    sizes = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
                 encoder_ffn_dim=16, decoder_ffn_dim=16, vocab_size=64, max_position_embeddings=32)
    module = BartForConditionalGeneration(BartConfig(**sizes, dropout=0, pad_token_id=0, bos_token_id=1, eos_token_id=2))
    ids = torch.randint(3, 64, (2, 8))
    targets = [op["target"] for op in partita.capture(module, {"input_ids": ids, "labels": ids}).ops]
    assert "aten._scaled_dot_product_flash_attention_for_cpu.default" in targets
    assert "aten.where.self" not in targets


def test_gates_of_a_recurrent_cell_are_plain_pieces():
    cell = torch.nn.GRU(4, 4)
    model = partita.capture(cell, (torch.randn(3, 2, 4),), lambda output, batch: output[0].sum())
    targets = {op["target"] for op in model.ops}
    assert "aten.split.Tensor" in targets and not any("unsafe" in target for target in targets)


def test_batch_norm_of_half_precision_keeps_float32_statistics():
    module, batch = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)), (torch.randn(2, 3, 8, 8),)
    with torch.autocast("cpu", torch.bfloat16):
        model = partita.capture(module, batch, lambda output, batch: output.float().sum())
    norm = next(op for op in model.ops if "batch_norm" in op["target"] and "grad" not in op["name"])
    assert [model.tensors[out]["dtype"] for out in norm["out"][:3]] == ["bfloat16", "float32", "float32"]


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"weight": torch.linspace(0.5, 2, 8)},
                                     {"pos_weight": torch.linspace(0.5, 2, 8)}], ids=str)
def test_the_cross_entropy_of_logits_rounds_as_eager_does(options):
    class Logistic(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = torch.nn.Parameter(torch.zeros(1))

        def forward(self, x, target):
            return torch.nn.functional.binary_cross_entropy_with_logits(x + self.shift, target, **options)

    module, generator = Logistic(), torch.Generator().manual_seed(3)
    for draw in range(8):
        batch = {"x": torch.randn(8, generator=generator), "target": torch.rand(8, generator=generator).round()}
        model = model if draw else partita.capture(module, batch)
        assert not model.opaque_ops
        assert model.run(module, batch).loss == module(**batch).item()
