"""`python -m partita VERB ...`: the verbs that need PyTorch's tracer. The command `partita` hands them over."""

import argparse
import json
import sys
import time
import warnings

from .errors import InputError


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise InputError(f"{self.prog}: {message}; see {self.prog} --help")


def add_capture(parser):
    parser.add_argument("source", metavar="SOURCE", help="a Hugging Face config.json, its folder, or FILE.py:FUNCTION")
    parser.add_argument("--batch", type=_positive, help="the global batch; 8 for a config")
    parser.add_argument("--seq", type=_positive, help="the sequence length; 1024 for a config, or what its positions hold")
    parser.add_argument("--dtype", help="bf16, fp16, float32, float64; a config's own without it")
    parser.add_argument("--real", action="store_true", help="FILE.py:FUNCTION runs with real tensors")
    parser.add_argument("--no-inferred-rows", action="store_true", help="try no op without a row by experiment")
    parser.add_argument("-o", "--output", required=True, help="where to write the step, a *.model.json")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--progress", action="store_true", help="say on stderr what is being done, terminal or not")


def run_capture(options):
    from .capture import capture
    from .model import SUFFIX

    if not options.output.endswith(SUFFIX):
        raise InputError(f"-o {options.output}", "the command knows a captured step by the end of its name",
                         f"call it {options.output.split('.')[0]}{SUFFIX}")
    start = time.monotonic()
    module, batch, loss, notes = _source(options)
    with warnings.catch_warnings(record=True) as told:
        model = capture(module, batch, loss, progress=True if options.progress else False if options.quiet else None,
                        infer=not options.no_inferred_rows)
    notes += [str(one.message) for one in told if str(one.message).startswith("capture: ")]
    model.save(options.output)
    params = sum(p.numel() for p in module.parameters())
    answer = {"name": model.name, "ops": len(model.ops), "params": params, "opaque_ops": len(model.opaque_ops),
              "inferred_ops": len(model.inferred_ops), "seconds": time.monotonic() - start, "output": options.output}
    _tell(options, notes, answer)


def _source(options):
    from .from_config import build
    from .user_function import call_function, is_function

    if is_function(options.source):
        given = {"batch": options.batch, "seq": options.seq, "dtype": options.dtype}
        return (*call_function(options.source, given, options.real), [])
    if options.real:
        raise InputError("--real", "a config has no values to take", "leave it out; it is for FILE.py:FUNCTION")
    built = build(options.source, options.batch or 8, options.seq, options.dtype)
    return built.module, built.batch, None, built.notes


def _tell(options, notes, answer):
    if not options.quiet:
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
    if options.json:
        print(json.dumps({**answer, **({"notes": notes} if notes else {})}, indent=2))
    elif not options.quiet:
        inferred = f"{answer['inferred_ops']} with inferred rows, " if answer["inferred_ops"] else ""
        print(f"{answer['name']}: {answer['params']:,} parameters, {answer['ops']} ops, {answer['opaque_ops']} of them opaque, "
              f"{inferred}captured in {answer['seconds']:.1f} s\nwritten to {answer['output']}")


def _positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of 1 or more')
    return int(text)


# Every verb: its flags, and what it does.
VERBS = {"capture": (add_capture, run_capture)}


def main(words) -> int:
    parser = Parser(prog="partita")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, (add, _) in VERBS.items():
        add(verbs.add_parser(name))
    try:
        options = parser.parse_args(words)
        VERBS[options.verb][1](options)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
