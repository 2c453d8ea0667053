"""Captures the zoo in two processes with different hash seeds, one of them in reverse order, and compares the bytes.

    python tests/parity/capture_twice.py [NAME ...]

Exit code 1 when a model cannot be captured or gives other bytes.
"""

import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import torch
import transformers

import partita
from zoo import ZOO


def digest(name) -> str:
    """Of the file and of the constants beside it."""
    case = ZOO[name]
    module, batch = case.make()
    with case.around(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is baked in
        model = partita.capture(module, batch, case.loss, bake=case.bake)
    whole = hashlib.sha256(model.to_json().encode())
    for key, value in model.constants.items():
        whole.update(f"{key} {value.dtype} {list(value.shape)}".encode())
        whole.update(value.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


def digests(names) -> dict:
    found = {}
    for name in names:
        try:
            found[name] = digest(name)
        except Exception as error:  # the answer says which model fails, and goes on with the next
            found[name] = f"failed: {type(error).__name__}: {str(error)[:200]}"
    return found


def begin(names, seed):
    """A process that captures `names` and prints their digests."""
    return subprocess.Popen([sys.executable, __file__, "--worker", *names], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONHASHSEED": str(seed)})


def capture_twice(names) -> dict:
    """What is wrong, by model; nothing where the bytes are the same."""
    workers = [begin(names, 1), begin(names[::-1], 2)]
    first, second = (json.loads(worker.communicate()[0]) for worker in workers)
    wrong = {name: said for name, said in first.items() if said.startswith("failed") or said != second[name]}
    return {name: said if said.startswith("failed") else "other bytes" for name, said in wrong.items()}


def main(names):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    if names[:1] == ["--worker"]:
        print(json.dumps(digests(names[1:])))
        return 0
    unknown = set(names) - ZOO.keys()
    if unknown:
        sys.exit(f"no model is called {', '.join(sorted(unknown))}; known: {', '.join(ZOO)}")
    names = names or list(ZOO)
    wrong = capture_twice(names)
    for name, said in wrong.items():
        print(f"{name}: {said}")
    print(f"{len(names) - len(wrong)} of {len(names)} models give the same bytes in two processes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
