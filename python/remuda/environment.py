"""Environment: what a launcher says to one rank, read strictly. No torch, no clock; the variables are an argument.

`remuda run`, remuda-launch, torchrun and `remuda plan launch` set these. What is absent is None; what is there and wrong is a
RemudaError with the variable, its value and what is wanted.
"""
import json
import math
import operator
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .errors import RemudaError

__all__ = ["Environment", "SHARE_MAX", "named_by_mpi", "read", "read_plan", "whole"]

SHARE_MAX = 1 << 24  # samples of one rank in a step, as in trainer/wrapper
WORLD_MAX = 1 << 20
PLAN_MAX_BYTES = 1 << 28
# Who started several processes and gave them no RANK: each would train alone without a word.
_STARTERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_MPI = {"RANK": "OMPI_COMM_WORLD_RANK", "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE", "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK"}
_MEETING = {"MASTER_ADDR": "address", "MASTER_PORT": "port"}


@dataclass(frozen=True)
class Environment:
    """One rank's variables. rank and world are None where it was started alone."""

    rank: Optional[int] = None
    world: Optional[int] = None
    batch: Optional[int] = None  # samples of this rank in a whole step
    weight: Optional[float] = None  # its part of the batch
    shard: Optional[int] = None  # samples of this rank in an epoch
    plan: Optional[str] = None  # a path
    progress: Optional[str] = None  # a path or the number of a descriptor
    shares: Optional[str] = None  # a path
    segments: Optional[Tuple[int, ...]] = None  # the last tensor of each; () = all in one
    vendor: str = ""
    job: str = ""


def whole(value: Any) -> Optional[int]:
    """A whole number of any kind, numpy's too; None: it is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _whole(env: Mapping[str, str], name: str, least: int, most: int) -> Optional[int]:
    value = env.get(name, "")
    if value == "":
        return None
    if not (value.isascii() and value.isdigit()) or len(value) > 20 or not least <= int(value) <= most:
        raise RemudaError(f"{name} '{value[:40]}': a whole number from {least} to {most} is wanted")
    return int(value)


def _weight(env: Mapping[str, str]) -> Optional[float]:
    value = env.get("REMUDA_WEIGHT", "")
    if value == "":
        return None
    try:
        weight = float(value)
    except ValueError:
        weight = math.nan
    if not 0 <= weight <= 1:
        raise RemudaError(f"REMUDA_WEIGHT '{value[:40]}': a number from 0 to 1 is wanted, this rank's part of the batch")
    return weight


def _shard(env: Mapping[str, str]) -> Optional[int]:
    value = env.get("REMUDA_SHARD", "")
    if value == "":
        return None
    ends = value.split(":")
    if len(ends) != 2 or not all(end.isascii() and end.isdigit() and len(end) <= 18 for end in ends) or int(ends[0]) > int(ends[1]):
        raise RemudaError(f"REMUDA_SHARD '{value[:40]}': BEGIN:END is wanted, two whole numbers, the first not above the second")
    return int(ends[1]) - int(ends[0])


def _segments(env: Mapping[str, str]) -> Optional[Tuple[int, ...]]:
    value = env.get("REMUDA_SEGMENTS", "")
    if value in ("", "none"):
        return None if value == "" else ()
    words = value.split(",")
    if not all(word.isascii() and word.isdigit() and len(word) <= 7 for word in words) or any(int(a) >= int(b) for a, b in zip(words, words[1:])):
        raise RemudaError(f"REMUDA_SEGMENTS '{value[:40]}': rising numbers of tensors with commas between are wanted, such as 3,7, or none; write spec.segments so")
    return tuple(map(int, words))


def named_by_mpi(env: Mapping[str, str]) -> Dict[str, str]:
    """RANK, WORLD_SIZE and LOCAL_RANK of a rank that Open MPI started, where it has an address to meet at and nothing else gave them."""
    if env.get("RANK") or env.get("WORLD_SIZE") or not all(env.get(name) for name in _MEETING):
        return {}
    return {name: env[theirs] for name, theirs in _MPI.items() if env.get(theirs) and not env.get(name)}


def _place(env: Mapping[str, str]) -> Tuple[Optional[int], Optional[int]]:
    world = _whole(env, "WORLD_SIZE", 1, WORLD_MAX)
    rank = _whole(env, "RANK", 0, WORLD_MAX - 1)
    if world == 1 and rank is None:
        world = None  # alone, as where neither is set
    if (world is None) != (rank is None):
        there, lacks = ("RANK", "WORLD_SIZE") if world is None else ("WORLD_SIZE", "RANK")
        raise RemudaError(f"{lacks} is not set, {there} is: set both, as torchrun and `remuda run` do, or neither to train alone")
    if rank is not None and world is not None and rank >= world:
        raise RemudaError(f"RANK '{rank}': of WORLD_SIZE {world} ranks the last one is {world - 1}")
    if rank is None:
        for name in _STARTERS:
            if (_whole(env, name, 0, WORLD_MAX) or 0) > 1:
                raise RemudaError(f"RANK and WORLD_SIZE are not set, {name} is '{env[name]}': each process would train alone; start them by "
                                  "remuda-launch, `remuda run`, torchrun or `mpirun -x MASTER_ADDR=... -x MASTER_PORT=...` (in each context), or set RANK, WORLD_SIZE, MASTER_ADDR "
                                  "and MASTER_PORT")
    if world is not None and world > 1:
        for name, what in _MEETING.items():
            if env.get(name, "") == "":
                raise RemudaError(f"{name} is not set, WORLD_SIZE is {world}: set it to the {what} at which rank 0 listens")
        _whole(env, "MASTER_PORT", 1, 65535)
    return rank, world


def _unfollowed(env: Mapping[str, str]) -> None:
    """What a job says and no PyTorch program follows is refused, never passed over."""
    for name, strategy in (("REMUDA_STALENESS", "ps-ssp"), ("REMUDA_MICROBATCHES", "split"), ("REMUDA_LAYERS", "split")):
        if env.get(name, "") != "":
            raise RemudaError(f"{name} '{env[name][:40]}': it is for strategy {strategy}, and every rank of remuda.torch has the whole model and adds up its "
                              "gradients in every step; leave it out, and write `strategy: allreduce` into the job")
    levels = env.get("REMUDA_LEVELS", "")
    if levels != "" and not levels.startswith("auto:"):
        raise RemudaError(f"REMUDA_LEVELS '{levels[:40]}': torch.distributed and remuda.torch choose the way of a sum themselves; leave spec.groups out of the job")
    groups = env.get("REMUDA_GROUPS", "")
    if groups != "" and not all(group.isascii() and group.isdigit() and len(group) <= 7 and int(group) > 0 for group in groups.split(",")):
        raise RemudaError(f"REMUDA_GROUPS '{groups[:40]}': the workers of each device group are wanted, such as 4,2; leave it out where they are not known")


def read(env: Mapping[str, str]) -> Environment:
    """What `env` (os.environ) says to this rank. RemudaError: a value is wrong, or this rank is a parameter server."""
    role = env.get("REMUDA_ROLE", "")
    if role not in ("", "worker"):
        raise RemudaError(f"REMUDA_ROLE '{role[:40]}': a PyTorch program has workers alone; write `strategy: allreduce` into the job")
    strategy = env.get("REMUDA_STRATEGY", "")
    if strategy not in ("", "allreduce"):
        raise RemudaError(f"REMUDA_STRATEGY '{strategy[:40]}': all ranks of remuda.torch add up their gradients in every step; write `strategy: "
                          "allreduce` into the job")
    for name, field in (("REMUDA_NEIGHBOUR_EXCHANGE", "spec.neighbourExchange"), ("REMUDA_ORDER", "spec.data.order")):
        if env.get(name, "") not in ("", "0", "blocks"):
            raise RemudaError(f"{name} '{env[name][:40]}': batch_sampler() gives each rank consecutive pieces of a step, and no rank passes samples on; "
                              f"leave {field} out of the job")
    _unfollowed(env)
    rank, world = _place(env)
    return Environment(rank=rank, world=world, batch=_whole(env, "REMUDA_BATCH", 0, SHARE_MAX), weight=_weight(env), shard=_shard(env),
                       plan=env.get("REMUDA_PLAN") or None, progress=env.get("REMUDA_PROGRESS") or None,
                       shares=env.get("REMUDA_SHARES") or None, segments=_segments(env), vendor=env.get("REMUDA_VENDOR", "")[:64], job=env.get("REMUDA_JOB", "")[:64])


def read_plan(path: str) -> Dict[str, Any]:
    """The plan file of a job: an object with "ranks", each an object with "batch"."""
    try:
        with open(path, "rb") as file:
            plan = json.loads(file.read(PLAN_MAX_BYTES))
    except (OSError, ValueError, RecursionError) as problem:
        raise RemudaError(f"REMUDA_PLAN '{path[:200]}' cannot be read: {problem}") from None
    ranks = plan.get("ranks") if isinstance(plan, dict) else None
    if not isinstance(ranks, list) or not all(isinstance(entry, dict) for entry in ranks):
        raise RemudaError(f"REMUDA_PLAN '{path[:200]}': ranks: a list with an object for each rank is wanted, as `remuda run` writes it")
    return dict(plan)


def plan_shares(plan: Dict[str, Any]) -> Optional[List[int]]:
    """Each worker's samples of a step, or None where the plan does not say."""
    workers = [entry for entry in plan["ranks"] if entry.get("role", "worker") == "worker"]
    shares = [entry.get("batch") for entry in workers]
    if not shares or not all(isinstance(share, int) and not isinstance(share, bool) and 0 <= share <= SHARE_MAX for share in shares):
        return None
    return [int(share) for share in shares]
