"""Captures two small models, plans them for four CPU ranks, trains them and compares with PyTorch on one device."""

import copy
import itertools
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, logging

import partita
from text import VOCABULARY, batches

BATCH, SEQUENCE, STEPS = 8, 64, 20
CLUSTER, LEARNING_RATE, TOLERANCE = "4xcpu", 3e-4, 1e-5


def gpt2():
    return GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=128, n_head=4, vocab_size=VOCABULARY, n_positions=SEQUENCE,
                                      resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0))


def llama():
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=4, hidden_size=128, intermediate_size=352,
                                        num_attention_heads=4, num_key_value_heads=2, vocab_size=VOCABULARY,
                                        max_position_embeddings=SEQUENCE, bos_token_id=0, eos_token_id=0))


# How to build it, and a limit per rank that is less than parameters, gradients and optimizer states of the whole model.
MODELS = {"GPT-2": (gpt2, "6MiB"), "Llama": (llama, "6MiB")}


def train_on_one_device(module, data):
    optimizer = torch.optim.AdamW(module.parameters(), LEARNING_RATE)
    losses = []
    for batch in data:
        loss = module(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_in_parallel(module, plan, data):
    step = partita.parallelize(module, data[0], plan=plan,
                               optimizer=torch.optim.AdamW(module.parameters(), LEARNING_RATE))
    return [float(step(batch)) for batch in data]


def compare(ours, theirs) -> float:
    """Prints both columns; returns the largest relative difference."""
    differences = [abs(a - b) / abs(b) for a, b in zip(ours, theirs)]
    print("  step    partita, 4 ranks    PyTorch, 1 device    difference")
    for number, (a, b, difference) in enumerate(zip(ours, theirs, differences)):
        print(f"  {number:4}    {a:16.7f}    {b:17.7f}    {difference:10.1e}")
    return max(differences)


def show(name, build, memory) -> bool:
    torch.manual_seed(0)
    module = build()
    data = list(itertools.islice(batches(BATCH, SEQUENCE), STEPS))
    model = partita.capture(module, data[0])
    parameters = sum(p.numel() for p in module.parameters())
    print(f"\n{name}: {parameters:,} parameters, {len(model.ops)} ops in one training step")
    plan = partita.plan(model, cluster=CLUSTER, memory=memory)
    print(f"\nPlans for {CLUSTER} with {memory} per rank:\n{plan.ranking(lost=3)}")
    for lost in plan.lost:
        if lost["summary"] == "dp4":
            print(f"Plain data parallel (dp4) does not fit: {lost['reason']}")
    print(f"\nChosen: {plan.summary()}. Its order, drawn with a backward as long as two forwards:\n{plan.schedule()}\n")
    reference = train_on_one_device(copy.deepcopy(module), data)
    worst = compare(train_in_parallel(module, plan, data), reference)
    print(f"  largest difference {worst:.1e}, allowed {TOLERANCE:.0e}")
    return worst <= TOLERANCE


if __name__ == "__main__":
    logging.set_verbosity_error()
    torch.set_num_threads(1)  # so small that more threads only wait for each other; each rank has one too
    equal = [show(name, *model) for name, model in MODELS.items()]
    if not all(equal):
        sys.exit("demo: the losses differ from PyTorch's")
    print("\nLosses on four ranks equal PyTorch's on one device.")
