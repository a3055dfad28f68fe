"""The scheduler extender under the real kube-scheduler. Simulated nodes (no kubelet behind them: the test says what they
are) carry what one real node cannot show."""
import json
import os
import signal
import subprocess
import time

from kube import KUBE, api, create, delete_pod, get, get_pod, kubectl, pending_reason, phase, pod, scenario, wait
from sim import (GPU, add_node, finish_deletions, group, node_object, node_of, parallel, pods_of, remove_all, set_inventory,
                 sim_pod, status)

LEASES = "/apis/coordination.k8s.io/v1/namespaces/remuda-system/leases/"
PODS = "/api/v1/namespaces/default/pods"


def pids_of(pod_name, program):
    """Processes of a container of one of our scheduler pods, by the pod's uid in their cgroup."""
    uid = get_pod(pod_name, "remuda-system")["metadata"]["uid"]
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cgroup" % pid) as f:
                if uid not in f.read().replace("_", "-"):
                    continue
            with open("/proc/%s/cmdline" % pid) as f:
                if os.path.basename(f.read().split("\0")[0]) == program:
                    found.append(int(pid))
        except OSError:
            pass
    return found


def leader():
    return get(LEASES + "remuda-extender")["spec"]["holderIdentity"]


def message(name):
    return pending_reason(name)


def bound(name, seconds=20, namespace="default"):
    return wait("pod %s bound" % name, seconds, lambda: node_of(name, namespace))


def reasons():
    """every reason word that a cluster can show is in a pod's event"""
    # who may go where is told by models: by a nodeSelector kube-scheduler would not ask us
    unlike = [group("a", 8, model="A100"), group("b", 4, model="V100")]
    add_node("s-single", group("g", 4), cls="single")
    add_node("s-multi", group("g", 8), cls="multi")
    add_node("s-reserve", group("g", 8, model="H800"), pool="reserved")
    add_node("s-npu", group("n", 8, vendor="huawei", model="910A", runtime="cann", resource="huawei.com/Ascend910"))
    add_node("s-eight", group("g", 8))
    add_node("s-sick", group("g", 8, healthy=1))
    add_node("s-full", group("g", 8))
    add_node("s-held", group("g", 8, model="H20"))
    add_node("s-groups", group("g0", 4), group("g1", 4), group("g2", 4))
    add_node("s-unlike", *unlike)
    add_node("s-lease1", group("g", 8, model="L40"))
    add_node("s-lease2", group("g", 8, model="L40"))
    add_node("s-slow", group("g", 8, model="K80", tflops=0.1))
    add_node("s-stale", group("g", 8))
    api("PATCH", "/api/v1/nodes/s-stale/status", {"status": {"nodeInfo": {"bootID": "the next boot"}}}, "application/merge-patch+json")
    api("POST", "/apis/remuda.dev/v1alpha1/namespaces/default/trainingjobs", {
        "apiVersion": "remuda.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "no-cann"},
        "spec": {"globalBatch": 64, "epochs": 1, "model": "mlp", "workers": [{"runtime": "cpu", "chips": 1}], "dependsOn": ["never"],
                 "programs": {"cpu": {"image": "none", "command": ["/none"]}}, "data": {"path": "/none", "format": "idx"}}})
    for name, chips, at, labels, annotations in (
            ("r-full", 8, "s-full", {}, {}), ("r-held", 5, "s-held", {}, {}), ("r-3a", 3, "s-groups", {}, {}),
            ("r-2", 2, "s-groups", {}, {}), ("r-3b", 3, "s-groups", {}, {}),
            ("r-equal0", 1, "s-eight", {"job": "equal", "equal-nodes": "true"}, {}),
            ("r-share0", 1, "s-eight", {"job": "share"}, {"batch": "64"})):
        create(sim_pod(name, chips, at, labels=labels, annotations=annotations))
        bound(name)
    create(sim_pod("r-older", 8, "s-held", annotations={"models": "H20"}))
    wait("the older pod's reason", 20, lambda: "ChipsBusy" in message("r-older"))
    time.sleep(1.1)  # a younger pod's creation is told in whole seconds
    cases = {
        "SingleChipNode": (2, "s-single", {}, {}, GPU), "MultiChipNode": (1, "s-multi", {}, {}, GPU), "ReservedPool": (1, "s-reserve", {}, {}, GPU),
        "NoSuchResource": (1, "s-npu", {}, {}, "amd.com/gpu"), "WrongModel": (1, "s-eight", {}, {"models": "B200"}, GPU),
        "TooFewChips": (9, "s-eight", {}, {}, GPU), "ChipsUnhealthy": (2, "s-sick", {}, {}, GPU), "ChipsBusy": (1, "s-full", {}, {}, GPU),
        "HeldForOlder": (1, "s-held", {}, {}, GPU), "NoProgram": (1, "s-npu", {"job": "no-cann"}, {}, "huawei.com/Ascend910"),
        "NoSuchGroup": (8, "s-groups", {"same-group": "true"}, {}, GPU), "NoWholeGroup": (4, "s-groups", {"same-group": "true"}, {}, GPU),
        "UnequalNode": (1, "s-unlike", {"job": "equal", "equal-nodes": "true"}, {}, GPU),
        "NetworkTooSlow": (1, "s-eight", {"min-network-mbps": "100000"}, {}, GPU),
        "GangIncomplete": (1, "s-multi", {"job": "lone", "gang-size": "2"}, {}, GPU),
        "GangDoesNotFit": (5, "s-eight", {"job": "big", "gang-size": "2"}, {}, GPU),
        "ShareTooSmall": (1, "s-slow", {"job": "share"}, {"batch": "64"}, GPU),
        "ShareTooLarge": (1, "s-eight", {}, {"batch": "64", "memory-sample-bytes": "10Gi"}, GPU),
        "InventoryStale": (1, "s-stale", {}, {}, GPU),
    }
    # what the Node allows besides its chips, so that NodeResourcesFit is content
    api("PATCH", "/api/v1/nodes/s-npu/status", {"status": {"capacity": {"amd.com/gpu": "8", "huawei.com/Ascend910": "64"},
                                                           "allocatable": {"amd.com/gpu": "8", "huawei.com/Ascend910": "64"}}},
        "application/merge-patch+json")
    for word, (chips, at, labels, annotations, resource) in cases.items():
        create(sim_pod("w-" + word.lower(), chips, at, resource, labels, annotations))
    create(sim_pod("r-big", *cases["GangDoesNotFit"][:2], labels=cases["GangDoesNotFit"][2]))  # a gang begins whole
    second = sim_pod("r-lease1", 8, "s-lease2", labels={"job": "leased", "gang-size": "2"}, annotations={"models": "L40"})
    # what the extender does not judge and nobody makes: it is never bound
    second["spec"]["volumes"] = [{"name": "never", "persistentVolumeClaim": {"claimName": "never"}}]
    create(second)
    create(sim_pod("r-lease0", 8, "s-lease1", labels={"job": "leased", "gang-size": "2"}, annotations={"models": "L40"}))
    bound("r-lease0")
    create(sim_pod("w-chipsleased", 8, "s-lease2"))
    words = set(cases) | {"ChipsLeased"}
    seen = {}

    def missing():
        for e in get("/api/v1/namespaces/default/events?fieldSelector=reason%3DFailedScheduling")["items"]:
            name = e["involvedObject"]["name"]
            for word in words:
                if name == "w-" + word.lower() and " " + word + ": " in e.get("message", e.get("note", "")):
                    seen[word] = True
        return words - set(seen)
    try:
        wait("every word", 40, lambda: not missing(), 0.5)
    except AssertionError:
        raise AssertionError("not seen: %s" % {w: message("w-" + w.lower()) for w in missing()}) from None
    return "%d words; NodeUnknown needs a node that the API server does not have" % len(seen)


def wakes():
    """what waits starts when a device heals, an agent tells of a node's new boot, a lease ends: seconds, not five minutes"""
    began = time.monotonic()
    set_inventory("s-sick", status([group("g", 8)]))
    bound("w-chipsunhealthy")
    healed = time.monotonic() - began
    began = time.monotonic()
    set_inventory("s-stale", dict(status([group("g", 8)]), bootID="the next boot"))
    bound("w-inventorystale")
    heard = time.monotonic() - began
    bound("w-chipsleased", 40)  # --lease-seconds 12 and the scheduler's backoff
    for name in ("w-gangpaused1", "w-gangpaused"):
        create(sim_pod(name, 1, "s-sick", labels={"job": "paused", "gang-size": "2"}))
    wait("the gangs' pause", 10, lambda: "GangPaused: " in message("w-gangpaused"))
    bound("w-gangpaused", 40)  # as long as a lease
    return "healed %.1f s, heard of %.1f s" % (healed, heard)


def remuda(*words, kubeconfig=os.path.join(KUBE, "admin.conf"), text=None):
    done = subprocess.run([os.path.join(os.environ.get("B", "build"), "bin", "remuda"), *words, "--kubeconfig", kubeconfig], capture_output=True,
                          text=True, input=text, timeout=90)
    if done.returncode != 0:
        raise RuntimeError("remuda %s: %d %s %s" % (words, done.returncode, done.stdout, done.stderr))
    return done.stdout


def account(name):
    """A service account, and a kubeconfig of its token."""
    api("POST", "/api/v1/namespaces/default/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    token = api("POST", "/api/v1/namespaces/default/serviceaccounts/%s/token" % name,
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    path = os.path.join(KUBE, name + ".conf")
    with open(os.path.join(KUBE, "admin.conf")) as f, open(path, "w") as out:
        out.write(f.read().replace("admin-token", token))
    return path


def questions():
    """explain and whatif ask the replica that leads, through the API server and the kubelet, by the asker's own rights; else the store, and say why"""
    who = "asked: extender remuda-system/%s, which leads" % leader()
    create(sim_pod("q-waits", 1, None, annotations={"models": "B200"}, labels={"urgency": "emergency"}))
    wait("the pod in the extender", 30, lambda: remuda("explain", "pod/q-waits"))
    began = time.monotonic()
    said = remuda("explain", "pod/q-waits").splitlines()
    took = time.monotonic() - began
    assert said[0] == who and said[1] == "pod default/q-waits asks for 1 chip(s): never", said
    assert remuda("explain", "default/q-waits").splitlines()[:2] == said[:2]
    asked = json.dumps(sim_pod("q-new", 1, None, annotations={"models": "B200"}))
    assert remuda("whatif", "-f", "-", text=asked).startswith(who)
    many = json.dumps({"kind": "List", "items": [sim_pod("q-%d" % i, 1, None, annotations={"models": "B200", "note": "x" * 1000}) for i in range(300)]})
    assert len(remuda("whatif", "-f", "-", text=many).splitlines()) == 302  # more than goes through a socket at once, both ways
    nobody = account("nobody")
    kubectl("create", "clusterrolebinding", "nobody", "--clusterrole=remuda-scheduler", "--serviceaccount=default:nobody")
    said = remuda("explain", "q-waits", kubeconfig=nobody).splitlines()[0]
    assert said.startswith("asked: store kubernetes, and not the extender: 403: ") and "pods/portforward" in said, said
    for line in [l for l in open("docs/how-to/install.md") if " remuda-questions " in l or " remuda-leading " in l]:  # as documented
        kubectl(*line.strip().replace("--group=GROUP", "--serviceaccount=default:nobody").split()[1:])
    wait("the right", 20, lambda: remuda("explain", "q-waits", kubeconfig=nobody).startswith(who))
    delete_pod("q-waits")
    return "%.2f s" % took


def emergency():
    """an emergency takes lent chips back: the smallest set of borrowers is evicted through the Eviction API"""
    api("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}})
    wait("the namespace's account", 20, lambda: get("/api/v1/namespaces/ops/serviceaccounts/default"))
    for name, chips in (("b4", 4), ("b3", 3), ("b1", 1)):
        create(sim_pod(name, chips, "s-reserve", labels={"preemptible": "true"}, annotations={"models": "H800"}))
        bound(name)
    began = time.monotonic()
    create(sim_pod("fire", 3, "s-reserve", labels={"urgency": "emergency"}, annotations={"models": "H800"}, namespace="ops"), "/api/v1/namespaces/ops/pods")

    def leaving():
        return [n for n, p in pods_of().items() if p["metadata"].get("deletionTimestamp")]
    wait("an eviction", 20, leaving)
    told = time.monotonic() - began
    assert leaving() == ["b3"], leaving()
    finish_deletions()
    bound("fire", 20, "ops")
    assert sorted(n for n in pods_of() if n in ("b1", "b3", "b4")) == ["b1", "b4"]
    return "evicted after %.1f s, bound after %.1f s" % (told, time.monotonic() - began)


def gang():
    """a gang of eight chips runs on the real node, all or nothing"""
    members = ["gang-%d" % i for i in range(2)]
    first = pod(members[0], GPU, 4, labels={"remuda.dev/job": "eight", "remuda.dev/gang-size": "2"}, extra={"nodeSelector": {"kubernetes.io/hostname": "n1"}})
    create(first)
    first["metadata"]["name"] = members[1]
    create(first)
    for m in members:
        wait(m + " running", 60, lambda m=m: phase(m) == "Running")
    for m in members:
        delete_pod(m)


def many_nodes():
    """1,000 simulated nodes known by a vendor's plugin alone (no agent): 200 pods by chip counts, SIGKILL of the leader amid them"""
    begun = time.monotonic()
    parallel([("POST", "/api/v1/nodes", node_object("k%04d" % i, 1 + i % 4, "amd.com/gpu", "thousand")) for i in range(1000)])
    names = ["t%03d" % i for i in range(200)]
    made = time.monotonic() - begun
    begun = time.monotonic()
    parallel([("POST", PODS, sim_pod(n, 1 + i % 4, None, "amd.com/gpu", kind="thousand")) for i, n in enumerate(names[:100])])
    victim = leader()
    pids = pids_of(victim, "remuda-extender")
    assert pids, "no extender in " + victim
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    parallel([("POST", PODS, sim_pod(n, 1 + i % 4, None, "amd.com/gpu", kind="thousand")) for i, n in enumerate(names[100:])])

    def placed():
        return {n: p["spec"]["nodeName"] for n, p in pods_of(kind="thousand").items() if p["spec"].get("nodeName")}
    wait("all 200 pods bound", 60, lambda: len(placed()) == 200, 0.5)
    took = time.monotonic() - begun
    held = {}
    for n, at in placed().items():
        held[at] = held.get(at, 0) + 1 + int(n[1:]) % 4
    assert len(pods_of(kind="thousand")) == 200
    over = {n: h for n, h in held.items() if h > 1 + int(n[1:]) % 4}
    assert not over, over
    return "nodes made in %.1f s; %.1f s, none lost, none double" % (made, took)


def replicas():
    """two replicas, the leading pod frozen: the other pair schedules within 20 s, the old leader commits nothing when it wakes"""
    old = leader()
    frozen = pids_of(old, "kube-scheduler") + pids_of(old, "remuda-extender")
    assert len(frozen) >= 2, frozen
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        create(sim_pod("after", 1, "s-unlike"))
        bound("after", 40)
        took = time.monotonic() - began
        assert leader() != old, old
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    create(sim_pod("after2", 1, "s-unlike"))
    bound("after2")
    assert leader() != old
    assert took < 20, took
    return "%.1f s" % took


def labels_follow():
    """node labels follow the inventory, those of groups that are gone go"""
    def labels():
        return {k[11:]: v for k, v in get("/api/v1/nodes/s-unlike")["metadata"]["labels"].items() if k.startswith("remuda.dev/")}
    wanted = {"node-class": "any", "pool": "regular", "nvidia.count": "12", "nvidia.A100.count": "8", "nvidia.V100.count": "4", "group.a": "8", "group.b": "4"}
    wait("labels", 20, lambda: labels() == wanted)
    set_inventory("s-unlike", status([group("a", 8, model="A100")]))
    for gone in ("nvidia.V100.count", "group.b"):
        del wanted[gone]
    wanted["nvidia.count"] = "8"
    wait("labels of what is left", 20, lambda: labels() == wanted)


for case in (questions, reasons, wakes, emergency, labels_follow, replicas):
    scenario(case)
remove_all("sim", ("default", "ops"))
for case in (gang, many_nodes):
    scenario(case)
remove_all("thousand")
