"""Made-up fleets, queues and jobs in the shape of the page's answers. Nothing here was recorded: names, counts and faults are invented, from a seed."""
import datetime
import random
import re
import urllib.parse

MODELS = [("nvidia", "NVIDIA H100 80GB HBM3", "cuda", "nvidia.com/gpu", "nvlink"), ("nvidia", "NVIDIA L40S", "cuda", "nvidia.com/gpu", "pcie"),
          ("huawei", "Ascend 910B3", "cann", "huawei.com/Ascend910", "hccs"), ("amd", "AMD Instinct MI300X", "rocm", "amd.com/gpu", "xgmi"),
          ("cambricon", "MLU370-X8", "cambricon", "cambricon.com/mlu", "mlulink")]
ILL = {"sick": [("OverTemperature", "97 degrees, above the limit of 90 for 40 s", "RemudaDeviceOverTemperature"),
                ("Xid79", "GPU has fallen off the bus", "RemudaDeviceUnhealthy"), ("LinkDown", "0 of 16 lanes", "RemudaDeviceUnhealthy")],
       "degraded": [("LinkDegraded", "8 of 16 lanes", "RemudaDeviceDegraded"), ("RowRemapPending", "a row waits for a reset to be remapped", "RemudaDeviceDegraded")],
       "quarantined": [("Flapping", "5 turns between bad and not bad in ten minutes", "RemudaDeviceFlapping")]}


def stamp(seconds_ago=0.0):
    """RFC 3339 in UTC with seconds, so long ago (or ahead, below nothing)."""
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds_ago)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


def chip(rng, vendor, index, node, state=None):
    state = state or rng.choices(["held", "free", "borrowed", "degraded", "sick", "quarantined"], [78, 14, 5, 2, .4, .2])[0]
    c = {"id": f"{vendor[:3].upper()}-{node:04x}{index:02x}", "state": state, "since": stamp(rng.randrange(60, 90000))}
    if state in ("held", "borrowed"):
        job = rng.randrange(400)
        c |= {"pod": f"team-{job % 7}/train-{job}-w{index}", "job": f"team-{job % 7}/train-{job}"}
    if state in ILL:
        c["reason"], c["message"], c["runbook"] = rng.choice(ILL[state])
        c["since"] = stamp(rng.randrange(30, 3500))
    return c


def fleet(nodes=24, chips=8, seed=1, generation=100):
    """So many nodes of five models: a sick chip in every eleventh, a quarantined one in every thirteenth; of every sixtieth, which is silent, all are unknown."""
    rng = random.Random(seed)
    answer = {"at": stamp(), "cluster": "synthetic", "ready": True, "generation": generation, "nodes": [], "faults": []}
    for n in range(nodes):
        vendor, model, runtime, resource, fabric = MODELS[(n * len(MODELS)) // nodes]
        silent = n % 60 == 17
        node = {"node": f"{vendor}-{n}", "pool": "reserved" if n % 12 == 3 else "regular", "class": "any", "heard": stamp(900 if silent else 3)}
        if silent:
            node |= {"stale": True, "reason": "its agent has not reported for 15 minutes"}
        ill = {3: "sick"} if n % 11 == 4 else {5: "quarantined"} if n % 13 == 2 else {}
        made = [chip(rng, vendor, i, n, "unknown" if silent else ill.get(i)) for i in range(chips)]
        node["groups"] = [{"group": f"{vendor}-0", "vendor": vendor, "model": model, "runtime": runtime, "resource": resource, "fabric": fabric, "chips": made}]
        answer["nodes"].append(node)
        answer["faults"] += [{"at": c["since"], "node": node["node"], "device": c["id"], "to": c["state"], "reason": c["reason"], "message": c["message"]} for c in made if c["state"] in ILL]
        if n % 9 == 4:
            answer["faults"].append({"at": stamp(rng.randrange(60, 3400)), "node": node["node"], "device": made[0]["id"], "to": "recovered", "message": "was OverTemperature"})
    answer["faults"] = sorted(answer["faults"], key=lambda f: f["at"])[-1000:]
    states = [c["state"] for node in answer["nodes"] for group in node["groups"] for c in group["chips"]]
    answer["totals"] = {"chips": len(states)} | {s: states.count(s) for s in ("free", "held", "borrowed", "degraded", "sick", "quarantined", "unknown")}
    return answer


def natural(node):
    """n2 before n10."""
    return re.sub(r"\d+", lambda digits: digits[0].rjust(12, "0"), node["node"])


def brief(nodes, known=()):
    """Whole nodes as /v1/fleet and /v1/changes tell them, in columns; without ids of those that are known."""
    told = {key: [] for key in ("kinds", "nodes", "chips", "ids", "stale", "ill")}
    for node in nodes:
        chips, ids = [], []
        for at, group in enumerate(node["groups"]):
            kind = {k: v for k, v in group.items() if k not in ("chips", "counted")}
            if kind not in told["kinds"]:
                told["kinds"].append(kind)
            chips.append(str(told["kinds"].index(kind)) + "".join(c["state"][0] for c in group["chips"]))
            ids.append(" ".join(urllib.parse.quote(c["id"], safe=":/") for c in group["chips"] if "id" in c))
            told["ill"] += [{"node": node["node"], "group": at, "chip": i} | {k: c[k] for k in ("reason", "message", "since", "runbook") if k in c}
                            for i, c in enumerate(group["chips"]) if c["state"] in ILL]
        told["nodes"].append(node["node"])
        told["chips"].append(" ".join(chips))
        told["ids"].append("" if node["node"] in known else ",".join(ids))
        if node.get("stale"):
            told["stale"].append({"node": node["node"], "reason": node["reason"]})
    return told


def waiting():
    busy = {"word": "ChipsBusy", "count": 12, "verdict": "waits", "message": "4 of 8 chips are free, 8 are asked for"}
    model = {"word": "WrongModel", "count": 14, "verdict": "no", "message": "the node has no chips of an accepted model"}
    lend = {"who": "operator", "action": "lend-reserve", "detail": {}, "message": "lend the reserve: it would start on nvidia-3", "takesEffect": "now"}
    wait = {"who": "nobody", "action": "wait", "detail": {"node": "nvidia-2"}, "message": "wait until team-1/train-8-w3 ends on nvidia-2", "takesEffect": stamp(-1500)}
    accept = {"who": "researcher", "action": "accept-model", "detail": {}, "message": "accept Ascend 910B3 too: 3 nodes have 8 free", "takesEffect": "now"}
    clear = {"who": "operator", "action": "clear", "detail": {}, "message": "repair NVI-000403 on nvidia-4", "takesEffect": "when it is well"}
    pods = [
        {"pod": "team-2/llm-pretrain-0", "since": stamp(7900), "chips": 8, "resource": "nvidia.com/gpu", "urgency": "regular", "job": "team-2/llm-pretrain", "gang": "team-2/llm-pretrain",
         "summary": "0/24 nodes take it: 14 WrongModel, 10 ChipsBusy", "verdict": "waits", "reasons": [model, busy], "remedies": [lend, accept, wait, clear], "startsAt": stamp(-1500), "startsIf": "if team-1/train-8-w3 ends at its deadline"},
        {"pod": "team-5/emergency-eval", "since": stamp(300), "chips": 2, "resource": "huawei.com/Ascend910", "urgency": "emergency", "summary": "0/24 nodes take it: 24 ChipsBusy",
         "verdict": "waits", "reasons": [busy], "remedies": [], "startsIf": "no running pod says when it ends"},
        {"pod": "team-1/notebook", "since": stamp(42), "chips": 1, "resource": "amd.com/gpu", "urgency": "regular", "summary": "0/24 nodes take it: 24 HeldForOlder", "verdict": "waits",
         "reasons": [{"word": "HeldForOlder", "count": 24, "verdict": "waits", "message": "held for team-2/llm-pretrain-0"}], "remedies": [wait]}]
    return {"at": stamp(), "total": 3, "shown": 3, "pods": pods}


def jobs():
    def rank(i, vendor, node, **more):
        model = next(m for m in MODELS if m[0] == vendor)
        return {"rank": i, "role": "worker", "pod": f"team-2/mixed-w{i}", "node": node, "group": f"{vendor}-0", "model": model[1], "runtime": model[2], "phase": "Running"} | more
    mixed = {"job": "team-2/mixed", "phase": "Running", "created": stamp(3700), "started": stamp(3600), "strategy": "allreduce", "steps": {"done": 4210, "of": 12000}, "samples": {"done": 1077760, "of": 3072000},
             "rate": {"samplesPerSec": 298.4, "windowSec": 30}, "left": {"sec": 6680, "fromSec": 6100, "toSec": 7500}, "loss": 0.4371,
             "ranks": [rank(0, "nvidia", "nvidia-0", weight=1.0, weightSource="measured", busyPermille=970, samplesPerSec=121.0), rank(1, "nvidia", "nvidia-1", weight=1.0, weightSource="measured", busyPermille=968, samplesPerSec=120.7),
                       rank(2, "huawei", "huawei-11", weight=0.47, weightSource="table", busyPermille=905, samplesPerSec=56.7), rank(3, "amd", "amd-15", weight=0.2, weightSource="assumed", busyPermille=610)],
             "events": [{"at": stamp(3600), "kind": "plan", "message": "4 ranks, shares by speed"}, {"at": stamp(2200), "kind": "fault", "rank": 2, "message": "HeartbeatLost on huawei-11"},
                        {"at": stamp(2150), "kind": "repair", "rank": 2, "message": "started again in place, from step 2400"}, {"at": stamp(900), "kind": "plan", "message": "shares cut anew: rank 2 is slower than thought"}]}
    split = {"job": "team-4/vision-split", "phase": "Running", "created": stamp(900), "started": stamp(880), "strategy": "split", "steps": {"done": 300, "of": 400}, "rate": {"samplesPerSec": 1840, "windowSec": 30},
             "left": {"sec": 290, "fromSec": 270, "toSec": 330}, "loss": 1.02, "ranks": [rank(0, "nvidia", "nvidia-2", layers="0:8", busyPermille=930), rank(1, "cambricon", "cambricon-20", layers="9:13", busyPermille=890), rank(2, "amd", "amd-16", layers="14:15", busyPermille=700)]}
    server = {"job": "team-1/ps", "phase": "Running", "created": stamp(500), "started": stamp(490), "strategy": "server", "steps": {"done": 90, "of": 1000}, "rate": {"samplesPerSec": 77, "windowSec": 30}, "left": {"sec": 4900, "fromSec": 4000, "toSec": 6200}, "stepsBehind": {"mean": 1.5, "max": 3},
              "ranks": [rank(0, "nvidia", "nvidia-5", role="server", weight=0, weightSource="assumed"), rank(1, "nvidia", "nvidia-5", weight=1, weightSource="assumed", stepsBehind=0, samplesPerSec=51.5), rank(2, "amd", "amd-17", weight=1, weightSource="assumed", stepsBehind=3)]}
    queued = {"job": "team-2/llm-pretrain", "phase": "Pending", "reason": "Unschedulable", "message": "no chips for it now: 0 of 24 nodes take its first part", "created": stamp(7900), "strategy": "allreduce"}
    ended = {"job": "team-3/done", "phase": "Succeeded", "created": stamp(90000), "started": stamp(89000), "ended": stamp(81800), "strategy": "allreduce", "steps": {"done": 500, "of": 500}, "loss": 0.12}
    return {"at": stamp(), "jobs": [mixed, split, server, queued, ended]}


def agents(of):
    def one(i, node):
        group, silent, registered = node["groups"][0], node.get("stale", False), i % 23 != 9
        library = {"state": "silent", "message": "the library hangs", "runbook": "RemudaVendorCallTimeouts"} if i % 20 == 6 else {"state": "absent" if i % 20 == 8 else "answers"}
        return {"node": node["node"], "version": "0.8.2" if i % 11 == 5 else "0.9.0", "heard": node["heard"], "stale": silent,
                **({"reason": node["reason"], "runbook": "RemudaAgentDown"} if silent else {}), "registered": registered,
                "kubelet": [{"name": group["resource"], "registered": registered} | ({} if registered else {"runbook": "RemudaAgentNotRegistered"})],
                "libraries": [{"vendor": group["vendor"], **library}],
                "chips": sum(len(g["chips"]) for g in node["groups"]), "faults": sum(c["state"] in ILL for g in node["groups"] for c in g["chips"])}
    return {"at": stamp(), "version": "0.9.1", "agents": [one(i, n) for i, n in enumerate(of["nodes"])]}
