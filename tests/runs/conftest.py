import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/data"), str(ROOT / "tests/parity")]

# The models are tiny: on a busy machine more threads only wait for each other.
torch.set_num_threads(1)
