"""Members: what every rank says of itself before a process group is made, and what all must agree on.

Each rank puts one JSON object into the rendezvous' store, rank 0 reads all, publishes the list and waits until all have read it: 3 n
messages. It is the first thing that ranks tell each other, and stays as it is in every version, so that unlike versions can be told apart.
"""
import json
from typing import Any, Dict, List, Sequence

from ..errors import RemudaError

__all__ = ["check_versions", "exchange"]


def exchange(store: Any, rank: int, world: int, facts: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Every rank's facts, in rank order. Waits for all of them, as long as the store does."""
    if world == 1:
        return [facts]
    try:
        store.set(f"remuda/member/{rank}", json.dumps(facts))
        if rank == 0:
            said = [json.loads(store.get(f"remuda/member/{other}")) for other in range(world)]
            store.set("remuda/members", json.dumps(said))
        members: List[Dict[str, Any]] = json.loads(store.get("remuda/members"))
        if store.add("remuda/readers", 1) == world:
            store.set("remuda/read", "by all")
        if rank == 0:
            store.get("remuda/read")  # the store may end with this process, which may not like what it read
    except RuntimeError as problem:  # torch's timeouts and lost connections
        raise RemudaError(f"rank {rank} of {world}: the other ranks did not all come this far: {str(problem).splitlines()[0][:200]}; every "
                          "rank's program must call remuda.init() and train with its sampler; look at the ranks that ended early") from None
    return members


def check_versions(members: Sequence[Dict[str, Any]]) -> None:
    for rank, member in enumerate(members):
        if member.get("version") != members[0].get("version"):
            raise RemudaError(f"rank {rank} has version {member.get('version')} of the package remuda, rank 0 has {members[0].get('version')}: "
                              "install the same on every node")
