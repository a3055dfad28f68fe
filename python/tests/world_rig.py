"""Worlds of real processes over gloo on this machine, for the tests beside. Children are forks: torch is imported once."""
import multiprocessing
import os
import pickle
import shutil
import sys
import tempfile
import time
import traceback

os.environ.setdefault("OMP_NUM_THREADS", "1")
if os.path.basename(sys.argv[0]) != "test_python_cuda":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the worlds of these tests meet on processors, whatever the machine has
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../tests/support")]
from ports import free_port

OURS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
number = failures = 0
room = tempfile.mkdtemp(prefix="remuda-python-")


def ok(condition, what, detail=""):
    global number, failures
    number += 1
    print(f"{'ok' if condition else 'not ok'} {number} - {what}")
    if not condition:
        failures += 1
        print("# " + str(detail)[:4000].replace("\n", "\n# "))
    sys.stdout.flush()


def done():
    shutil.rmtree(room, ignore_errors=True)
    print(f"1..{number}")
    sys.exit(1 if failures else 0)


def clean_environment():
    for name in list(os.environ):
        if name.startswith("REMUDA_") or name in OURS:
            del os.environ[name]


def _child(folder, rank, world, port, variables, function, arguments):
    with open(os.path.join(folder, f"err.{rank}"), "w", buffering=1) as errors:
        os.dup2(errors.fileno(), 2)
    clean_environment()
    if world is not None:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(variables)
    try:
        result = ("returned", function(rank, *arguments))
    except BaseException as problem:  # noqa: B902 (told to the parent)
        traceback.print_exc()
        result = ("raised", f"{type(problem).__name__}: {problem}")
    with open(os.path.join(folder, f"result.{rank}.part"), "wb") as file:
        pickle.dump(result, file)
    os.rename(file.name, os.path.join(folder, f"result.{rank}"))
    os._exit(0)


class Said(list):
    """What each rank returned, or ("raised", sentence); .errors: what each wrote on stderr."""


def world(count, function, *arguments, variables=None, seconds=120):
    """function(rank, *arguments) in `count` processes; 0: in one that was started alone. variables: rank -> dict."""
    folder, port, fork = tempfile.mkdtemp(dir=room), free_port(), multiprocessing.get_context("fork")
    children = [fork.Process(target=_child, args=(folder, rank, count or None, port, (variables or (lambda _: {}))(rank), function, arguments))
                for rank in range(count or 1)]
    for child in children:
        child.start()
    end = time.monotonic() + seconds
    for child in children:
        child.join(max(0.0, end - time.monotonic()))
    said = Said()
    said.errors = []
    for rank, child in enumerate(children):
        if child.is_alive():
            child.kill()
            child.join()
        path = os.path.join(folder, f"result.{rank}")
        if not os.path.exists(path):
            said.append(("raised", "hung or died"))
        else:
            with open(path, "rb") as file:
                kind, value = pickle.load(file)
            said.append(value if kind == "returned" else ("raised", value))
        with open(os.path.join(folder, f"err.{rank}"), errors="replace") as file:
            said.errors.append(file.read())
    return said
