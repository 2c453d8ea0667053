"""Work in another process: what it breaks, prints or leaves behind stays there."""

import json
import os
import select
import signal
import time
import warnings

import torch
from torch.utils._python_dispatch import _disable_current_modes

SECONDS = 120  # of one task, after which it counts as hanging; ordinary ones take tenths of one


def answers(tasks: list, work) -> list:
    """work(task) of each, as JSON can hold it; None where a task ends its process, or hangs."""
    made = []
    while len(made) < len(tasks):
        made += _some_answers(tasks[len(made):], work)
    return made


def _some_answers(tasks, work):
    """Of the first tasks, up to one that broke."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forking beside threads: the child starts none and waits for none
        child = os.fork()
    if child == 0:
        os.close(read)
        _be_aside(tasks, work, write)
    os.close(write)
    try:
        made = list(_lines(read, len(tasks)))
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return made if len(made) == len(tasks) else [*made, None]


def _lines(read, count):
    text, end = b"", time.monotonic() + SECONDS
    while count:
        ready = select.select([read], [], [], max(0.0, end - time.monotonic()))[0]
        piece = os.read(read, 1 << 16) if ready else b""
        if not piece:
            return
        *lines, text = (text + piece).split(b"\n")
        for line in lines:
            yield json.loads(line)
        count, end = count - len(lines), time.monotonic() + SECONDS


def _be_aside(tasks, work, write):
    """Of the child: never returns."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        torch.set_num_threads(1)  # the threads of the other process are not here
        with torch.no_grad(), torch.autocast("cpu", enabled=False), _disable_current_modes():
            for task in tasks:
                os.write(write, (json.dumps(work(task)) + "\n").encode())
    finally:
        os._exit(0)
