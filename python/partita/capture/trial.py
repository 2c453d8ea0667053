"""Does an op treat the rows along one letter each for itself? Asked of the op, over many draws.

What is looked for is a counterexample: values, numbers of rows and ways to cut them for which the parts do not make what the
whole makes, or a row that changes when another one does. Every claim that survives is an assumption all the same.
"""

from dataclasses import dataclass

import torch

from .call import Call, compact
from .scenes import CHANGES, SCENES, change_row, draw

ROWS = 5                                        # of an ordinary batch
SWEEP = (1, 2, 3, 4, 6, 7, 8, 9, 16, 17, 33)    # further numbers of rows
ELEMENTS = 1 << 18                              # of all operands of one run, at most
FEW = 1 << 15                                   # of a run that is made once more, with captured sizes
WORK = 1 << 29                                  # elements read in all runs of one call: then it is given up
LEAST = 10                                      # scenes and changes that must have run without an error
# Kernels add in another order for another number of rows; beside this, row by row, nothing may differ.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 3e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


class Refuted(Exception):
    """These are no rows, or not with these sizes; says why."""


class NoFunction(Exception):
    """The op does more than to make new tensors of its operands: it has no row."""


@dataclass(frozen=True)
class Letter:
    """One dimension of some operands (None: of those that lack it) and of every result that is a tensor."""

    ins: tuple
    outs: tuple


class Effort:
    """What all runs of one call may read."""

    def __init__(self):
        self.left = WORK

    def spend(self, tensors):
        self.left -= sum(t.numel() for t in tensors) + 64
        if self.left < 0:
            raise Refuted("too much work")


@dataclass(frozen=True)
class Setting:
    """Sizes of what is no row, by captured size, and whether floating operands are float64."""

    sizes: tuple  # pairs; what is absent stays as captured
    double: bool = False
    limits: tuple = (0, 2)  # of whole numbers

    def shape(self, form, axis, rows):
        sizes = dict(self.sizes)
        return tuple(rows if d == axis else sizes.get(n, n) for d, n in enumerate(form.shape))

    def dtype(self, form):
        return torch.float64 if self.double and form.dtype.is_floating_point else form.dtype


class Trial:
    """Runs of one call with `letter` as rows, in one setting."""

    def __init__(self, call: Call, letter: Letter, setting: Setting, seed: int, effort: Effort):
        self.call, self.letter, self.setting, self.effort = call, letter, setting, effort
        self.generator = torch.Generator().manual_seed(seed)
        self.others = None  # sizes of the results that are no rows
        self.base = None    # the scene of ordinary values
        self.ran = 0
        forms = [f for f in (*call.operands, *call.results) if f is not None and f.dtype.is_floating_point]
        self.tolerance = max((TOLERANCE[setting.dtype(f)] for f in forms), default=0)

    def draw(self, scene, rows):
        return [compact(draw(scene, self.generator, self.setting.shape(form, axis, rows), self.setting.dtype(form), axis,
                             self.setting.limits), form.order)
                for form, axis in zip(self.call.operands, self.letter.ins)]

    def fits(self, rows, most=ELEMENTS) -> bool:
        shapes = [self.setting.shape(form, axis, rows) for form, axis in zip(self.call.operands, self.letter.ins)]
        return sum(torch.Size(shape).numel() for shape in shapes) <= most

    def run(self, operands) -> list:
        """The results; what is no function of its operands alone, or shares memory with them, is refuted."""
        self.effort.spend(operands)
        before = [t.clone() for t in operands]
        made = self.call.run(operands)
        if not all(_equal(a, b) for a, b in zip(before, operands)):
            raise NoFunction("it changes its operands")
        _check_memory(operands, [t for t in made if t is not None])
        self._check_forms(made, next(t.shape[a] for t, a in zip(operands, self.letter.ins) if a is not None))
        return made

    def _check_forms(self, made, rows):
        if [t is None for t in made] != [form is None for form in self.call.results]:
            raise Refuted("other results than captured")
        others = []
        for result, form, axis in zip(made, self.call.results, self.letter.outs):
            if form is None:
                continue
            if result.dim() != len(form.shape) or result.shape[axis] != rows or result.layout != torch.strided:
                raise Refuted("a result has other sizes")
            if result.dtype != self.setting.dtype(form) and not (self.setting.double and result.dtype == form.dtype):
                raise Refuted("a result has another dtype")
            others.append([n for d, n in enumerate(result.shape) if d != axis])
        if self.others is not None and others != self.others:
            raise Refuted("a size depends on the number of rows")
        self.others = others

    def part(self, operands, begin, end):
        return [t if axis is None else compact(t.narrow(axis, begin, end - begin), form.order)
                for t, axis, form in zip(operands, self.letter.ins, self.call.operands)]

    def rows_of(self, results, begin, end):
        return [None if t is None else t.narrow(axis, begin, end - begin) for t, axis in zip(results, self.letter.outs)]

    def need_alike(self, whole, operands, begin, end):
        """`operands`: those of the rows from `begin` to `end` of what made `whole`."""
        exact = all(bool(t.isfinite().all()) for t in operands)
        for a, b, axis in zip(self.rows_of(whole, begin, end), self.run(operands), self.letter.outs):
            if a is not None and not alike(a, b, axis, self.tolerance, exact):
                raise Refuted(f"rows {begin} to {end} differ alone")

    def need_parts(self, operands, whole, parts):
        for begin, end in parts:
            self.need_alike(whole, self.part(operands, begin, end), begin, end)

    def begin(self):
        """Finds ordinary values that it takes, and demands of them what a function has."""
        self.base = next((scene for scene in ("normal", "unit") if self._takes(scene)), None)
        if self.base is None:
            raise Refuted("it takes no values that were tried")
        operands = self.draw(self.base, ROWS)
        torch.manual_seed(1)
        first = self.run(operands)
        for seed in (1, 2, 3):
            torch.manual_seed(seed)
            if not all(_equal(a, b) for a, b in zip(first, self.run(operands))):
                raise NoFunction("the same operands do not give the same results")

    def _takes(self, scene):
        """Without an error, and with results that are numbers."""
        try:
            return all([all(map(_mostly_finite, self.run(self.draw(scene, ROWS)))) for _ in range(3)])
        except (Refuted, NoFunction):
            raise
        except Exception:  # whatever an op throws is its way to say no
            return False

    def whole(self, operands):
        """None where the op takes no such values at all."""
        try:
            made = self.run(operands)
        except (Refuted, NoFunction):
            raise
        except Exception:
            return None
        self.ran += 1
        return made

    def try_scenes(self):
        for scene in SCENES:
            operands = self.draw(scene, ROWS)
            whole = self.whole(operands)
            if whole is None:
                continue
            self.need_parts(operands, whole, [(0, 2), (2, ROWS), *((i, i + 1) for i in range(ROWS))])
            self._try_permuted(operands, whole)

    def _try_permuted(self, operands, whole):
        order = torch.randperm(ROWS, generator=self.generator)
        moved = [t if axis is None else compact(t.index_select(axis, order), form.order)
                 for t, axis, form in zip(operands, self.letter.ins, self.call.operands)]
        expected = [None if t is None else t.index_select(axis, order) for t, axis in zip(whole, self.letter.outs)]
        self.need_alike(expected, moved, 0, ROWS)

    def try_rows(self, counts):
        for rows in counts:
            if not self.fits(rows):
                continue
            for scene in (self.base, "two values"):
                operands = self.draw(scene, rows)
                whole = self.whole(operands)
                if whole is not None:
                    self.need_parts(operands, whole, _parts(rows))

    def try_changes(self):
        """One row changes: the others keep every bit; then the others change, and it keeps every bit. It makes what it
        makes alone."""
        operands = self.draw(self.base, ROWS)
        whole = self.run(operands)
        carriers = [k for k, axis in enumerate(self.letter.ins) if axis is not None]
        for number, change in enumerate(CHANGES):
            for chosen in [carriers] + [[k] for k in carriers if len(carriers) > 1]:
                self._try_change(operands, whole, chosen, change, number % ROWS)

    def _try_change(self, operands, whole, chosen, change, row):
        changed = [change_row(t, self.letter.ins[k], row, change, self.generator, self.setting.limits) if k in chosen else t
                   for k, t in enumerate(operands)]
        made = self.whole(changed)
        if made is None:
            return
        self._need_same(whole, made, 0, row)
        self._need_same(whole, made, row + 1, ROWS)
        others = self.whole(self._with_row(self.draw(self.base, ROWS), changed, row))
        if others is not None:
            self._need_same(made, others, row, row + 1)
        self.need_parts(changed, made, [(row, row + 1), (min(row, ROWS - 2), min(row, ROWS - 2) + 2)])

    def _with_row(self, operands, others, row):
        """`operands` with this row of `others`, and all that has no rows."""
        for k, axis in enumerate(self.letter.ins):
            if axis is None:
                operands[k] = others[k]
            else:
                operands[k].select(axis, row).copy_(others[k].select(axis, row))
        return operands

    def _need_same(self, before, after, begin, end):
        if not all(_equal(a, b) for a, b in zip(self.rows_of(before, begin, end), self.rows_of(after, begin, end))):
            raise Refuted(f"rows {begin} to {end} depend on others")

    def need_enough(self):
        if self.ran < LEAST:
            raise Refuted("it takes too few of the values that were tried")


def _parts(rows):
    """Halves, quarters, uneven ones, and single rows."""
    cuts = {(0, rows // 2), (rows // 2, rows), (rows // 4, rows // 2), (0, 1), (1, rows), (rows - 1, rows),
            (rows // 3, rows // 3 + 1)}
    return sorted((begin, end) for begin, end in cuts if begin < end)


def _check_memory(operands, results):
    held = {t.untyped_storage().data_ptr() for t in operands if t.numel()}
    for result in results:
        if result.numel() and result.untyped_storage().data_ptr() in held:
            raise NoFunction("results share memory")
        held.add(result.untyped_storage().data_ptr())


def _mostly_finite(result) -> bool:
    return result is None or 4 * int(result.isfinite().sum()) >= 3 * result.numel()


def _equal(a, b) -> bool:
    """Every value the same, NaN where NaN is."""
    if a is None or b is None:
        return a is b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.equal(a, b) or (a.dtype.is_floating_point and bool(((a == b) | (a.isnan() & b.isnan())).all()))


def alike(a, b, axis, tolerance, exact=True) -> bool:
    """Within `tolerance` of the largest value of each row along `axis`; whole numbers always the same.

    exact: infinities and NaN stand in the same places; else they may, as kernels that work on tiles spread them."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if _equal(a, b):
        return True
    if not a.dtype.is_floating_point:
        return False
    a, b = a.double(), b.double()
    finite = a.isfinite() & b.isfinite()
    if exact and not _equal(a[~finite], b[~finite]):
        return False
    size = a.masked_fill(~finite, 0).abs()
    scale = size.amax([d for d in range(a.dim()) if d != axis], keepdim=True) if a.dim() > 1 else size
    off = (a - b).masked_fill(~finite, 0).abs()
    return bool((off <= tolerance * (scale + 1e-3)).all())
