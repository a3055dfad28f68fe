"""The node as the cluster sees it, and pods that get the right chips."""
import os
import re
import subprocess
import time

from kube import (KUBE, allocatable, api, cluster, create, delete_pod, events_of, get, get_pod, kubectl, log, pending_reason, phase, pod,
                  scenario, wait, wait_running)

GPU = "nvidia.com/gpu"


def inventory():
    return get("/apis/remuda.dev/v1alpha1/nodeaccelerators/n1")["status"]


def registers():
    """the node's allocatable has our resources and its NodeAccelerators object is there and true"""
    wait("8 chips allocatable", 30, lambda: allocatable(GPU) == 8)
    wait("CPU groups allocatable", 10, lambda: allocatable("remuda.dev/cpu-group") > 0)
    status = wait("the inventory", 10, inventory)
    group = next(g for g in status["groups"] if g["resource"] == GPU)
    assert (group["total"], group["healthy"], group["vendor"]) == (8, 8, "nvidia"), group
    devices = [d for d in status["devices"] if d["group"] == group["name"]]
    assert len(devices) == 8 and all(d["health"] == "healthy" and d["pci"] for d in devices), devices
    assert not any(n.startswith("remuda") for n in get("/api/v1/nodes/n1")["metadata"].get("annotations", {}))


def runs_pods():
    """a pod asking for 1 and one asking for 2 chips run with the right devices and environment"""
    ids = {d["id"] for d in inventory()["devices"]}
    seen = set()
    for name, count in (("one", 1), ("two", 2)):
        create(pod(name, GPU, count, command=["sh", "-c", "env; ls /dev; trap 'exit 0' TERM; while true; do sleep 1; done"]))
        wait_running(name)
        text = wait("the log of " + name, 10, lambda n=name: log(n))
        given = re.search(r"^REMUDA_DEVICES=(.*)$", text, re.M).group(1).split(",")
        files = re.findall(r"^nvidia\d+$", text, re.M)
        assert len(given) == count and len(set(given)) == count and set(given) <= ids, text
        assert len(files) == count, text
        assert "NVIDIA_VISIBLE_DEVICES=" in text or "CUDA_VISIBLE_DEVICES=" in text, text
        assert not seen & set(given), "a chip was given twice"
        seen |= set(given)


def says_why():
    """a pod that breaks a rule stays pending with our reason in its event"""
    create(pod("wrong-model", GPU, 1, annotations={"remuda.dev/models": "A100"}))
    create(pod("too-many", GPU, 16))
    wait("WrongModel in the event", 20, lambda: "WrongModel" in pending_reason("wrong-model"))
    assert any("WrongModel" in e.get("message", "") for e in events_of("wrong-model"))
    wait("a reason for 16 chips", 20, lambda: re.search(r"TooFewChips|Insufficient", pending_reason("too-many")))
    delete_pod("wrong-model")
    delete_pod("too-many")


def breaks():
    """a device breaks: allocatable falls in seconds, a waiting pod waits with a reason, and runs after the repair"""
    device = next(d for d in inventory()["devices"] if d["pci"] and d["id"] not in held())
    link = os.path.join(KUBE, "machine/sys/bus/pci/devices", device["pci"])
    real, target = os.path.realpath(link), os.readlink(link)
    began = time.monotonic()
    os.rename(real, os.path.join(KUBE, "aside"))
    os.unlink(link)
    wait("the inventory to say so", 10, lambda: next(d for d in inventory()["devices"] if d["id"] == device["id"])["health"] == "unhealthy")
    wait("allocatable to fall", 10, lambda: allocatable(GPU) == 7)
    fell = time.monotonic() - began
    assert fell <= 4.5, "allocatable fell after %.1f s" % fell
    free = 8 - len(held())
    create(pod("waits", GPU, free))
    wait("a reason", 20, lambda: pending_reason("waits"))
    os.rename(os.path.join(KUBE, "aside"), real)
    os.symlink(target, link)
    wait("allocatable to rise", 30, lambda: allocatable(GPU) == 8)
    wait_running("waits", 90)
    delete_pod("waits")
    return "allocatable fell %.1f s after the fault" % fell


def held():
    """Devices in the environment of running pods."""
    result = []
    for p in get("/api/v1/namespaces/default/pods")["items"]:
        if p["status"].get("phase") == "Running":
            found = re.search(r"^REMUDA_DEVICES=(.*)$", log(p["metadata"]["name"]), re.M)
            result += found.group(1).split(",") if found else []
    return result


def system_pod(app):
    pods = get("/api/v1/namespaces/remuda-system/pods?labelSelector=app.kubernetes.io/name%3D" + app)["items"]
    return next(p for p in pods if not p["metadata"].get("deletionTimestamp"))


def kill_program(name):
    """SIGKILL every process of that name in this process namespace."""
    subprocess.run(["sh", "-c", 'for p in /proc/[0-9]*; do [ "$(cat $p/comm 2>/dev/null)" = "%s" ] && kill -9 ${p#/proc/}; done; true' % name[:15]], check=True)


def restarts_of(app, container):
    statuses = system_pod(app)["status"].get("containerStatuses", [])
    return next((s["restartCount"], s.get("ready", False)) for s in statuses if s["name"] == container)


def survives():
    """kubelet restarted, agent, extender and controller killed, API server restarted: pods undisturbed, no chip given twice"""
    before = {p: get_pod(p)["status"]["containerStatuses"][0]["containerID"] for p in ("one", "two")}
    cluster("restart", "kubelet")
    wait("allocatable after the kubelet's restart", 60, lambda: allocatable(GPU) == 8)
    for app, container, program in (("remuda-agent", "agent", "remuda-agent"), ("remuda-scheduler", "extender", "remuda-extender"), ("remuda-controller", "controller", "remuda-controller")):
        count = restarts_of(app, container)[0]
        kill_program(program)
        wait("%s is restarted" % program, 60, lambda: restarts_of(app, container) == (count + 1, True))
    cluster("restart", "apiserver")
    wait("allocatable after all of it", 60, lambda: allocatable(GPU) == 8)
    after = {p: get_pod(p)["status"]["containerStatuses"][0]["containerID"] for p in ("one", "two")}
    assert before == after, "a running pod was disturbed"
    create(pod("later", GPU, 5))
    wait_running("later", 90)
    wait("its log", 10, lambda: "REMUDA_DEVICES" in log("later"))
    given = held()
    assert len(given) == 8 and len(set(given)) == 8, "chips given: %s" % sorted(given)
    for name in ("one", "two", "later"):
        delete_pod(name)


for case in (registers, runs_pods, says_why, breaks, survives):
    scenario(case)
