"""Byte-level batches of a text file: every character is its own token."""

from pathlib import Path

import torch

ALICE = Path(__file__).resolve().parent / "data" / "alice.txt"
VOCABULARY = 128  # the text is ASCII


def batches(batch: int, sequence: int, seed: int = 0, path=ALICE):
    """Endless batches {input_ids, labels} of `batch` random stretches of the text; the same for the same seed."""
    text = torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(0, len(text) - sequence, (batch,), generator=generator)
        ids = torch.stack([text[start:start + sequence] for start in starts])
        yield {"input_ids": ids, "labels": ids.clone()}
