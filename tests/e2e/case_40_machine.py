"""A node of two vendors: what is wrong with it is told everywhere, and heals; and who may have what at the launch door."""
import os
import re
import subprocess
import time
import urllib.request

from kube import (CLUSTER, KUBE, allocatable, create, delete_pod, get, kubectl, log, phase, pod, scenario, wait)
from case_10_node import GPU, inventory, system_pod
from scenarios import BUILD, MACHINE, make_machine

MIXED = os.path.join(KUBE, "mixed")
NPU = "huawei.com/Ascend310P"


def show_machine(machine):
    """The DaemonSet's agent looks at another machine from now on."""
    paths = [{"op": "replace", "path": "/spec/template/spec/volumes/%d/hostPath/path" % i, "value": "%s/%s" % (machine, top)}
             for i, top in enumerate(("sys", "proc", "dev"))]
    kubectl("patch", "daemonset", "remuda-agent", "-n", "remuda-system", "--type=json", "-p", str(paths).replace("'", '"'))
    kubectl("rollout", "status", "-n", "remuda-system", "daemonset/remuda-agent", "--timeout=30s")


def health(pci):
    return next((d["health"], d["reason"]) for d in inventory()["devices"] if d["pci"] == pci)


def sample(name, **labels):
    """The agent's metric with these labels, scraped from the pod."""
    with urllib.request.urlopen("http://%s:9510/metrics" % system_pod("remuda-agent")["status"]["podIP"], timeout=5) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(name + "{") and all('%s="%s"' % pair in line for pair in labels.items()):
                return float(line.rsplit(" ", 1)[1])
    return None


def events(device, reason):
    return [e for e in get("/api/v1/namespaces/default/events")["items"]
            if e["reason"] == reason and device in e.get("message", "") and e["involvedObject"]["name"] == "n1"]


def counts():
    return allocatable(GPU), allocatable(NPU)


def mixed_machine():
    """a node of two vendors: a fault of each is a metric, an event and less to allocate, and heals by itself"""
    make_machine("tests/data/machines/nvidia-l40s-x4-huawei-310p-x4.machine", MIXED)
    log_file = os.path.join(MIXED, "dev/kmsg")
    open(log_file, "a").close()
    show_machine(MIXED)
    wait("four chips of either vendor", 30, lambda: counts() == (4, 4))
    groups = {g["resource"]: g for g in inventory()["groups"]}
    assert groups[GPU]["vendor"] == "nvidia" and groups[NPU]["vendor"] == "huawei" and "remuda.dev/cpu-group" in groups, groups
    gpu, npu = (next(d for d in inventory()["devices"] if d["group"] == groups[r]["name"]) for r in (GPU, NPU))

    config = os.path.join(MIXED, "sys/bus/pci/devices", npu["pci"], "config")
    with open(config, "rb") as f:
        good = f.read()
    began = time.monotonic()
    with open(config, "wb") as f:  # it does not answer any more
        f.write(b"\xff" * len(good))
    with open(log_file, "a") as f:
        f.write("3,1,1,-;NVRM: Xid (PCI:%s): 79, pid=1, name=x, GPU has fallen off the bus.\n" % gpu["pci"][:10])
    wait("less to allocate of both", 10, lambda: counts() == (3, 3))
    fell = time.monotonic() - began
    wait("the inventory to say so", 2, lambda: health(npu["pci"])[0] == "unhealthy")  # the kubelet's word and the agent's race
    assert sample("remuda_device_last_error_code", uuid=gpu["id"]) == 79
    assert sample("remuda_device_health", uuid=npu["id"], condition="unhealthy") == 1
    assert sample("remuda_device_health", uuid=gpu["id"], condition="unhealthy") == 1
    for device in (gpu, npu):
        wait("an event about " + device["id"], 10, lambda d=device: events(d["id"], "DeviceUnhealthy"))
    with open(config, "wb") as f:
        f.write(good)
    wait("all to allocate again", 20, lambda: counts() == (4, 4))
    assert all(sample("remuda_device_health", uuid=d["id"], condition="healthy") == 1 for d in inventory()["devices"])
    for device in (gpu, npu):
        wait("an event of recovery about " + device["id"], 10, lambda d=device: events(d["id"], "DeviceHealthy"))
    return "allocatable fell %.1f s after the faults" % fell


def asks(name, before="", **more):
    """The log of a pod that holds a chip and asks the launch door, once it has ended."""
    value = pod(name, GPU, 1, command=["sh", "-c", before + "remuda-launch --runtime cuda --socket /run/remuda/agent.sock; echo exit=$?"],
                image="localhost/trainer:1", extra={"volumes": [{"name": "door", "hostPath": {"path": "/run/remuda", "type": "Directory"}}], **more},
                container={"volumeMounts": [{"name": "door", "mountPath": "/run/remuda", "readOnly": True}]})
    create(value)
    wait(name + " to end", 30, lambda: phase(name) in ("Succeeded", "Failed"))
    text = wait("its log", 10, lambda: log(name))
    delete_pod(name)
    return text


def launch_door():
    """a pod asks the launch door for its program: it gets what belongs to its chips, and is refused another's"""
    subprocess.run([CLUSTER, "image", "localhost/trainer:1", "/bin/sh", "/usr/bin/busybox:bin/busybox",
                    BUILD + "/bin/remuda-launch:bin/remuda-launch"], check=True, stdout=subprocess.DEVNULL)
    text = asks("asks")
    assert "exit=0" in text and "the agent" not in text, text
    given = re.search(r"^REMUDA_DEVICES=(.*)$", text, re.M).group(1)
    assert "\nREMUDA_VENDOR=nvidia\n" in "\n" + text and "REMUDA_RUNTIME=cuda" in text, text
    assert given in {d["id"] for d in inventory()["devices"]}, text
    began = time.monotonic()
    text = asks("steals", "for d in %s; do [ $d = $REMUDA_DEVICES ] || other=$d; done; export REMUDA_DEVICES=$other; " %
                " ".join(d["id"] for d in inventory()["devices"] if d["group"].startswith("nvidia")))
    assert "exit=5" in text and "not held by the caller's pod" in text, text
    assert [sample("remuda_launches_total", runtime="cuda", result=r) for r in ("answered", "refused")] == [1, 1]
    return "refused in a pod of %.1f s" % (time.monotonic() - began)


def back():
    """the node shows its first machine again"""
    show_machine(MACHINE)
    wait("eight chips of one vendor", 30, lambda: allocatable(GPU) == 8)


for case in (mixed_machine, launch_door, back):
    scenario(case)
