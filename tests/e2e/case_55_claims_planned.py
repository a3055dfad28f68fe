"""Claims that the controller allocates by itself, under the plain kube-scheduler: the node's chips are in no slice, a TrainingJob's pods run with exactly
the devices of its plan. What is real here beside the API server (tests/e2e/test_planned_claims_apiserver): kubelet, containerd, the agent. With E2E_CLAIMS=all, as at night."""
import os
import re

from kube import allocatable, create, delete_pod, events_of, get, get_pod, kubectl, scenario, wait
from case_10_node import GPU, inventory
from case_30_plugin import hide, show
from case_50_jobs import delete, explain, make, needs_image, pods_of, processes, status, wait_for
from claims import Driver, Witness, allocated_to, claims, claiming_pod, clear, make_template, nothing_left, prepared, slices, specs


def planned_on():
    """The node keeps its chips for planned claims, the controller plans them in this namespace, for the scheduler that is there."""
    Driver.roll_out("planned")
    line = re.search(r"(?m)^#   kubectl (create rolebinding .*)$", open("manifests/planned-claims/rbac.yaml").read()).group(1)
    kubectl(*line.replace("NAMESPACE", "default").split())
    kubectl("rollout", "status", "-n", "remuda-system", "deployment/remuda-controller", "--timeout=90s")
    clear()
    wait("the node's word that its chips are planned", 60, lambda: get("/apis/remuda.dev/v1alpha1/nodeaccelerators/n1")["status"].get("planned"))
    wait("no chip in a slice", 60, lambda: not any(s.get("devices") for s in slices()))
    wait("none of the device plugin", 60, lambda: allocatable(GPU) == 0)


def of_job(name, count):
    """rank's process -> its variables, of all that the job is to have."""
    try:
        return wait("%d training processes of job %s" % (count, name), 120, lambda: (lambda p: p if len(p) == count else None)(processes(name)), 0.1)
    except AssertionError as e:
        said = [(x["involvedObject"]["name"], x["reason"], x.get("message", "")[:300]) for p in pods_of(name) for x in events_of(p["metadata"]["name"])]
        raise AssertionError("%s; %s; %s; %s" % (e, said, [c.get("status") for c in claims()], explain(name))) from None


def devices_of(name):
    """pod -> ids of the devices that the job's plan has for it"""
    by_name = {d["id"].lower(): d for d in inventory()["devices"]}
    return {s["pod"]: [by_name[n] for n in s["devices"].split(",")] for s in status(name)["subtasks"]}


def has_what_is_planned(name, count):
    """Each pod's claim, its container's device files and its processes are those of the plan. Return: the ids."""
    ranks = of_job(name, count)
    wait_for(name, "the devices", 30, lambda s: s.get("subtasks") and all(g.get("devices") for g in s["subtasks"]))
    hosts = {p["spec"].get("hostname", p["metadata"]["name"]): p["metadata"]["name"] for p in pods_of(name)}
    seen = set()
    for pod, devices in devices_of(name).items():
        assert sorted(allocated_to(pod)) == sorted(d["id"].lower() for d in devices), (pod, devices)
        files = {os.path.basename(n) for d in devices for n in d["nodes"]}
        inside = [pid for pid in ranks if hosts.get(open("/proc/%d/root/etc/hostname" % pid).read().strip()) == pod]
        assert inside, (pod, hosts, list(ranks))
        for pid in inside:
            assert {f for f in os.listdir("/proc/%d/root/dev" % pid) if re.fullmatch(r"nvidia\d+", f)} == files, (pod, pid, files)
        seen |= {d["id"] for d in devices}
    assert len(seen) == sum(len(d) for d in devices_of(name).values()), "a device has two pods"
    return seen


def jobs_of_planned_claims():
    """a job under the plain kube-scheduler has exactly the devices of its plan, which are in no slice; a tenant's claim gets none; one breaks, another comes; nothing is left"""
    if not os.environ.get("CONTAINERD"):
        return "left out: the packaged containerd drops what a kubelet names by CDI"
    needs_image()
    planned_on()
    make_template("one", 1)
    with Witness():
        make("planned", [{"runtime": "cuda", "chips": 2, "deviceClass": "remuda-cuda"}, {"runtime": "cuda", "chips": 1, "deviceClass": "remuda-cuda"}], epochs=500, restart={"max": 3})
        held = has_what_is_planned("planned", 3)
        assert {p["spec"]["schedulerName"] for p in pods_of("planned")} == {"default-scheduler"}, pods_of("planned")
        assert {i for ids in prepared().values() for i in ids} == held and len(specs()) == 2, (prepared(), held)
        tenant = claiming_pod("tenant")
        tenant["spec"]["schedulerName"] = "default-scheduler"
        create(tenant)
        wait("kube-scheduler to find no chip for a tenant's claim", 30, lambda: any(c.get("reason") == "Unschedulable" for c in get_pod("tenant")["status"].get("conditions", [])))
        delete_pod("tenant")
        broken = next(d for d in inventory()["devices"] if d["id"] in held)
        hidden = hide(broken["pci"])
        try:
            wait_for("planned", "a group on other devices", 120, lambda s: s.get("phase") == "Running" and s.get("subtasks") and all(
                g.get("devices") and broken["id"].lower() not in g["devices"].split(",") for g in s["subtasks"]))
            now = has_what_is_planned("planned", 3)
            assert broken["id"] not in now, (broken["id"], now)
        finally:
            show(hidden)
        restarts = status("planned")["restarts"]
        delete("planned")
        nothing_left()
    wait("eight sound chips again", 90, lambda: sum(d["health"] == "healthy" for d in inventory()["devices"] if d["vendor"] == "nvidia") == 8)
    return "3 chips in 2 pods; restarts %d" % restarts


if os.environ.get("E2E_CLAIMS") == "all":
    scenario(jobs_of_planned_claims)
    Driver.take_away()
