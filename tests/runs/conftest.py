import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/data"), str(ROOT / "tests/parity")]

PRODUCT = "import torch; a = torch.ones(32, 32, dtype=torch.bfloat16); a @ a"


def leave_out_broken_tiles():
    """Some virtual machines report AMX and then refuse its instructions, so that PyTorch's own products in bf16 die.

    Tests with bf16 must run there, too: oneDNN is told to do without. To be called before torch is loaded.
    """
    if "ONEDNN_MAX_CPU_ISA" in os.environ or "amx_bf16" not in Path("/proc/cpuinfo").read_text():
        return
    if subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True).returncode < 0:
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"


leave_out_broken_tiles()


def pytest_configure(config):
    """A plan of ours that fails a check must not end in a warning, in any test."""
    config.addinivalue_line("filterwarnings", "error:partita. .* left out")


import torch  # noqa: E402

# The models are tiny: on a busy machine more threads only wait for each other.
torch.set_num_threads(1)
