"""Where a traced op comes from: the module that ran it, and for a gradient op the forward op it differentiates."""

import contextlib
from dataclasses import dataclass

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from .progress import Progress

ROOT = "root"
LOSS = "loss"
RANDOM = "random"


@dataclass(eq=False)
class Origin:
    """One op of the first trace. A gradient op has the origin of its forward op in `forward`."""

    path: str
    op: str
    forward: "Origin | None" = None


def op_name(target) -> str:
    """`aten.addmm.default` -> `addmm`."""
    packet = getattr(target, "overloadpacket", target)
    return getattr(packet, "__name__", str(packet)).rsplit("::", 1)[-1]


def attach(make_origin):
    """Sets `meta["origin"]` of every node the running make_fx creates from here on to make_origin(target)."""
    tracer = get_proxy_mode().tracer
    create = tracer.create_node

    def create_node(kind, target, *args, **kwargs):
        node = create(kind, target, *args, **kwargs)
        if kind == "call_function":
            node.meta["origin"] = make_origin(target)
        return node

    tracer.create_node = create_node


class Recorder:
    """Follows one traced step: which module is running, then which forward op is being differentiated."""

    def __init__(self, module: torch.nn.Module, progress: Progress):
        self.module = module
        self.progress = progress
        self.begin()

    def begin(self):
        """Forgets what it followed before."""
        self.stack = []
        self.child_ran = False
        self.after_last_child = []   # origins of the root module since its last child returned
        self.by_sequence = {}        # autograd's sequence number -> origin of the op that owns it
        self.differentiated = None   # origin of the forward op whose gradient is being computed
        self.in_backward = False
        self.last = ""               # the op traced last

    @property
    def path(self) -> str:
        return self.stack[-1] if self.stack else LOSS

    def origin_of(self, target) -> Origin:
        self.last = str(target)
        self.progress.tick("backward" if self.in_backward else "forward", self.path)
        if self.in_backward:
            return Origin(self.differentiated.path, op_name(target), self.differentiated)
        origin = Origin(self.path, op_name(target))
        # An autograd node takes its number just before its op is dispatched, so the first op seen with a number owns
        # it; later ones with the same number are not differentiated.
        self.by_sequence.setdefault(torch.autograd._get_sequence_nr() - 1, origin)
        if self.stack == [ROOT]:
            self.after_last_child.append(origin)
        return origin

    @contextlib.contextmanager
    def hooks(self):
        """Keeps the stack of running modules while the block runs."""
        handles = []
        for path, module in self.module.named_modules():
            handles.append(module.register_forward_pre_hook(self._enter(path or ROOT)))
            handles.append(module.register_forward_hook(self._leave(path or ROOT)))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, path):
        def hook(module, args):
            self.stack.append(path)
        return hook

    def _leave(self, path):
        def hook(module, args, output):
            # A child that raised never left: an error that is not caught is then told with the child's path, and one
            # that is caught ends here with its parent.
            while self.stack.pop() != path:
                pass
            if self.stack == [ROOT]:
                self.child_ran = True
                self.after_last_child.clear()
        return hook

    def loss_inside_module(self):
        """The module computed its own loss: what it ran after its last child is the loss region."""
        if self.child_ran:
            for origin in self.after_last_child:
                origin.path = LOSS

    def begin_backward(self, loss: torch.Tensor):
        """Hooks every autograd node below `loss`; a sum of gradients belongs to the node that gave its last addend."""
        self.differentiated = self.by_sequence.get(loss.grad_fn._sequence_nr()) or Origin(LOSS, "loss")
        self.in_backward = True
        seen, pending = set(), [loss.grad_fn]
        while pending:
            node = pending.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            origin = self.by_sequence.get(node._sequence_nr())
            if origin is not None:
                node.register_prehook(self._differentiate(origin))
            pending.extend(following for following, _ in node.next_functions)

    def _differentiate(self, origin):
        def hook(gradients):
            self.differentiated = origin
        return hook
