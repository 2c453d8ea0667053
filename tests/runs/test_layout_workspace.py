"""Rows say the hidden bytes that the allocator counts: operands that are not dense or of two dtypes, embedding bags."""

import json
import math

import pytest
import torch

from partita.native import library

BYTES = {"float64": 8, "float32": 4}


def strides_of(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


class Step:
    """A model of one op, `it`, on views of batch tensors."""

    def __init__(self):
        self.tensors, self.ops, self.batch = [], [], {}

    def tensor(self, shape, dtype, strides=None, value=None):
        told = {"name": f"t{len(self.tensors)}", "shape": list(shape), "stride": strides or strides_of(shape), "dtype": dtype}
        if value is not None:
            told["role"] = "batch"
            self.batch[told["name"]] = value
            if dtype == "int64":
                told["range"] = [0, int(value.max()) + 1]
        self.tensors.append(told)
        return len(self.tensors) - 1

    def call(self, target, args, out, name=None):
        self.ops.append({"name": name or f"op{len(self.ops)}", "target": f"aten.{target}", "args": args, "out": out})

    def view(self, target, number, args, shape, strides):
        made = self.tensor(shape, self.tensors[number]["dtype"], strides)
        self.call(target, [f"%{number}", *args], [made])
        return made

    def given(self, shape, dtype, lies="dense"):
        """Lies dense, swapped (the last two dimensions), last (channels last), with gaps (between places), or expanded."""
        order = list(range(len(shape)))
        if lies == "swapped":
            order[-2:] = order[:-3:-1]
        if lies in ("last", "gaps"):
            order = [0, *order[2:], 1]
        held = [] if lies == "expanded" else [shape[d] for d in order]
        if lies == "gaps":
            held[-1] += 3
        value = torch.rand(held, dtype=torch.float64).mul(3).to(getattr(torch, dtype))
        number = self.tensor(held, dtype, value=value)
        if lies == "expanded":
            return self.view("expand.default", number, [shape], shape, [0] * len(shape))
        if order != sorted(order):
            back = [order.index(d) for d in range(len(shape))]
            strides = [strides_of(held)[d] for d in back]
            number = self.view("permute.default", number, [back], [held[d] for d in back], strides)
            if lies == "gaps":
                number = self.view("slice.Tensor", number, [1, 0, shape[1]], shape, strides)
        return number

    def measure(self, first):
        """{op: (outputs, counted, of its row)}"""
        return {op: sizes[:3] for op, *sizes in self.run(first)}

    def run(self, first):
        """What the allocator counted and rows say of every op."""
        loss = self.tensor([], self.tensors[first]["dtype"])
        self.call("sum.default", [f"%{first}"], [loss])
        told = {"format": "partita.model", "version": 1, "name": "it", "torch": torch.__version__.split("+")[0],
                "tensors": self.tensors, "ops": self.ops, "loss": loss, "gradients": [], "buffers": []}
        return library().workspace(json.dumps(told), {}, self.batch)


def measure(target, operands, rest, shapes, before=()):
    """Operands: (shape, dtype, how it lies); shapes: (shape, dtype) of results."""
    step = Step()
    args = [*before, *(f"%{step.given(*operand)}" for operand in operands), *rest]
    out = [step.tensor(shape, dtype) for shape, dtype in shapes]
    step.call(target, args, out, "it")
    return step.measure(out[0])["it"][1:]


SHAPE = [3, 4, 5, 6]
LAYOUTS = ["dense", "swapped", "last", "gaps", "expanded"]
SWAPPED = [120, 30, 1, 5]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("lies", LAYOUTS)
def test_softmax_and_sigmoid(dtype, lies):
    x, y = (SHAPE, dtype, lies), (SHAPE, dtype)
    for name in ("_softmax", "_log_softmax"):
        for dim in (1, -1):
            found, said = measure(f"{name}.default", [x], [dim, False], [y])
            assert found == said == (0 if lies == "dense" else 360 * BYTES[dtype]), (name, dim)
            for other in ("dense", "swapped"):
                operands = [x, (SHAPE, dtype, other)]
                found, said = measure(f"{name}_backward_data.default", operands, [dim, f"dtype:{dtype}"], [y])
                assert found == said, (name, dim, other)
    found, said = measure("log_sigmoid_forward.default", [x], [], [y, ([0], dtype)])
    assert found == said


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("lies", ["dense", "swapped", "expanded"])
@pytest.mark.parametrize("x", ["dense", "swapped"])
def test_gelu_backward(dtype, approximate, lies, x):
    strides = SWAPPED if lies == "swapped" or lies == "expanded" and x == "swapped" else None
    step = Step()
    numbers = [f"%{step.given(SHAPE, dtype, how)}" for how in (lies, x)]
    out = step.tensor(SHAPE, dtype, strides)
    step.call("gelu_backward.default", numbers, [out], "it")
    step.ops[-1]["kwargs"] = {"approximate": f"str:{approximate}"}
    _, found, said = step.measure(out)["it"]
    assert found == said


@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("float64", "float32"), ("float32", "int64"),
                                    ("float64", "float64")])
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses_of_two_dtypes(dtypes, reduction):
    wide = "float64" if "float64" in dtypes else "float32"
    pair, result = [(SHAPE, dtype, "dense") for dtype in dtypes], [] if reduction else SHAPE
    for name in ("mse_loss", "smooth_l1_loss"):
        found, said = measure(f"{name}.default", pair, [reduction], [(result, wide)])
        assert found == said, name
    for gradient in ("float32", "float64"):
        operands = [(result, gradient, "dense"), *pair]
        found, said = measure("mse_loss_backward.default", operands, [reduction], [(SHAPE, dtypes[0])])
        assert found == said, gradient


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("base", [2, 2.5])
def test_power_of_a_number(dtype, base):
    found, said = measure("pow.Scalar", [(SHAPE, dtype, "dense")], [], [(SHAPE, dtype)], before=[base])
    assert found == said


@pytest.mark.parametrize("lies", LAYOUTS)
def test_gradients_of_resized_images(lies):
    for name, rest in (("upsample_bilinear2d", [False]), ("upsample_nearest2d", []), ("_upsample_nearest_exact2d", [])):
        small, large = ([2, 16, 4, 4], "float64"), ([2, 16, 8, 8], "float64", lies)
        found, said = measure(f"{name}_backward.default", [large], [[8, 8], small[0], *rest], [small])
        assert found == said, name


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("shape", [[2, 8, 6, 6], [2, 8, 1, 1]])
@pytest.mark.parametrize("lies", LAYOUTS[:4])
def test_batch_norm(dtype, shape, lies):
    channels = ([8], dtype)
    found, said = measure("_native_batch_norm_legit_functional.default", [(shape, dtype, lies), *[(*channels, "dense")] * 4],
                          [True, 0.1, 1e-5], [(shape, dtype), *[channels] * 4])
    assert found == said


# N, C, O, size, window, stride, padding, groups
CONVOLUTIONS = [(2, 8, 16, 8, 2, 2, 0, 1), (2, 8, 16, 8, 3, 1, 1, 1), (1, 8, 16, 8, 3, 1, 1, 1), (2, 8, 16, 8, 1, 1, 0, 1),
                (2, 8, 16, 8, 1, 2, 0, 1), (2, 8, 16, 8, 3, 1, 1, 4), (1, 8, 16, 8, 3, 1, 1, 4), (2, 8, 8, 8, 3, 1, 1, 8),
                (1, 8, 8, 8, 3, 1, 1, 8), (2, 8, 16, 8, 1, 1, 0, 2), (2, 1, 4, 8, 3, 1, 1, 1), (2, 8, 1, 8, 3, 1, 1, 1),
                (2, 8, 16, 7, 3, 2, 1, 2), (2, 32, 32, 2, 7, 1, 3, 32)]


@pytest.mark.parametrize("sizes", CONVOLUTIONS, ids=str)
def test_convolutions_that_lie_otherwise(sizes):
    batch, channels, results, size, window, stride, padding, groups = sizes
    places = (size + 2 * padding - window) // stride + 1
    x, y = [batch, channels, size, size], [batch, results, places, places]
    w = [results, channels // groups, window, window]
    rest = [[stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups]
    f = "float64"
    for x_lies in LAYOUTS[:4]:
        for w_lies in ("dense", "last"):
            operands = [(x, f, x_lies), (w, f, w_lies)]
            found, said = measure("convolution.default", [*operands, ([results], f, "dense")], rest, [(y, f)])
            assert found == said, (x_lies, w_lies)
            for y_lies in LAYOUTS:
                found, said = measure("convolution_backward.default", [(y, f, y_lies), *operands],
                                      [[results], *rest, [True] * 3], [(x, f), (w, f), ([results], f)])
                assert found == said, (x_lies, w_lies, y_lies)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("options", [{}, {"last": True}, {"weights": True}, {"lies": "swapped"}], ids=str)
@pytest.mark.parametrize("sizes", [(20, 8, 32, 8), (33, 16, 21, 5), (33, 16, 24, 24), (20, 4, 100, 2)], ids=str)
def test_embedding_bags(dtype, mode, options, sizes):
    rows, width, indices, bags = sizes
    if options.get("weights") and mode:
        pytest.skip("weights are for sums")
    step, last = Step(), options.get("last", False)
    table = step.given([rows, width], dtype)
    index = step.tensor([indices], "int64", value=torch.arange(indices) % rows)
    offsets = step.tensor([bags + last], "int64", value=torch.arange(bags + last) * indices // bags)
    weights = f"%{step.given([indices], dtype)}" if options.get("weights") else None
    gradient = step.given([bags, width], dtype, options.get("lies", "dense"))
    shapes = [[indices], [bags], [bags, width] if mode == 2 else [bags]]
    out = [step.tensor([bags, width], dtype), *(step.tensor(shape, "int64") for shape in shapes)]
    where = [f"%{index}", f"%{offsets}"]
    step.call("_embedding_bag.default", [f"%{table}", *where, False, mode, False, weights, last], out, "forward")
    made, read = step.tensor([rows, width], dtype), [f"%{gradient}", *where, *(f"%{o}" for o in out[1:])]
    step.call("_embedding_bag_backward.default", [*read, rows, False, mode, False, weights], [made], "backward")
    found = step.measure(out[0])
    outputs, counted, said = found["forward"]
    assert counted == said
    empty = mode == 0 and dtype == "float32"
    sizes_and_maxima = sum(8 * math.prod(shape) for shape in shapes[1:]) + 8 * last
    assert outputs == bags * width * BYTES[dtype] + (0 if empty else 8 * (indices + 1)) + sizes_and_maxima
    _, counted, said = found["backward"]
    assert counted == said


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("lies", ["dense", "swapped"])
def test_windows_keep_the_size_of_their_input(dtype, step, lies):
    places = (9 - 2) // step + 1
    image, columns, rest = [2, 4, 9, 9], [2, 16, places ** 2], [[2, 2], [1, 1], [0, 0], [step, step]]
    for target, given, made, sizes in (("im2col", image, columns, []), ("col2im", columns, image, [[9, 9]])):
        case = Step()
        x, out = case.given(given, dtype, lies), case.tensor(made, dtype)
        case.call(f"{target}.default", [f"%{x}", *sizes, *rest], [out], "it")
        outputs, found, said, promised, _ = next(sizes for op, *sizes in case.run(out) if op == "it")
        assert (outputs, found) == (promised, said), (target, outputs, found, promised, said)


@pytest.mark.parametrize("target, source, rest", [("copy", [4, 6], []), ("slice_scatter", [4, 3], [1, 0, 3]),
                                                  ("select_scatter", [4], [1, 2]), ("diagonal_scatter", [4], [])])
@pytest.mark.parametrize("expanded", [False, True])
def test_what_copies_a_whole_storage(target, source, rest, expanded):
    case = Step()
    if expanded:
        x, strides, storage = case.given([4, 6], "float64", "expanded"), [6, 1], 24
    else:
        held = case.given([5, 7], "float64")
        x = case.view("slice.Tensor", case.view("slice.Tensor", held, [0, 0, 4], [4, 7], [7, 1]), [1, 0, 6], [4, 6], [7, 1])
        strides, storage = [7, 1], 35
    out = case.tensor([4, 6], "float64", strides)
    case.call(f"{target}.default", [f"%{x}", f"%{case.given(source, 'float64')}", *rest], [out], "it")
    outputs, found, said, promised, lies = next(sizes for op, *sizes in case.run(out) if op == "it")
    assert lies and outputs == promised == 8 * storage and found == said == 0
