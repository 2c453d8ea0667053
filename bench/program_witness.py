"""The two witnesses beside each other: what the certificate and partita.witness say of programs and broken ones.

    build/full/bin/program_campaign 50 1 --write FOLDER
    python bench/program_witness.py FOLDER [every N-th mutant, 1]

Prints a row for each class of faults, numbered as in program_mutations.cc. The witness sees numbers: a change that no
number shows (what an op does with an input it ignores, such as the bias in the backward of a layer norm) the certificate
alone refuses. Exit 1 if the witness refuses what the certificate accepts.
"""

import collections
import json
import pathlib
import sys

import torch

from partita.witness import Reference, judge, optimizer_of


def read(path):
    return json.loads(path.read_text())


def compare(folder, every):
    """(class, verdict of the certificate, path, what the witness says) for each file of the folder."""
    for model_path in sorted(folder.glob("*.model.json")):
        name = model_path.name.removesuffix(".model.json")
        model, program = read(model_path), read(folder / f"{name}.program.json")
        reference = Reference(model, optimizer_of(program))
        yield "unbroken", "accepted", f"{name}.program.json", judge(model, program, reference)
        for at, path in enumerate(sorted(folder.glob(f"{name}.[0-9]*.json"))):
            if at % every == 0:
                _, number, _, verdict, _ = path.name.split(".")
                yield number, verdict, path.name, judge(model, read(path), reference)


def main(folder, every=1):
    torch.set_num_threads(1)
    columns = ("both accept", "both refuse", "certificate alone", "witness alone")
    tally = collections.defaultdict(collections.Counter)
    for number, verdict, path, why in compare(pathlib.Path(folder), int(every)):
        refused = verdict == "rejected", why is not None
        column = {(False, False): 0, (True, True): 1, (True, False): 2, (False, True): 3}[refused]
        tally[number][columns[column]] += 1
        if column > 1:
            print(f"{path}: the certificate says {verdict}, the witness {why or 'nothing against it'}")
    print(f"{'class':10}" + "".join(f"{column:>19}" for column in columns))
    for number, counts in sorted(tally.items()):
        print(f"{number:10}" + "".join(f"{counts[column]:19}" for column in columns))
    sys.exit(1 if any(counts["witness alone"] for counts in tally.values()) else 0)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 1 else sys.exit(__doc__)
