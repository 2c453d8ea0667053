"""What Hugging Face models need so that their step traces to a graph that does not depend on data."""

import contextlib
import sys

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from ..errors import InputError
from .known import Known


EXPERTS = "_experts_implementation_internal"


@contextlib.contextmanager
def traceable(module: torch.nn.Module):
    """Caches off, no packed sequences, no masks of ones, layer drop never firing; everything is put back at the end."""
    transformers = sys.modules.get("transformers")
    models = []
    if transformers is not None:
        models = [m for m in module.modules() if isinstance(m, transformers.PreTrainedModel)]
    with contextlib.ExitStack() as stack:
        if models:
            import transformers.masking_utils as masking
            import transformers.pytorch_utils as caching

            for config in _configs(models):
                _refuse_layerdrop(config)
                if getattr(config, "use_cache", False):
                    stack.enter_context(_replaced(config, "use_cache", False))
                if getattr(config, EXPERTS, None) is not None:
                    # The others choose shapes by the routing, or have no kernel for float32 without values.
                    stack.enter_context(_replaced(config, EXPERTS, "batched_mm"))
            # Under fake tensors the detection cannot look at positions and would build a full mask, which hides that
            # attention is causal.
            stack.enter_context(_replaced(masking, "find_packed_sequence_indices", lambda position_ids: None))
            stack.enter_context(_replaced(masking, "is_tracing", _tracing_unless_known(masking.is_tracing)))
            # Tables that an earlier forward left in a cache of the process are computed anew.
            stack.enter_context(_replaced(caching, "is_torchdynamo_compiling", lambda: True))
            stack.enter_context(_replaced(torch.nn.Module, "to", _to_unless_there(torch.nn.Module.to)))
            stack.enter_context(_replaced(torch, "rand", _rand_without_scalars(torch.rand)))
        yield


def _configs(models):
    seen = {}
    for model in models:
        for config in (model.config, *(getattr(model.config, key, None) for key in model.config.sub_configs)):
            if config is not None:
                seen[id(config)] = config
    return list(seen.values())


def _refuse_layerdrop(config):
    for key in ("layerdrop", "encoder_layerdrop", "decoder_layerdrop"):
        if getattr(config, key, 0):
            raise InputError(f"config.{key}", f"{getattr(config, key)} skips layers at random, so the step is not one "
                             "graph", "set it to 0")


def _to_unless_there(to):
    # Routers move their classifier to a dtype in forward; traced parameters cannot be swapped, and need not be.
    def move(module, *args, **options):
        device, dtype, *_ = torch._C._nn._parse_to(*args, **options)
        there = all((dtype is None or p.dtype == dtype or not p.is_floating_point()) and device in (None, p.device)
                    for p in module.parameters())
        return module if there else to(module, *args, **options)
    return move


def _tracing_unless_known(is_tracing):
    # Models make a padding mask of ones where the batch has none, and eager PyTorch looks at it and leaves it out. What a
    # mask of the batch holds must not decide.
    def unless_known(tensor=None):
        known = [mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, Known)]
        return is_tracing(tensor) and not (tensor is not None and known and known[0].same_for_every_batch(tensor))
    return unless_known


def _rand_without_scalars(rand):
    # Layer drop asks `torch.rand([]) < probability`; 1.0 keeps every layer and needs no traced value.
    def scalar_is_one(*size, **options):
        return 1.0 if size in ((), ([],), ((),)) else rand(*size, **options)
    return scalar_is_one


@contextlib.contextmanager
def _replaced(owner, name, value):
    saved = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, saved)
