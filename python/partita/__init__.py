"""Partita: the fastest way to run a PyTorch training step on a cluster that fits in memory."""

from .capture import capture
from .design import Design, design
from .errors import Infeasible, InputError, RunError
from .from_config import from_config
from .model import Model
from .parallelize import Step, parallelize
from .plan import Plan, explain, plan, profile, recipe, verify
from .register import register

__all__ = ["Design", "Infeasible", "InputError", "Model", "Plan", "RunError", "Step", "capture", "design", "explain",
           "from_config", "parallelize", "plan", "profile", "recipe", "register", "verify"]
