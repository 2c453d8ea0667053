"""Progress is one line on a terminal, few lines elsewhere with --progress, and nothing otherwise."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

PARTITA = sys.argv.pop(1)
PLAN = ("plan", "gpt2-tiny", "--cluster", "2xcpu", "--batch", "16", "--strict", "--effort", "1")
NOTHING_FITS = ("plan", "gpt2-tiny", "--cluster", "2xcpu", "--memory", "100KiB", "--strict", "--effort", "1")
ERASE = "\r\x1b[K"


def on_terminal(arguments, columns):
    """What a terminal of that width gets, answer and progress in turn, and the exit code."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([PARTITA, *arguments], stdin=side, stdout=side, stderr=side)
    os.close(side)
    got = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        got += part
    os.close(main)
    return got.decode().replace("\r\n", "\n"), process.wait()


def lines_of(arguments):
    done = subprocess.run([PARTITA, *arguments], capture_output=True, text=True, timeout=120)
    return done.stdout, done.stderr.splitlines()


class Terminal(unittest.TestCase):
    def drawn(self, arguments, columns):
        """The drawings of the line, and what is left on the screen."""
        text, code = on_terminal(arguments, columns)
        self.assertTrue(text.startswith(ERASE), text[:200])
        *drawings, rest = text.split(ERASE)[1:]
        return drawings, rest, code

    def test_is_one_line_that_is_erased_before_the_answer(self):
        drawings, rest, code = self.drawn(PLAN, 200)
        self.assertEqual(code, 0)
        self.assertTrue(rest.startswith("float32; global batch"), rest[:100])
        for drawing in drawings:
            self.assertNotIn("\n", drawing)
            self.assertRegex(drawing, r"^plan: [a-z ]+( \d+( of \d+)?(, best [\d.]+ \w+)?)?, \d+\.\d s$")
        for phase in ("estimating recipes", "lowering plan", "certifying plans"):
            self.assertTrue(any(phase in drawing for drawing in drawings), phase)

    def test_is_no_wider_than_the_terminal(self):
        for columns in (20, 40):
            drawings, _, _ = self.drawn(PLAN, columns)
            self.assertLess(max(map(len, drawings)), columns)
            self.assertEqual(max(map(len, drawings)), columns - 1)

    def test_is_erased_before_an_error(self):
        drawings, rest, code = self.drawn(NOTHING_FITS, 200)
        self.assertEqual(code, 1)
        self.assertTrue(rest.startswith("nothing fits: no plan fits"), rest)
        self.assertTrue(any("looking for the least that would do" in drawing for drawing in drawings))

    def test_seconds_never_go_back(self):
        drawings, _, _ = self.drawn(PLAN, 200)
        seconds = [float(re.search(r"([\d.]+) s$", drawing).group(1)) for drawing in drawings]
        self.assertEqual(seconds, sorted(seconds))

    def test_quiet_shows_nothing(self):
        self.assertEqual(on_terminal((*PLAN, "--quiet"), 80), ("", 0))


class Lines(unittest.TestCase):
    def test_are_few_and_only_with_the_flag(self):
        stdout, lines = lines_of((*PLAN, "--progress"))
        self.assertEqual((stdout.partition(";")[0], lines_of(PLAN)[1]), ("float32", []))
        seconds = [float(re.search(r"([\d.]+) s$", line).group(1)) for line in lines]
        self.assertEqual(seconds, sorted(seconds))
        phases = [re.match(r"plan: [a-z ]+", line).group(0) for line in lines]
        for (phase, at), (following, then) in zip(zip(phases, seconds), zip(phases[1:], seconds[1:])):
            self.assertTrue(phase != following or then - at > 0.8, f"{phase} at {at} and {then}")

    def test_best_never_gets_worse_within_a_phase(self):
        best = {}
        for line in lines_of((*PLAN[:-1], "3", "--progress"))[1]:
            phase, value = re.match(r"plan: ([a-z ]+)", line).group(1), re.search(r"best ([\d.]+ \w+)", line)
            if value:
                number, unit = value.group(1).split()
                now = float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]
                self.assertLessEqual(now, best.get(phase, now))
                best[phase] = now

    def test_other_verbs_say_what_they_do(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "plan.json")
            lines_of(("recipe", "dp", "gpt2-tiny", "--ranks", "2", "-o", plan))
            for verb, phase in ((("lower", "gpt2-tiny", plan), "lowering and certifying dp2"),
                                (("simulate", "gpt2-tiny", plan, "--cluster", "2xcpu"), "lowering and simulating dp2"),
                                (("profile", "gpt2-tiny"), "profiling gpt2-tiny")):
                lines = lines_of((*verb, "--progress"))[1]
                self.assertEqual(len(lines), 1)
                self.assertRegex(lines[0], rf"^{verb[0]}: {phase}.*, \d+\.\d s$")
            lines = lines_of(("explain", plan, "--cluster", "2xcpu", "--progress"))[1]
            for phase in ("with 1 GiB more on each device, 1 of 6: ", "with links twice as fast, 5 of 6: ",
                          "the others, 6 of 6: "):
                self.assertTrue(any(line.startswith(f"explain: planning {phase}") for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
