"""Errors a user can act on."""


class InputError(ValueError):
    """Something given by the user is wrong: where, what was found, and one thing to try."""

    def __init__(self, where: str, what: str, remedy: str):
        super().__init__(f"{where}: {what}; {remedy}")
        self.where, self.what, self.remedy = where, what, remedy
