"""The device plugin and the kubelet: restarts in every order, wiped sockets, NUMA, devices that die, come and go, upgrades.

E2E_PODS (60) is how many pods come and go in the last scenario; 500 for the long one."""
import glob
import json
import os
import re
import subprocess
import time
import urllib.request

from kube import (KUBE, NotFound, allocatable, api, cluster, create, delete_pod, get, get_pod, kubectl, log, phase, pod, scenario, wait, wait_running)
from case_10_node import GPU, held, inventory, kill_program, system_pod
from crowd import Crowd

PLUGINS = "/var/lib/kubelet/device-plugins"
QUICK = ["sh", "-c", "env | grep REMUDA_DEVICES; sleep 1"]


def metric(name, labels=""):
    """Sum over the samples of the agent's metric whose labels hold the text."""
    with urllib.request.urlopen("http://%s:9510/metrics" % system_pod("remuda-agent")["status"]["podIP"], timeout=5) as page:
        lines = page.read().decode().splitlines()
    return sum(float(l.rsplit(" ", 1)[1]) for l in lines if re.match(re.escape(name) + r"[{ ]", l) and labels in l)


def registrations():
    return metric("remuda_agent_kubelet_registrations_total", 'resource="%s"' % GPU)


def links(pci):
    return os.path.join(KUBE, "machine/sys/bus/pci/devices", pci)


def hide(pci):
    """The PCI function is gone from the tree. Returns what show() needs."""
    link = links(pci)
    real, target = os.path.realpath(link), os.readlink(link)
    os.rename(real, os.path.join(KUBE, "aside-" + pci))
    os.unlink(link)
    return pci, real, target


def show(hidden):
    pci, real, target = hidden
    os.rename(os.path.join(KUBE, "aside-" + pci), real)
    os.symlink(target, links(pci))


def chips(status=None):
    return [d for d in (status or inventory())["devices"] if d["pci"]]


def fresh():
    """Nothing of an earlier scenario is left."""
    for p in get("/api/v1/namespaces/default/pods")["items"]:
        delete_pod(p["metadata"]["name"])
    wait("8 chips", 60, lambda: allocatable(GPU) == 8)
    wait("the kubelet to give all 8 chips", 60, gives_all, 0.5)


def gives_all():
    """Does a pod get all chips? The node's status lags behind a kubelet that was just restarted."""
    create(pod("gives-all", GPU, 8, command=["sh", "-c", "exit 0"]))
    try:
        return wait("gives-all", 30, lambda: phase("gives-all") in ("Succeeded", "Failed")) and phase("gives-all") == "Succeeded"
    finally:
        delete_pod("gives-all")


def kubelet_restarts():
    """the kubelet is restarted 20 times in a row; each time every resource is registered again"""
    wait("8 chips", 60, lambda: allocatable(GPU) == 8)
    worst = 0
    for turn in range(20):
        before = registrations()
        cluster("restart", "kubelet")
        began = time.monotonic()
        wait("registration %d" % (turn + 1), 30, lambda: registrations() > before)
        worst = max(worst, time.monotonic() - began)
    wait("8 chips after all of it", 60, lambda: allocatable(GPU) == 8)
    return "slowest %.1f s after the kubelet's start, its own start included" % worst


def sockets_wiped():
    """the sockets in the kubelet's directory are removed: others take their place, and pods run"""
    before = registrations()
    old = set(glob.glob(PLUGINS + "/remuda-*.sock"))
    assert old, os.listdir(PLUGINS)
    for path in old:
        os.unlink(path)
    wait("new sockets", 10, lambda: len(set(glob.glob(PLUGINS + "/remuda-*.sock")) - old) >= len(old))
    wait("a registration", 10, lambda: registrations() > before)
    create(pod("wiped", GPU, 1))
    wait_running("wiped")
    assert allocatable(GPU) == 8
    delete_pod("wiped")


def several_resources():
    """a pod with two resources gets the devices of both"""
    value = pod("both", command=["sh", "-c", "env; sleep 1000"])
    value["spec"]["containers"][0]["resources"] = {"limits": {GPU: "2", "remuda.dev/cpu-group": "1"}}
    create(value)
    wait_running("both")
    text = wait("its log", 10, lambda: log("both"))
    assert len(re.search(r"^REMUDA_DEVICES_NVIDIA_COM_GPU=(.*)$", text, re.M).group(1).split(",")) == 2, text
    assert re.search(r"^REMUDA_DEVICES_REMUDA_DEV_CPU_GROUP=cpu-numa\d$", text, re.M), text
    delete_pod("both")


def dies_while_allocated():
    """a device dies under a running pod: its status says so, the pod runs on, and the status recovers"""
    create(pod("holder", GPU, 1))
    wait_running("holder")
    device = wait("its device", 10, lambda: re.search(r"^REMUDA_DEVICES=(.*)$", log("holder"), re.M)).group(1)
    before = get_pod("holder")["status"]["containerStatuses"][0]["containerID"]

    def told():
        status = get_pod("holder")["status"]["containerStatuses"][0]
        return {r["resourceID"]: r["health"] for x in status.get("allocatedResourcesStatus", []) for r in x["resources"]}
    hidden = hide(next(d["pci"] for d in chips() if d["id"] == device))
    began = time.monotonic()
    try:
        wait("Unhealthy in allocatedResourcesStatus", 20, lambda: told().get(device) == "Unhealthy")
        took = time.monotonic() - began
        assert get_pod("holder")["status"]["containerStatuses"][0]["containerID"] == before and phase("holder") == "Running"
    finally:
        show(hidden)
    wait("Healthy again", 40, lambda: told().get(device) == "Healthy" and allocatable(GPU) == 8)
    delete_pod("holder")
    return "in the pod's status %.1f s after the fault" % took


def added():
    """a device that the agent has never seen is added: the node has one more"""
    device = chips()[-1]["pci"]
    hidden = hide(device)
    for path in glob.glob("/var/lib/remuda/*"): # what earlier agents remember of it
        os.unlink(path)
    kill_program("remuda-agent")
    try:
        wait("7 chips", 60, lambda: allocatable(GPU) == 7 and get("/api/v1/nodes/n1")["status"]["capacity"][GPU] == "7")
    finally:
        show(hidden)
    wait("8 chips", 30, lambda: allocatable(GPU) == 8)


def numa():
    """topology manager single-numa-node: four chips come from one NUMA node, and what would span two is refused"""
    fresh()
    path = os.path.join(KUBE, "kubelet.yaml")
    original = open(path).read()
    where = {d["id"]: d["numa"] for d in chips()}
    real = len(glob.glob("/sys/devices/system/node/node[0-9]*")) # of the machine below: the kubelet knows no others

    def refused(name, count):
        create(pod(name, GPU, count))
        wait(name + " refused", 30, lambda: get_pod(name)["status"].get("reason") == "TopologyAffinityError")
    try:
        with open(path, "a") as f:
            f.write("\ntopologyManagerPolicy: single-numa-node\n")
        before = registrations()
        cluster("restart", "kubelet")
        wait("registration", 30, lambda: registrations() > before)
        wait("8 chips", 30, lambda: allocatable(GPU) == 8)
        refused("numa-five", 5)
        create(pod("numa-four", GPU, 4))
        wait_running("numa-four")
        given = wait("the log", 10, lambda: re.search(r"^REMUDA_DEVICES=(.*)$", log("numa-four"), re.M)).group(1).split(",")
        assert len(given) == 4 and len({where[g] for g in given}) == 1, given
        if real > 1:
            create(pod("numa-more", GPU, 4))
            wait_running("numa-more")
        else:
            refused("numa-more", 1) # four are free, of a node that this machine does not have
        for name in ("numa-five", "numa-four", "numa-more"):
            delete_pod(name)
    finally:
        with open(path, "w") as f:
            f.write(original)
        before = registrations()
        cluster("restart", "kubelet")
        wait("registration", 30, lambda: registrations() > before)
    wait("8 chips", 30, lambda: allocatable(GPU) == 8)


def reboot():
    """everything on the node stopped and started, the plugin after the pods or before them: all is back by itself"""
    fresh()
    for order in ("plugin", "kubelet"): # which of the two is there first
        before = registrations() if order == "plugin" else 0
        cluster("stop", "kubelet")
        if order == "kubelet":
            kill_program("remuda-agent")
        cluster("stop", "containerd")
        for path in glob.glob(PLUGINS + "/*.sock"): # as a boot leaves it
            os.unlink(path)
        cluster("start", "containerd")
        time.sleep(1)
        cluster("start", "kubelet")
        wait("a registration, the %s first" % order, 90, lambda: registrations() > before)
        wait("8 chips, the %s first" % order, 30, lambda: allocatable(GPU) == 8)
        runs_at_last("rebooted-" + order, 8)
        delete_pod("rebooted-" + order)


def runs_at_last(name, count):
    """A bare pod that comes between the kubelet's start and its first list fails for ever: the next one is what a controller would make."""
    for attempt in range(5):
        create(pod(name, GPU, count))
        try:
            wait("%s decided" % name, 90, lambda: phase(name) in ("Running", "Failed"))
        except AssertionError as e:
            raise AssertionError("%s\n%s" % (e, kubectl("describe", "pod", name)[-1200:])) from None
        if phase(name) == "Running":
            return
        delete_pod(name)
        time.sleep(1)
    raise AssertionError("%s failed %d times" % (name, attempt + 1))


class OfOne(Crowd):
    """Pods with one chip each."""
    def asks(self, name, number):
        return pod(name, GPU, 1, command=["sh", "-c", "exit 0"])


def upgrade():
    """the agent is upgraded with overlap (maxSurge: 1) while pods come and go"""
    path = "/apis/apps/v1/namespaces/remuda-system/daemonsets/remuda-agent"
    strategy = get(path)["spec"]["updateStrategy"]
    fresh()
    create(pod("undisturbed", GPU, 1))
    wait_running("undisturbed")
    before = get_pod("undisturbed")["status"]["containerStatuses"][0]["containerID"]
    crowd = OfOne("upgrade", 500, 4)
    for version in ("2", "3"):
        old = system_pod("remuda-agent")["metadata"]["uid"]
        api("PATCH", path, {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                                     "template": {"metadata": {"annotations": {"test/version": version}}}}},
            "application/strategic-merge-patch+json")
        try:
            wait("the new agent alone", 90, lambda: is_alone(old))
        except AssertionError as e:
            crowd.stop()
            raise AssertionError("%s\n%s" % (e, kubectl("describe", "pods", "-n", "remuda-system", "-l", "app.kubernetes.io/name=remuda-agent")[-1500:]))
    crowd.stop()
    api("PATCH", path, {"spec": {"updateStrategy": strategy}}, "application/merge-patch+json")
    assert 4 <= crowd.ended < 500 and not crowd.failed, (crowd.ended, crowd.failed)
    assert get_pod("undisturbed")["status"]["containerStatuses"][0]["containerID"] == before, "a running pod was disturbed"
    assert len(glob.glob(PLUGINS + "/remuda-gpu-*.sock")) == 1, os.listdir(PLUGINS)
    wait("8 chips", 30, lambda: allocatable(GPU) == 8)
    delete_pod("undisturbed")
    return "%d pods meanwhile" % crowd.ended


def is_alone(old):
    """Is there one agent, another one, and ready?"""
    pods = agents()
    return len(pods) == 1 and pods[0]["metadata"]["uid"] != old and all(c["ready"] for c in pods[0]["status"]["containerStatuses"])


def agents():
    return get("/api/v1/namespaces/remuda-system/pods?labelSelector=app.kubernetes.io/name%3Dremuda-agent")["items"]


POD_RESOURCES = r'''
import json, select, sys
sys.path.insert(0, "tests/integration")
from fake_kubelet import *
channel = grpc.insecure_channel("unix:/var/lib/kubelet/pod-resources/kubelet.sock")
ask = channel.unary_unary("/v1.PodResourcesLister/List", raw, raw)
asked, most, doubles = 0, 0, []
while not select.select([sys.stdin], [], [], 0.15)[0]:
    held = {}
    for p in every(unpack(ask(b"", timeout=10)), 1):
        f = unpack(p)
        for c in every(f, 3):
            for d in every(unpack(c), 2):
                g = unpack(d)
                if text(g, 1) == "nvidia.com/gpu":
                    for i in every(g, 2):
                        held.setdefault(i.decode(), []).append(text(f, 1))
    asked += 1
    most = max(most, len(held))
    doubles += [(i, p) for i, p in held.items() if len(p) > 1]
print(json.dumps({"asked": asked, "most": most, "doubles": doubles}))
'''


def many_pods():
    """pods come and go, six at a time, and no chip is given twice (from pod-resources)"""
    fresh()
    count = int(os.environ.get("E2E_PODS", "60"))
    watcher = subprocess.Popen(["/usr/bin/python3", "-c", POD_RESOURCES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    began = time.monotonic()
    crowd = OfOne("many", count, 6)
    crowd.join()
    took = time.monotonic() - began
    seen = json.loads(watcher.communicate("stop\n", timeout=30)[0])
    assert crowd.ended == count and not crowd.failed, crowd.failed
    assert seen["asked"] > 10 and seen["most"] > 1 and not seen["doubles"], seen
    assert allocatable(GPU) == 8
    return "%d pods in %.0f s, up to %d chips at once, asked %d times" % (count, took, seen["most"], seen["asked"])


for case in (sockets_wiped, several_resources, dies_while_allocated, added, numa, upgrade, reboot, kubelet_restarts, many_pods):
    scenario(case)
