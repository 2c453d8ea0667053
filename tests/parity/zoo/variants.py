"""One model trained in several ways: frozen parts, adapters, autocast, several losses, values cached in the module."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from .case import Case, causal, hugging_face
from .plain import ConvNet, Regression, its_output, mlp, numbers, pictures, squared_error


class Adapter(nn.Module):
    """A frozen linear layer and a low-rank product beside it (LoRA)."""

    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        inputs, outputs = base.weight.shape if type(base).__name__ == "Conv1D" else base.weight.t().shape
        self.down = nn.Parameter(torch.randn(inputs, rank) * 0.1)
        self.up = nn.Parameter(torch.randn(rank, outputs) * 0.1)

    def forward(self, x):
        return self.base(x) + x @ self.down @ self.up


def adapted(name, model, parts):
    whole = hugging_face(name, model, causal)

    def build():
        module = whole.build().requires_grad_(False)
        for path, part in list(module.named_modules()):
            if path.endswith(parts):
                owner, _, leaf = path.rpartition(".")
                setattr(module.get_submodule(owner), leaf, Adapter(part))
        return module

    return Case(name, build, causal)


class TwoHeads(nn.Module):
    """Two losses, one of them with a weight, and a penalty; one parameter that nothing uses."""

    def __init__(self):
        super().__init__()
        self.body, self.first, self.second = nn.Linear(10, 16), nn.Linear(16, 4), nn.Linear(16, 3)
        self.unused = nn.Linear(5, 5)

    def forward(self, x, target):
        hidden = torch.tanh(self.body(x))
        classes = functional.cross_entropy(self.second(hidden), target.argmax(1).clamp(max=2))
        return functional.mse_loss(self.first(hidden), target) + 0.3 * classes + 1e-3 * hidden.pow(2).mean()


class Cached(nn.Module):
    """Keeps a table in an attribute, counts its calls, and puts a new tensor in the place of a buffer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 4)
        self.tables, self.calls = {}, 0
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x, target):
        self.calls += 1
        if "scale" not in self.tables:
            self.tables["scale"] = torch.linspace(0.5, 1.5, 4)
        y = self.linear(x) * self.tables["scale"]
        self.mean = 0.9 * self.mean + 0.1 * y.detach().mean(0)
        return y - self.mean


def rearranged():
    """Weight norm and spectral norm compute a weight from parameters and buffers in every forward."""
    return Regression(nn.Sequential(parametrizations.weight_norm(nn.Linear(10, 8)), nn.GELU(),
                                    parametrizations.spectral_norm(nn.Linear(8, 4))))


def half():
    return torch.autocast("cpu", torch.bfloat16)


def checkpointed():
    module = hugging_face("", "LlamaForCausalLM", causal).build()
    module.gradient_checkpointing_enable({"use_reentrant": False})
    return module


def typed(name, model, dtype):
    return Case(name, lambda: hugging_face("", model, causal).build().to(dtype), causal)


VARIANTS = [
    adapted("gpt2, LoRA", "GPT2LMHeadModel", ("c_attn", "c_proj")),
    adapted("llama, LoRA", "LlamaForCausalLM", ("q_proj", "v_proj")),
    Case("gpt2, autocast", hugging_face("", "GPT2LMHeadModel", causal).build, causal, around=half),
    Case("llama, autocast", hugging_face("", "LlamaForCausalLM", causal).build, causal, around=half),
    Case("convnet, autocast", ConvNet, pictures, its_output, around=half),
    typed("llama, bfloat16", "LlamaForCausalLM", torch.bfloat16),
    typed("gpt2, float64", "GPT2LMHeadModel", torch.float64),
    Case("llama, checkpointed", checkpointed, causal),
    Case("several losses", TwoHeads, numbers, its_output),
    Case("cached values", Cached, numbers, squared_error),
    Case("weight and spectral norm", rearranged, numbers, squared_error),
    Case("mlp, frozen below", lambda: Regression(nn.Sequential(mlp().requires_grad_(False), nn.Linear(4, 4))), numbers,
         squared_error),
]
