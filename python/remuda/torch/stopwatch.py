"""Stopwatch: how long this rank was busy with its own work, waiting for others left out.

A step is busy from the moment at which the loop got its batch (or began its forward pass) to the moment at which its last gradient was
there: what follows until the end of the backward pass is waiting for others. What the loop does between steps, such as the optimiser,
counts up to as much as the step itself: beyond that it evaluates or writes something, which is no part of a step.

        batch ---- forward ---- backward ---- last gradient ~~~~ waits ~~~~ optimiser, loop ---- batch
        |<------------- busy ----------------------------->|                |<---- busy ---->|

On a device whose work goes on while the program runs ahead, the moments are events of its stream, read when they have passed.
"""
import time
from collections import deque
from typing import Any, Callable, Deque, Optional, Tuple

import torch

__all__ = ["Stopwatch"]


class _HostClock:
    """Moments are seconds."""

    def now(self) -> float:
        return time.perf_counter()

    def between(self, begin: float, end: float) -> Optional[float]:
        return end - begin


class _DeviceClock:
    """Moments are events of the stream at hand."""

    def __init__(self, event: Callable[..., Any]):
        self._event = event

    def now(self) -> Any:
        event = self._event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> Optional[float]:
        return float(begin.elapsed_time(end)) / 1e3 if end.query() else None


def _clock(device: torch.device) -> Any:
    """torch.cuda, and what vendors add beside it (torch.npu, torch.mlu, torch.musa, torch.xpu), have events alike."""
    event = getattr(getattr(torch, device.type, None), "Event", None)
    return _HostClock() if device.type == "cpu" or event is None else _DeviceClock(event)


class Stopwatch:
    """The calls come in the order of a step: delivered, begin, computed, finished. In an accumulation there is one pair of the last two."""

    def __init__(self, device: torch.device):
        self._clock = _clock(device)
        self._delivered: Any = None
        self._begin: Any = None  # of the busy time that is under way
        self._finished: Any = None
        self._parts: Deque[Tuple[Any, Any, Any]] = deque()  # begin and end of a step, and the end of the one before
        self._busy = 0.0

    def delivered(self) -> None:
        """A batch was asked for or handed out."""
        if self._begin is None:
            self._delivered = self._clock.now()

    def begin(self) -> None:
        """A forward pass of training begins."""
        if self._begin is None:
            self._begin = self._clock.now() if self._delivered is None else self._delivered
            self._delivered = None

    def computed(self) -> None:
        """All gradients of this rank are there."""
        if self._begin is not None:
            self._parts.append((self._begin, self._clock.now(), self._finished))
            self._begin = self._finished = None

    def finished(self) -> None:
        """The others' are, too."""
        self._finished = self._clock.now()

    def busy_seconds(self) -> float:
        """Of all steps whose end has been reached."""
        while self._parts:
            begin, end, before = self._parts[0]
            step = self._clock.between(begin, end)
            if step is None:
                break
            between = 0.0 if before is None else self._clock.between(before, begin) or 0.0
            self._busy += max(step, 0.0) + min(max(between, 0.0), step)
            self._parts.popleft()
        return self._busy
