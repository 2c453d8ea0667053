"""Errors a user can act on."""


class InputError(ValueError):
    """Something given by the user is wrong: where, what was found, and one thing to try; or the whole sentence."""

    def __init__(self, where: str, what: str = "", remedy: str = ""):
        super().__init__(f"{where}: {what}; {remedy}" if what else where)
        self.where, self.what, self.remedy = where, what, remedy


class RunError(RuntimeError):
    """A rank failed while running; names rank, step, action and peer."""


class Infeasible(RuntimeError):
    """Nothing fits: the binding limit and the least that would do."""
