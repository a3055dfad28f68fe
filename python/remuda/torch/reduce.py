"""Reduce: how the gradients of all ranks are added up where all of them share one collective library."""
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["Flat", "scaled"]


def scaled(tensor: torch.Tensor, weight: float) -> torch.Tensor:
    """In place. A weight of nothing leaves zeros, whatever was there: the mean over no samples is not a number."""
    if weight == 0:
        return tensor.zero_()
    return tensor if weight == 1 else tensor.mul_(weight)


class Flat:
    """One all_reduce over a process group."""

    def __init__(self, group: Any):
        self._group = group
        # gloo adds no bfloat16, and rounds sums of half precision after every pair
        self._widens = dist.get_backend(group) == "gloo"

    def sum(self, tensor: torch.Tensor, weight: float, last: bool) -> "torch.futures.Future[torch.Tensor]":
        """The sum over all ranks of weight x tensor, in place. @last: of the buckets of a step."""
        wide = tensor.float() if self._widens and tensor.dtype in (torch.bfloat16, torch.float16) else tensor
        work = dist.all_reduce(scaled(wide, weight), group=self._group, async_op=True)

        def done(future: Any) -> torch.Tensor:
            result: torch.Tensor = future.value()[0]
            return result if wide is tensor else tensor.copy_(result)

        return work.get_future().then(done)  # type: ignore[no-any-return]

    def ddp(self, module: torch.nn.Module, **options: Any) -> torch.nn.parallel.DistributedDataParallel:
        """With rank 0's parameters and buffers."""
        return torch.nn.parallel.DistributedDataParallel(module, **options)

    def close(self) -> None:
        """Nothing of its own."""
