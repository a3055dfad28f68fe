"""Reduce: how the gradients of all ranks are added up where all of them share one collective library; and how what a backend does
not know is moved."""
import time
import weakref
from typing import Any, Callable, Iterable, Iterator, List, Sequence

import torch
import torch.distributed as dist

__all__ = ["Flat", "as_bytes", "in_chunks", "move_bfloat16", "scaled", "share_booleans"]

CLOSE_SECONDS = 1  # for others that are behind; those that ended are not waited for
CHUNK_BYTES = 32 << 20  # of parameters that are broadcast together


def scaled(tensor: torch.Tensor, weight: float) -> torch.Tensor:
    """In place. A weight of nothing leaves zeros, whatever was there: the mean over no samples is not a number."""
    if tensor.is_sparse and (weight == 0 or tensor._nnz() == 0):
        # zero_() (zero_grad() calls it) leaves all dimensions sparse; beside others' rows of an embedding gloo ends the process
        sparse = tensor.sparse_dim() if tensor._nnz() > 0 or tensor.sparse_dim() < tensor.dim() else 1
        return tensor.sparse_resize_and_clear_(tensor.shape, sparse, tensor.dim() - sparse)
    if weight == 0:
        return tensor.zero_()
    return tensor if weight == 1 else tensor.mul_(weight)


def share_booleans(module: torch.nn.Module, broadcast: Callable[[torch.Tensor], Any]) -> None:
    """Rank 0's buffers of booleans (masks), once: gloo of torch 1.13 knows none, so DDP is told to leave them alone."""
    masks = {name: buffer for name, buffer in module.named_buffers() if buffer.dtype == torch.bool}
    for mask in masks.values():
        broadcast(mask.view(torch.uint8))
    ignored = list(getattr(module, "_ddp_params_and_buffers_to_ignore", []))
    if masks:
        torch.nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, [*ignored, *masks])


def as_bytes(flat: torch.Tensor) -> torch.Tensor:
    """What is only moved, for backends that do not know its dtype (gloo and bf16)."""
    return flat.view(torch.uint8)


def _chunks(tensors: Iterable[torch.Tensor]) -> Iterator[List[torch.Tensor]]:
    """Tensors of one dtype and device, as many as fit into CHUNK_BYTES, one at least."""
    open_chunks: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    for t in tensors:
        chunk = open_chunks.setdefault((t.dtype, t.device), [])
        if chunk and sum(c.numel() for c in chunk) * t.element_size() + t.numel() * t.element_size() > CHUNK_BYTES:
            yield list(chunk)
            chunk.clear()
        chunk.append(t)
    yield from open_chunks.values()


def in_chunks(tensors: Iterable[torch.Tensor], move: Callable[[torch.Tensor], None]) -> None:
    """What `move` makes of their values, several in one piece, becomes theirs."""
    for chunk in _chunks(tensors):
        flat = torch.cat([t.detach().reshape(-1) for t in chunk])
        move(flat)
        with torch.no_grad():
            for t, piece in zip(chunk, flat.split([t.numel() for t in chunk])):
                t.copy_(piece.view_as(t))


def over_gloo(group: Any, device: torch.device) -> bool:
    """Do this device's tensors go over gloo in the group? From torch 2.0 on, a group has a backend for each type of device."""
    backends = getattr(dist.distributed_c10d, "get_backend_config", None)
    if backends is None:
        return bool(dist.get_backend(group) == "gloo")
    return f"{device.type}:gloo" in str(backends(group)).split(",")


def move_bfloat16() -> None:
    """DDP broadcasts parameters and buffers as they are, and gloo of torch 1.13 knows no bfloat16: from now on their bytes are moved."""
    plain = dist._broadcast_coalesced

    def broadcast(group: Any, tensors: Sequence[torch.Tensor], size: int, source: int = 0) -> None:
        moved = [t for t in tensors if t.dtype == torch.bfloat16 and over_gloo(group, t.device)]
        in_chunks(moved, lambda flat: group.broadcast(as_bytes(flat), source).wait())
        if len(moved) < len(tensors):
            plain(group, [t for t in tensors if all(t is not other for other in moved)], size, source)

    if plain.__module__ != __name__:
        dist._broadcast_coalesced = broadcast


class Flat:
    """One all_reduce over a process group."""

    def __init__(self, group: Any):
        self._group = group
        self._under_way: "weakref.WeakSet[Any]" = weakref.WeakSet()  # what the group's threads have yet to call and let go

    def sum(self, tensor: torch.Tensor, weight: float, last: bool) -> "torch.futures.Future[torch.Tensor]":
        """The sum over all ranks of weight x tensor, in place. @last: of the buckets of a step."""
        # gloo adds no bfloat16, and rounds sums of half precision after every pair
        widens = tensor.dtype in (torch.bfloat16, torch.float16) and over_gloo(self._group, tensor.device)
        wide = tensor.float() if widens else tensor
        work = dist.all_reduce(scaled(wide, weight), group=self._group, async_op=True)

        def done(future: Any) -> torch.Tensor:
            result: torch.Tensor = future.value()[0]
            return result if wide is tensor else tensor.copy_(result)

        self._under_way.add(done)
        return work.get_future().then(done)  # type: ignore[no-any-return]

    def ddp(self, module: torch.nn.Module, **options: Any) -> torch.nn.parallel.DistributedDataParallel:
        """With rank 0's parameters and buffers."""
        masks = [buffer for buffer in module.buffers() if buffer.dtype == torch.bool]
        if masks and over_gloo(self._group, masks[0].device):
            share_booleans(module, lambda t: dist.broadcast(t, 0, group=self._group))
        return torch.nn.parallel.DistributedDataParallel(module, **options)

    def close(self) -> None:
        """Waits, a second at most, until the group's threads have let go of Python: one that does so while the interpreter ends aborts the
        process.
        """
        end = time.monotonic() + CLOSE_SECONDS
        while len(self._under_way) > 0 and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(0.005)
