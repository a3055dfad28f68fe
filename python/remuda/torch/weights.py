"""Weights: a DDP communication hook that makes of the ranks' mean gradients the mean over the whole step.

Rank i's gradient is the mean over its b_i samples of a step of r: it counts b_i / r, and the weighted gradients are added up (DDP
divides nothing where a hook is registered). The weight is applied once, to the whole bucket. In an accumulation (no_sync) the
gradients of several steps meet in one bucket; where such a step weighs otherwise than the first of them (a short last step, new shares),
its gradients are scaled by the quotient as they come, by a hook on each parameter:

        steps of weights 0.6, 0.6, 0.5 accumulated:   0.6 (g1 + g2 + 0.5/0.6 g3)
"""
import warnings
from typing import Any, Callable, List

import torch
import torch.distributed as dist
from torch.nn.modules.batchnorm import _BatchNorm

from ..errors import RemudaWarning
from .clipping import Clipping, hooked
from .reduce import scaled
from .stopwatch import Stopwatch

__all__ = ["Weights"]


def _hook(state: "Weights", bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    return state.reduce(bucket)


class Weights:
    """Of one DDP model. @begin: called when a forward pass of training begins, says the weight of the step. @reducer: as reduce.Flat."""

    def __init__(self, model: Any, reducer: Any, begin: Callable[["Weights"], float], stopwatch: Stopwatch):
        # not the model: its C++ part holds the hook's state, and a cycle through that is never freed
        self._reducer, self._begin, self._stopwatch = reducer, begin, stopwatch
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._reference = 1.0  # by which the buckets are scaled
        self._open = False  # an accumulation is under way: nothing has been added up since its first step
        self._scaling: List[Any] = []  # hooks on parameters
        self._clipping = Clipping(self._parameters)
        self._warn(model)
        model.register_comm_hook(self, _hook)
        model.register_forward_pre_hook(self._before_forward)

    def _warn(self, model: Any) -> None:
        if dist.get_rank() != 0 or dist.get_world_size() == 1:
            return
        for name, module in model.named_modules():
            if isinstance(module, _BatchNorm) and not isinstance(module, torch.nn.SyncBatchNorm) and module.track_running_stats:
                warnings.warn(RemudaWarning(
                    f"{name[7:] or 'the model'} is a {type(module).__name__}: each rank normalises by its own samples, so the result depends on the "
                    "shares; use SyncBatchNorm.convert_sync_batchnorm() on GPUs, or GroupNorm"), stacklevel=5)
                break
        name = hooked(list(model.named_parameters()))
        if name is not None:
            warnings.warn(RemudaWarning(f"{name[7:]} has a hook that changes its gradient before it is added up over the ranks: clip after backward(), when "
                                        "the gradient is that of the whole step"), stacklevel=5)

    def _before_forward(self, model: Any, _arguments: Any) -> None:
        if not model.module.training or not torch.is_grad_enabled():  # Lightning leaves the outer one in eval()
            return
        weight, adds_up, factor = self._begin(self), bool(model.require_backward_grad_sync), 1.0
        if self._open:
            factor = weight / self._reference
        elif weight == 0 and not adds_up:
            self._reference, factor = 1.0, 0.0  # what follows in this accumulation may count
        else:
            self._reference = weight
        self._open = not adds_up
        self._clipping.begin(self._open)
        self._scale(factor)

    def _scale(self, factor: float) -> None:
        while self._scaling:
            self._scaling.pop().remove()
        if factor != 1:
            def scale(gradient: torch.Tensor) -> torch.Tensor:
                return scaled(gradient.clone(), factor)

            self._scaling = [parameter.register_hook(scale) for parameter in self._parameters]

    def reduce(self, bucket: Any) -> Any:
        last: bool = bucket.is_last()
        if last:
            self._stopwatch.computed()
            engine = torch.autograd.Variable._execution_engine  # type: ignore[attr-defined]
            # DDP waits for the others in a callback that it queues after this hook: the one behind it finds them there
            engine.queue_callback(lambda: engine.queue_callback(self._stopwatch.finished))
        return self._reducer.sum(bucket.buffer(), self._reference, last)
