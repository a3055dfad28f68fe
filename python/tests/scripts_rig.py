"""Scripts as ranks of a world, and the weights that rank 0 leaves. For the tests beside."""
import os
import subprocess
import sys

from world_rig import clean_environment, free_port, room

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "../../docs/examples/pytorch")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.path.join(HERE, ".."), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "GLOG_minloglevel": "2"}
clean_environment()


def path(name):
    return os.path.join(room, name)


def ranks(script, shares, *arguments, seconds=200, **variables):
    """One process a share; no shares: one that was started alone. Returns the exit statuses and what all wrote."""
    port, children = free_port(), []
    for rank, share in enumerate(shares or [None]):
        world = {} if share is None else {"RANK": str(rank), "WORLD_SIZE": str(len(shares)), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                                          "MASTER_PORT": str(port), "REMUDA_BATCH": str(share)}
        children.append(subprocess.Popen([sys.executable, os.path.join(EXAMPLES, script), *arguments], cwd=room, env={**ENVIRONMENT, **world, **variables},
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    said = []
    for child in children:
        try:
            said.append(child.communicate(timeout=seconds)[0])
        except subprocess.TimeoutExpired:
            child.kill()
            said.append(child.communicate()[0] + "(did not end)")
    return [child.returncode for child in children], said


def difference(first, second):
    """The largest of any weight."""
    try:
        a, b = torch.load(path(first)), torch.load(path(second))
    except OSError:
        return float("inf")
    return max((a[name].double() - b[name].double()).abs().max().item() for name in a)
