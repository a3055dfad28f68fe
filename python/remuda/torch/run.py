"""Run: one rank of a training in which every chip is given work in proportion to its speed."""
import atexit
import importlib
import math
import os
import time
import warnings
from typing import Any, Dict, List, Optional, Sized, SupportsFloat, Tuple, Union

import torch
import torch.distributed as dist

from .. import __version__
from ..environment import Environment, named_by_mpi, plan_shares, read, read_plan, whole
from ..errors import RemudaError, RemudaWarning
from ..progress import Progress
from ..shares import History, resolve
from . import vendors
from .agreement import Agreement
from .hierarchy import Hierarchy
from .members import check_versions, exchange
from .reduce import Flat, move_bfloat16
from .sampler import BatchSampler, state_values
from .segments import Segments, cut
from .stopwatch import Stopwatch
from .weights import Weights

__all__ = ["Run", "init"]

AHEAD = 256  # batches that a DataLoader may draw before a loop begins its first step
LINE_SECONDS = 0.02  # between two progress lines


def _facts(env: Environment, batch: Optional[int]) -> Dict[str, Any]:
    """What this rank tells the others. A plan counts where nothing else gives the shares."""
    samples = whole(batch)
    if batch is not None and (samples is None or samples < 1):
        raise RemudaError(f"init(batch={batch!r:.40}): a whole number from 1 on is wanted, the samples of a step over all ranks")
    plan = None if env.plan is None or env.batch is not None else plan_shares(read_plan(env.plan))
    return {"version": __version__, "init_batch": samples, "batch": env.batch, "weight": env.weight, "shard": env.shard, "plan": plan,
            "live": env.shares is not None, **vendors.facts(env.vendor)}


def init(batch: Optional[int] = None, backend: Optional[str] = None) -> "Run":
    """Begin. Collective: every rank of the world calls it.

    @batch: samples of a step over all ranks, where no launcher says each rank's (REMUDA_BATCH); cut in equal parts, or by REMUDA_WEIGHT.
    @backend: of torch.distributed; the device's own unless given, and where vendors are unlike, a group for each of them below gloo
    (vendors.choose). A process group that the program made before is used.
    Without RANK and WORLD_SIZE it is a world of one. RemudaError: the environment is wrong, or the ranks do not agree.
    """
    os.environ.update(named_by_mpi(os.environ))  # for what else reads them: env:// and the program itself
    env = read(os.environ)
    if (env.world or 1) == 1:
        os.environ.setdefault("LOCAL_RANK", "0")  # a script made for torchrun runs alone
    facts, store = _facts(env, batch), None
    made = not dist.is_initialized()
    if not made:
        rank, world = dist.get_rank(), dist.get_world_size()
        store = dist.distributed_c10d._get_default_store()
    elif (env.world or 1) == 1:
        rank, world, store = 0, 1, dist.HashStore()
    else:
        try:
            store, rank, world = next(dist.rendezvous("env://"))
        except (RuntimeError, ValueError, OSError) as problem:
            raise RemudaError(f"MASTER_ADDR '{os.environ['MASTER_ADDR'][:200]}', MASTER_PORT '{os.environ['MASTER_PORT']}': rank {env.rank} of {env.world} "
                              f"finds no meeting there: {str(problem).splitlines()[0][:200]}; rank 0 must run at that address") from None
    members = exchange(dist.PrefixStore("remuda", store), rank, world, facts)
    check_versions(members)
    shares, warning = resolve(members)
    if warning is not None and rank == 0:
        warnings.warn(RemudaWarning(warning), stacklevel=2)
    choice = vendors.choose(members, rank, backend if made else dist.get_backend())
    if choice.warning is not None and rank == next(r for r in vendors.kinds(members).values() if rank in r)[0]:
        warnings.warn(RemudaWarning(choice.warning), stacklevel=2)
    if made:
        if "flagcx" in choice.backend:
            importlib.import_module("flagcx")  # makes its backend known
        try:
            dist.init_process_group(choice.backend, store=dist.PrefixStore("default", store), rank=rank, world_size=world)
        except (AssertionError, AttributeError, RuntimeError, ValueError) as problem:  # this torch has none of that name; or what it wants is not there
            raise RemudaError(f"backend '{choice.backend}' on rank {rank} of {world}: {(str(problem).splitlines() or [type(problem).__name__])[0][:160]}; "
                              "if this torch lacks it, leave `backend` out of init() or install one that has it") from problem
    move_bfloat16()
    return Run(env, members, shares, made, store, choice.inner)


class _Loss:
    """A number that may still be under way: a device is not waited for."""

    def __init__(self, loss: Any):
        tensor = isinstance(loss, torch.Tensor)
        if loss.numel() != 1 if tensor else not (loss is None or isinstance(loss, SupportsFloat)):
            raise RemudaError(f"progress({f'a tensor of {loss.numel()}' if tensor else type(loss).__name__}): one number is wanted, such as loss.mean()")
        self._loss, self._arrived = loss, None
        if isinstance(loss, torch.Tensor):
            self._loss = loss.detach().to("cpu", non_blocking=True)
            event = getattr(getattr(torch, loss.device.type, None), "Event", None)
            if loss.device.type != "cpu" and event is not None:
                self._arrived = event()
                self._arrived.record()

    def value(self) -> Optional[float]:
        """None: there is none, it is not there yet, or it is not finite."""
        if self._loss is None or (self._arrived is not None and not self._arrived.query()):
            return None
        value = float(self._loss)
        return value if math.isfinite(value) else None


class Run:
    """See init(). rank, world: of this process; batch: samples of a step over all ranks."""

    def __init__(self, env: Environment, members: List[Dict[str, Any]], shares: List[int], made_group: bool, store: Any,
                 inner: Optional[str] = None):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.batch = sum(shares)
        self.members = members
        self._made_group, self._store = made_group, store
        self._history = History(shares)
        self._segments = env.segments
        self._reducer: Any = Flat(dist.group.WORLD) if inner is None else Hierarchy(members, self.rank, inner)
        readers = [rank for rank, member in enumerate(members) if member.get("live")]
        self._agreement: Optional[Agreement] = None
        if readers and self.world > 1:
            self._agreement = Agreement(self._history, self.rank, self.world, env.shares if self.rank == readers[0] else None,
                                        dist.new_group(backend="gloo"))
        self._progress = Progress(env.progress)
        self._stopwatch = Stopwatch(torch.device("cpu"))
        self._sampler: Optional[BatchSampler] = None
        self._agreed: List[BatchSampler] = []  # samplers that are alike on all ranks
        self._weighed = self._warned = False  # the program lets its ranks count by their samples; or it was told that it does not
        self._cuts = False  # it cuts the steps by itself
        self._drawn = 0  # steps, by this process
        self._undrawn = 0  # the first step that no sampler has drawn yet
        self._state: Optional[Dict[str, int]] = None  # of a sampler that is yet to be made
        self._leader: Any = None  # whose calls count the steps: the first model, or the first reader of loss_scale
        self._step = -1  # trained last, or under way
        self._progressed = -1  # the step of the last call of progress()
        self._loss: Tuple[int, "_Loss"] = (-1, _Loss(None))  # of which step
        self._samples = 0  # of this rank, in steps begun
        self._began, self._said_step, self._said_at = time.monotonic(), -1, 0.0
        atexit.register(self._end)

    # what a rank is

    @property
    def shares(self) -> List[int]:
        """Every rank's samples of a whole step, as they are in force now."""
        return list(self._history.at(max(self._step, 0))[1])

    @property
    def share(self) -> int:
        """This rank's."""
        self._cuts = True
        return self.shares[self.rank]

    @property
    def weight(self) -> float:
        """What this rank's mean gradient counts in the step that is under way: its samples / the samples of all ranks."""
        self._weighed = True
        if self._sampler is None or self._step < 0:
            return self.shares[self.rank] / self.batch
        return self._sampler.own(self._step) / self._sampler.size(self._step)

    @property
    def loss_scale(self) -> float:
        """By which a loss is multiplied where gradients are averaged over ranks by something else (FSDP, DeepSpeed, Horovod): world x weight.
        Read it in every step.
        """
        if isinstance(self._leader, Weights):
            self._warn("run.loss_scale was read, but run.wrap() lets each rank's gradient count by its samples already: leave it out of the loss")
        elif self._sampler is not None and self._sampler.begun:
            self._begin("loss_scale")
        return self.world * self.weight

    @property
    def epoch(self) -> int:
        """Of the first step that is still to be trained: where a loop over epochs begins, `for epoch in range(run.epoch, 3)`."""
        if self._sampler is None:
            return 0 if self._state is None else self._state["epoch"]
        return self._sampler.epoch(self._sampler.trained)

    # the loop

    def batch_sampler(self, data: Union[int, Sized], epochs: int = 1, seed: int = 1) -> BatchSampler:
        """This rank's indices of each step, for DataLoader(data, batch_sampler=...). @data: a data set, or its number of samples."""
        sampler = BatchSampler(data, self.batch, epochs, seed, lambda step, size: self._history.part(step, self.rank, size),
                               self._before_iteration, self._before_draw)
        if self._state is not None:
            sampler.load_state_dict(self._state)
            self._state = None
        sampler.counted = self._leader is not None
        if self._sampler is None:
            self._take(sampler)
        return sampler

    def _take(self, sampler: BatchSampler) -> None:
        self._sampler = sampler
        self._step = sampler.trained - 1

    def _before_iteration(self, sampler: BatchSampler) -> None:
        """Of two samplers, one after the other, the steps of the second follow those of the first."""
        if sampler is not self._sampler:
            sampler.begin_after(self._step)
            self._take(sampler)

    def _before_draw(self, sampler: BatchSampler, step: int) -> None:
        if sampler is not self._sampler:
            self._take(sampler)
        if self._agreement is not None:
            self._agreement.before_draw(step)
        self._undrawn = max(self._undrawn, step + 1)
        self._drawn += 1
        if self._drawn > AHEAD:
            self._look()
        self._stopwatch.delivered()

    def _warn(self, sentence: str) -> None:
        """Once, by rank 0, where ranks have unlike shares or may get them."""
        if not self._warned and self.rank == 0 and (len(set(self.shares)) > 1 or self._agreement is not None):
            self._warned = True
            warnings.warn(RemudaWarning(sentence), stacklevel=4)

    def _look(self) -> None:
        """Steps were trained: has anything weighed them?"""
        if self._drawn > 0 and not self._weighed:
            self._warn(f"the shares are {self.shares!s:.80}, but nothing lets a rank's gradient count what its samples are of the step: use run.wrap(model) in "
                       "place of DistributedDataParallel(model), or multiply the loss by run.loss_scale")

    def _agree(self, sampler: BatchSampler) -> None:
        """Ranks with unlike samplers would train something else, or wait for each other for ever."""
        name = f"remuda/sampler-{len(self._agreed)}"
        self._agreed.append(sampler)
        said = exchange(dist.PrefixStore(name, self._store), self.rank, self.world, sampler.facts())
        for rank, facts in enumerate(said):
            for field, value in facts.items():
                if value != said[0][field]:
                    raise RemudaError(f"batch_sampler(): {field} is {value} on rank {rank} and {said[0][field]} on rank 0; every rank needs the same "
                                      "data set, seed and epochs, and goes on from the same state")

    def wrap(self, module: torch.nn.Module, **options: Any) -> torch.nn.parallel.DistributedDataParallel:
        """DistributedDataParallel(module, **options) whose gradients are the mean over the whole step. Rank 0's parameters and buffers
        become everybody's.
        """
        if not isinstance(module, torch.nn.Module):
            raise RemudaError(f"wrap({type(module).__name__}): a torch.nn.Module is wanted")
        tensors = sum(p.requires_grad for p in module.parameters())
        with cut(self._segments, tensors, options) as buckets:
            model = self._reducer.ddp(module, **buckets)
        return self._attach(model, Segments(self._reducer, self._segments) if self._segments else self._reducer)

    def attach(self, model: torch.nn.parallel.DistributedDataParallel) -> torch.nn.parallel.DistributedDataParallel:
        """The same for one that something else made, before its first backward pass. Return: it."""
        if self._segments is not None:
            raise RemudaError(f"REMUDA_SEGMENTS '{','.join(map(str, self._segments))[:40] or 'none'}': attach() takes a model whose buckets are made; use "
                              "run.wrap(model), or leave spec.segments out of the job")
        return self._attach(model, self._reducer)

    def _attach(self, model: torch.nn.parallel.DistributedDataParallel, reducer: Any) -> torch.nn.parallel.DistributedDataParallel:
        self._weighed = True
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        if self._leader is None or not isinstance(self._leader, Weights):
            self._stopwatch = Stopwatch(device)
        weights = Weights(model, reducer, self._begin_forward, self._stopwatch)
        if not isinstance(self._leader, Weights):
            self._leader = weights
        if self._sampler is not None:
            self._sampler.counted = True
        return model

    def _begin_forward(self, weights: Weights) -> float:
        self._begin(weights)
        if self._sampler is None and not self._cuts:
            self._warn(f"the shares are {self.shares!s:.80}, but no loader has the run's batches: use DataLoader(data, batch_sampler=run.batch_sampler(data)), or "
                       "give each rank run.share samples a step")
        return self.weight

    def _begin(self, who: Any) -> None:
        """A forward pass of training begins. The first model's count the steps, others take part in them."""
        if self._leader is None:
            self._leader = who
        if who is not self._leader:
            return
        before = self._step
        if self._sampler is None:
            self._step += 1
        else:
            if self.world > 1 and self._sampler not in self._agreed:
                self._agree(self._sampler)
            step = self._sampler.mark()
            self._step = before if step is None else step
        self._stopwatch.begin()
        if self._step == before:
            return
        self._say(before)
        self._samples += self.shares[self.rank] if self._sampler is None else self._sampler.own(self._step)
        if self._agreement is not None:
            self._agreement.step(self._step, max(self._undrawn, self._step + 1))

    # what is said of it

    def progress(self, loss: Any = None) -> None:
        """The step is done. @loss: a number or a tensor of one, the mean over this rank's samples."""
        if not isinstance(self._leader, Weights) and self._step == self._progressed: # nothing else says when a step begins
            self._leader = "progress"
            self._begin(self._leader)
        self._progressed = self._step
        self._look()
        self._loss = (self._step, _Loss(loss))
        self._say(self._step)

    def _say(self, step: int) -> None:
        """A line of what is known, unless there was one just now."""
        now = time.monotonic()
        if step < 0 or step <= self._said_step or not self._progress.wanted or now - self._said_at < LINE_SECONDS:
            return
        self._said_step, self._said_at = step, now
        line: Dict[str, Any] = {"rank": self.rank, "step": step}
        if self._sampler is not None:
            line.update(epoch=self._sampler.epoch(step), epoch_samples=self._sampler.samples)
        # what the program cuts by itself does not follow
        line["shares_step"] = None if self._sampler is None or self._agreement is None else self._history.at(step)[0]
        line.update(samples=self._samples, seconds=round(now - self._began, 6), busy_seconds=round(self._stopwatch.busy_seconds(), 6))
        loss = self._loss[1].value() if self._loss[0] == step else None
        if loss is not None:
            line["loss"] = loss
        self._progress.say(line)

    # the end, and going on

    def state_dict(self) -> Dict[str, int]:
        """How far the training is, of the sampler used last: for any number of ranks and any shares. The model's and the optimiser's
        states are the program's own to save.
        """
        if self._sampler is None:
            raise RemudaError("state_dict(): there is no sampler yet; call batch_sampler() before")
        return self._sampler.state_dict()

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """Go on from there, on every rank, before the loop begins. Before batch_sampler() it is kept for the sampler to come."""
        state_values(state)
        if self._sampler is None:
            self._state = dict(state)
            return
        self._sampler.load_state_dict(state)
        self._take(self._sampler)

    def _end(self) -> None:
        self._look()
        self._said_at = 0.0
        self._say(self._step)
        self._progress.close()
        if self._agreement is not None:
            self._agreement.close()
            self._agreement = None
        if isinstance(self._reducer, Flat):  # that of two levels may wait for others, which a process that ends may not
            self._reducer.close()

    def close(self) -> None:
        """The run is over; further calls do nothing. A process group that init() made is gone with it."""
        atexit.unregister(self._end)
        self._end()
        if not isinstance(self._reducer, Flat):
            self._reducer.close()
        if self._made_group and dist.is_initialized():
            dist.destroy_process_group()
        self._made_group = False

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
