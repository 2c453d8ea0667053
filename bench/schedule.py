"""Prints the campaigns of the schedule search: small problems against brute force, gaps to the bound, uneven stages
beside the named schedules, deadlock verdicts against threads, PyTorch's own schedules, times.

    python bench/schedule.py [--write] [PART ...]

Parts: small gap folded uneven open deadlock csv times; without one all of them, about ten minutes of one core.
--write puts what a part printed into its place in docs/evidence/schedules.md. Needs the build (make build).
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evidence" / "schedules.md"
CAMPAIGN = "bin/schedule_campaign"
PARTS = {
    "small": [CAMPAIGN, "small", "368"],
    "gap": [CAMPAIGN, "gap", "120", "1"],
    "folded": [CAMPAIGN, "folded", "20", "1"],
    "uneven": [CAMPAIGN, "uneven", "200", "1"],
    "open": [CAMPAIGN, "open", "100", "1"],
    "deadlock": ["tests/test_property_schedule_deadlock_test"],
    "csv": ["tests/test_unit_schedule_csv_test"],
    "times": ["tests/test_perf_schedule_search_test"],
}


def find_build():
    for name in ("full", "dev"):
        if (ROOT / "build" / name / CAMPAIGN).exists():
            return ROOT / "build" / name
    sys.exit("bench/schedule.py: no build/full/bin/schedule_campaign; run make build first")


def run(part, build):
    """Prints a part's output as it comes; its text and exit code."""
    words = PARTS[part]
    environment = dict(os.environ, PARTITA_CASES="10000")
    title = "$ " + " ".join([pathlib.Path(words[0]).name, *words[1:]])
    print(title, flush=True)
    lines = [title + "\n"]
    with subprocess.Popen([build / words[0], *words[1:]], stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout:
            if not line.strip() or line.startswith(("Running main", "[---", "[ RUN")):
                continue
            print(line, end="", flush=True)
            lines.append(line)
    print(flush=True)
    return "".join(lines), process.returncode


def write(part, text):
    begin, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->\n"
    page = PAGE.read_text()
    block = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if not block.search(page):
        sys.exit(f"bench/schedule.py: docs/evidence/schedules.md has no place for {part}; add {begin.strip()} and {end.strip()}")
    PAGE.write_text(block.sub(lambda _: f"{begin}```\n{text}```\n{end}", page))


def main():
    chosen = [word for word in sys.argv[1:] if word != "--write"] or list(PARTS)
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        sys.exit(f"bench/schedule.py: no part '{unknown[0]}'; take some of {' '.join(PARTS)}")
    build, failed = find_build(), False
    for part in chosen:
        text, code = run(part, build)
        failed = failed or code != 0
        if "--write" in sys.argv:
            write(part, text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
