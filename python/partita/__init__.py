"""Partita: the fastest way to run a PyTorch training step on a cluster that fits in memory."""

from .capture import capture
from .errors import Infeasible, InputError, RunError
from .model import Model
from .parallelize import Step, parallelize
from .plan import Plan, plan, recipe
from .register import register

__all__ = ["Infeasible", "InputError", "Model", "Plan", "RunError", "Step", "capture", "parallelize", "plan", "recipe",
           "register"]
