"""An independent answer to `remuda plan split` for chains: every order of devices times every cut, tried in full."""
import itertools
import random
from fractions import Fraction as F


def solve(problem):
    """Least largest load, then least sum of loads, as Fractions; None when nothing fits."""
    layers, devices = problem["layers"], problem["devices"]
    n = len(layers)
    schedule, m = problem.get("schedule", "1f1b"), problem.get("microbatches", 1)
    d = 1 if schedule == "inference" else 2
    names = [x["type"] for x in devices]
    ms = [{t: F(str(v)) for t, v in layer["ms"].items()} for layer in layers]
    speed = [F(str(x["bytes_per_ms"])) for x in devices]
    # a microbatch keeps its output in a layer, or what is said, until its backward pass
    held = [x["activation_bytes"] if schedule == "inference" else x.get("held_bytes", 0) or x["activation_bytes"] for x in layers]
    best = None

    def orders(left, length):
        if length == 0:
            yield ()
            return
        for c in range(len(devices)):
            if left[c]:
                left[c] -= 1
                for rest in orders(left, length - 1):
                    yield (c,) + rest
                left[c] += 1

    total = sum(x["count"] for x in devices)
    for p in range(1, min(n, total) + 1):
        for cuts in itertools.combinations(range(1, n), p - 1):
            ends = (0,) + cuts + (n,)
            for order in orders([x["count"] for x in devices], p):
                loads = []
                for k in range(p):
                    i, j, c = ends[k], ends[k + 1], order[k]
                    f = 1 if schedule == "inference" else m if schedule == "gpipe" else min(p - k, m)
                    if any(names[c] not in ms[x] for x in range(i, j)):
                        break
                    memory = sum(layers[x]["memory_bytes"] + f * held[x] for x in range(i, j))
                    if memory > devices[c]["memory_bytes"]:
                        break
                    load = F(str(devices[c].get("begin_ms", 0))) + sum(ms[x][names[c]] for x in range(i, j))
                    if k > 0:
                        load += F(layers[i - 1]["activation_bytes"] * d) / min(speed[c], speed[order[k - 1]])
                    if k + 1 < p:
                        load += F(layers[j - 1]["activation_bytes"] * d) / min(speed[c], speed[order[k + 1]])
                    if best is not None and load > best[0]:
                        break
                    loads.append(load)
                else:
                    key = (max(loads), sum(loads))
                    if best is None or key < best:
                        best = key
    return best


def generate(rng):
    types = rng.randint(1, 4)
    n = rng.randint(1, 7)
    names = ["T%d" % t for t in range(types)]
    nice = rng.random() < 0.5
    number = (lambda: rng.randint(1, 6)) if nice else (lambda: round(rng.uniform(0.1, 9), rng.randint(1, 3)))
    link = rng.choice([1, 10, 100, 3.5])
    devices = [{"type": t, "count": rng.randint(0, 3 if types < 3 else 2),
                "memory_bytes": rng.choice([10**9, rng.randint(5, 60)]),
                "bytes_per_ms": link if rng.random() < 0.5 else rng.choice([1, 5, 20, 7.5]),
                **({"begin_ms": number()} if rng.random() < 0.3 else {})} for t in names]
    layers = []
    for i in range(n):
        ms = {t: number() for t in names if rng.random() < 0.9}
        layers.append({"name": "l%d" % i, "ms": ms, "memory_bytes": rng.randint(0, 12),
                       "params_bytes": 1, "activation_bytes": rng.choice([0, rng.randint(0, 9), 2]),
                       **({"held_bytes": rng.randint(0, 15)} if rng.random() < 0.4 else {})})
    return {"layers": layers, "devices": devices, "schedule": rng.choice(["1f1b", "gpipe", "inference"]),
            "microbatches": rng.randint(1, 4)}
