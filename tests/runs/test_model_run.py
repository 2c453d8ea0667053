"""Model.run: the compiled executor on one device gives PyTorch's loss, gradients and buffers, bit for bit."""

import pytest
import torch

import partita
from test_capture import CASES, eager, image_case


@pytest.mark.parametrize("name", CASES)
def test_bitwise_equal_to_eager(name):
    build, batch, loss = CASES[name]()
    torch.manual_seed(0)
    module = build()
    with torch.no_grad():  # no bias stays zero
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.01)
    got = partita.capture(module, batch, loss).run(module, batch)
    want_loss, want_gradients = eager(module, batch, loss)
    assert got.loss == want_loss.item()
    assert got.grads.keys() == want_gradients.keys()
    for parameter, want in want_gradients.items():
        assert torch.equal(got.grads[parameter], want), parameter
    buffers = dict(module.named_buffers())
    for buffer, value in got.buffers.items():
        assert torch.equal(value, buffers[buffer]), buffer


def test_a_batch_that_does_not_fit_the_step():
    build, batch, loss = image_case()
    module = build()
    model = partita.capture(module, batch, loss)
    with pytest.raises(partita.InputError, match="image, target"):
        model.run(module, batch[:1])
    with pytest.raises(partita.InputError, match="image"):
        model.run(module, (batch[0][:2], batch[1]))


def test_the_default_dtype_of_the_capture_is_part_of_the_step():
    class Masked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 4)

        def forward(self, x):
            scores = self.linear(x)
            return torch.where(scores > 0, scores, torch.full((), 1e300)).clamp(max=2).sum()

    batch = (torch.randn(2, 3, dtype=torch.float64),)
    torch.set_default_dtype(torch.float64)
    try:
        module = Masked()
        model = partita.capture(module, batch)
    finally:
        torch.set_default_dtype(torch.float32)
    assert model.run(module, batch).loss == eager_loss(module, batch)


def eager_loss(module, batch):
    torch.set_default_dtype(torch.float64)
    try:
        return module(*batch).item()
    finally:
        torch.set_default_dtype(torch.float32)
