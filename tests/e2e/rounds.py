#!/usr/bin/env python3
"""rounds.py: Remuda is installed, upgraded and taken away again, ROUNDS times, on the cluster of tests/e2e/run, beside a pod that holds a chip and
must not notice. tests/e2e/test_rounds runs it. Prints TAP.

An upgrade is another image of agent, extender and controller, with other arguments, and back again. The other image is of the same tree: its name,
title and digest are others, its programs are not. Meanwhile pods that ask for a chip come, four at a time, and none of them may be refused by the
API server or the kubelet; `kubectl get na` is asked all the time. Nothing of ours may be left after a round: no object of any kind, no label,
annotation or condition of a node, no socket, no process."""
import glob
import json
import os
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from kube import KUBE, cluster, get, kubectl, pod, wait, wait_running  # noqa: E402
import scenarios  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "2"))
RESOURCE, TICK_SECONDS, ASKERS = "nvidia.com/gpu", 0.2, 4
IMAGE, OTHER_TAG = "remuda.dev/remuda", "another-name"
PARTS = ("daemonset/remuda-agent", "deployment/remuda-scheduler", "deployment/remuda-controller")
OTHER_IMAGE = "images: [{name: %s, newTag: %s}]\n" % (IMAGE, OTHER_TAG)
UPGRADED = """
- target: {kind: DaemonSet, name: remuda-agent}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --rescan-ms=%(number)d}
- target: {kind: Deployment, name: remuda-scheduler}
  patch: |
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --audit-seconds=%(number)d}
- target: {kind: Deployment, name: remuda-controller}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --keep-pods=%(number)d}
"""
number = failures = 0


def ok(condition, what, detail=""):
    global number, failures
    number += 1
    failures += not condition
    print("%s %d - %s" % ("ok" if condition else "not ok", number, what), flush=True)
    if not condition:
        print("# " + str(detail)[-3000:].replace("\n", "\n# "), flush=True)


def apply(name, images="", more=""):
    """The manifests with what this machine needs, and what an upgrade changes."""
    overlay = os.path.join(KUBE, name)
    os.makedirs(overlay, exist_ok=True)
    with open(os.path.join(overlay, "kustomization.yaml"), "w") as f:
        head, patches = (scenarios.OVERLAY.rstrip("\n") % {"manifests": os.path.relpath("manifests", overlay), "machine": scenarios.MACHINE}).split("patches:\n")
        f.write(head + images + "patches:\n" + patches + more)
    kubectl("apply", "-k", overlay)


def roll_out():
    for part in PARTS:
        kubectl("rollout", "status", "-n", "remuda-system", part, "--timeout=120s")


def usable(chips=8):
    wait("%d usable chips at the kubelet" % chips, 60, lambda: scenarios.get("/api/v1/nodes/n1")["status"]["allocatable"].get(RESOURCE) == str(chips))


def has_left():
    """What is there of ours: objects of every kind that can be listed, marks of nodes, sockets, processes."""
    kinds = [k for k in kubectl("api-resources", "--verbs=list", "-o", "name").split() if not k.startswith("events")]
    left = [name for name in kubectl("get", ",".join(kinds), "-A", "-o", "name").split() if "remuda" in name]
    for node in get("/api/v1/nodes")["items"]:
        marks = [*node["metadata"].get("labels", {}), *node["metadata"].get("annotations", {})]
        left += ["mark " + m for m in marks if "remuda" in m]
        left += ["condition " + c["type"] for c in node["status"]["conditions"] if c["type"] == "AcceleratorsHealthy"]
    left += glob.glob("/var/lib/kubelet/device-plugins/remuda-*") + glob.glob("/run/remuda/*") + glob.glob("/var/run/cdi/remuda*")
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            program = os.path.basename(open(path, "rb").read().split(b"\0")[0].decode(errors="replace"))
        except OSError:
            continue
        left += ["process " + program] if program in ("remuda-agent", "remuda-extender", "remuda-controller") else []
    return left


class Bystander:
    """A pod that holds a chip and counts: a number a tick, of one process, from its start on."""
    def __init__(self):
        scenarios.kubectl("create", "-f", "-", text=json.dumps(pod("bystander", RESOURCE, 1, ["sh", "-c", "i=0; while true; do i=$((i + 1)); echo $i; sleep %s; done" % TICK_SECONDS])))
        wait_running("bystander")
        self.was, self.began = self.state(), time.monotonic()

    @staticmethod
    def state():
        value = get("/api/v1/namespaces/default/pods/bystander")
        said = value["status"]["containerStatuses"][0]
        return value["metadata"]["uid"], said["containerID"], said["restartCount"], said["state"].get("running", {}).get("startedAt"), said["ready"]

    def counted(self):
        """What it has counted since it began, or None where a number is missing or comes twice."""
        numbers = [int(n) for n in kubectl("logs", "bystander").split()][:-1]  # the last may be half written
        if numbers != list(range(1, len(numbers) + 1)):
            print("# it counted", [n for i, n in enumerate(numbers, 1) if n != i][:20], flush=True)
            return None
        return numbers[-1]


def images_of_ours():
    """By the pods that are there and do not go: the name and the digest of the image of each of our containers."""
    pods = [p for p in get("/api/v1/namespaces/remuda-system/pods")["items"] if not p["metadata"].get("deletionTimestamp")]
    said = [(c["image"], c["imageID"]) for p in pods for c in p["status"].get("containerStatuses", []) if "remuda" in c["image"]]
    return {name for name, _ in said}, {digest for _, digest in said}


class Watch:
    """While something is rolled out: pods that want a chip, ASKERS at a time, and what `kubectl get na` says."""
    def __init__(self):
        self.ends, self.rows, self.refused, self.longest, self.admitted = threading.Event(), [], [], 0.0, 0
        self.threads = [threading.Thread(target=self.ask_for_rows, daemon=True),
                        *(threading.Thread(target=self.ask_for_chips, args=(i,), daemon=True) for i in range(ASKERS))]
        for thread in self.threads:
            thread.start()

    def admit(self, name):
        began = time.monotonic()
        try:
            scenarios.kubectl("create", "-f", "-", text=json.dumps(pod(name, RESOURCE, 1, ["sh", "-c", "exit 0"])))
            said = wait("%s to end" % name, 90, lambda: (lambda s: s if s.get("phase") in ("Succeeded", "Failed") else None)(get("/api/v1/namespaces/default/pods/" + name)["status"]))
        except (AssertionError, RuntimeError) as e:
            self.refused.append(str(e))
            return
        self.longest = max(self.longest, time.monotonic() - began)
        if said["phase"] == "Succeeded":
            self.admitted += 1
        else:
            self.refused.append("%s: %s: %s" % (name, said.get("reason"), said.get("message")))
        kubectl("delete", "pod", name, "--grace-period=0", "--force", check=False)

    def ask_for_chips(self, asker):
        turn = 0
        while not self.ends.is_set():
            self.admit("asks-%d-%d-%d" % (id(self) % 100000, asker, turn))
            turn += 1

    def ask_for_rows(self):
        while not self.ends.wait(0.5):
            try:
                row = scenarios.row_of_na()
            except RuntimeError as e:
                row = {"MODELS": str(e)}
            self.rows.append(tuple(row.get(k) for k in ("CHIPS", "HEALTHY", "FREE", "MODELS")))

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join()

    def wrong_rows(self):
        """The pod beside it holds one chip all the while, and each of those that ask may hold another."""
        may_be_free = [str(7 - held) for held in range(ASKERS + 1)]
        return [r for r in self.rows if r[:2] != ("8", "8") or r[2] not in may_be_free or "H100" not in (r[3] or "")]


def take_away():
    done = subprocess.run([os.path.join(scenarios.BUILD, "bin/remuda"), "uninstall", "--kubeconfig", os.path.join(KUBE, "admin.conf")], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    scenarios.make_machine()
    scenarios.import_images()
    cluster("import", scenarios.build_image("another.tar", IMAGE="%s:%s" % (IMAGE, OTHER_TAG), IMAGE_TITLE="Remuda, the same tree"))
    wait("the default service account", 30, lambda: get("/api/v1/namespaces/default/serviceaccounts/default"))
    before, bystander, took, most, right = has_left(), None, [], 0, []
    ok(before == [], "a cluster that never had it", before)
    for turn in range(ROUNDS):
        begin = time.monotonic()
        apply("installed")
        wait("`kubectl get na` to be right", scenarios.SUCCESS_SECONDS, lambda: scenarios.na_is_right(8, 8 if bystander is None else 7))
        right.append(time.monotonic() - begin)
        roll_out()
        usable()
        installed = time.monotonic()
        if bystander is None:
            bystander, seen = Bystander(), " ".join(has_left())
            ok(all(word in seen for word in ("daemonset", "customresourcedefinition", "lease", "mark remuda.dev/", "device-plugins/remuda-", "process remuda-agent",
                                             "condition AcceleratorsHealthy")), "while it is there, objects, marks, sockets and processes of it are seen", seen)
        ours, before_digests = images_of_ours()
        for what, name, images, more in (("upgraded to another image", "upgraded", OTHER_IMAGE, UPGRADED % {"number": 700 + turn}), ("rolled back", "installed", "", "")):
            watch = Watch()
            apply(name, images, more)
            roll_out()
            usable()
            watch.end()
            tags, digests = images_of_ours()
            ok(tags == ({"%s:%s" % (IMAGE, OTHER_TAG)} if images else ours) and len(digests) == 1 and (digests == before_digests) == (not images),
               "round %d: %s: agent, extender and controller are of that image alone" % (turn + 1, what), (tags, digests, before_digests))
            ok(not watch.refused and watch.admitted > 0, "... meanwhile %d pods asked for a chip, each was admitted, the slowest after %.1f s" % (watch.admitted, watch.longest), watch.refused)
            ok(watch.rows and not watch.wrong_rows(), "... `kubectl get na`, asked %d times, was right each time" % len(watch.rows), watch.wrong_rows())
            wait("FREE to be what it was", 30, lambda: scenarios.na_is_right(8, 7))
            ok(bystander.state() == bystander.was, "... and the pod beside it was not touched", (bystander.was, bystander.state()))
        upgraded = time.monotonic()
        kubectl("annotate", "node", "n1", "remuda.dev/changed=1", "--overwrite")  # as the extender does where a pod waits: it may be there or not
        code, said = take_away()
        # sockets and processes go with their pods, whose grace time the API server does not wait for
        deadline, left = time.monotonic() + 60, has_left()
        while left and time.monotonic() < deadline:
            time.sleep(0.5)
            left = has_left()
        gone = time.monotonic()
        took.append((installed - begin, upgraded - installed, gone - upgraded))
        most = max(most, len(left))
        ok(code == 0 and left == [], "round %d of %d: in, upgraded and rolled back, and out in %.0f + %.0f + %.0f s, nothing is left" % (turn + 1, ROUNDS, *took[-1]), "%s\n%s" % (left, said))
        ok(bystander.state() == bystander.was, "... and the pod beside it was not touched", (bystander.was, bystander.state()))
    counted, seconds = bystander.counted(), time.monotonic() - bystander.began
    ok(counted is not None and counted > seconds / TICK_SECONDS / 4, "the pod's one process has counted on all the while", (counted, seconds))
    print("# median of %d rounds: `kubectl get na` right after %.1f s, installed in %.1f s, upgraded and rolled back in %.1f s, gone in %.1f s; %.1f s a round; left over: %d; the pod counted to %s in %.0f s" % (
        ROUNDS, statistics.median(right), *(statistics.median(part) for part in zip(*took)), statistics.median(sum(t) for t in took), most, counted, seconds))
    print("1..%d" % number)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
