#!/usr/bin/env python3
"""An independent answer to `remuda plan devices`: every subset, ranked by the order of docs/reference/device-plugin.md, on
random machines of up to 16 devices (Ascend rings, AMD hives, NVIDIA cards and modules with links as NVML would tell them,
two levels of PCIe switches, dead devices), with random --must and --available.

preferred.py [CASES [SEED]]: prints a line; exit status 1 and the case when an answer differs."""
import importlib.machinery
import importlib.util
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

REMUDA = os.path.join(os.environ.get("B", "build"), "bin", "remuda")
loader = importlib.machinery.SourceFileLoader("make_machines", "tests/data/machines/make-machines")
made = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_machines", loader))
sys.dont_write_bytecode = True
loader.exec_module(made)


class Device:
    """id, dead, numa, group (a key), fabric (is the group joined by one?), port (below a switch), switches (the way to it)"""

    def __init__(self, **values):
        self.fabric, self.port, self.switches, self.links = False, None, (), {}
        self.__dict__.update(values)


def place(rng, i, levels):
    """A PCI address and the ports above it: a root port of its own, one switch, or one of two switches below another."""
    top = rng.randrange(3)
    if levels == 0 or rng.random() < 0.2:
        bridge = f"pci{0x40 + i:04x}:00"
        return dict(bridge=bridge, ports=(f"{0x40 + i:04x}:00:01.0",)), f"{0x40 + i:04x}:01:00.0", None, ()
    d = f"{top:04x}"
    way = [f"{d}:00:01.0", f"{d}:01:00.0"]
    if levels == 2 and rng.random() < 0.8:
        leaf = rng.randrange(2)
        way += [f"{d}:02:{leaf:02x}.0", f"{d}:{0x10 + leaf * 0x40:02x}:00.0", f"{d}:{0x11 + leaf * 0x40:02x}:{i:02x}.0"]
        address = f"{d}:{0x12 + leaf * 0x40 + i:02x}:00.0"
        switches = (way[1], way[3])
    else:
        way += [f"{d}:02:{0x10 + i % 16:02x}.0"]
        address, switches = f"{d}:{0xa0 + i:02x}:00.0", (way[1],)
    return dict(bridge=f"pci{d}:00", ports=tuple(way)), address, way[0], switches


def numa_of(rng):
    return rng.randrange(2)


def nvidia(rng, m, count):
    made.nvidia_control(m)
    modules, levels = rng.random() < 0.3, rng.randrange(3)
    # the port decides the node, as on real boards; addresses ascend with the index
    places = sorted((place(rng, i, levels) for i in range(count)), key=lambda p: p[1])
    devices = []
    for i, (where, address, port, switches) in enumerate(places):
        d = Device(id=f"GPU-{0x5e000000 + (0x1db1 if modules else 0x20b5):08x}-0000-4000-8000-{i:012x}", dead=rng.random() < 0.1,
                   numa=rng.randrange(2), port=port, switches=switches, pci=address)
        made.nvidia_gpu(m, i, address, 0x1db1 if modules else 0x20b5, "simulated", numa=d.numa, lost=d.dead, **where)
        devices.append(d)
    domain = {}
    told = rng.random() < 0.7
    if told:
        kind = rng.choice(("pairs", "mesh", "switch", "sparse"))
        width = {}
        for i, j in itertools.combinations(range(count), 2):
            joined = (i // 2 == j // 2 and rng.random() < 0.8) if kind == "pairs" else rng.random() < 0.5 if kind == "mesh" else \
                rng.random() < 0.1 if kind == "sparse" else False
            if joined:
                width[i, j] = rng.choice((1, 1, 2, 2, 4, 12, 50))
        switched = [rng.randint(1, 18) if kind == "switch" and rng.random() < 0.8 else 0 for _ in range(count)]
        one_end = {pair for pair in width if rng.random() < 0.1}  # reported by the first alone
        def said(i, j):
            return 0 if (j, i) in one_end else width.get((i, j) if i < j else (j, i), 0)
        # a device has at most fifteen peers that are told of
        made.library_links(m, "nvidia", [d.pci for d in devices], said, lambda i: switched[i], domain="")
        for (i, j), w in width.items():
            devices[i].links[j] = devices[j].links[i] = w
        parent = list(range(count))
        def find(x):
            while parent[x] != x:
                x = parent[x]
            return x
        for i, j in width:
            parent[max(find(i), find(j))] = min(find(i), find(j))
        on = [i for i in range(count) if switched[i]]
        for i in on:
            parent[max(find(i), find(on[0]))] = min(find(i), find(on[0]))
        roots = {find(i) for i in range(count) if any(find(j) == find(i) for j in range(count) if j != i)}
        domain = {i: find(i) for i in range(count) if find(i) in roots}
        alone_on_switch = len(on) == 1 and on[0] not in domain  # a domain of one, which has no company
        if modules and len(set(domain.values())) + alone_on_switch == 1:
            only = next(iter(domain.values()), on[0] if on else None)
            domain = {i: only for i in range(count)}
        elif modules:
            rest = [i for i in range(count) if i not in domain and not (alone_on_switch and i == on[0])]
            if len(rest) > 1:
                domain.update({i: "form" for i in rest})
    elif modules:
        domain = {i: "form" for i in range(count)}
    if len(domain) == 1:
        domain = {}
    for i, d in enumerate(devices):
        if i in domain:
            d.group, d.fabric = ("nvlink", domain[i]), True
        elif d.port is not None and any(o.port == d.port for o in devices if o is not d):
            d.group = ("switch", d.port)
        else:
            d.group = ("numa", d.numa)
    return "nvidia.com/gpu", devices


def ascend(rng, m, count):
    made.ascend_control(m)
    devices = []
    for i in range(count):
        where, address, port, switches = place(rng, i, rng.randrange(2))
        d = Device(id=address, dead=rng.random() < 0.15, numa=rng.randrange(4), port=port, switches=switches, group=("ring", i // 4),
                   fabric=True)
        made.ascend(m, i, address, 0xd801, numa=d.numa, lost=d.dead, **where)
        devices.append(d)
    if count % 4 == 1:  # a ring of one is none, and its devices are as others are: leave such machines out
        return None
    return "huawei.com/Ascend910", devices


def amd(rng, m, count):
    hives = rng.randint(1, 4)
    devices, gpus = [], []
    for i in range(count):
        where, address, port, switches = place(rng, i, 0)
        hive = i * hives // count
        d = Device(id=f"GPU-{0x9f00000000000000 + i * 0x1111:016x}", dead=rng.random() < 0.1, numa=rng.randrange(2), port=port,
                   switches=switches, group=("hive", hive), fabric=True)
        gpus.append(made.kfd_gpu(m, i, address, 0x1002, 0x740f, 64 << 30, 0x038000, "amdgpu", hive=hive + 1, numa=d.numa, lost=d.dead,
                                 **where))
        devices.append(d)
    if any(sum(d.group == x.group for x in devices) == 1 for d in devices):
        return None
    made.kfd(m, 2, gpus, lambda i, j: 11 if devices[i].group == devices[j].group and rng.random() < 0.7 else None)
    base = "sys/class/kfd/kfd/topology/nodes"
    for path in [p for p in m.entries if p.startswith(base) and "/io_links/" in p]:
        lines = dict(l.strip().split(" ", 1) for l in m.entries[path].replace(" |\n", "").split("\n"))
        if lines["type"] == "11":
            units = rng.choice((1, 2, 4, 8))
            m.put(path, "\n".join(f"{k} {v}" for k, v in lines.items()) + f"\nmax_bandwidth {units * 25000}")
            a, b = int(lines["node_from"]) - 2, int(lines["node_to"]) - 2
            devices[a].links[b] = max(devices[a].links.get(b, 0), units)
            devices[b].links[a] = max(devices[b].links.get(a, 0), units)
    return "amd.com/gpu", devices


def nearest(devices, d):
    """The last switch on its way that another device of the machine hangs on too."""
    shared = [s for s in d.switches if any(s in o.switches for o in devices if o is not d)]
    return shared[-1] if shared else None


def weights(devices):
    near = [nearest(devices, d) for d in devices]
    table = [[0] * len(devices) for _ in devices]
    for a, b in itertools.permutations(range(len(devices)), 2):
        x, y = devices[a], devices[b]
        w = 1
        if x.group == y.group:
            w += 1050 if x.fabric else 50
        w += 500 * min(30, x.links.get(b, 0))
        if near[a] is not None and near[a] == near[b]:
            w += 300
        elif near[a] is not None and near[b] is not None and x.port == y.port:
            w += 200
        w += 100 * (x.numa == y.numa)
        table[a][b] = w
    return table


def choose(devices, available, must, size):
    """The first set in the order, by looking at every one; and its score."""
    table, best = weights(devices), None
    total = {}
    for d in devices:
        total[d.group] = total.get(d.group, 0) + 1
    have = {g: sum(devices[i].group == g for i in available) for g in total}
    for rest in itertools.combinations([i for i in available if i not in must], size - len(must)):
        chosen = sorted(must + list(rest))
        taken = {}
        for i in chosen:
            taken[devices[i].group] = taken.get(devices[i].group, 0) + 1
        whole = [g for g in taken if have[g] == total[g]]
        weight = sum(table[a][b] for a, b in itertools.combinations(chosen, 2))
        rank = (len(taken), sum(taken[g] < have[g] for g in whole), -sum(taken[g] == have[g] for g in whole), -weight,
                sum(have[g] - taken[g] for g in taken), chosen)
        if best is None or rank < best:
            best = rank
    return best[5], -best[3]


def ask(path, resource, size, must, available):
    arguments = [REMUDA, "plan", "devices", "--machine", path, "--resource", resource, "--size", str(size), "-o", "json"]
    for i in must:
        arguments += ["--must", i]
    for i in available or ():
        arguments += ["--available", i]
    r = subprocess.run(arguments, capture_output=True, text=True)
    if r.returncode != 0:
        return f"exit status {r.returncode}: {r.stderr}"
    return json.loads(r.stdout)


def one(rng, folder, questions, limit):
    """Return: how many questions were asked; a differing one ends the program."""
    m = made.Machine("random", "Simulated.")
    m.cpus("Simulated", 4, 4, 16)
    answer = rng.choice((nvidia, nvidia, ascend, amd))(rng, m, rng.randint(2, limit))
    if answer is None:
        return 0
    resource, devices = answer
    m.write(folder)
    path = os.path.join(folder, "random.machine")
    asked = 0
    for _ in range(questions):
        usable = [i for i, d in enumerate(devices) if not d.dead]
        pool = None if rng.random() < 0.4 else sorted(rng.sample(range(len(devices)), rng.randint(1, len(devices))))
        must = rng.sample(range(len(devices)), rng.choice((0, 0, 1, 2))) if len(devices) > 2 else []
        available = sorted(set(usable if pool is None else [i for i in pool if i in usable]) | set(must))
        if not available:
            continue
        size = rng.randint(max(1, len(must)), len(available))
        want, score = choose(devices, available, must, size)
        got = ask(path, resource, size, [devices[i].id for i in must], None if pool is None else [devices[i].id for i in pool])
        if got != {"devices": [devices[i].id for i in want], "score": score, "exact": True}:
            keep = os.path.join(tempfile.gettempdir(), "preferred-differs.machine")
            os.replace(path, keep)
            print(f"differs on {keep}: {resource} size {size} must {must} pool {pool}\n want {[devices[i].id for i in want]} {score}\n got  {got}")
            print("\n".join(f"  {i} {vars(d)}" for i, d in enumerate(devices)))
            sys.exit(1)
        asked += 1
    return asked


def main():
    cases, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 2000, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng, done, machines = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while done < cases:
            asked = one(rng, folder, min(10, cases - done), 16 if machines % 8 == 0 else 12 if machines % 2 else 9)
            machines += asked > 0
            done += asked
    print(f"{done} choices on {machines} random machines: all equal exhaustive search (seed {seed})")


if __name__ == "__main__":
    main()
