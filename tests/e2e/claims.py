"""What the scenarios of claims share: the driver rolled out, what it offers, who asks for chips, and who is seen to hold them."""
import functools
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid

from kube import KUBE, NotFound, allocatable, api, cluster, create, delete_pod, events_of, get, get_pod, kubectl, log, pod, wait
from case_10_node import GPU, inventory
from crowd import Crowd
from scenarios import MACHINE, OVERLAY

sys.path.insert(0, "tests/integration")
import dra_account

DRA = "/apis/resource.k8s.io/v1"
CLAIMS = DRA + "/namespaces/default/resourceclaims"
TEMPLATES = DRA + "/namespaces/default/resourceclaimtemplates"
PODS = "/api/v1/namespaces/default/pods"
STATE = "/var/lib/kubelet/plugins/remuda.dev"
SAY = ["sh", "-c", "ls /dev; env; trap 'exit 0' TERM; while true; do sleep 1; done"]
TAINTS = tuple(int(n) for n in re.search(r"-v(\d+)\.(\d+)", os.environ["KUBERNETES"]).groups()) >= (1, 36)  # and messages, and resources by claims


def apply(components, edit=lambda text: text):
    """The shipped manifests with these components, rolled out; @edit: what is applied, made another one."""
    overlay = os.path.join(KUBE, "overlay-claims")
    os.makedirs(overlay, exist_ok=True)
    text = OVERLAY % {"manifests": os.path.relpath("manifests", overlay), "machine": MACHINE}
    with open(os.path.join(overlay, "kustomization.yaml"), "w") as f:
        f.write(re.sub(r"(?m)^components: \[(.*)\]$", lambda m: "components: [%s]" % ", ".join([m.group(1)] + components), text))
    kubectl("apply", "-f", "-", text=edit(kubectl("kustomize", overlay)))
    kubectl("rollout", "status", "-n", "remuda-system", "daemonset/remuda-agent", "--timeout=90s")


class Driver:
    """Is it rolled out, and as what?"""
    how = None

    @staticmethod
    def roll_out(how="option"):
        """option: as shipped. file: with an `offer` in the configuration, which may be changed while the agent runs. planned: for claims that the
        controller plans, whose pods the plain kube-scheduler binds."""
        if Driver.how == how:
            return
        manifests = os.path.relpath("manifests", os.path.join(KUBE, "overlay-claims"))
        component = [manifests + "/dra"] + ([manifests + "/dra-extended"] if TAINTS and how != "planned" else [])
        offers = lambda text, word: text.replace("nodeClass: any\n", "nodeClass: any\n    offer: %s\n" % word)
        if how == "planned":
            apply(component + [manifests + "/planned-claims"],
                  lambda text: re.sub(r"(\n *- )--planned-claims=on", r"\1--planned-claims=on\1--scheduler-name=default-scheduler", offers(text, "planned")))
        elif how == "file":
            apply(component, lambda text: offers(text, "both"))
        else:
            apply(component)
        Driver.how = how

    @staticmethod
    def take_away():
        if Driver.how:
            clear()
            for template in get(TEMPLATES)["items"]:
                api("DELETE", TEMPLATES + "/" + template["metadata"]["name"])
            apply([])
            Driver.how = None


def with_driver(how="option", later=""):
    """A scenario for which the driver is there and nothing is held. @later: why it is left out before Kubernetes 1.36."""
    def wrapper(case):
        @functools.wraps(case)
        def run():
            if not os.environ.get("CONTAINERD"):
                return "left out: the packaged containerd drops what a kubelet names by CDI"
            if later and not TAINTS:
                return "left out: Kubernetes before 1.36 " + later
            Driver.roll_out(how)
            clear()
            wait("8 chips in the slices", 60, lambda: len(offered()) == 8 and not any(d.get("taints") for d in offered().values()))
            wait("8 chips of the device plugin", 60, lambda: allocatable(GPU) == 8)
            for name, count in (("one", 1), ("two", 2)):
                make_template(name, count)
            return case()
        return run
    return wrapper


def clear():
    """No pod, no claim."""
    for p in get(PODS)["items"]:
        delete_pod(p["metadata"]["name"])
    for claim in claims():
        try:
            api("DELETE", CLAIMS + "/" + claim["metadata"]["name"])
        except NotFound:
            pass
    nothing_left()


def nothing_left(seconds=60):
    """No claim, in the cluster or on the node, and no spec that names its devices."""
    wait("the claims to be gone with their pods", seconds, lambda: not claims())
    wait("the driver to have given up all", seconds, lambda: not prepared())
    assert not specs(), specs()


def slices():
    return [s["spec"] for s in get(DRA + "/resourceslices")["items"] if s["spec"]["driver"] == "remuda.dev" and s["spec"].get("nodeName") == "n1"]


def offered():
    """name -> the chip, its attributes bare, of the node's slices"""
    return {d["name"]: {**d, "attributes": {k: next(iter(v.values())) for k, v in d["attributes"].items()}}
            for s in slices() for d in s.get("devices", []) if d["attributes"]["vendor"]["string"] == "nvidia" and d["attributes"]["devices"]["int"] == 1}


def whole():
    """name -> the device that is a whole group, as the slices have it"""
    return {d["name"]: d for s in slices() for d in s.get("devices", []) if d["attributes"]["type"]["string"] == "group"}


def make_template(name, count):
    try:
        create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": {"spec": {"devices": {
            "requests": [{"name": "chips", "exactly": {"deviceClassName": "remuda-nvidia", "allocationMode": "ExactCount", "count": count}}],
            "constraints": [{"requests": ["chips"], "matchAttribute": "remuda.dev/group"}]}}}}, TEMPLATES)
    except RuntimeError as e:
        if "AlreadyExists" not in str(e):
            raise


def claiming_pod(name, template="one", command=None):
    return pod(name, command=command or SAY, extra={"resourceClaims": [{"name": "chips", "resourceClaimTemplateName": template}]},
               container={"resources": {"claims": [{"name": "chips"}], "limits": {"remuda.dev/claim": "1"}}})


def own_claim(name, expression="true"):
    """A claim of one chip that outlives its pods."""
    create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": {"devices": {"requests": [
        {"name": "chips", "exactly": {"deviceClassName": "remuda-nvidia", "selectors": [{"cel": {"expression": expression}}]}}]}}}, CLAIMS)


def pod_with(claim, name):
    """A pod whose claim of one chip is this one, and is called so in it, too."""
    value = claiming_pod(name)
    value["spec"]["resourceClaims"] = [{"name": claim, "resourceClaimName": claim}]
    value["spec"]["containers"][0]["resources"]["claims"] = [{"name": claim}]
    return value


def claims():
    return get(CLAIMS)["items"]


def claim_of(name):
    return next(c for c in claims() if name in [c["metadata"].get("ownerReferences", [{}])[0].get("name"), *(r["name"] for r in c.get("status", {}).get("reservedFor", []))])


def allocated_to(name):
    """The devices of the pod's claim, by name."""
    return [r["device"] for r in claim_of(name)["status"]["allocation"]["devices"]["results"]]


def chip_of(name):
    """The inventory's device that the pod's claim of one has."""
    chip = offered_once[allocated_to(name)[0]]
    return next(d for d in inventory()["devices"] if d["pci"] == chip)


class OfferedOnce(dict):
    """name -> PCI address: those of a sick chip are not in the slice any more"""
    def __missing__(self, name):
        self.update({n: d["attributes"]["resource.kubernetes.io/pciBusID"] for n, d in offered().items()})
        return self.get(name)


offered_once = OfferedOnce()


def prepared():
    """uid -> ids of devices, as the driver's files have it"""
    return {c["uid"]: [d["id"] for d in c["devices"]] for c in dra_account.read(STATE)["claims"]}


def specs():
    """uid -> device files of the claims' CDI specs"""
    out = {}
    for path in glob.glob("/var/run/cdi/remuda.dev-claim_*.json"):
        try:
            spec = json.load(open(path))
        except FileNotFoundError:
            continue
        out[re.search(r"claim_(.*)\.json$", path).group(1)] = {n["path"] for d in spec["devices"] for n in d["containerEdits"].get("deviceNodes", [])}
    return out


def has_exactly(name):
    """Its container's device files and variable are those of its claim's devices. Return: their ids."""
    of_pci = {d["pci"]: d for d in inventory()["devices"] if d["pci"]}
    devices = [of_pci[offered_once[d]] for d in allocated_to(name)]
    said = wait("the words of pod " + name, 20, lambda: log(name))
    files = set(re.findall(r"(?m)^(nvidia[0-9]+)$", said))
    ids = set(re.search(r"(?m)^NVIDIA_VISIBLE_DEVICES=(.*)$", said).group(1).split(","))
    assert files == {os.path.basename(n) for d in devices for n in d["nodes"]}, (name, files, devices)
    assert ids == {d["id"] for d in devices}, (name, ids, devices)
    return {d["id"] for d in devices}


def container_of(name):
    return get_pod(name)["status"]["containerStatuses"][0]["containerID"]


HOLDERS = r'''
import glob, json, os, re, select, sys, time
sys.path.insert(0, "tests/integration")
from fake_kubelet import *
chips = json.loads(sys.argv[1])  # id -> device file
channel = grpc.insecure_channel("unix:/var/lib/kubelet/pod-resources/kubelet.sock")
ask = channel.unary_unary("/v1.PodResourcesLister/List", raw, raw)
def listed():
    """[(how, who, chip)] as the kubelet says"""
    out = set()
    for p in map(unpack, every(unpack(ask(b"", timeout=10)), 1)):
        for c in map(unpack, every(p, 3)):
            out |= {("plugin", text(p, 1), i.decode()) for d in map(unpack, every(c, 2)) if text(d, 1) == "nvidia.com/gpu" for i in every(d, 2)}
            out |= {("claim", text(p, 1), i) for d in map(unpack, every(c, 5)) for r in map(unpack, every(d, 4))
                    for i in chips if text(r, 2) == "remuda.dev" and text(r, 4) == i.lower()}
    return out
def by_cdi():
    out = set()
    for path in glob.glob("/var/run/cdi/remuda.dev-claim_*.json"):
        try:
            words = open(path).read()
        except FileNotFoundError:
            continue
        out |= {("spec", os.path.basename(path), i) for i, file in chips.items() if '"%s"' % file in words}
    return out
def doubles(holders):
    """Chips that two have: two pods, two specs, a pod by the plugin and a spec."""
    of = {}
    for how, who, chip in holders:
        of.setdefault(chip, set()).add((how, who))
    return {(chip, tuple(sorted(a))) for chip, who in of.items() for a in
            ({(h, w) for h, w in who if h != "spec"}, {(h, w) for h, w in who if h != "claim"}) if len(a) > 1}
asked, most, last, seen = 0, 0, set(), set()
before = by_cdi()
while not select.select([sys.stdin], [], [], 0.1)[0]:
    try:
        pods = listed()
    except grpc.RpcError:  # the kubelet is being restarted
        continue
    after = by_cdi()
    now = doubles(pods | (before & after))  # a spec that was there all the while
    seen |= now & last  # the kubelet's list is no one moment
    last, before = now, after
    asked += 1
    most = max(most, len({c for _, _, c in pods}))
print(json.dumps({"asked": asked, "most": most, "doubles": sorted(seen)}))
'''


class Witness:
    """Who holds which chip, from pod-resources and the CDI specs: has one ever two holders?"""
    def __enter__(self):
        chips = {d["id"]: next(n for n in d["nodes"] if re.search(r"nvidia\d+$", n)) for d in inventory()["devices"] if d["pci"]}
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", HOLDERS, json.dumps(chips)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *error):
        self.seen = json.loads(self.process.communicate("stop\n", timeout=30)[0])
        if not error[0]:
            assert self.seen["asked"] > 5 and self.seen["most"] >= 1 and not self.seen["doubles"], self.seen


class Rebooted:
    """What a reboot does to the node, but for its control plane: everything ended, /run empty of it, mounts undone, another boot id while this lasts."""
    BOOT = "/proc/sys/kernel/random/boot_id"
    CTR = ["ctr", "-a", "/run/remuda-containerd.sock", "-n", "k8s.io"]

    def __init__(self):
        self.machine = os.path.join(MACHINE, "proc/sys/kernel/random/boot_id")
        self.before, self.file = open(self.BOOT).read(), os.path.join(KUBE, "boot_id")

    def down(self):
        cluster("stop", "kubelet")
        for task in subprocess.run([*self.CTR, "tasks", "ls", "-q"], capture_output=True, text=True).stdout.split():
            subprocess.run([*self.CTR, "tasks", "kill", "-s", "KILL", task], capture_output=True)
        cluster("stop", "containerd")
        for pid in programs("containerd-shim"):
            os.kill(pid, signal.SIGKILL)
        for line in reversed(open("/proc/mounts").read().splitlines()):
            where = line.split()[1]
            if where.startswith(("/run/remuda-containerd", "/run/netns/", "/var/run/netns/", os.path.join(KUBE, "kubelet/pods"))):
                subprocess.run(["umount", "-l", where], capture_output=True)
        for path in ("/run/remuda-containerd", "/run/netns", "/var/run/cdi"):
            shutil.rmtree(path, ignore_errors=True)
        for path in glob.glob("/var/lib/kubelet/plugins_registry/*.sock") + glob.glob("/var/lib/kubelet/plugins/*/*.sock") + glob.glob("/var/lib/kubelet/device-plugins/*.sock"):
            os.unlink(path)  # a file system keeps them; who died without a word leaves them, which other scenarios have

    def __enter__(self):
        self.down()
        with open(self.file, "w") as f:
            f.write(str(uuid.uuid4()) + "\n")
        subprocess.run(["mount", "--bind", self.file, self.BOOT], check=True)
        shutil.copyfile(self.file, self.machine)
        cluster("start", "containerd")
        wait("containerd", 30, lambda: subprocess.run([*self.CTR, "version"], capture_output=True).returncode == 0)
        cluster("start", "kubelet")

    def __exit__(self, *error):
        subprocess.run(["umount", self.BOOT], check=True)
        with open(self.machine, "w") as f:
            f.write(self.before)
        cluster("restart", "kubelet")


class Racers(Crowd):
    """Pods with one chip each, by the device plugin and by a claim in turn."""
    def __init__(self, name, count, width, seconds=0.3):
        self.by, self.lost = [0, 0], [0, 0]  # how many by plugin and by claims; who lost its chip to another: refused, evicted
        self.command = ["sh", "-c", "sleep %g" % seconds]
        super().__init__(name, count, width)

    def asks(self, name, number):
        return claiming_pod(name, command=self.command) if number % 2 else pod(name, GPU, 1, command=self.command)

    def end(self, name, number, status):
        evicted = (status is None or status["phase"] == "Failed") and any(e.get("reason") == "ClaimLost" for e in events_of(name))
        if evicted or (status or {}).get("reason") == "UnexpectedAdmissionError":
            self.lost[number % 2] += 1
            return
        super().end(name, number, status)
        with self.lock:
            self.by[number % 2] += (status or {}).get("phase") == "Succeeded"

    def say(self):
        return "%d pods by the plugin, %d by claims; whose chip was another's: %d refused, %d evicted" % (*self.by, *self.lost)


def agent_is_new(before, seconds=60):
    """The agent's program is another process than @before."""
    return wait("the agent's next process", seconds, lambda: (agent_pids() - before) or None)


def agent_pids():
    return programs("remuda-agent")


def programs(name):
    """Processes whose program's name begins so, in this namespace."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            if open(path).read().startswith(name):
                found.add(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def took(began):
    return time.monotonic() - began
