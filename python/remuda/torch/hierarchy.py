"""Hierarchy: sums over ranks that share no collective. Each kind of chip reduces inside, to its leader and by its own backend;
the leaders exchange over gloo, through host memory; each broadcasts the sum inside.

    ranks 0 1 2 3 (nvidia, nccl)   4 5 6 7 (amd, nccl of ROCm)
      up    0 <- 1 2 3               4 <- 5 6 7               as each bucket of gradients is ready
      across      0 <------ gloo ------> 4                    behind it, while backward goes on
      down  0 -> 1 2 3               4 -> 5 6 7               when the last bucket is on its way up

The collectives of a group have to be begun in the same order by all its ranks. Those on the way up are begun by the thread of
backward, the others by one thread of this object, bucket by bucket; the first broadcast comes after the last reduction, so that one
communicator is enough and its order is the same everywhere. What waits at the end is the exchange of the last bucket, which
the broadcasts of the earlier ones run beside.

Between two hosts of g ranks each, one vendor a host, a step sends S bytes of gradients once each way; a flat ring in the order of the
hosts sends (2g-1)/g times as much.
"""
from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

import torch
import torch.distributed as dist
from torch.futures import Future

from ..errors import RemudaError
from .reduce import as_bytes, in_chunks, scaled, share_booleans
from .vendors import kinds

__all__ = ["Hierarchy"]

CLOSE_SECONDS = 5


class _Side:
    """The stream on which buckets of one device are carried to the host and back, beside those that compute. Nothing on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.module: Any = None if device.type == "cpu" else getattr(torch, device.type)
        self.stream: Any = None if self.module is None else self.module.Stream(device=device)
        self.device = device

    def mark(self) -> Any:
        """The place that the calling thread's stream has reached."""
        return None if self.module is None else self.module.current_stream(self.device).record_event()

    @contextlib.contextmanager
    def after(self, mark: Any) -> Iterator[None]:
        """Work done inside begins after `mark` and has ended at the end."""
        if self.module is None:
            yield
            return
        with self.module.device(self.device), self.module.stream(self.stream):
            self.stream.wait_event(mark)
            yield
            self.stream.synchronize()


class _Bucket:
    """A bucket on its way."""

    def __init__(self, tensor: torch.Tensor, weight: float, side: _Side) -> None:
        self.tensor, self.side = tensor, side
        self.sum = scaled(tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor, weight)
        self.host = self.sum
        self.future: Future[torch.Tensor] = Future() if side.module is None else Future(devices=[side.device])
        self.up: Any = None
        self.across: Any = None
        self.last = False
        self.mark: Any = None


class Hierarchy:
    """Two levels of process groups over `members`, of which this process is `rank`; `inner`: the backend inside its kind. The default
    process group is there already; every rank makes this object at the same time."""

    def __init__(self, members: Sequence[Mapping[str, Any]], rank: int, inner: str) -> None:
        groups = list(kinds(members).values())
        self.leaders = [ranks[0] for ranks in groups]
        self.ranks: list[int] = []
        for ranks in groups:  # who is not in a group need not know its backend
            group = dist.new_group(ranks, backend=inner if rank in ranks else "gloo")
            if rank in ranks:
                self.ranks, self.group = ranks, group
        self._across = dist.new_group(self.leaders, backend="gloo")
        self.leader = self.ranks[0]
        self._leads = rank == self.leader
        self._sides: dict[torch.device, _Side] = {}
        self._failure: Optional[BaseException] = None
        self._queue: queue.SimpleQueue[Optional[_Bucket]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._carry, name="remuda-hierarchy", daemon=True)
        self._thread.start()

    def _side(self, device: torch.device) -> _Side:
        if device not in self._sides:
            self._sides[device] = _Side(device)
        return self._sides[device]

    def sum(self, tensor: torch.Tensor, weight: float, last: bool) -> Future[torch.Tensor]:
        """The sum of weight * tensor over all ranks, which replaces `tensor` when the future is done. Added in fp32, or in what is
        wider, and rounded once. Every rank calls it for the same tensors in the same order; `last`: the last of this step."""
        if tensor.is_sparse:
            raise RemudaError("sparse gradients cannot be exchanged between unlike vendors: make the embedding with sparse=False")
        bucket = _Bucket(tensor, weight, self._side(tensor.device))
        if len(self.ranks) > 1:
            bucket.up = dist.reduce(bucket.sum, dst=self.leader, group=self.group, async_op=True)
        bucket.last, bucket.mark = last, bucket.side.mark()
        self._queue.put(bucket)
        return bucket.future

    def _lift(self, bucket: _Bucket) -> None:
        """The sum of this kind, on to the other leaders."""
        if bucket.up is not None:
            bucket.up.wait()
        if not self._leads:
            return
        with bucket.side.after(bucket.mark):
            if bucket.up is not None:
                bucket.up.wait()  # its stream's end, on this stream
            if bucket.side.module is not None:
                bucket.host = torch.empty(bucket.sum.shape, dtype=bucket.sum.dtype, pin_memory=True)
                bucket.host.copy_(bucket.sum, non_blocking=True)
        bucket.across = dist.all_reduce(bucket.host, group=self._across, async_op=True)

    def _lower(self, bucket: _Bucket) -> Any:
        """The sum of all, on to the ranks of this kind."""
        if self._leads:
            bucket.across.wait()
            with bucket.side.after(bucket.mark):
                if bucket.host is not bucket.tensor:
                    bucket.tensor.copy_(bucket.host, non_blocking=True)
        if len(self.ranks) > 1:
            with bucket.side.after(bucket.mark):
                return dist.broadcast(as_bytes(bucket.tensor), src=self.leader, group=self.group, async_op=True)
        return None

    def _finish(self, step: list[_Bucket]) -> None:
        down = [(bucket, self._lower(bucket)) for bucket in step]
        for bucket, work in down:
            with bucket.side.after(bucket.mark):
                if work is not None:
                    work.wait()
            bucket.future.set_result(bucket.tensor)

    def _carry(self) -> None:
        step: list[_Bucket] = []
        while (bucket := self._queue.get()) is not None:
            step.append(bucket)
            try:
                if self._failure is not None:
                    raise self._failure
                self._lift(bucket)
                if bucket.last:
                    self._finish(step)
            except BaseException as failure:  # whoever waits for a bucket is told
                self._failure = failure
                for waiting in step:
                    if not waiting.future.done():
                        waiting.future.set_exception(failure)
                bucket.last = True
            if bucket.last:
                step = []

    def broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
        """Rank 0's values, for all. Not while a step is on its way."""
        def broadcast(flat: torch.Tensor) -> None:
            if self._leads:
                host = flat.cpu()
                dist.broadcast(as_bytes(host), src=self.leaders[0], group=self._across)
                flat.copy_(host)
            if len(self.ranks) > 1:
                dist.broadcast(as_bytes(flat), src=self.leader, group=self.group)

        in_chunks(tensors, broadcast)

    def ddp(self, module: torch.nn.Module, **options: Any) -> torch.nn.parallel.DistributedDataParallel:
        """DistributedDataParallel over this kind, with rank 0's parameters and buffers in all kinds, buffers before every forward pass. That
        a parameter is unused is agreed on by all kinds, over gloo, which takes tensors of processors and of CUDA."""
        buffers = options.pop("broadcast_buffers", True)
        group = dist.group.WORLD if options.get("find_unused_parameters") else self.group
        self.broadcast(itertools.chain(module.parameters(), module.buffers()))
        share_booleans(module, lambda t: None)
        try:
            model = torch.nn.parallel.DistributedDataParallel(module, process_group=group, broadcast_buffers=False, **options)
        except RuntimeError as problem:
            if group is self.group:
                raise
            raise RemudaError("wrap(find_unused_parameters=True): gloo, over which unlike vendors meet, does not take this device's tensors; use all "
                              "parameters in every step, and leave it out") from problem
        if buffers:
            model.register_forward_pre_hook(self._before_forward)
        return model

    def _before_forward(self, model: Any, _arguments: Any) -> None:
        if model.require_forward_param_sync:
            self.broadcast(model.module.buffers())

    def close(self) -> None:
        """Nothing is on its way any more; after a failure, for ranks that do not come it waits no longer than CLOSE_SECONDS."""
        self._queue.put(None)
        self._thread.join(CLOSE_SECONDS)
