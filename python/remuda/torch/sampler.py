"""Sampler: which samples this rank takes in which step.

One permutation an epoch, from the seed alone; a step takes the next B of it, the last step of an epoch what is left; each step is cut
by the shares in force at that step (remuda/shares.py). So what a step holds does not depend on the ranks, and every sample is used
exactly once an epoch, also where a run goes on with other shares or another number of ranks.

A DataLoader draws ahead of the loop, by as much as it likes; so do Accelerate and Lightning. Steps count when they are trained, which
the forward pass of the wrapped model says (mark()). How far the loop is behind the draws follows from what is seen at the first of an
iteration: a loader draws once more each time it hands out a batch.

        two workers that fetch two batches each:     draws 0 1 2 3 | batch 0 comes, draw 4 | forward: 5 draws for 1 batch, 4 ahead

A loop that goes through its model several times a batch is told from one that reads ahead by that: it is soon further than what
was handed out.
"""
from typing import Any, Callable, Dict, Iterator, List, Optional, Sized, Tuple, Union

import torch

from ..environment import whole
from ..errors import RemudaError

__all__ = ["BatchSampler", "permutation", "state_values"]

_MASK = (1 << 64) - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # of splitmix64 (G. Steele et al., 2014)
Part = Callable[[int, int], Tuple[int, int]]  # step, its samples -> first and end of this rank's part


def _mix(value: int) -> int:
    value = (value + _STEP) & _MASK
    value = ((value ^ value >> 30) * _FIRST) & _MASK
    value = ((value ^ value >> 27) * _SECOND) & _MASK
    return value ^ value >> 31


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _shifted(values: torch.Tensor, bits: int) -> torch.Tensor:
    """To the right, zeros coming in: >> alone would copy the sign."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def permutation(samples: int, seed: int, epoch: int) -> torch.Tensor:
    """0..samples-1 in the order of splitmix64(base + i) as signed numbers, base = mix(mix(seed) + epoch): the same with every version of
    torch, on every machine. O(n log n).
    """
    base = _mix((_mix(seed & _MASK) + epoch) & _MASK)
    keys = torch.arange(samples, dtype=torch.int64) * _signed(_STEP) + _signed((base + _STEP) & _MASK)
    keys = (keys ^ _shifted(keys, 30)) * _signed(_FIRST)
    keys = (keys ^ _shifted(keys, 27)) * _signed(_SECOND)
    return torch.sort(keys ^ _shifted(keys, 31), stable=True)[1]


def state_values(state: Any) -> List[int]:
    """Of a state_dict(): step, epoch, sample, samples, seed."""
    said = [whole(state.get(name)) for name in ("step", "epoch", "sample", "samples", "seed")] if isinstance(state, dict) else []
    values = [value for value in said if value is not None]
    if len(values) != 5:
        raise RemudaError(f"load_state_dict({state!r:.80}): step, epoch, sample, samples and seed are wanted, as state_dict() gives them")
    return values


class BatchSampler:
    """This rank's indices of each step, for DataLoader(batch_sampler=...) or a loop of its own. Made by Run.batch_sampler().

    One iteration yields `epochs` epochs, the next one goes on where it ended; after a `break` it goes on with the first step that was
    not trained. A rank whose part of a short last step is empty gets an empty list; where a data set was given, which a DataLoader is
    then to collate, one stand-in index, whose gradient counts nothing.
    """

    def __init__(self, data: Union[int, Sized], batch: int, epochs: int, seed: int, part: Part,
                 before_iteration: Callable[["BatchSampler"], None] = lambda sampler: None,
                 before_draw: Callable[["BatchSampler", int], None] = lambda sampler, step: None):
        self.samples = self._count(data)
        self.batch, self.epochs, self.seed = batch, self._number("epochs", epochs, 1), self._number("seed", seed, None)
        self._stand_in = hasattr(data, "__len__")
        self._part, self._before_iteration, self._before_draw = part, before_iteration, before_draw
        self._base = (0, 0, 0)  # a step, and the epoch and sample at which it begins
        self._order: Tuple[int, Optional[torch.Tensor]] = (-1, None)
        self._next = 0  # where the next iteration begins, as far as nothing is trained
        self._latest: Optional["_Iteration"] = None
        self.counted = False  # something says when a step is trained; else what was drawn counts

    @staticmethod
    def _number(name: str, value: Any, least: Optional[int]) -> int:
        number = whole(value)
        if number is None or (least is not None and number < least):
            raise RemudaError(f"batch_sampler({name}={value!r:.40}): a whole number{'' if least is None else f' from {least} on'} is wanted")
        return number

    @staticmethod
    def _count(data: Union[int, Sized]) -> int:
        try:
            samples = len(data) if hasattr(data, "__len__") else whole(data)
        except TypeError:
            samples = None
        if samples is None and not isinstance(data, bool):
            raise RemudaError(f"batch_sampler({type(data).__name__}): its length is not known; give a data set with len(), or the number of "
                              "samples") from None
        if samples is None or samples < 1:
            raise RemudaError(f"batch_sampler({data!r:.40}): {data if samples is None else samples} samples; 1 or more are wanted")
        return samples

    def _piece(self, step: int) -> Tuple[int, int, int]:
        """Of a step: its epoch, and the first and end of its samples in that epoch's permutation."""
        base_step, epoch, begin = self._base
        rest = -(-(self.samples - begin) // self.batch)  # steps of the epoch at hand
        steps = -(-self.samples // self.batch)
        if step - base_step < rest:
            begin += (step - base_step) * self.batch
        else:
            more, inside = divmod(step - base_step - rest, steps)
            epoch, begin = epoch + 1 + more, inside * self.batch
        return epoch, begin, min(begin + self.batch, self.samples)

    def epoch(self, step: int) -> int:
        return self._piece(step)[0]

    def size(self, step: int) -> int:
        """Samples of all ranks in a step."""
        _, begin, end = self._piece(step)
        return end - begin

    def own(self, step: int) -> int:
        """Samples of this rank in a step."""
        first, end = self._part(step, self.size(step))
        return end - first

    def indices(self, step: int) -> List[int]:
        epoch, begin, end = self._piece(step)
        if self._order[0] != epoch:
            self._order = (epoch, permutation(self.samples, self.seed, epoch))
        order = self._order[1]
        assert order is not None
        first, last = self._part(step, end - begin)
        if first == last and self._stand_in:
            last = first = min(first, end - begin - 1)
            last += 1
        result: List[int] = order[begin + first:begin + last].tolist()
        return result

    def _iteration_end(self, step: int) -> int:
        """The step behind the last one of the iteration to which `step` belongs."""
        base_step, base_epoch, begin = self._base
        end_epoch = (self._piece(step)[0] // self.epochs + 1) * self.epochs
        rest = -(-(self.samples - begin) // self.batch)
        return base_step + rest + (end_epoch - base_epoch - 1) * -(-self.samples // self.batch)

    @property
    def trained(self) -> int:
        """The first step that is still to be trained; where nothing says so, to be drawn."""
        return self._next if self._latest is None else self._latest.trained

    @property
    def begun(self) -> bool:
        """Has anything been drawn?"""
        return self._latest is not None

    def __iter__(self) -> Iterator[List[int]]:
        return _Iteration(self)

    def __len__(self) -> int:
        """Steps of the iteration that is under way, or else of the next one."""
        if self._latest is not None and self._latest.trained < self._latest.end:
            return self._latest.end - self._latest.first
        return self._iteration_end(self.trained) - self.trained

    def mark(self) -> Optional[int]:
        """The loop begins to compute with the batch that it was handed last. Return: its step; None if nothing was drawn yet."""
        self.counted = True
        return None if self._latest is None else self._latest.mark()

    def hand(self) -> None:
        """Said by a loop that knows it: the next batch is the one to compute with. Draws say nothing any more."""
        if self._latest is not None:
            self._latest.hand()

    def begin(self, iteration: "_Iteration") -> Tuple[int, int]:
        """Of _Iteration: its first draw. Return: its first step, and the one behind its last."""
        self._before_iteration(self)
        first = self.trained
        self._next, self._latest = first, iteration
        return first, self._iteration_end(first)

    def begin_after(self, step: int) -> None:
        """Before an iteration: its steps are counted on from there."""
        if self.trained <= step:
            self._base = (step + 1, *self._piece(self.trained)[:2])
            self._next, self._latest = step + 1, None

    def facts(self) -> Dict[str, Any]:
        """What has to be alike on all ranks."""
        return {"its number of samples": self.samples, "batch": self.batch, "epochs": self.epochs, "seed": self.seed, "the state to begin with": self._base}

    def draw(self, step: int) -> List[int]:
        self._before_draw(self, step)
        return self.indices(step)

    def state_dict(self) -> Dict[str, int]:
        """How far it is, in steps that were trained: for any number of ranks, any shares and any batch."""
        step = self.trained
        epoch, sample, _ = self._piece(step)
        return {"step": step, "epoch": epoch, "sample": sample, "samples": self.samples, "seed": self.seed}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        step, epoch, sample, samples, seed = state_values(state)
        if samples != self.samples or seed != self.seed:
            raise RemudaError(f"load_state_dict(): it is of {samples} samples with seed {seed}, this sampler of {self.samples} with seed {self.seed}; "
                              "go on with the data set and the seed with which the run began")
        if step < 0 or epoch < 0 or not 0 <= sample < samples:
            raise RemudaError(f"load_state_dict(): step {step}, epoch {epoch}, sample {sample} of {samples}: no place in a run")
        self._base = (step, epoch, sample)
        self._next, self._latest = step, None


class _Iteration(Iterator[List[int]]):
    """One pass of a reader: what it drew, and how far the loop behind it is."""

    def __init__(self, sampler: BatchSampler):
        self._sampler = sampler
        self.first = self.end = -1
        self._calls = 0  # also those that were answered by the end
        self._behind: Optional[int] = None  # draws for batches that the loop had not been handed at its first step
        self._begun = 0  # steps that the loop has begun
        self._several = self._ended = self._told = False

    def __next__(self) -> List[int]:
        if self._calls == 0:
            self.first, self.end = self._sampler.begin(self)
        step = self.first + self._calls
        self._calls += 1
        if step >= self.end:
            self._ended = True
            raise StopIteration
        return self._sampler.draw(step)

    def _drawn_out(self, handed: int) -> bool:
        """The end was drawn, and still each batch that is handed out is a draw; a reader ahead of that falls silent one batch before the end."""
        steps = self.end - self.first
        return self._calls > steps + 1 and handed < steps - 1

    @property
    def trained(self) -> int:
        if self._behind is not None:
            count = self._begun
        else:
            count = self._calls if self._ended or not self._sampler.counted else 0
        return min(self.first + count, self.end)

    def hand(self) -> None:
        self._told, self._behind = True, 0
        self._begun += 1

    def mark(self) -> Optional[int]:
        if self._told:
            return min(self.first + self._begun, self.end) - 1
        if self._behind is None:
            self._behind = self._calls - 1
        handed = self._calls - self._behind
        self._begun += 1
        if self._begun > handed and (not self._ended or self._drawn_out(handed)):
            self._several = True
        # a batch that the loop left out; and one that it goes through again
        self._begun = handed if self._several else max(self._begun, handed)
        return min(self.first + self._begun, self.end) - 1
