"""Agreement: new shares that one rank has read come into force on all ranks at the same step.

The lowest rank that has REMUDA_SHARES reads the file. In each step of training all ranks take part in one tiny sum that goes on beside
the computing, a MAX over [the first step that this rank promises not to draw before the answer, files read so far, step of the newest,
pause, shares]; ranks that read nothing say -1. The answer is the same on all, and so is what follows from it: the shares are in force from
max(step of the file, the largest promise) on, which nobody has drawn. A rank that would draw more than it promised waits for
the answer first. Nobody decides anything from its own file or clock.
"""
import os
import sys
import time
from datetime import timedelta
from typing import Any, List, Optional, Tuple

import torch
import torch.distributed as dist

from ..errors import RemudaWarning
from ..shares import History, decode

__all__ = ["Agreement"]

PROMISE = 2  # draws beyond those made, until the answer is there
FILE_MAX_BYTES = 1 << 24
BETWEEN_SECONDS = 0.05  # of two sums, where steps are shorter
PAUSE_MAX = 8  # steps
CLOSE_SECONDS = 5  # for others that are behind; those that ended are not waited for


class _File:
    """REMUDA_SHARES, looked at cheaply."""

    def __init__(self, path: str):
        self._path = path
        self._seen: Optional[Tuple[int, int, int]] = None

    def read(self, world: int, batch: int) -> Optional[Tuple[int, List[int]]]:
        """The file's step and shares, if it is another one than before and fits."""
        try:
            status = os.stat(self._path)
            seen = (status.st_ino, status.st_mtime_ns, status.st_size)
            if seen == self._seen:
                return None
            self._seen = seen
            with open(self._path, "rb") as file:
                return decode(file.read(FILE_MAX_BYTES), world, batch)
        except FileNotFoundError:
            return None
        except (OSError, RemudaWarning) as problem:
            print(f"remuda: {problem}; the shares stay", file=sys.stderr)
            return None


class Agreement:
    """@path: the file, on the rank that reads; None on the others. @group: for small numbers on processors."""

    def __init__(self, history: History, rank: int, world: int, path: Optional[str], group: Any):
        self._history, self._rank, self._world, self._group = history, rank, world, group
        self._file = None if path is None else _File(path)
        self._told: Tuple[int, List[int]] = (-1, [])  # what the file said last
        self._files = 0  # that were read and fit
        self._taken = 0  # of these, the last one that is in force
        self._work: Any = None
        self._words = torch.empty(0)
        self._promised = 0
        self._next = 0  # the step of the next sum
        self._last_usec = 0.0

    def before_draw(self, step: int) -> None:
        if self._work is not None and step >= self._promised:
            self.learn()

    def step(self, step: int, undrawn: int) -> None:
        """A step of training begins; the same calls on every rank."""
        self.learn()
        if step < self._next:
            return
        self._promised = undrawn + PROMISE
        self._words = torch.full((4 + self._world,), -1, dtype=torch.int64)
        self._words[0] = self._promised
        if self._file is not None:
            told = self._file.read(self._world, self._history.batch)
            if told is not None:
                self._told, self._files = told, self._files + 1
            self._words[1] = self._files
            self._words[2] = self._told[0]
            self._words[3] = self._pause(step)
            if self._told[1]:
                self._words[4:] = torch.tensor(self._told[1])
        self._work = dist.all_reduce(self._words, op=dist.ReduceOp.MAX, group=self._group, async_op=True)
        self._next = step + 1  # until the answer says how long to pause

    def _pause(self, step: int) -> int:
        """Steps until the next sum: so many that they take BETWEEN_SECONDS."""
        now = time.monotonic()
        elapsed, self._last_usec = now - self._last_usec, now
        steps = max(step - getattr(self, "_last_step", step - 1), 1)
        self._last_step = step
        return max(1, min(PAUSE_MAX, int(BETWEEN_SECONDS * steps / max(elapsed, 1e-6)))) if step > 0 else 1

    def learn(self) -> None:
        """Wait for the sum that is under way, and do what follows from it."""
        if self._work is None:
            return
        self._work.wait()
        self._work = None
        promised, file, since, pause = (int(word) for word in self._words[:4])
        self._next += pause - 1
        if file > self._taken:
            self._taken = file
            self._history.add(max(since, promised), [int(share) for share in self._words[4:]])

    def close(self) -> None:
        """What is under way comes to its end, or the process would not: gloo's threads may not be left in the middle."""
        try:
            if self._work is not None:
                self._work.wait(timedelta(seconds=CLOSE_SECONDS))
        except RuntimeError:  # others ended before
            pass
        self._work = None
