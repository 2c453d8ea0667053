"""Strategy problems exported as MPS, solved by somebody else.

usage: strategy_mps.py STRATEGY_CAMPAIGN [COUNT [SEED]]

HiGHS referees where `highspy` can be imported. Every program that is small enough is also solved here, by a reader
of the file that knows MPS but not what the program means: it tries all values of the whole columns, and lets
the rows say what the others are.
"""
import itertools
import math
import pathlib
import subprocess
import sys
import tempfile

MOST_CHOICES = 800
CLOSE = 1e-7


def read_mps(text):
    """(objective row, {row: (kind, right side)}, {column: {row: value}}, {column: (low, high)}, whole columns)."""
    rows, columns, bounds, whole, section, marked, objective = {}, {}, {}, [], "", False, None
    for line in text.splitlines():
        words = line.split()
        if not line.startswith(" "):
            section = words[0]
        elif section == "ROWS" and words[0] == "N":
            objective = words[1]
        elif section == "ROWS":
            rows[words[1]] = [words[0], 0.0]
        elif section == "COLUMNS" and words[1] == "'MARKER'":
            marked = words[2] == "'INTORG'"
        elif section == "COLUMNS":
            if words[0] not in columns and marked:
                whole.append(words[0])
            columns.setdefault(words[0], {})[words[1]] = float(words[2])
        elif section == "RHS":
            rows[words[1]][1] = float(words[2])
        elif section == "BOUNDS":
            bounds[words[2]] = {"UP": (0.0, float(words[3])), "FX": (float(words[3]),) * 2}[words[0]]
    return objective, rows, columns, bounds, whole


def one_of_each(rows, columns, whole):
    """Whole columns by the row that says `exactly one of these`: the row where all of them stand with 1."""
    groups = {}
    for column in whole:
        row = next(r for r, value in columns[column].items() if rows.get(r) == ["E", 1.0] and value == 1)
        groups.setdefault(row, []).append(column)
    return list(groups.values())


def solve(text):
    """The least objective, None if nothing is allowed, or NotImplemented if there is too much to try."""
    objective, rows, columns, bounds, whole = read_mps(text)
    groups = one_of_each(rows, columns, whole)
    if math.prod(map(len, groups)) > MOST_CHOICES:
        return NotImplemented
    free = [column for column in columns if column not in set(whole)]
    best = None
    for choice in itertools.product(*groups):
        left = {row: right for row, (_, right) in rows.items()}
        if any(bounds[column][1] < 1 for column in choice):
            continue
        value = 0.0
        for column in choice:
            value += columns[column][objective]
            for row, factor in columns[column].items():
                if row != objective:
                    left[row] -= factor
        # A free column is 1 where all its rows still lack 1.
        for column in free:
            lacking = [row for row in columns[column] if row != objective]
            if all(left[row] == columns[column][row] for row in lacking) and bounds[column][1] == 1:
                value += columns[column][objective]
                for row in lacking:
                    left[row] -= columns[column][row]
        met = all(abs(left[row]) < CLOSE if kind == "E" else left[row] > -CLOSE for row, (kind, _) in rows.items())
        if met and (best is None or value < best):
            best = value
    return best


def solve_with_highs(highspy, path):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.readModel(str(path))
    highs.run()
    optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return highs.getInfo().objective_function_value if optimal else None


def agree(found, expected):
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) <= CLOSE * max(1.0, abs(expected))


def main():
    count = sys.argv[2] if len(sys.argv) > 2 else "80"
    seed = sys.argv[3] if len(sys.argv) > 3 else "1"
    try:
        import highspy
    except ImportError:
        highspy = None
    wrong, tried = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], "mps", count, seed, folder], check=True)
        for number in range(int(count)):
            path = pathlib.Path(folder, f"{number}.mps")
            said = path.with_suffix(".txt").read_text().strip()
            expected = None if said == "none" else float(said)
            answers = [solve(path.read_text())]
            if highspy:
                answers.append(solve_with_highs(highspy, path))
            for found in answers:
                if found is NotImplemented:
                    continue
                tried += 1
                if not agree(found, expected):
                    wrong += 1
                    print(f"seed {int(seed) + number}: the search says {expected}, the program {found}")
    print(f"{tried} answers to {count} programs from seed {seed}, {wrong} differ; "
          + ("HiGHS refereed" if highspy else "HiGHS did not referee: highspy is not installed"))
    return 1 if wrong or tried < int(count) // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
