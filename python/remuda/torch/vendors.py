"""Vendors: which ranks share a collective, and which backend follows. What a rank says of itself (`facts()`) travels over the
rendezvous store, before the first process group is made (`members`); the rest is pure.
"""
from __future__ import annotations

import importlib.util
import os
import socket
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence

import torch
import torch.distributed as dist

from ..errors import RemudaError

__all__ = ["Choice", "choose", "facts", "kinds"]

# The backend of each device type of torch. Builds for CUDA and for ROCm both call their devices `cuda` and their backend `nccl`.
BACKENDS = {"cpu": "gloo", "cuda": "nccl", "npu": "hccl", "mlu": "cncl", "musa": "mccl", "gcu": "eccl", "hpu": "hccl", "xpu": "xccl"}

# Whose device type it is, where no launcher says whose chip (REMUDA_VENDOR).
VENDORS = {"npu": "huawei", "mlu": "cambricon", "musa": "mthreads", "gcu": "enflame", "hpu": "habana", "xpu": "intel", "cpu": "cpu"}

# Their ranks compute on the processors, whatever else their host has.
ON_PROCESSORS = ("cpu", "sunway")

# FlagCX joins these with nobody else: its backends for them, HCCL and DUCCL, are for one vendor only (version 0.6).
FLAGCX_ALONE = ("huawei", "hygon")


@dataclass(frozen=True)
class Choice:
    """What `init_process_group` is given by this rank; if the ranks then meet in two levels (`hierarchy.Hierarchy`), the backend inside
    its kind; and what a user should hear of it."""

    backend: str
    inner: Optional[str] = None
    warning: Optional[str] = None


def _device(vendor: Optional[str]) -> str:
    if vendor not in ON_PROCESSORS:
        for name in BACKENDS:
            module = getattr(torch, name, None)
            if name != "cpu" and module is not None and module.is_available():
                return name
    return "cpu"


def _vendor(device: str) -> str:
    return VENDORS.get(device) or ("amd" if getattr(torch.version, "hip", None) else "nvidia")


def _chip(env: Mapping[str, str], count: int, host: str) -> str:
    """A name of the chip that the rank with this environment, of `count` chips that it sees, is expected to use: LOCAL_RANK's. Two ranks
    that share a chip have the same one; UUIDs are known beyond a host, or a container that calls itself one."""
    local = env.get("LOCAL_RANK", "")
    index = int(local) % max(count, 1) if local.isdecimal() and local.isascii() else 0
    for names in (env.get(variable, "").split(",") for variable in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")):
        if index < len(names) and names[index].startswith(("GPU-", "MIG-")):
            return names[index]
    return f"{host} {env.get('CUDA_VISIBLE_DEVICES', '')} {index}"


def facts(vendor: Optional[str]) -> dict[str, Any]:
    """Of this rank: whose chip it has and which, torch's name for the device, whether FlagCX is installed. @vendor: what a launcher says."""
    device = _device(vendor)
    chip = _chip(os.environ, torch.cuda.device_count(), socket.gethostname()) if device == "cuda" else None
    return {"vendor": vendor or _vendor(device), "device": device, "chip": chip, "flagcx": importlib.util.find_spec("flagcx") is not None}


def _kind(member: Mapping[str, Any]) -> str:
    """Ranks of one kind share a collective: those of a vendor, and of them those that found their chip."""
    vendor, device = str(member["vendor"]), str(member["device"])
    return f"{vendor} (on its processors)" if device == "cpu" and vendor not in ON_PROCESSORS else vendor


def kinds(members: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The ranks of each kind, kinds in the order of their first ranks. The first rank of a kind leads it."""
    ranks: dict[str, list[int]] = {}
    for rank, member in enumerate(members):
        ranks.setdefault(_kind(member), []).append(rank)
    return ranks


def _spans(ranks: Sequence[int]) -> str:
    """0-3, 6"""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def _named(members: Sequence[Mapping[str, Any]]) -> str:
    """nvidia: 0-3; amd: 4-7"""
    return "; ".join(f"{kind}: {_spans(ranks)}" for kind, ranks in kinds(members).items())


def _flagcx_joins(members: Sequence[Mapping[str, Any]]) -> bool:
    return all(m["flagcx"] and m["device"] != "cpu" and m["vendor"] not in FLAGCX_ALONE for m in members)


def _sharing(members: Sequence[Mapping[str, Any]], ranks: Sequence[int]) -> Optional[list[int]]:
    """The first ranks among these that have one chip together, which nccl refuses."""
    holders: dict[str, list[int]] = {}
    for rank in ranks:
        if members[rank].get("chip"):
            holders.setdefault(str(members[rank]["chip"]), []).append(rank)
    return next((who for who in holders.values() if len(who) > 1), None)


def _own(device: str) -> str:
    """The backend of this device, and beside it gloo for what a program leaves in the host's memory, where torch has one for each (2.0)."""
    if device == "cpu" or not hasattr(dist.distributed_c10d, "BackendConfig"):
        return BACKENDS[device]
    return f"cpu:gloo,{device}:{BACKENDS[device]}"


def choose(members: Sequence[Mapping[str, Any]], rank: int, wanted: Optional[str] = None) -> Choice:
    """The backend of a world of `members` on `rank`. `wanted`: what the program asks for, None = whatever fits.

    One kind of chip: its own backend, or gloo where ranks of it share a chip. Several: FlagCX where every rank has it, else two levels,
    with gloo between the kinds. RemudaError: the backend asked for cannot join them."""
    device, alike = str(members[rank]["device"]), kinds(members)
    sharing = None if wanted is not None else _sharing(members, alike[_kind(members[rank])])
    own = "gloo" if sharing else _own(device)
    warning = None
    if sharing:
        warning = (f"ranks {_spans(sharing)} share a chip, which {BACKENDS[device]} does not join: they exchange over gloo, more slowly; give "
                   "each rank a chip of its own for speed")
    if len(alike) == 1:
        return Choice(wanted or own, warning=warning)
    if wanted is None and _flagcx_joins(members):
        return Choice(f"cpu:gloo,{device}:flagcx")
    if wanted is None or wanted == "gloo":
        return Choice("gloo", wanted or own, warning)
    if "flagcx" in wanted or wanted in ("mpi", "ucc"):
        return Choice(wanted)
    raise RemudaError(f"backend {wanted!r} cannot join chips of unlike vendors (ranks of {_named(members)}): leave `backend` out of init(), "
                     "then each vendor has a group of its own and their leaders meet over gloo")
