"""Rows of convolutions say what the allocator counts in float64, and no less in float32, where oneDNN copies operands."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from convolution_workspace import Case, draw, measure

ONE = ([1, 1], [0, 0], [1, 1])
CASES = {
    "patches of a ViT, whole batch": Case("patches", [8, 3, 32, 32], [64, 3, 8, 8], [8, 8], [0, 0], [1, 1], 1, True, (0, 1, 1), True),
    "patches of a ViT, a micro-batch": Case("patches", [1, 3, 32, 32], [64, 3, 8, 8], [8, 8], [0, 0], [1, 1], 1, True, (0, 1, 1), True),
    "wide patches": Case("patches", [2, 3, 64, 64], [48, 3, 16, 16], [16, 16], [0, 0], [1, 1], 1, True, (1, 1, 1), True),
    "3 x 3": Case("plain", [4, 30, 16, 16], [42, 30, 3, 3], [1, 1], [1, 1], [1, 1], 1, True, (1, 1, 1), True),
    "points": Case("points", [16, 9, 20, 20], [5, 9, 1, 1], *ONE, 1, True, (1, 1, 1), True),
    "depthwise": Case("depthwise", [2, 20, 12, 12], [20, 1, 3, 3], [1, 1], [1, 1], [1, 1], 20, True, (1, 1, 1), True),
    "in time": Case("groups", [4, 32, 100], [32, 4, 3], [1], [1], [1], 8, False, (1, 1, 0), True),
    "in space": Case("strided", [2, 5, 9, 9, 9], [7, 5, 3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], 1, True, (1, 1, 1), True),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_of_cases(name):
    for op, found, bound in measure(CASES[name]):
        assert 0 < found <= bound, (op, found, bound)


def test_bounds_of_random_shapes():
    seed, rng = 5, random.Random(5)
    for case in (draw(rng) for _ in range(150)):
        for op, found, bound in measure(case):
            assert found <= bound, (seed, op, found, bound, case)


def test_own_kernels_are_known_exactly():
    """Small calls and float64 do not go to oneDNN."""
    small = Case("plain", [1, 9, 25, 25], [16, 9, 3, 3], [1, 1], [2, 2], [1, 1], 1, False, (1, 1, 0), True)
    points = Case("points", [2, 8, 6, 6, 6], [4, 8, 1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], 1, True, (1, 1, 1), True)
    for case, dtype in ((small, "float32"), (small, "float64"), (points, "float32"), (points, "float64")):
        for op, found, bound in measure(case, dtype):
            assert found == bound, (op, dtype, found, bound, case)


@pytest.mark.parametrize("mask", [(1, 0, 0), (1, 0, 1), (1, 1, 0), (0, 1, 0), (0, 0, 1)])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_gradients_that_are_not_asked_for_need_nothing(mask, groups):
    case = Case("plain", [3, 4, 7, 7], [8, 4 // groups, 3, 3], [1, 1], [1, 1], [1, 1], groups, True, mask, True)
    for op, found, bound in measure(case, "float64"):
        assert found == bound, (op, found, bound)


def test_random_shapes_in_float64():
    seed, rng = 3, random.Random(3)
    for case in (draw(rng) for _ in range(150)):
        exact = case.kind not in ("dilated", "transposed") and len(case.w) < 5
        for op, found, bound in measure(case, "float64"):
            assert found == bound if exact else found <= bound, (seed, op, found, bound, case)
