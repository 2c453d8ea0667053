"""Rows by experiment: an op without a row is run on small inputs, whole and in parts, to see which dimensions are rows of a
batch (docs/decisions/0018-rows-by-experiment.md)."""

import hashlib
import itertools
import string

import torch

from .aside import answers
from .call import Call, compact
from ..native import library
from .scenes import draw
from .trial import FEW, ROWS, SWEEP, Effort, Letter, NoFunction, Refuted, Setting, Trial, alike

CANDIDATES = 64  # ways to place one letter, at most
SMALL = [3, 4, 6, 7, 8, *range(10, 64)]  # sizes of what is no row
WORLDS = {"c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "_dtensor", "symm_mem", "profiler", "rpc"}
NEVER = {torch.Tag.nondeterministic_seeded, torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output,
         torch.Tag.inplace_view}
DTYPES = {torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.uint8, torch.int8, torch.int16,
          torch.int32, torch.int64}
_known = {}  # key of a call -> its row, or None


def infer_rows(calls: list) -> list:
    """The letters of every call, as `register` takes them; None where no dimension is claimed.

    The ops run in another process, so that nothing they do is left behind. Equal calls have equal answers everywhere.
    """
    new = {call.key: call for call in calls if call.key not in _known}
    for key, row in zip(new, answers(list(new.values()), row_of)):
        _known[key] = row
    return [_known[call.key] for call in calls]


def row_of(call: Call) -> str | None:
    """The letters that experiments find; runs the op in this process."""
    letters = find_letters(call) if may_be_tried(call) else []
    return write_letters(call, letters) if letters else None


def may_be_tried(call: Call) -> bool:
    schema, forms = call.op._schema, [*call.operands, *(form for form in call.results if form)]
    return not (call.op.namespace in WORLDS or call.op in torch.fx.node._side_effectful_functions
                or str(call.op) in library().opaque_on_purpose() or schema.is_mutable or NEVER & set(call.op.tags)
                or any(entry.alias_info is not None for entry in (*schema.arguments, *schema.returns))
                or any(isinstance(value, torch.device) and value.type != "cpu" for value in call.plain_values())
                or any(form.dtype not in DTYPES or 0 in form.shape for form in forms))


def find_letters(call: Call) -> list:
    """The letters along which every result is made row by row. An op that mixes its outermost dimension is left alone:
    where the batch lies is then not to be seen."""
    seed = int.from_bytes(hashlib.sha256(call.key.encode()).digest()[:6], "big")
    effort, letters = Effort(), []
    first = next((k for k, form in enumerate(call.results) if form is not None), None)
    for dim in range(len(call.results[first].shape) if first is not None else 0):
        for number, letter in enumerate(candidates(call, first, dim, letters)):
            try:
                need_rows(call, letter, seed + number, effort)
                letters.append(letter)
                break
            except NoFunction:
                return []
            except Exception:  # of ours, a counterexample; of the op, its way to say no
                continue
        if not letters and call.results[first].shape[dim] > 1:
            return []
    return letters if len(letters) < 2 or hold_together(call, letters, seed, effort) else letters[:1]


def candidates(call: Call, first: int, dim: int, taken: list):
    """Letters at dimension `dim` of result `first`: in every operand a free dimension as large, or none."""
    size = call.results[first].shape[dim]
    if size < 2:
        return []

    def places(form, used):
        free = [d for d, n in enumerate(form.shape) if n == size and d not in used]
        return sorted(free, key=lambda d: (d != dim, d))

    ins = [[*places(form, {letter.ins[k] for letter in taken}), None] for k, form in enumerate(call.operands)]
    outs = [[None] if form is None else [dim] if k == first else places(form, {letter.outs[k] for letter in taken})
            for k, form in enumerate(call.results)]
    ways = (Letter(way[:len(ins)], way[len(ins):]) for way in itertools.product(*ins, *outs))
    return itertools.islice((letter for letter in ways if any(d is not None for d in letter.ins)), CANDIDATES)


def need_rows(call: Call, letter: Letter, seed: int, effort: Effort) -> None:
    """Throws unless every draw agrees that results along `letter` are made row by row."""
    trial = next(iter(_workable(call, letter, settings(call, [letter]), seed, effort)), None)
    if trial is None:
        raise Refuted("it does not run")
    captured = next(t.shape[a] for t, a in zip(call.operands, letter.ins) if a is not None)
    double = [Setting(trial.setting.sizes, True, trial.setting.limits)] if any(map(_is_narrow, call.operands)) else []
    for one in [trial, *_workable(call, letter, double, seed + 1, effort)]:
        one.try_rows((*SWEEP, captured))
        one.try_scenes()
        one.try_changes()
        one.need_enough()
    as_captured = Trial(call, letter, Setting((), limits=trial.setting.limits), seed + 2, effort)
    if as_captured.setting != trial.setting and as_captured.fits(ROWS, FEW):
        as_captured.begin()
        as_captured.try_rows((*SWEEP, captured))
        as_captured.try_scenes()


def _is_narrow(form):
    return form.dtype.is_floating_point and form.dtype != torch.float64


def _workable(call, letter, settings, seed, effort):
    for setting in settings:
        trial = Trial(call, letter, setting, seed, effort)
        try:
            if trial.fits(ROWS):
                trial.begin()
                yield trial
        except Refuted:
            continue


def settings(call: Call, letters: list):
    """Small sizes first; where the op needs some as they were captured, those that its arguments name, or one, or all.
    For each, whole numbers below as much as the op takes."""
    rows = [set(letter.ins[k] for letter in letters) for k in range(len(call.operands))]
    sizes = sorted({n for form, used in zip(call.operands, rows) for d, n in enumerate(form.shape) if n > 1 and d not in used})
    small = dict(zip(sizes, SMALL))
    keeps = [set(), set(sizes) & call.whole_numbers(), *({size} for size in sizes), set(sizes)]
    whole = any(not form.dtype.is_floating_point and form.dtype != torch.bool for form in call.operands)
    for keep in map(set, dict.fromkeys(map(frozenset, keeps))):
        pairs = tuple((n, small[n]) for n in sizes if n not in keep)
        highs = sorted({2, 3, *(dict(pairs).get(n, n) for n in sizes)}, reverse=True) if whole else [2]
        for low, high in itertools.product((0, 1) if whole else (0,), highs):
            yield Setting(pairs, limits=(low, high + low))


def hold_together(call: Call, letters: list, seed: int, effort: Effort) -> bool:
    """Does a block along all letters at once make the block of the results?"""
    for setting in settings(call, letters):
        try:
            return _block_holds(call, letters, setting, seed, effort)
        except Exception:  # the op takes no such sizes or values
            continue
    return False


def _block_holds(call, letters, setting, seed, effort):
    generator = torch.Generator().manual_seed(seed)
    operands = []
    for k, form in enumerate(call.operands):
        rows = {letter.ins[k]: ROWS + number for number, letter in enumerate(letters)}
        shape = tuple(rows.get(d, n) for d, n in enumerate(setting.shape(form, None, 0)))
        operands.append(compact(draw("unit", generator, shape, form.dtype, None, setting.limits), form.order))
    effort.spend(operands)
    whole = call.run(operands)
    part = call.run([compact(_block(t, [letter.ins[k] for letter in letters]), call.operands[k].order)
                     for k, t in enumerate(operands)])
    return all(a is None or alike(_block(a, [letter.outs[k] for letter in letters]), b, letters[0].outs[k],
                                  Trial(call, letters[0], setting, seed, effort).tolerance)
               for k, (a, b) in enumerate(zip(whole, part)))


def _block(tensor, axes):
    for axis in axes:
        tensor = tensor if axis is None else tensor.narrow(axis, 1, 2)
    return tensor


def write_letters(call: Call, letters: list) -> str:
    """A letter for what may be split, `!` and a name of its own for every other dimension."""
    others = (f"!z{k}" for k in itertools.count(1))

    def words(form, axes):
        names = {axis: string.ascii_lowercase[1 + number] for number, axis in enumerate(axes)}
        return " ".join(names.get(d) or next(others) for d in range(len(form.shape)))

    ins = [words(form, [letter.ins[k] for letter in letters]) for k, form in enumerate(call.operands)]
    outs = ["" if form is None else words(form, [letter.outs[k] for letter in letters])
            for k, form in enumerate(call.results)]
    return f"{', '.join(ins)} -> {', '.join(outs)}"
