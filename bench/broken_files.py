"""Breaks real files in many ways and asks the command about each: it must say where, with exit code 2.

usage: broken_files.py PARTITA [--count 500] [--seed 1] [--kind model] [--keep DIR]

Models are captured ones (tests/data) and ones built here from presets; `--kind other` breaks plans, clusters,
configs and schedules instead. A broken file must end with exit 2 and a sentence that names the file and the place:
line and column, the path of keys, or row and cell. A change that leaves a valid file (a flipped bit in a name) is counted apart, and
`profile`, `recipe` and `lower` must then do their work or refuse. Anything else (a signal, a sanitizer's report,
exit 70, more than LIMIT seconds) is a failure, and its file is kept.
"""
import argparse
import collections
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 20  # seconds for one command; a sanitized build is some ten times slower
CAPTURED = ["gpt2-tiny", "gpt2-tiny4", "llama-tiny", "llama-tiny4"]
PRESETS = ["gpt2-tiny", "llama-tiny", "mixtral-tiny", "evoformer-tiny"]
CONFIGS = [
    {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 96},
    {"model_type": "t5", "num_layers": 2, "d_model": 64, "d_kv": 16, "num_heads": 4, "d_ff": 128, "vocab_size": 96},
    {"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 32, "patch_size": 8},
]
HUGE = [2**31, 2**48, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -1, -(2**63), -(10**30)]
OTHER_TYPES = [None, True, 3, -1, 0.5, "", "word", [], [1, "a"], {}, {"a": 1}]
CONFIG = '{"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 96, "n_positions": 64}'


# Line and column; a path of keys; what is wrong with the outermost object; row, cell, or what a schedule lacks.
PLACE = (r"(:\d+:\d+: |: [\w.\[\]]+(:| is ) ?|: \"\w+\" is missing|: unknown key \"|: needs to be an object"
         r"|: row \d+, cell \d+: |: (stage|micro-batch|rank|device) \d+|: no steps)")

# --- Ways to break a JSON value: each takes (random, document) and changes the document. ---

def places(value, path=()):
    """Every (container, key) of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from places(item, path + (key,))


def pick(rng, document, accept):
    found = [(c, k) for c, k in places(document) if accept(c[k])]
    return rng.choice(found) if found else (document, next(iter(document)) if isinstance(document, dict) else 0)


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def wrong_type(rng, doc):
    container, key = pick(rng, doc, lambda v: True)
    container[key] = rng.choice([v for v in OTHER_TYPES if type(v) is not type(container[key])])


def missing_key(rng, doc):
    holders = [v for v in [doc] + [c[k] for c, k in places(doc)] if isinstance(v, dict) and v]
    holder = rng.choice(holders)
    del holder[rng.choice(list(holder))]


def unknown_key(rng, doc):
    holders = [v for v in [doc] + [c[k] for c, k in places(doc)] if isinstance(v, dict) and "args" not in v]
    rng.choice(holders)["colour"] = 1


def absurd_size(rng, doc):
    container, key = pick(rng, doc, is_int)
    container[key] = rng.choice(HUGE)


def huge_number(rng, doc):
    container, key = pick(rng, doc, lambda v: is_int(v) or isinstance(v, float))
    container[key] = "@@" + rng.choice(["9" * 400, "1e999", "-1e999", "1" + "0" * 5000, "1e-999999999999"]) + "@@"


def not_a_number(rng, doc):
    container, key = pick(rng, doc, is_int)
    container[key] = "@@" + rng.choice(["NaN", "Infinity", "-Infinity", "nan", "0x10", "01", "+1", "1."]) + "@@"


def deep(rng, doc):
    container, key = pick(rng, doc, lambda v: True)
    depth = rng.choice([300, 10**4, 10**6])
    container[key] = "@@" + rng.choice(["[" * depth + "]" * depth, "[" * depth, '{"a":' * depth + "1" + "}" * depth]) + "@@"


def long_list(rng, doc):
    container, key = pick(rng, doc, lambda v: isinstance(v, list))
    container[key] = [1] * rng.choice([65, 10**4, 10**6])


# Of models only.

def cycle(rng, doc):
    """An op reads what a later one makes, or its own output."""
    at = rng.randrange(len(doc["ops"]) - 1)
    later = doc["ops"][rng.randrange(at, len(doc["ops"]))]
    made = next(out for out in later["out"] if out is not None)
    readers = [i for i, arg in enumerate(doc["ops"][at]["args"]) if isinstance(arg, str) and arg.startswith("%")]
    if readers:
        doc["ops"][at]["args"][rng.choice(readers)] = f"%{made}"
    else:
        doc["ops"][at]["args"].append(f"%{made}")


def same_name(rng, doc):
    items = doc[rng.choice(["tensors", "ops"])]
    a, b = rng.sample(range(len(items)), 2)
    items[a]["name"] = items[b]["name"]


def negative_id(rng, doc):
    op = rng.choice(doc["ops"])
    if rng.random() < 0.5:
        op["out"][rng.randrange(len(op["out"]))] = -1 - rng.randrange(10)
    else:
        op["args"].append(f"%-{rng.randrange(10)}")


def far_id(rng, doc):
    op = rng.choice(doc["ops"])
    op["args"].append(f"%{rng.choice([len(doc['tensors']), 10**9, 10**10, 10**30])}")


def lost_op(rng, doc):
    del doc["ops"][rng.randrange(len(doc["ops"]))]


def twice_op(rng, doc):
    doc["ops"].insert(rng.randrange(len(doc["ops"])), rng.choice(doc["ops"]))


def lying_dimensions(rng, doc):
    """A computed tensor gets another number of dimensions."""
    tensor = rng.choice([t for t in doc["tensors"] if "role" not in t])
    if tensor["shape"] and rng.random() < 0.5:
        tensor["shape"].pop(), tensor["stride"].pop()
    else:
        tensor["shape"].append(3), tensor["stride"].append(1)


# These may leave a valid model.

def lying_size(rng, doc):
    tensor = rng.choice([t for t in doc["tensors"] if t["shape"]])
    tensor["shape"][rng.randrange(len(tensor["shape"]))] += rng.choice([-1, 1, 7])


def other_argument(rng, doc):
    ops = [op for op in doc["ops"] if op["args"]]
    args = rng.choice(ops)["args"]
    container, key = pick(rng, args, lambda v: not isinstance(v, list))
    container[key] = rng.choice([None, 0, -1, 7, 2**40, 2**63 - 1, -(2**63), 0.5, True, [1, 2], [], "str:x", "%0", "dtype:int64"])


def lost_argument(rng, doc):
    args = rng.choice([op for op in doc["ops"] if op["args"]])["args"]
    del args[rng.randrange(len(args))]


def other_target(rng, doc):
    a, b = rng.sample(doc["ops"], 2)
    a["target"] = b["target"]


def other_dtype(rng, doc):
    rng.choice(doc["tensors"])["dtype"] = rng.choice(["float64", "int64", "bool", "bfloat16"])


def other_inputs(rng, doc):
    """An op reads another tensor that was made before."""
    at = rng.randrange(1, len(doc["ops"]))
    made = [out for op in doc["ops"][:at] for out in op["out"] if out is not None]
    container, key = pick(rng, doc["ops"][at]["args"] or [0], lambda v: isinstance(v, str) and v.startswith("%"))
    container[key] = f"%{rng.choice(made)}"


def lost_output(rng, doc):
    op = rng.choice(doc["ops"])
    op["out"] = op["out"][:-1] if rng.random() < 0.5 else op["out"] + [None]


# --- Ways to break the text. ---

def cut(rng, data):
    return data[: rng.randrange(len(data) - 2)]


def cut_table(rng, data):
    """Behind a whole row what is left is a smaller table."""
    return cut(rng, data)


def flipped_bit(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]


def random_byte(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(2):]


def invalid_utf8(rng, data):
    strings = [m.start() + 1 for m in re.finditer(rb'"[a-z]', data)]
    at = rng.choice(strings)
    return data[:at] + rng.choice([b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\\ud800", b"\x00", b"\xe2\x82"]) + data[at:]


def no_content(rng, data):
    return rng.choice([b"", b" \n", b"\xef\xbb\xbf", b"null", b"[]", b"{}", b'"text"', b"\x80\x02}q\x00.", b"PK\x03\x04" + data[:100], data + data[-20:]])


def same_key(rng, data):
    return data.replace(b'"version": 1', b'"version": 1, "version": 1', 1)


DOCUMENT = [wrong_type, missing_key, unknown_key, absurd_size, huge_number, not_a_number, deep, long_list]
MODEL = [cycle, same_name, negative_id, far_id, lost_op, twice_op, lying_dimensions]
MAYBE = [lying_size, other_argument, lost_argument, other_target, other_dtype, other_inputs, lost_output]
TEXT = [cut, invalid_utf8, no_content, same_key]
MAYBE_TEXT = [flipped_bit, flipped_bit, flipped_bit, random_byte]
# What these leave may be as right as before: a number that is not looked at, an optional key.
HARMLESS = {f.__name__ for f in MAYBE + MAYBE_TEXT + [cut_table, wrong_type, missing_key, absurd_size, huge_number, long_list, far_id]}


def break_model(rng, data):
    how = rng.choice(DOCUMENT + MODEL + MAYBE + TEXT + MAYBE_TEXT)
    return how.__name__, apply(how, rng, data)


def break_other(rng, data, name):
    how = rng.choice(MAYBE_TEXT + [cut_table] if name.endswith(".csv") else DOCUMENT + TEXT + MAYBE_TEXT)
    return how.__name__, apply(how, rng, data)


def apply(how, rng, data):
    if how in TEXT + MAYBE_TEXT + [cut_table]:
        return how(rng, data)
    doc = json.loads(data)
    how(rng, doc)
    text = json.dumps(doc, indent=1)
    return re.sub(r'"@@(.*?)@@"', lambda m: m.group(1).replace('\\"', '"'), text).encode()


class Campaign:
    def __init__(self, partita, seed, folder, keep):
        self.partita, self.rng, self.folder, self.keep = partita, random.Random(seed), folder, keep
        self.counts, self.failures = collections.Counter(), []

    def run(self, *words):
        try:
            done = subprocess.run([self.partita, *map(str, words)], cwd=self.folder, capture_output=True, timeout=LIMIT)
            return done.returncode, done.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return "timeout", ""

    def sources(self):
        for name in CAPTURED:
            yield (ROOT / f"tests/data/{name}.model.json").read_bytes()
        for number, config in enumerate(CONFIGS):
            (self.folder / f"config{number}.json").write_text(json.dumps(config))
        for name in PRESETS + [f"config{number}.json" for number in range(len(CONFIGS))]:
            code, said = self.run("models", name, "--batch", "4", "-o", "built.model.json")
            if code == 0:
                yield (self.folder / "built.model.json").read_bytes()
            else:
                sys.exit(f"cannot build {name}: {said}")

    def others(self):
        """(file name, contents, verb in which FILE stands for it)"""
        recipes = [["dp", "--pp", "2", "--microbatches", "2"], ["zero3"], ["tp"]]
        for number, words in enumerate(recipes):
            plan = self.folder / f"plan{number}.json"
            code, said = self.run("recipe", words[0], "gpt2-tiny", "--ranks", "2", *words[1:], "-o", plan.name)
            if code != 0:
                sys.exit(f"cannot make a plan: {said}")
            yield "plan.json", plan.read_bytes(), ["lower", "gpt2-tiny", "FILE"]
        yield "config.json", CONFIG.encode(), ["profile", "FILE"]
        cluster = (ROOT / "tests/golden/cluster_file.txt").read_text()
        yield "cluster.json", cluster_of(cluster).encode(), ["devices", "--cluster", "FILE"]
        self.run("lab", "schedule", "--name", "1f1b", "--devices", "4", "--microbatches", "6", "--write-csv", "all.csv")
        yield "schedule.csv", (self.folder / "all.csv").read_bytes(), ["lab", "schedule", "--csv", "FILE"]

    def fail(self, number, how, file, code, said):
        self.failures.append(f"case {number}, {how}: exit {code}: {said.strip()[-300:]}")
        if self.keep:
            (Path(self.keep) / f"{number}-{how}-{file.name}").write_bytes(file.read_bytes())

    def judge(self, number, how, file, words):
        code, said = self.run(*[file.name if word == "FILE" else word for word in words])
        place = re.match(rf"error: {re.escape(file.name)}{PLACE}", said)
        if code == 2 and place and len(said) < 3000:
            self.counts["refused"] += 1
            self.counts["refused " + how] += 1
        elif code == 0 and how in HARMLESS:
            self.counts["still valid"] += 1
            return True
        else:
            self.fail(number, how, file, code, said)
        return False

    def use(self, number, how, file):
        """A file that reads well must not crash what comes after."""
        for words in (["recipe", "dp", file.name, "--ranks", "2", "-o", "plan.json"], ["lower", file.name, "plan.json"]):
            code, said = self.run(*words)
            if code not in (0, 1, 2):
                return self.fail(number, how, file, code, f"{words[0]}: {said}")
            if code != 0:
                return self.counts.update(["valid but refused by " + words[0]])
        self.counts["valid and lowered"] += 1

    def model(self, number, models):
        how, broken = break_model(self.rng, models[number % len(models)])
        file = self.folder / "broken.model.json"
        file.write_bytes(broken)
        if self.judge(number, how, file, ["profile", "FILE"]):
            self.use(number, how, file)

    def other(self, number, others):
        name, data, words = others[number % len(others)]
        how, broken = break_other(self.rng, data, name)
        file = self.folder / ("broken." + name)
        file.write_bytes(broken)
        self.judge(number, how, file, words)


def cluster_of(case):
    """The JSON object inside a golden case."""
    return case[case.index("{"): case.rindex("}") + 1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("partita")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=["model", "other"], default="model")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(str(Path(arguments.partita).resolve()), arguments.seed, Path(folder), arguments.keep)
        one, files = (campaign.model, campaign.sources()) if arguments.kind == "model" else (campaign.other, campaign.others())
        files = list(files)
        for number in range(arguments.count):
            one(number, files)
    for failure in campaign.failures:
        print(failure)
    counts = campaign.counts
    print(f"seed {arguments.seed}: {arguments.count} {arguments.kind} files, {counts['refused']} refused with the place, "
          f"{counts['still valid']} still valid ({counts['valid and lowered']} lowered), {len(campaign.failures)} failures")
    return 1 if campaign.failures or counts["refused"] < arguments.count / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
