"""Prints the campaigns of the reshard engine: every pair of layouts beside a search over counts first, random problems,
values on thread ranks, and the time of one query.

    python bench/reshard.py [--full]

Without --full a share that takes about a minute. Needs the build (make build).
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHORT = [["speed"], ["pairs", "8"], ["random", "10000"], ["values", "500"]]
FULL = [["speed"], ["pairs", "16"], ["random", "100000"], ["values", "2000"]]


def main():
    command = next((path for path in ROOT.glob("build/*/bin/reshard_campaign")), None)
    if command is None:
        sys.exit("bench/reshard.py: no build/*/bin/reshard_campaign; run make build first")
    codes = [subprocess.run([command, *words], check=False).returncode for words in (FULL if "--full" in sys.argv else SHORT)]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
