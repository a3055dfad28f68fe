"""An independent answer to `remuda plan split` for layer graphs: every assignment of colours to devices, tried in
full, with load, memory and contiguity straight from their definitions."""
import itertools


def loads(problem, assignment):
    types = problem.get("types") or [{"count": problem["maxFPGAs"], "speed": 1}]
    speeds = [t.get("speed", 1) for t in types for _ in range(t["count"])]
    cpus = problem.get("maxCPUs", 0)
    result = [0.0] * (len(speeds) + cpus)
    nodes = {n["id"]: n for n in problem["nodes"]}
    for i, node in nodes.items():
        d = assignment[i]
        result[d] += node["cpuLatency"] if d >= len(speeds) else node["fpgaLatency"] / speeds[d]
    cost = {e["sourceId"]: e["cost"] for e in problem["edges"]}
    for d in range(len(speeds)):
        sent = {e["sourceId"] for e in problem["edges"] if assignment[e["sourceId"]] == d and assignment[e["destId"]] != d}
        got = {e["sourceId"] for e in problem["edges"] if assignment[e["sourceId"]] != d and assignment[e["destId"]] == d}
        result[d] += sum(cost[i] for i in sent) + sum(cost[i] for i in got)
    return result


def is_legal(problem, assignment):
    types = problem.get("types") or [{"count": problem["maxFPGAs"], "memory_bytes": problem.get("maxSizePerFPGA", 1e18)}]
    limits = [t.get("memory_bytes", 1e18) for t in types for _ in range(t["count"])]
    used = [0.0] * len(limits)
    colour = {}
    for n in problem["nodes"]:
        d = assignment[n["id"]]
        if d < len(limits):
            used[d] += n.get("size", 0)
            if not n.get("supportedOnFpga", 1):
                return False
        if "colorClass" in n and colour.setdefault(n["colorClass"], d) != d:
            return False
    return all(u <= limit for u, limit in zip(used, limits))


def is_contiguous(problem, assignment):
    types = problem.get("types") or [{"count": problem["maxFPGAs"]}]
    backward = {n["id"]: bool(n.get("isBackwardNode", 0)) for n in problem["nodes"]}
    out = {}
    for e in problem["edges"]:
        out.setdefault(e["sourceId"], []).append(e["destId"])
    for d in range(sum(t["count"] for t in types)):
        for side in (False, True):
            own = {i for i, x in assignment.items() if x == d and backward[i] == side}
            seen, stack = set(), [t for i in own for t in out.get(i, []) if t not in own]
            while stack:
                i = stack.pop()
                if i in seen:
                    continue
                seen.add(i)
                for t in out.get(i, []):
                    if t in own:
                        return False
                    stack.append(t)
    return True


def solve(problem, contiguous):
    """The least largest load, or None."""
    types = problem.get("types") or [{"count": problem["maxFPGAs"]}]
    devices = sum(t["count"] for t in types) + problem.get("maxCPUs", 0)
    units = {}
    for n in problem["nodes"]:
        units.setdefault(("c", n["colorClass"]) if "colorClass" in n else ("n", n["id"]), []).append(n["id"])
    best = None
    for choice in itertools.product(range(devices), repeat=len(units)):
        assignment = {i: d for ids, d in zip(units.values(), choice) for i in ids}
        if not is_legal(problem, assignment):
            continue
        load = max(loads(problem, assignment))
        if (best is None or load < best) and (not contiguous or is_contiguous(problem, assignment)):
            best = load
    return best


def generate(rng):
    layers = rng.randint(1, 6)
    training = rng.random() < 0.5
    nodes, edges = [], []
    for i in range(layers):
        ms = rng.choice([rng.randint(0, 5), round(rng.uniform(0.1, 5), 2)])
        node = {"id": i, "fpgaLatency": ms, "cpuLatency": ms * rng.choice([1, 3, 10]), "size": rng.randint(0, 9),
                "supportedOnFpga": int(rng.random() < 0.93), "isBackwardNode": 0}
        if training or rng.random() < 0.3:
            node["colorClass"] = i if rng.random() < 0.8 else rng.randint(0, layers)
        nodes.append(node)
        if training:
            nodes.append(dict(node, id=100 + i, isBackwardNode=1, fpgaLatency=2 * ms, cpuLatency=2 * node["cpuLatency"]))
    for i in range(layers):
        cost, back = rng.choice([0, 0.5, round(rng.uniform(0, 2), 2)]), rng.choice([0, 0.25, 1])
        for j in range(i + 1, layers):
            if rng.random() < (0.8 if j == i + 1 else 0.25):
                edges.append({"sourceId": i, "destId": j, "cost": cost})
        if training:
            for j in range(i):
                if any(e["sourceId"] == j and e["destId"] == i for e in edges):
                    edges.append({"sourceId": 100 + i, "destId": 100 + j, "cost": back})
    problem = {"nodes": nodes, "edges": edges, "maxCPUs": rng.randint(0, 1)}
    if rng.random() < 0.5:
        problem["types"] = [{"name": "T%d" % t, "count": rng.randint(0, 2), "memory_bytes": rng.choice([10**9, 20]),
                             "speed": rng.choice([1, 2, 0.5])} for t in range(rng.randint(1, 2))]
    else:
        problem.update(maxFPGAs=rng.randint(1, 3), maxSizePerFPGA=rng.choice([10**9, 25]))
    return problem
