"""Clipping: is seen where it comes too early, before the gradients of all ranks are added up.

A rank's own gradient is larger or smaller than that of the whole step: what clips it changes the mean. A hook on a parameter does, and
so does what changes gradients between the backward passes of an accumulation. That shows in the count of changes which torch keeps for a
tensor: it is noted at the end of each backward pass, and looked at when the next step begins.
"""
import warnings
from typing import Any, List, Optional, Sequence, Tuple

import torch

from ..errors import RemudaWarning

__all__ = ["Clipping", "hooked"]


def hooked(named: Sequence[Tuple[str, Any]]) -> Optional[str]:
    """The name of the first parameter whose gradient a hook changes, or None."""
    return next((name for name, parameter in named if parameter._backward_hooks), None)


class Clipping:
    """Of one model: looks at its first parameter, and warns once."""

    def __init__(self, parameters: Sequence[Any]):
        self._parameter = parameters[0] if parameters else None
        self._changes: Optional[int] = None  # at the end of the last backward pass of this accumulation
        self._hooks: List[Any] = []

    def _note(self) -> None:
        gradient = None if self._parameter is None else self._parameter.grad
        self._changes = None if gradient is None else gradient._version

    def begin(self, accumulates: bool) -> None:
        """A step begins, whose gradients stay on this rank (@accumulates) or are added up."""
        parameter, changes, self._changes = self._parameter, self._changes, None
        while self._hooks:
            self._hooks.pop().remove()
        if parameter is None:
            return
        if changes is not None and parameter.grad is not None and parameter.grad._version != changes:
            self._parameter = None
            warnings.warn(RemudaWarning("gradients were changed within an accumulation, before they are added up over the ranks: clip (and unscale) after "
                                        "its last backward() alone"), stacklevel=6)
        elif accumulates:
            engine = torch.autograd.Variable._execution_engine  # type: ignore[attr-defined]
            self._hooks = [parameter.register_hook(lambda _: engine.queue_callback(self._note))]
