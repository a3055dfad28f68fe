"""Claims of what overlaps (Kubernetes 1.36): a whole fabric group as one device, shares of one chip's memory, a MIG instance of a chip that is divided while
the node runs. Each keeps the others out, by kube-scheduler's own account of counters and capacity, and none is given by Prepare beside another."""
import os
import re
import shutil

from kube import allocatable, api, create, delete_pod, events_of, get, get_pod, log, phase, scenario, wait, wait_running
from case_10_node import GPU, system_pod
from claims import TEMPLATES, Driver, allocated_to, claim_of, claiming_pod, claims, nothing_left, offered, prepared, whole, with_driver
from scenarios import MACHINE

CONFIG = "/api/v1/namespaces/remuda-system/configmaps/remuda-agent"
LATER = "keeps no counters and no shares"


def configure(line):
    """The agent's file with that line, or without the last one that came so; the kubelet brings it."""
    lines = [l for l in get(CONFIG)["data"]["agent.yaml"].splitlines() if not l.startswith("resources:")]
    api("PATCH", CONFIG, {"data": {"agent.yaml": "\n".join(lines + ([line] if line else [])) + "\n"}}, "application/merge-patch+json")
    agent = system_pod("remuda-agent")["metadata"]["name"]
    api("PATCH", "/api/v1/namespaces/remuda-system/pods/" + agent, {"metadata": {"annotations": {"test/line": re.sub(r"\W", "-", line) or "none"}}},
        "application/merge-patch+json")


def template(name, exactly):
    create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
            "spec": {"spec": {"devices": {"requests": [{"name": "chips", "exactly": exactly}]}}}}, TEMPLATES)


def by_default_scheduler(name, of):
    """A pod that kube-scheduler alone places."""
    value = claiming_pod(name, of)
    value["spec"]["schedulerName"] = "default-scheduler"
    del value["spec"]["containers"][0]["resources"]["limits"]
    return value


def waits(name, seconds=4):
    """It is not placed."""
    try:
        wait("pod %s to be placed, wrongly" % name, seconds, lambda: get_pod(name)["spec"].get("nodeName") or phase(name) == "Running")
    except AssertionError:
        return True
    return False


def runs(name):
    """It runs, or why not."""
    try:
        wait_running(name, 150)  # a kubelet that hears of a claim before its own rights to it asks again after a minute or more
    except AssertionError as e:
        status = [c["status"].get("allocation") for c in claims() if name in c["metadata"]["name"]]
        raise AssertionError("%s: %s; %s; %s" % (e, get_pod(name)["status"].get("conditions"), status, [x.get("message") for x in events_of(name)])) from None


def numbers(name):
    """The chips' files in the pod's container."""
    said = wait("the words of pod " + name, 20, lambda: log(name))
    return sorted(int(n) for n in re.findall(r"(?m)^nvidia([0-9]+)$", said)), said


@with_driver(later=LATER)
def claims_of_a_whole_group():
    """a claim of a whole fabric group as one device gets all of its chips, a pod with a chip of it waits, and the reverse"""
    wait("the group in the slices", 30, whole)
    template("whole", {"deviceClassName": "group.remuda.dev", "selectors": [{"cel": {"expression": 'device.attributes["remuda.dev"].vendor == "nvidia"'}}]})
    create(by_default_scheduler("all", "whole"))
    runs("all")
    assert allocated_to("all") == list(whole()), claim_of("all")
    assert numbers("all")[0] == list(range(8)), numbers("all")
    assert len(next(iter(prepared().values()))) == 8, prepared()
    wait("none of the device plugin", 30, lambda: allocatable(GPU) == 0)
    create(by_default_scheduler("one-of-it", "one"))
    assert waits("one-of-it"), get_pod("one-of-it")
    delete_pod("all")
    runs("one-of-it")
    create(by_default_scheduler("all-again", "whole"))
    assert waits("all-again"), get_pod("all-again")
    delete_pod("one-of-it")
    runs("all-again")
    delete_pod("all-again")
    nothing_left()
    return "eight chips as one device"


@with_driver("file", later=LATER)
def claims_of_shares():
    """two pods have each a part of one chip's memory and are told how much; a third that does not fit waits until one has gone"""
    configure("resources: {rules: [{group: nvidia-h100-0, replicas: 4}]}")
    try:
        wait("shared chips in the slices", 60, lambda: offered() and all(d.get("allowMultipleAllocations") for d in offered().values()))
        first = sorted(offered())[0]
        chip = offered()[first]["attributes"]["resource.kubernetes.io/pciBusID"]
        this = [{"cel": {"expression": 'device.attributes["resource.kubernetes.io"].pciBusID == "%s"' % chip}}]
        for name, memory in (("most", "48Gi"), ("less", "24Gi")):
            template(name, {"deviceClassName": "remuda-nvidia", "selectors": this, "capacity": {"requests": {"memory": memory}}})
        for name, of in (("share-1", "most"), ("share-2", "less")):
            create(by_default_scheduler(name, of))
            runs(name)
        results = [claim_of(n)["status"]["allocation"]["devices"]["results"][0] for n in ("share-1", "share-2")]
        assert {r["device"] for r in results} == {first} and len({r["shareID"] for r in results}) == 2, results
        for name, gib in (("share-1", 48), ("share-2", 24)):
            assert re.search(r"(?m)^REMUDA_SHARE_MEMORY=\S+=%d$" % (gib << 30), numbers(name)[1]), numbers(name)
        assert numbers("share-1")[0] == numbers("share-2")[0] and len(numbers("share-1")[0]) == 1, numbers("share-1")
        create(by_default_scheduler("share-3", "less"))
        assert waits("share-3"), get_pod("share-3")
        delete_pod("share-2")
        runs("share-3")
        for name in ("share-1", "share-3"):
            delete_pod(name)
        nothing_left()
    finally:
        configure("")
    wait("8 chips of the device plugin", 60, lambda: allocatable(GPU) == 8)
    return "48 and 24 GiB of one chip"


CAPABILITIES = {"gi7/access": 300, "gi7/ci0/access": 301, "gi8/access": 310, "gi8/ci0/access": 311}


def divide(number):
    """Chip @number has two MIG instances from now on."""
    for name, minor in CAPABILITIES.items():
        path = os.path.join(MACHINE, "proc/driver/nvidia/capabilities/gpu%d/mig" % number, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write("DeviceFileMinor: %d\nDeviceFileMode: 292\nDeviceFileModify: 1\n" % minor)
        for folder in (os.path.join(MACHINE, "dev"), "/dev"):
            os.makedirs(folder + "/nvidia-caps", exist_ok=True)
            node = "%s/nvidia-caps/nvidia-cap%d" % (folder, minor)
            if not os.path.exists(node):
                os.mknod(node, 0o020666, os.makedev(1, 3))


def make_whole(number):
    shutil.rmtree(os.path.join(MACHINE, "proc/driver/nvidia/capabilities/gpu%d" % number))
    for minor in CAPABILITIES.values():
        os.unlink("%s/dev/nvidia-caps/nvidia-cap%d" % (MACHINE, minor))


@with_driver(later=LATER)
def claims_of_a_partition():
    """a chip is divided by MIG: a claim of an instance has its files and no other's, two pods have the two, a third waits"""
    divide(7)
    try:
        parts = wait("two instances in the slices", 60, lambda: (p := [d for d in offered().values() if d["attributes"]["type"] == "partition"]) and len(p) == 2 and p)
        assert all(d["consumesCounters"] for d in parts) and len({d["consumesCounters"][0]["counterSet"] for d in parts}) == 1, parts
        template("instance", {"deviceClassName": "remuda-nvidia", "selectors": [{"cel": {"expression": 'device.attributes["remuda.dev"].type == "partition"'}}]})
        for name in ("mig-1", "mig-2"):
            create(by_default_scheduler(name, "instance"))
            runs(name)
            assert numbers(name)[0] == [7] and re.search(r"(?m)^NVIDIA_VISIBLE_DEVICES=MIG-", numbers(name)[1]), numbers(name)
        assert set(allocated_to("mig-1")).isdisjoint(allocated_to("mig-2"))
        create(by_default_scheduler("mig-3", "instance"))
        assert waits("mig-3"), get_pod("mig-3")
        for name in ("mig-1", "mig-2", "mig-3"):
            delete_pod(name)
        nothing_left()
    finally:
        make_whole(7)
    wait("the whole chip again", 90, lambda: len(offered()) == 8 and not any(d["attributes"]["type"] == "partition" for d in offered().values()))
    return "two instances of one chip"


for case in (claims_of_a_whole_group, claims_of_shares, claims_of_a_partition):
    scenario(case)

Driver.take_away()
