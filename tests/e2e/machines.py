#!/usr/bin/env python3
"""machines.py NAME...: Remuda on the one-node cluster, and synthetic machines of tests/data/machines as further nodes, until it is ended.

What is real: the API server, scheduler, controller manager, every program of ours, and an agent for each machine, which reads its machine file.
What is simulated: the kubelets of those nodes, here: their Leases are renewed, pods that are bound there are said to run (reason `Simulated`) and
run nothing, and go when they are deleted."""
import concurrent.futures
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from kube import KUBE, NotFound, api, get, kubectl, wait  # noqa: E402
from scenarios import BUILD, installs  # noqa: E402
from sim import INVENTORIES, timestamp  # noqa: E402

LABEL = "remuda.dev/synthetic"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = "application/merge-patch+json"
RENEW_SECONDS = 8


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def ready():
    return {"type": "Ready", "status": "True", "reason": "Simulated", "message": "no kubelet is behind this node", "lastHeartbeatTime": now(),
            "lastTransitionTime": now()}


def start_agent(name):
    api("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {
        LABEL: "true", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}})
    with open(os.path.join(KUBE, "log", "agent-" + name), "w") as log:
        subprocess.Popen([os.path.join(BUILD, "bin", "remuda-agent"), "--machine", "tests/data/machines/%s.machine" % name, "--node-name", name,
                          "--store", "kubernetes", "--kubeconfig", os.path.join(KUBE, "admin.conf"), "--listen", "none", "--kubelet-dir", "none",
                          "--pod-resources", "none", "--launch-socket", "none", "--programs", "/dev/null", "--state", "none"],
                         stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def join(name):
    """The node offers what its agent found, as its kubelet would after the device plugin told it."""
    status = wait("the inventory of " + name, 30, lambda: get(INVENTORIES + "/" + name)["status"])
    size = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    for group in status["groups"]:
        if group.get("resource"):
            size[group["resource"]] = str(int(size.get(group["resource"], 0)) + group["healthy"])
    info = {"bootID": status["bootID"], "architecture": "amd64", "operatingSystem": "linux", "containerRuntimeVersion": "none", "kernelVersion": "none",
            "kubeProxyVersion": "", "kubeletVersion": "simulated", "machineID": name, "osImage": "synthetic", "systemUUID": name}
    api("PATCH", "/api/v1/nodes/%s/status" % name, {"status": {"capacity": size, "allocatable": size, "conditions": [ready()], "nodeInfo": info}}, MERGE)


def renew(name):
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": timestamp()}
    try:
        api("PATCH", "%s/%s" % (LEASES, name), {"spec": spec}, MERGE)
    except NotFound:
        api("POST", LEASES, {"metadata": {"name": name}, "spec": spec})


def play(pod):
    """The part of the kubelet: a pod that is bound runs, one that is deleted goes."""
    meta, path = pod["metadata"], "/api/v1/namespaces/%s/pods/%s" % (pod["metadata"]["namespace"], pod["metadata"]["name"])
    try:
        if meta.get("deletionTimestamp"):
            api("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
        elif pod["status"].get("phase", "Pending") == "Pending":
            true = [{"type": t, "status": "True", "reason": "Simulated", "lastTransitionTime": now()} for t in ("Initialized", "ContainersReady", "Ready")]
            said = [{"name": c["name"], "image": c["image"], "imageID": "", "ready": True, "started": True, "restartCount": 0,
                     "state": {"running": {"startedAt": now()}}} for c in pod["spec"]["containers"]]
            api("PATCH", path + "/status", {"metadata": {"uid": meta["uid"]}, "status": {
                "phase": "Running", "reason": "Simulated", "message": "a synthetic machine runs nothing", "startTime": now(), "containerStatuses": said,
                "conditions": pod["status"].get("conditions", []) + true}}, MERGE)
    except (NotFound, RuntimeError):
        pass  # it changed meanwhile: the next look has it


def keep(names):
    renewed = 0.0
    while True:
        try:
            if time.monotonic() - renewed > RENEW_SECONDS:
                renewed = time.monotonic()
                for name in names:
                    renew(name)
            for pod in get("/api/v1/pods?fieldSelector=spec.nodeName%21%3D,spec.nodeName%21%3Dn1")["items"]:
                if pod["spec"]["nodeName"] in names:
                    play(pod)
        except (OSError, RuntimeError) as e:  # an API server that is restarted
            print("# %s" % e, flush=True)
        time.sleep(0.5)


def main(names):
    print("# installing", flush=True)
    installs()
    for name in names:
        start_agent(name)
        renew(name)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(join, names))
    kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
    with open(os.path.join(KUBE, "kubernetes"), "w") as f:
        f.write("kubernetes=" + os.environ["KUBERNETES"])
    open(os.path.join(KUBE, "ready"), "w").close()
    print("# ready", flush=True)
    keep(set(names))


if __name__ == "__main__":
    main(sys.argv[1:])
