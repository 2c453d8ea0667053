"""A share of the zoo: captured, run in the compiled executor, equal to PyTorch bit for bit.

The whole of it: python tests/parity/capture_table.py
"""

import pytest

from zoo import ZOO
from zoo.case import causal, hugging_face
from zoo.compare import compare

SHARE = ["phi3", "bert", "t5", "swin", "resnet", "mamba", "lstm, both ways", "convnet, autocast", "gpt2, LoRA",
         "llama, bfloat16", "several losses", "weight and spectral norm"]


@pytest.mark.parametrize("name", SHARE)
def test_bitwise_equal_to_eager(name):
    result = compare(ZOO[name])
    assert not result.wrong and not result.missing
    assert result.gradients > 0


def test_experts_are_captured_in_fixed_shapes_whatever_the_config_says():
    routed = hugging_face("", "MixtralForCausalLM", causal)
    module, _ = routed.make()
    assert module.config._experts_implementation != "batched_mm"
    result = compare(routed)
    assert not result.missing
    assert all(difference < 1e-5 for difference in result.wrong.values())
