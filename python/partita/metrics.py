"""What is known of one step after it."""

from dataclasses import dataclass, field


@dataclass
class Metrics:
    """Of the last step. `lr`: of the first parameter group; `learning_rates`: of all. `skipped`: a gradient overflowed,
    so nothing was updated. `peak_bytes`: the most that a rank has held at once so far."""

    loss: float
    lr: float
    learning_rates: list
    seconds: float
    tokens_per_second: float
    loss_scale: float
    skipped: bool
    peak_bytes: int
    step: int
    _norm: object = field(repr=False, compare=False, default=None)  # the norm, or a call that gives it

    @property
    def grad_norm(self) -> float | None:
        """Of all gradients together, before clipping. Counted when it is first asked for, unless the plan clips; None
        where it was not asked for before the next step."""
        if callable(self._norm):
            self._norm = self._norm()
        return self._norm

    def __getitem__(self, key):
        return getattr(self, key)

    def keys(self):
        return ["loss", "grad_norm", "lr", "seconds", "tokens_per_second", "loss_scale", "skipped", "peak_bytes", "step"]
