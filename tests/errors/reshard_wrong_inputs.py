"""Gives `lab reshard` wrong inputs of every kind: exit 2, one sentence that names the place and what to try.

    python3 tests/errors/reshard_wrong_inputs.py COMMAND [COUNT] [SEED]
"""

import random
import subprocess
import sys


def grid(rng, shape, addends):
    """Boxes that cover the shape: rows cut at random places, each as all its addends."""
    cuts = sorted({0, shape[0], *(rng.randrange(1, shape[0]) for _ in range(rng.randrange(3)))})
    boxes = []
    for low, high in zip(cuts, cuts[1:]):
        for i in range(addends):
            boxes.append([len(boxes), [[low, high], [0, shape[1]]], (i, addends)])
    return boxes


def text(boxes):
    def one(box):
        device, sides, (i, k) = box
        inner = ",".join(f"{low}:{high}" for low, high in sides)
        return f"{device}[{inner}]" + (f"v{i}/{k}" if k > 1 else "")

    return " | ".join(map(one, boxes))


def uncovered(rng, boxes):
    box = rng.choice(boxes)
    same = [other for other in boxes if other[1] == box[1]]
    return text([other for other in boxes if other not in same] or [[0, [[0, 1], [0, 1]], (0, 1)]]), "covers"


def missing_addend(rng, boxes):
    boxes.remove(rng.choice(boxes))
    return text(boxes), "nowhere"


def overlapping_addend(rng, boxes):
    box = rng.choice(boxes)
    (i, k) = box[2]
    return text(boxes) + " | " + text([[99, box[1], (2 * i, 2 * k)]]), "overlap"


def twice(rng, boxes):
    return text(boxes) + " | " + text([rng.choice(boxes)]), "twice"


def outside(rng, boxes):
    box = rng.choice(boxes)
    box[1][1][1] += rng.randrange(1, 9)
    return text(boxes), "has only"


def empty(rng, boxes):
    box = rng.choice(boxes)
    box[1][0][1] = box[1][0][0]
    return text(boxes), "is empty"


def beyond_count(rng, boxes):
    box = rng.choice(boxes)
    box[2] = (box[2][1], box[2][1]) if box[2][1] > 1 else (3, 2)
    return text(boxes), "count from 0"


def dimensions(rng, boxes):
    box = rng.choice(boxes)
    box[1].append([0, 1]) if rng.random() < 0.5 else box[1].pop()
    return text(boxes), "dimensions of --shape"


def garbled(rng, boxes):
    """One character that BOXES needs is gone or another one."""
    line = text(boxes)
    at = rng.choice([i for i, c in enumerate(line) if c in "[:,]/"])
    return line[:at] + rng.choice(["", "x", ";", "("]) + line[at + 1 :], "--"


KINDS = [uncovered, missing_addend, overlapping_addend, twice, outside, empty, beyond_count, dimensions, garbled]


def main():
    command = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    rng = random.Random(seed)
    failed = 0
    for case in range(count):
        kind = KINDS[case % len(KINDS)]
        shape = [rng.randrange(4, 40), rng.randrange(2, 40)]
        addends = rng.randrange(2, 5) if "addend" in kind.__name__ else rng.randrange(1, 3)
        broken, word = kind(rng, grid(rng, shape, addends))
        sides = {"--from": text(grid(rng, shape, 1)), "--to": text(grid(rng, shape, 1))}
        side = rng.choice(list(sides))
        sides[side] = broken
        arguments = [item for pair in sides.items() for item in pair]
        run = subprocess.run([command, "lab", "reshard", "--shape", "x".join(map(str, shape)), "--json", *arguments],
                             capture_output=True, text=True, timeout=60)
        sentence = run.stderr.strip()
        helps = sentence.startswith(f"error: {side}") and word in sentence and "\n" not in sentence and not run.stdout
        if run.returncode != 2 or not helps:
            failed += 1
            print(f"case {case} ({kind.__name__}): {side} {broken!r}: exit {run.returncode}: {sentence or run.stdout[:200]}")
    print(f"{count - failed} of {count} wrong inputs answered with exit 2 and a sentence that helps; seed {seed}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
