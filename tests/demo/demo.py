#!/usr/bin/env python3
"""The main job, from discovery to a trained model, with the programs of build/bin and nothing else.

Synthetic machines, made from public facts of their vendors, are the inputs of discovery, grouping, health and scheduling; none was
recorded. What trains is what this machine has.
Writes build/demo/summary.json and build/demo/report.html. DEMO_EPOCHS=N trains longer (10 by default)."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import report

BUILD = os.path.abspath(os.environ.get("B", "build"))
BIN = os.path.join(BUILD, "bin")
DEMO = os.path.join(BUILD, "demo")
STORE = os.path.join(DEMO, "store")
SYNTHETIC = os.path.join("tests", "data", "machines")
FASHION = "/usr/share/datasets/fashion-mnist"
EPOCHS = int(os.environ.get("DEMO_EPOCHS", "10"))

# node, synthetic machine, node class, pool
MACHINES = [
    ("h100-a", "nvidia-h100-x8", "multi", "regular"),
    ("h100-b", "nvidia-h100-x8", "multi", "regular"),
    ("h100-c", "nvidia-h100-x8", "multi", "regular"),
    ("h100-reserve", "nvidia-h100-x8", "multi", "reserved"),
    ("ascend-a", "huawei-910a-x8", "multi", "regular"),
    ("ascend-b", "huawei-910a-x8", "multi", "regular"),
    ("amd-a", "amd-mi210-x8", "multi", "regular"),
    ("two-vendors", "nvidia-l40s-x4-huawei-310p-x4", "single", "regular"),
    ("no-accelerators", "cpu-only-x2", "any", "regular"),
]

# name, chips a pod, resource, urgency, pods of the gang, what the reader should see
PODS = [
    ("one-gpu", 1, "nvidia.com/gpu", "regular", 1, "one chip: the single-chip node, not a hole in a big one"),
    ("half-ring", 4, "huawei.com/Ascend910", "regular", 1, "four chips: one HCCS ring"),
    ("sixteen", 8, "nvidia.com/gpu", "regular", 2, "16 chips: a gang of 2 x 8, both or none"),
    ("eight", 8, "nvidia.com/gpu", "regular", 1, "eight chips: the last whole regular machine"),
    ("eight-more", 8, "nvidia.com/gpu", "regular", 1, "eight more: the reserve is not for regular work, so it waits"),
    ("eight-urgent", 8, "nvidia.com/gpu", "emergency", 1, "the same as an emergency: the reserve takes it"),
    ("hive", 4, "amd.com/gpu", "regular", 1, "four chips: one xGMI hive"),
    ("eight-amd", 8, "amd.com/gpu", "regular", 1, "eight AMD chips, four are held: it waits"),
    ("one-core-set", 1, "remuda.dev/cpu-group", "regular", 1, "a CPU group is a chip too"),
]

children = []


def say(text=""):
    print(text, flush=True)


def fail(text):
    say("demo: " + text)
    sys.exit(1)


def start(name, *command):
    log = open(os.path.join(DEMO, "log", name), "w")
    child = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    children.append((name, child))
    return child


def stop_all():
    for _, child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 5
    for _, child in children:
        try:
            child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def port_of(name):
    """The port that a program which was given port 0 says it has."""
    log = os.path.join(DEMO, "log", name)
    return int(wait_for("the port of " + name, 30, lambda: re.search(r"listening address=[0-9.]+:(\d+)", open(log).read())).group(1))


def request(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"} if body is not None else {})
        answer = connection.getresponse()
        data = answer.read()
        return answer.status, data
    finally:
        connection.close()


def get_json(port, path):
    status, data = request(port, "GET", path)
    if status != 200:
        raise RuntimeError("GET %s: %d %s" % (path, status, data[:200]))
    return json.loads(data)


def wait_for(what, seconds, condition):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            value = condition()
            if value:
                return value
        except (OSError, RuntimeError, ValueError, KeyError):
            pass
        time.sleep(0.02)
    for name, child in children:
        if child.poll() is not None:
            say("demo: %s ended with status %s; its log is %s" % (name, child.returncode, os.path.join(DEMO, "log", name)))
    fail("%s did not happen within %d s; logs are in %s" % (what, seconds, os.path.join(DEMO, "log")))


# --- 1. discover -------------------------------------------------------------------------------------------------------

def start_agents():
    ports = {}
    this = socket.gethostname().lower() or "this-machine"
    nodes = [(this, None, "any", "regular")] + MACHINES
    for node, machine, node_class, pool in nodes:
        config = os.path.join(DEMO, "config", node + ".yaml")
        with open(config, "w") as f:  # the demo cannot wait a minute for a recovery, so it takes three seconds
            f.write("nodeClass: %s\npool: %s\nhealth: {recoveryProbes: 3, recoverySeconds: 3, probeSeconds: 1}\n" % (node_class, pool))
        root = "/"
        if machine is not None:
            root = os.path.join(DEMO, "machines", node)
            done = subprocess.run([os.path.join(BIN, "remuda"), "machine", "expand", os.path.join(SYNTHETIC, machine + ".machine"), root],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                fail("cannot expand %s: %s" % (machine, done.stderr.strip()))
        start("agent-" + node, os.path.join(BIN, "remuda-agent"), "--root", root, "--node-name", node,
              "--listen", "127.0.0.1:0", "--store", "dir:" + STORE, "--kubelet-dir", "none",
              "--launch-socket", "none", "--config", config, "--state", os.path.join(DEMO, "state-" + node))
    for node, _, _, _ in nodes:
        ports[node] = port_of("agent-" + node)
    return this, nodes, ports


def inventories(nodes, ports):
    machines = []
    for node, machine, _, _ in nodes:
        inventory = wait_for("the first inventory of " + node, 20, lambda n=node: get_json(ports[n], "/v1/inventory"))
        wait_for("the first judgement of " + node, 20,
                 lambda n=node: all(d["health"] != "unknown" or d["reason"] == "Assigned"
                                    for d in get_json(ports[n], "/v1/inventory")["status"]["devices"]))
        inventory = get_json(ports[node], "/v1/inventory")
        status = inventory["status"]
        machines.append({"name": node, "synthetic": machine, "nodeClass": status["nodeClass"], "pool": status["pool"],
                         "devices": len(status["devices"]),
                         "groups": [{k: g.get(k) for k in ("name", "vendor", "model", "total", "healthy", "fabric", "resource")}
                                    for g in status["groups"]]})
        say("  %-18s %-30s %2d devices: %s" % (node, "(this machine)" if machine is None else "(synthetic: %s)" % machine,
                                              len(status["devices"]),
                                              ", ".join("%s %d x %s [%s]" % (g["name"], g["total"], g["model"], g["fabric"])
                                                        for g in status["groups"])))
    return machines


# --- 2. decide ---------------------------------------------------------------------------------------------------------

def pod_object(name, chips, resource, urgency, gang):
    labels = {}
    if urgency == "emergency":
        labels["remuda.dev/urgency"] = "emergency"
    if gang > 1:
        labels["remuda.dev/job"] = name.rsplit("-", 1)[0]
        labels["remuda.dev/gang-size"] = str(gang)
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "demo", "uid": "uid-" + name, "labels": labels,
                         "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())},
            "spec": {"schedulerName": "remuda",
                     "containers": [{"name": "main", "image": "example", "resources": {"limits": {resource: str(chips)}}}]},
            "status": {"phase": "Pending"}}


def write_object(name, value):
    temporary = os.path.join(STORE, "." + name)
    with open(temporary, "w") as f:
        json.dump(value, f)
    os.rename(temporary, os.path.join(STORE, name))


def post(port, verb, body):
    status, data = request(port, "POST", "/scheduler/" + verb, body)
    if status != 200:
        fail("%s answered %d: %s" % (verb, status, data[:300]))
    return json.loads(data)


def rejections(answer):
    rejected = {}
    for field in ("FailedNodes", "FailedAndUnresolvableNodes"):
        rejected.update(answer.get(field) or {})
    return rejected


def decide(port, pod, names):
    answer = post(port, "filter", {"Pod": pod, "Nodes": None, "NodeNames": names})
    if answer.get("Error"):
        fail("filter: " + answer["Error"])
    fits, chosen = answer.get("NodeNames") or [], None
    if len(fits) > 1:
        scores = post(port, "prioritize", {"Pod": pod, "Nodes": None, "NodeNames": fits})
        chosen = max(scores, key=lambda s: s["Score"])["Host"]
    elif fits:
        chosen = fits[0]
    if chosen is not None:
        meta = pod["metadata"]
        bound = wait_for("the store's news of pod " + meta["name"], 5, lambda: bind(port, meta, chosen))
        if bound != "bound":
            fail("bind: " + bound)
    return chosen, rejections(answer)


def bind(port, meta, node):
    error = post(port, "bind", {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node})["Error"]
    if error and "not in the store" in error:
        return None  # its file was just written
    return error or "bound"


def decisions(port, names):
    result = []
    for name, chips, resource, urgency, gang, what in PODS:
        pods = [name] if gang == 1 else ["%s-%d" % (name, i) for i in range(gang)]
        objects = [pod_object(p, chips, resource, urgency, gang) for p in pods]
        for pod in objects:
            write_object("pod-%s.json" % pod["metadata"]["name"], pod)
        time.sleep(0.2)  # a scheduler sees a pod after the store does
        for pod in objects:
            chosen, rejected = decide(port, pod, names)
            result.append({"pod": pod["metadata"]["name"], "chips": chips, "resource": resource, "urgency": urgency,
                           "gang": gang, "chosen": chosen, "rejected": rejected, "what": what})
            say("  %-14s %2d x %-22s %-9s -> %s" % (pod["metadata"]["name"], chips, resource, urgency, chosen or "waits"))
            words = {}
            for node, reason in rejected.items():
                words.setdefault(reason.split(":")[0], []).append(node)
            say("      %s" % "; ".join("%s: %s" % (word, ", ".join(sorted(where))) for word, where in sorted(words.items())))
        time.sleep(0.2)
    return result


# --- 3. break and mend ---------------------------------------------------------------------------------------------------

def chips_of(port, group_prefix):
    return [d for d in get_json(port, "/v1/inventory")["status"]["devices"] if d["group"].startswith(group_prefix)]


def function_path(root, pci):
    """The real folder of a PCI function in a machine's tree, and its link."""
    link = os.path.join(root, "sys/bus/pci/devices", pci)
    return os.path.realpath(link), link


def fault(extender_port, agent_port, node, names):
    root = os.path.join(DEMO, "machines", node)
    device = chips_of(agent_port, "huawei-")[2]
    probe = pod_object("probe-8", 8, "huawei.com/Ascend910", "regular", 1)

    def answer():
        return post(extender_port, "filter", {"Pod": probe, "Nodes": None, "NodeNames": names})

    def state():
        return next(d for d in get_json(agent_port, "/v1/inventory")["status"]["devices"] if d["id"] == device["id"])

    def metric():
        page = request(agent_port, "GET", "/metrics")[1].decode()
        return [line for line in page.splitlines()
                if line.startswith("remuda_device_health{") and device["id"] in line and 'condition="unhealthy"' in line]

    if node not in (answer().get("NodeNames") or []):
        fail("%s should take 8 chips before anything is broken" % node)
    real, link = function_path(root, device["pci"])
    aside = os.path.join(DEMO, "aside")
    began = time.monotonic()
    os.rename(real, aside)
    target = os.readlink(link)
    os.unlink(link)
    broken = wait_for("the fault in the inventory", 5, lambda: (lambda d: d if d["health"] == "unhealthy" else None)(state()))
    detected_ms = (time.monotonic() - began) * 1e3
    wait_for("the fault in the metrics", 5, lambda: any(line.rstrip().endswith(" 1") for line in metric()))
    filtered = wait_for("the fault in the filter's answer", 5, lambda: rejections(answer()).get(node))
    say("  %s (%s) left %s: %s, %s after %.0f ms" % (device["id"], device["pci"], node, broken["health"], broken["reason"], detected_ms))
    say("  filter now says of %s: %s" % (node, filtered))
    os.rename(aside, real)
    os.symlink(target, link)
    wait_for("the recovery", 30, lambda: state()["health"] == "healthy")
    recovered = bool(wait_for("the node's return", 10, lambda: node in (answer().get("NodeNames") or [])))
    seconds = time.monotonic() - began
    say("  it is back: healthy after good probes, and %s takes 8 chips again (%.1f s after the fault)" % (node, seconds))
    return {"device": device["id"], "node": node, "pci": device["pci"], "reason": broken["reason"], "detected_ms": round(detected_ms, 1),
            "filtered": filtered.startswith("ChipsUnhealthy"), "filter_said": filtered, "recovered": recovered,
            "recovered_seconds": round(seconds, 1)}


# --- 4. train ------------------------------------------------------------------------------------------------------------

def train(shards):
    folder = os.path.join(DEMO, "train-" + shards)
    os.makedirs(folder)
    job = os.path.join(folder, "job.yaml")
    with open(job, "w") as f:
        f.write("""apiVersion: remuda.dev/v1alpha1
kind: TrainingJob
metadata: {name: fashion-%s}
spec:
  strategy: allreduce
  model: mlp
  globalBatch: %d
  learningRate: 0.3
  epochs: %d
  shards: %s
  workers:
  - {runtime: cpu, chips: 1}
  - {runtime: sunway, chips: 1}
  data: {path: %s, format: idx}
""" % (shards, report.BATCH, EPOCHS, shards, FASHION))
    programs = os.path.join(folder, "programs.yaml")
    args = "[--evaluate, --evaluate-epochs]"
    with open(programs, "w") as f:
        f.write("""programs:
  cpu: {path: %s/remuda-train-cpu, args: %s}
  sunway: {path: %s/remuda-train-sunway, args: %s}
""" % (BIN, args, BIN, args))
    log = open(os.path.join(DEMO, "log", "train-" + shards), "w+")
    done = subprocess.run([os.path.join(BIN, "remuda"), "run", job, "--programs", programs, "--work-dir", os.path.join(folder, "work"),
                           "--report", os.path.join(DEMO, "job-%s.html" % shards), "-o", "json"], stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        summary = json.loads(done.stdout)
    except ValueError:
        log.seek(0)
        fail("remuda run gave no summary (exit %d): %s" % (done.returncode, log.read()[-1500:]))
    if summary["phase"] != "Succeeded":
        fail("the training %s: %s %s" % (summary["phase"], summary["reason"], summary["message"]))
    say("  %-8s shards: %.1f s, accuracy %.4f; %s" % (
        shards, summary["seconds"], summary["accuracy"] or 0,
        ", ".join("rank %d on %s: weight %.4f, %d samples" % (r["rank"], r["runtime"], r["weight"], r["samples"]) for r in summary["ranks"])))
    return summary, folder


def main():
    began = time.monotonic()
    if not os.path.isdir(FASHION):
        fail("no %s: install the Debian package dataset-fashion-mnist" % FASHION)
    shutil.rmtree(DEMO, ignore_errors=True)
    for folder in (STORE, os.path.join(DEMO, "log"), os.path.join(DEMO, "config"), os.path.join(DEMO, "machines")):
        os.makedirs(folder)

    say("1. every machine tells what it has (one remuda-agent each; all but this one are synthetic, made from public facts)")
    this, nodes, ports = start_agents()
    machines = inventories(nodes, ports)
    names = [n for n, *_ in nodes]

    say("\n2. remuda-extender answers kube-scheduler's messages")
    start("extender", os.path.join(BIN, "remuda-extender"), "--store", "dir:" + STORE, "--listen", "127.0.0.1:0",
          "--emergency-namespaces", "demo")
    extender_port = port_of("extender")
    wait_for("the extender", 30, lambda: request(extender_port, "GET", "/readyz")[0] == 200)
    decided = decisions(extender_port, names)

    say("\n3. a chip falls off the bus, and comes back")
    broken = fault(extender_port, ports["ascend-b"], "ascend-b", names)

    stop_all()  # the training has the machine to itself
    say("\n4. one training job on two unlike workers, each with the program built for it (%d epochs of Fashion-MNIST)" % EPOCHS)
    trained = {shards: train(shards) for shards in ("equal", "weighted")}
    training = report.training_summary(trained, EPOCHS)
    for words in training["words"]:
        say("  " + words)

    summary = {"machines": machines, "decisions": decided, "fault": broken, "training": training,
               "seconds": round(time.monotonic() - began, 1)}
    with open(os.path.join(DEMO, "summary.json"), "w") as f:
        json.dump(summary, f, indent=1)
    with open(os.path.join(DEMO, "report.html"), "w") as f:
        f.write(report.page(summary, this))
    say("\nin %.0f s; see %s and %s" % (summary["seconds"], os.path.relpath(os.path.join(DEMO, "report.html")),
                                        os.path.relpath(os.path.join(DEMO, "summary.json"))))


if __name__ == "__main__":
    try:
        main()
    finally:
        stop_all()
