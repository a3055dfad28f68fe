"""Shares: who computes how many samples of each step, exactly. Pure: no files, no clock, no torch.

A step of r samples is cut at floor(r * (b_1 + ... + b_i) / B), as trainer/data/sampler.h cuts it: for a whole step (r = B) the parts
are the shares themselves, for the shorter last one of an epoch each is within one sample of its due, and they always add up.

        shares 3, 1; B = 4:   r = 4 -> 3, 1     r = 2 -> 1, 1     r = 1 -> 0, 1
"""
import json
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .environment import SHARE_MAX
from .errors import RemudaError, RemudaWarning

__all__ = ["DEFAULT_BATCH", "History", "by_weights", "bounds", "decode", "equal", "resolve"]

DEFAULT_BATCH = 256  # spec.globalBatch of a TrainingJob that says nothing
WEIGHT_ERROR = 0.0101  # of all weights together: 0.33 three times is meant well


def bounds(shares: Sequence[int], rank: int, samples: int) -> Tuple[int, int]:
    """First and end of the part of `rank` in a step of `samples`."""
    before, batch = sum(shares[:rank]), sum(shares)
    return samples * before // batch, samples * (before + shares[rank]) // batch


def equal(batch: int, world: int) -> List[int]:
    """As many for each; the first ones take what is left over."""
    return [batch // world + (rank < batch % world) for rank in range(world)]


def by_weights(weights: Sequence[float], batch: int) -> List[int]:
    """The sums of the first i parts are rounded: each part is within one of its due. 100 by 1/3, 1/3, 1/3 is 33, 34, 33."""
    total, sums = sum(weights), [0]
    for rank in range(len(weights)):
        sums.append(int(batch * (sum(weights[:rank + 1]) / total) + 0.5))
    sums[-1] = batch
    return [end - begin for begin, end in zip(sums, sums[1:])]


def _all_or_none(members: Sequence[Dict[str, Any]], key: str, name: str) -> Optional[List[Any]]:
    values = [member.get(key) for member in members]
    if all(value is None for value in values):
        return None
    for rank, value in enumerate(values):
        if value is None:
            other = next(r for r, v in enumerate(values) if v is not None)
            raise RemudaError(f"{name} is not set for rank {rank}, it is for rank {other}: set it for every rank, or for none")
    return values


def _same_batch(members: Sequence[Dict[str, Any]]) -> Optional[int]:
    first: Optional[int] = members[0].get("init_batch")
    for rank, member in enumerate(members):
        if member.get("init_batch") != first:
            raise RemudaError(f"init(batch=...): rank 0 says {first}, rank {rank} says {member.get('init_batch')}; say the same on every rank")
    return first


def resolve(members: Sequence[Dict[str, Any]]) -> Tuple[List[int], Optional[str]]:
    """Every rank's samples of a whole step, from what all ranks were told: REMUDA_BATCH of each; else REMUDA_WEIGHT, else REMUDA_SHARD,
    each in its proportion of init(batch=...); else the plan; else equal parts. Also a warning, or None.
    """
    world, batch = len(members), _same_batch(members)
    shares: Optional[List[int]] = _all_or_none(members, "batch", "REMUDA_BATCH")
    source, warning = "REMUDA_BATCH", None
    if shares is None:
        shares, source = members[0].get("plan"), "REMUDA_PLAN"
        if shares is not None and len(shares) != world:
            raise RemudaError(f"REMUDA_PLAN: it has shares for {len(shares)} ranks, WORLD_SIZE is {world}; start as many ranks as were planned, "
                              "or leave REMUDA_PLAN out")
    if shares is not None:
        if sum(shares) == 0:
            raise RemudaError(f"{source}: no rank has a sample; the shares must add up to the global batch, 1 or more")
        if batch is not None and batch != sum(shares):
            warning = f"init(batch={batch}): {source} adds up to {sum(shares)}, which is used; leave batch out where a launcher gives the shares"
        return list(shares), warning
    if batch is None:
        batch = DEFAULT_BATCH
        warning = f"init(): no batch was given, neither here nor by a launcher; {batch} samples a step are used: say init(batch=N)"
    if batch < world:
        raise RemudaError(f"init(batch={batch}): {world} ranks need a sample each; give a batch of {world} or more, or start fewer ranks")
    for key, name in (("weight", "REMUDA_WEIGHT"), ("shard", "REMUDA_SHARD")):
        weights = _all_or_none(members, key, name)
        if weights is not None and sum(weights) > 0:
            if key == "weight" and abs(sum(weights) - 1) > WEIGHT_ERROR:
                raise RemudaError(f"{name}: the weights add up to {sum(weights):.6g} over the {world} ranks; 1 is wanted, each rank's part of the batch")
            return by_weights(weights, batch), warning
    return equal(batch, world), warning


def decode(text: bytes, world: int, batch: int) -> Tuple[int, List[int]]:
    """The file REMUDA_SHARES, {"step":n,"shares":[...]}: its step and shares. RemudaWarning: it does not fit this run."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise RemudaWarning("REMUDA_SHARES: the file is no JSON; write it whole and rename it") from None
    step, shares = (value.get("step"), value.get("shares")) if isinstance(value, dict) else (None, None)
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < 1 << 53:
        raise RemudaWarning(f"REMUDA_SHARES: step {step!r:.40} is no whole number from 0 on")
    if not isinstance(shares, list) or not all(isinstance(share, int) and not isinstance(share, bool) and 0 <= share <= SHARE_MAX
                                               for share in shares):
        raise RemudaWarning("REMUDA_SHARES: shares: a list of whole numbers from 0 on is wanted")
    if len(shares) != world or sum(shares) != batch:
        raise RemudaWarning(f"REMUDA_SHARES: {len(shares)} shares of {sum(shares)} samples; {world} that add up to {batch} are wanted")
    return step, shares


class History:
    """Which shares are in force at which step. Growing; what was in force for a step never changes."""

    def __init__(self, shares: Sequence[int]):
        self._entries: List[Tuple[int, List[int]]] = [(0, list(shares))]
        self.batch = sum(shares)

    def add(self, step: int, shares: Sequence[int]) -> None:
        """From `step` on, which no rank has drawn yet."""
        self._entries = [entry for entry in self._entries if entry[0] < step]
        self._entries.append((step, list(shares)))

    def at(self, step: int) -> Tuple[int, List[int]]:
        """Since which step, and the shares."""
        for since, shares in reversed(self._entries):
            if since <= step:
                return since, shares
        return self._entries[0]

    def part(self, step: int, rank: int, samples: int) -> Tuple[int, int]:
        """First and end of a rank's part of a step of `samples`."""
        return bounds(self.at(step)[1], rank, samples)
