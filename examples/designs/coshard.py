"""Co-shard (SuperScaler): what tensor parallel gives to several devices, one device does one piece after another."""

import partita


def coshard(model, layers, pieces):
    """Attention in pieces of its heads, the MLP in pieces of its hidden units; each layer is made again in backward."""
    design = partita.design(model, ranks=1)
    for layer in range(layers):
        design.loop(f"h.{layer}.attn", "heads", pieces).loop(f"h.{layer}.mlp", "hidden", pieces).recompute(f"h.{layer}")
    return design.plan()
