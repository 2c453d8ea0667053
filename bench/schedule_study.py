"""Writes the study of docs/evidence/schedules.md: wave beside its rivals at equal bytes.

    python bench/schedule_study.py build/bin/partita docs/evidence/schedules.md

Everything between the two `study` marks of the file is replaced by what the command printed.
"""

import fractions
import json
import pathlib
import subprocess
import sys

DEVICES = 8
BEGIN, END = "<!-- study: begin -->\n", "<!-- study: end -->\n"
RIVALS = ["chimera", "1f1b", "interleaved v=2", "interleaved v=4", "zb-v"]
WAVES = ["wave W=1", "wave W=2", "wave W=4"]


def compare(command, microbatches, cap, comm, ends):
    arguments = [command, "lab", "schedule", "--compare", "--json", "--effort", "1",
                 "--devices", str(DEVICES), "--microbatches", str(microbatches),
                 "--forward", "1", "--input-grad", "1", "--weight-grad", "1", "--comm", comm,
                 "--memory-cap", str(cap), "--cap-unit", "microbatches", "--weight-memory", "1"]
    if ends:
        arguments += ["--embedding", "1/2", "--head", "1/2"]
    rows = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)["rows"]
    return {row["name"]: row for row in rows}


def length(row):
    return fractions.Fraction(row["makespan"]) if row["fits"] else None


def cell(row, best):
    if not row["fits"]:
        return "-"
    text = f"{float(length(row)):.2f}"
    return f"**{text}**" if length(row) == best else text


def study(command):
    lines, wins, cases, best_w, beaten = [], 0, 0, {}, {name: 0 for name in RIVALS}
    head = ["m", "cap", "c", "ends", *WAVES, *RIVALS, "best search", "shortest"]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for ends in (False, True):
        for microbatches in (DEVICES, 2 * DEVICES, 4 * DEVICES):
            for cap in (DEVICES, DEVICES * 3 // 2, 2 * DEVICES):
                for comm in ("0", "1/50", "1/20", "1/10"):
                    rows = compare(command, microbatches, cap, comm, ends)
                    named = [rows[name] for name in WAVES + RIVALS if rows[name]["fits"]]
                    best = min(length(row) for row in named)
                    waves = [rows[name] for name in WAVES if rows[name]["fits"]]
                    wave = min(waves, key=length)
                    cases += 1
                    wins += length(wave) == best
                    key = ("with" if ends else "no", comm, f"{microbatches // DEVICES}P")
                    best_w.setdefault(key, []).append(wave["name"].removeprefix("wave W="))
                    for name in RIVALS:
                        row = rows[name]
                        beaten[name] += (not row["fits"]) or length(wave) < length(row)
                    search = min((row for name, row in rows.items() if name.startswith("search") and row["fits"]), key=length)
                    shortest = [row["name"] for row in named if length(row) == best]
                    lines.append("| " + " | ".join(
                        [f"{microbatches // DEVICES}P", f"{cap / DEVICES:g}P", comm, "yes" if ends else "no"]
                        + [cell(rows[name], best) for name in WAVES + RIVALS]
                        + [f"{float(length(search)):.2f} ({search['name'].removeprefix('search ')})", ", ".join(shortest)]) + " |")
    summary = [f"Wave is the shortest of these named schedules (or level with it) in {wins} of {cases} settings. It is shorter "
               "than, or fits where the other does not: " + ", ".join(f"{name} {count}" for name, count in beaten.items()) + ".", ""]
    summary += ["Best W by ends, c and m (caps P, 1.5P, 2P): " + "; ".join(
        f"{ends} ends, c = {comm}, m = {m}: {' '.join(ws)}" for (ends, comm, m), ws in best_w.items()) + ".", ""]
    return summary + lines


def main(command, path):
    path = pathlib.Path(path)
    text = path.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(before + BEGIN + "\n".join(study(command)) + "\n" + END + after)


if __name__ == "__main__":
    main(*sys.argv[1:3])
