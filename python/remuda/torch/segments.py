"""Segments: which gradients travel together, as REMUDA_SEGMENTS lists them: numbers of tensors in the order in which backward finishes
them, each the last of its segment; `none`: all in one.

DDP cuts by bytes. With a limit of one byte each tensor is a bucket of its own, which comes here when it is ready, and those of a segment
go on as one sum. DDP learns the order of the tensors in its first step, which is one bucket; from the second step on

        REMUDA_SEGMENTS=1,5:   tensors 0 1 | 2 3 4 5      two sums, the first one begun while backward works on tensor 2
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch.futures import Future

from ..errors import RemudaError

__all__ = ["Segments", "cut"]

NO_LIMIT_MB = 1 << 20


class Segments:
    """Between a hook of DDP and a reducer (reduce.Flat, hierarchy.Hierarchy). @ends: the last tensor of each segment."""

    def __init__(self, reducer: Any, ends: Tuple[int, ...]) -> None:
        self._reducer, self._ends = reducer, frozenset(ends)
        self._tensors = 0  # of this step, so far
        self._open: List[Tuple[torch.Tensor, Any]] = []  # of the segment that has not ended

    def sum(self, tensor: torch.Tensor, weight: float, last: bool) -> Any:
        """As the reducer's, of one tensor; or of all in DDP's first step."""
        first = self._open[0][0] if self._open else tensor
        if (first.dtype, first.device) != (tensor.dtype, tensor.device):  # two sums, whatever the list says
            self._close(weight, False)
        own: Any = Future() if tensor.device.type == "cpu" else Future(devices=[tensor.device])  # type: ignore[arg-type]
        self._open.append((tensor, own))
        if last or self._tensors in self._ends:
            self._close(weight, last)
        self._tensors = 0 if last else self._tensors + 1
        return own

    def _close(self, weight: float, last: bool) -> None:
        """What is open goes on together."""
        members, self._open = self._open, []
        flat = members[0][0] if len(members) == 1 else torch.cat([tensor for tensor, _own in members])

        def done(future: Any) -> None:
            try:
                pieces = future.value().split([tensor.numel() for tensor, _own in members])
                for (tensor, own), piece in zip(members, pieces):
                    own.set_result(piece if len(members) == 1 else tensor.copy_(piece))
            except BaseException as problem:  # whoever waits for a bucket is told
                for _tensor, own in members:
                    if not own.done():
                        own.set_exception(problem)

        self._reducer.sum(flat, weight, last).then(done)


@contextlib.contextmanager
def cut(segments: Optional[Tuple[int, ...]], tensors: int, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options of a DDP that is made inside, whose model has so many tensors: buckets of one each, or one of all.
    @segments: None = DDP's own buckets, () = one.
    """
    if segments is None:
        yield options
        return
    name = "REMUDA_SEGMENTS '" + (",".join(map(str, segments))[:40] or "none") + "'"
    if "bucket_cap_mb" in options:
        raise RemudaError(f"{name}: wrap(bucket_cap_mb={options['bucket_cap_mb']!s:.20}) says it otherwise; leave one of them out")
    if segments and segments[-1] >= tensors:
        raise RemudaError(f"{name}: ends with tensor {segments[-1]}, counted from 0, and the model has {tensors}; plan the segments for it, or leave "
                          "spec.segments out of the job")
    first = dist._DEFAULT_FIRST_BUCKET_BYTES
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1 if segments else NO_LIMIT_MB << 20
    try:
        yield {**options, "bucket_cap_mb": 1 / (1 << 20) if segments else NO_LIMIT_MB}
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = first
