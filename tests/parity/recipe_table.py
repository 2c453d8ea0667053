"""Verifies ten families of models under every recipe and every product of two, and writes docs/evidence/recipes.md.

    PYTHONPATH=python python tests/parity/recipe_table.py BUILD [--write] [--share K/N]

BUILD is the build tree (build/full). The cases run in one process, plan_table; models with dropout or BatchNorm are captured
here, and left out of a share. Fails where a plan that applies differs from one device or its memory from the prediction.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "recipes.md"
RANKS = (2, 3, 4, 6, 8)
BATCH = 16
WHOLE = "0/1"

BUILT = {
    "GPT-2": {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 8, "vocab_size": 40, "n_positions": 8},
    "Llama (grouped heads)": {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 8,
                              "num_key_value_heads": 4, "intermediate_size": 24, "vocab_size": 40},
    "T5": {"model_type": "t5", "num_layers": 2, "d_model": 16, "d_kv": 2, "num_heads": 8, "d_ff": 24, "vocab_size": 40},
    "mBART": {"model_type": "mbart", "encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "encoder_attention_heads": 8,
              "decoder_attention_heads": 8, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "vocab_size": 40,
              "max_position_embeddings": 8},
    "BERT": {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 8, "intermediate_size": 24,
             "vocab_size": 40},
    "ViT": {"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 8, "intermediate_size": 24,
            "image_size": 12, "patch_size": 4},
    "Swin": {"model_type": "swin", "image_size": 16, "patch_size": 2, "window_size": 4, "embed_dim": 16, "depths": [2, 2],
             "num_heads": [8, 8]},
    "Mixtral (8 experts)": {"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 8,
                            "num_key_value_heads": 8, "intermediate_size": 12, "vocab_size": 40, "num_local_experts": 8,
                            "num_experts_per_tok": 2},
    "Evoformer (3 passes)": {"model_type": "evoformer", "num_blocks": 1, "c_m": 16, "c_z": 8, "msa_heads": 8, "pair_heads": 8,
                             "c_head": 2, "c_outer": 2, "c_triangle": 8, "transition": 2, "sequences": 2, "recycles": 3,
                             "bins": 4, "msa_features": 3, "target_features": 3},
}


def capture(folder):
    """Steps that Partita does not build: with dropout, and with BatchNorm."""
    import torch
    import transformers as hf

    import partita
    sys.path.insert(0, str(ROOT / "tests" / "data"))
    import make_models

    ids = torch.randint(1, 40, (BATCH, 8))
    batch = {"input_ids": ids, "labels": ids}
    gpt = hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=1, n_embd=16, n_head=8, vocab_size=40, n_positions=8, resid_pdrop=0.2,
                                           embd_pdrop=0.2, attn_pdrop=0, bos_token_id=0, eos_token_id=0))
    bert = hf.BertForMaskedLM(hf.BertConfig(num_hidden_layers=1, hidden_size=16, num_attention_heads=8, intermediate_size=24,
                                            vocab_size=40, max_position_embeddings=8, hidden_dropout_prob=0.2,
                                            attention_probs_dropout_prob=0))
    made = {"GPT-2 with dropout": partita.capture(gpt.train(), batch), "BERT with dropout": partita.capture(bert.train(), batch),
            "convolutions with BatchNorm": make_models.convnet(BATCH)}
    for name, model in made.items():
        model.save(folder / f"{name}.model.json")
    return [folder / f"{name}.model.json" for name in made]


def files(folder, with_captured):
    paths = []
    for name, config in BUILT.items():
        paths.append(folder / f"{name}.model.json")
        paths[-1].write_text(json.dumps(config))
    return paths + (capture(folder) if with_captured else [])


def cases(build, paths, share):
    """(model, recipe, ranks, answer, detail), as they come."""
    command = [str(build / "bin" / "plan_table"), share, *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            model, recipe, ranks, answer, detail = line.rstrip("\n").split("\t")
            yield model, recipe, int(ranks), answer, detail
        if run.wait() not in (0, 1):
            sys.exit(f"plan_table ended with {run.returncode}")


def table(model, rows, reasons):
    """One model: a line a recipe, a column a number of ranks; refusals point to their reason below."""
    lines = [f"## {model}", "", "| recipe | " + " | ".join(map(str, RANKS)) + " |", "|---" * (1 + len(RANKS)) + "|"]
    for recipe in dict.fromkeys(recipe for recipe, _ in rows):
        cells = []
        for ranks in RANKS:
            answer, detail = rows.get((recipe, ranks), ("", ""))
            if answer == "refused":
                detail = f"[{reasons.setdefault(detail, len(reasons) + 1)}]"
            cells.append(detail if answer != "WRONG" else f"WRONG: {detail}")
        lines.append(f"| {recipe} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(found):
    reasons = {}
    models = dict.fromkeys(case[0] for case in found)
    tables = [table(model, {(r, n): (a, d) for m, r, n, a, d in found if m == model}, reasons) for model in models]
    equal = sum(case[3] == "equal" for case in found)
    refused = sum(case[3] == "refused" for case in found)
    why = "\n".join(f"{number}. {reason}" for reason, number in reasons.items())
    return f"""# Every recipe, and products of two, against one device

{len(found)} plans: {equal} equal to one device, {refused} refused with the reason, {len(found) - equal - refused} wrong.
Two steps in float64 on thread ranks: loss, every gradient, parameter and buffer, and the counted peak of every rank, which is the
predicted one to the byte. A cell is the largest relative error (tolerance 1e-9), or the number of a reason below. Recipes that take
ranks are tried on 2, 3, 4, 6 and 8; products of two of them on 4, 6 and 8; what one rank does differently (co-shard, loss in
pieces, recompute, accumulation, clipping) goes with data parallel, or with the other factor, on all. hsdp is two replicas of zero3,
or all where their number is odd; osdp shards all parameters and runs their operators in two slices; cp splits the tokens,
also inside attention; cp lse leaves keys sharded and merges what they give by log-sum-exp. Pipelines have two micro-batches, 3f1b goes three times through the same weights.
Made by `PYTHONPATH=python python tests/parity/recipe_table.py build/full --write`; a share of it runs in `make test`.

{chr(10).join(text + chr(10) for text in tables)}
## Reasons

{why}
"""


def main():
    build, share = pathlib.Path(sys.argv[1]), WHOLE
    if "--share" in sys.argv:
        share = sys.argv[sys.argv.index("--share") + 1]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(build, files(pathlib.Path(folder), share == WHOLE), share):
            found.append(case)
            if case[3] == "WRONG":
                print(*case, sep="  ", flush=True)
    if "--write" in sys.argv:
        PAGE.write_text(page(found))
    wrong = sum(case[3] == "WRONG" for case in found)
    print(f"{len(found) - wrong} as they should be, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
