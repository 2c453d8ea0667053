"""One line on stderr while a long trace runs."""

import sys
import time

FIRST, EVERY = 1.0, 0.25  # seconds
WIDTH = 100


class Progress:
    """Says which pass is running, how many ops it has and where it is. `shown`: None means only on a terminal."""

    def __init__(self, shown: bool | None = None):
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.due = time.monotonic() + FIRST
        self.count = 0
        self.written = False

    def begin(self):
        """Counts the ops of a pass from zero."""
        self.count = 0

    def tick(self, doing: str, path: str):
        self.count += 1
        if self.shown and time.monotonic() >= self.due:
            self.due = time.monotonic() + EVERY
            self.written = True
            print(f"\rcapture: {doing}, {self.count} ops, {path}"[:WIDTH].ljust(WIDTH), end="", file=sys.stderr,
                  flush=True)

    def end(self):
        if self.written:
            print("\r".ljust(WIDTH + 1), end="\r", file=sys.stderr, flush=True)
