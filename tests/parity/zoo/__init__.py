"""Small models of many families, each with a batch: what capture is tried on. Nothing is downloaded."""

from .audio import AUDIO
from .case import Case
from .decoders import DECODERS
from .encoder_decoders import ENCODER_DECODERS
from .encoders import ENCODERS
from .hybrids import HYBRIDS
from .images import IMAGES
from .mixtures import MIXTURES
from .pairs import PAIRS
from .plain import PLAIN
from .state_space import STATE_SPACE
from .tables import TABLES
from .variants import VARIANTS
from .vision import VISION

KINDS = {
    "decoder": DECODERS,
    "encoder": ENCODERS,
    "encoder-decoder": ENCODER_DECODERS,
    "mixture of experts": MIXTURES,
    "vision": VISION,
    "audio": AUDIO,
    "state space": STATE_SPACE,
    "attention and recurrence": HYBRIDS,
    "images made": IMAGES,
    "two nets": PAIRS,
    "rows, rays and graphs": TABLES,
    "plain torch": PLAIN,
    "ways of training": VARIANTS,
}
ZOO = {case.name: case for cases in KINDS.values() for case in cases}

__all__ = ["KINDS", "ZOO", "Case"]
