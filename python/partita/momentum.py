"""Which parameters have a momentum buffer, as torch.optim.SGD counts.

Torch takes the first gradient of a parameter undamped as its buffer. Ranks do so in their first update, for all parameters
at once; a buffer that begins later is the same only without dampening.
"""

from .errors import InputError


class Momentum:
    def __init__(self, optimizer, named: dict):
        """named: the trained parameters."""
        self.optimizer, self.named, self.names = optimizer, named, set()

    def take_over(self, states: dict):
        """states: as read_states gives them; nothing where the ranks keep theirs."""
        if states:
            self.names = set(states["states"][0]) if states.get("updates", 1) else set()

    def note_update(self):
        self.names |= {name for name, group in self._groups().items() if group.get("momentum")}

    def check(self, updates: int):
        """Raises InputError where torch would take the next gradient of a parameter as it is, and ranks would not."""
        if not updates:
            return
        for name, group in self._groups().items():
            if name not in self.names and group.get("momentum") and group.get("dampening"):
                raise InputError(type(self.optimizer).__name__, f"{name} has no momentum buffer, others have taken steps, and "
                                 f"dampening is {group['dampening']:g}: its first gradient would count undamped",
                                 "set dampening=0, or clear the optimizer's state for all parameters")

    def _groups(self) -> dict:
        owners = {id(parameter): group for group in self.optimizer.param_groups for parameter in group["params"]}
        return {name: owners[id(parameter)] for name, parameter in self.named.items()}


def check_switched_on(optimizer, had: bool):
    """had: whether a group had momentum when the step was made; ranks have room for buffers only then."""
    now = next((i for i, group in enumerate(optimizer.param_groups) if group.get("momentum")), None)
    if not had and now is not None:
        raise InputError(type(optimizer).__name__, f"momentum of group {now} is {optimizer.param_groups[now]['momentum']:g}, and "
                         "was 0 in all groups when the step was made", "make a new step with parallelize, after step.module()")
