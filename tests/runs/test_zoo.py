"""A share of the zoo: captured, run in the compiled executor, equal to PyTorch bit for bit.

The whole of it: python tests/parity/capture_table.py
"""

import pytest

from zoo import ZOO
from zoo.compare import compare

SHARE = ["gptj", "phi3", "falcon, alibi", "bert", "fnet", "deberta", "t5", "whisper", "mixtral", "vit", "swin", "beit",
         "resnet", "wav2vec2", "mamba", "lstm, both ways", "nn.Transformer", "convnet, autocast", "gpt2, LoRA",
         "llama, bfloat16", "several losses", "cached values", "weight and spectral norm", "glpn"]


@pytest.mark.parametrize("name", SHARE)
def test_bitwise_equal_to_eager(name):
    result = compare(ZOO[name])
    assert not result.wrong and not result.missing
    assert result.gradients > 0
