#!/usr/bin/env python3
"""The scenarios of e2e, run inside the namespaces that tests/e2e/run made. Prints TAP and `N passed, N failed`.

The node shows a synthetic machine: eight H100 of tests/data/machines, with device files that stand in for theirs. What
is real: the API server, scheduler, controller manager, kubelet and containerd, and every program of ours."""
import glob
import importlib
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from kube import CLUSTER, KUBE, api, cluster, finish, get, kubectl, scenario, wait  # noqa: E402

BUILD = os.path.abspath(os.environ.get("B", "build"))
MACHINE = os.path.join(KUBE, "machine")
RECORDING = os.environ.get("E2E_MACHINE", "tests/data/machines/nvidia-h100-x8.machine")

OVERLAY = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%(manifests)s]
components: [%(manifests)s/agent-launch]
patches:
- target: {kind: DaemonSet, name: remuda-agent}
  patch: |
    - {op: replace, path: /spec/template/spec/volumes/0/hostPath/path, value: %(machine)s/sys}
    - {op: replace, path: /spec/template/spec/volumes/1/hostPath/path, value: %(machine)s/proc}
    - {op: replace, path: /spec/template/spec/volumes/2/hostPath/path, value: %(machine)s/dev}
    - {op: replace, path: /spec/template/spec/volumes/5/hostPath/path, value: %(machine)s-state}
    - {op: add, path: /spec/template/spec/nodeSelector, value: {kubernetes.io/hostname: n1}}
- target: {kind: Deployment, name: remuda-scheduler}
  patch: |
    - {op: add, path: /spec/template/spec/nodeSelector, value: {kubernetes.io/hostname: n1}}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --emergency-namespaces=ops}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --lend-reserve}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --lease-seconds=12}
- target: {kind: Deployment, name: remuda-controller}
  patch: |
    - {op: add, path: /spec/template/spec/nodeSelector, value: {kubernetes.io/hostname: n1}}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --emergency-namespaces=ops}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --lend-reserve}
- target: {kind: ConfigMap, name: remuda-agent}
  patch: |
    - op: replace
      path: /data/agent.yaml
      value: |
        nodeClass: any
        health: {recoveryProbes: 3, recoverySeconds: 3, probeSeconds: 1}
    - op: replace
      path: /data/programs.yaml
      value: |
        programs: {cuda: {path: /bin/env, environment: [HOME]}}
"""


def make_machine(recording=RECORDING, machine=MACHINE):
    """A synthetic machine as a directory, its device files in the node's /dev."""
    subprocess.run([os.path.join(BUILD, "bin", "remuda"), "machine", "expand", recording, machine], check=True)
    # it is this boot that its node is in, or nothing that it tells is believed
    shutil.copyfile("/proc/sys/kernel/random/boot_id", os.path.join(machine, "proc/sys/kernel/random/boot_id"))
    for file in glob.glob(os.path.join(machine, "dev", "**"), recursive=True):
        if os.path.isdir(file):
            continue
        node = "/dev/" + os.path.relpath(file, os.path.join(machine, "dev"))
        os.makedirs(os.path.dirname(node), exist_ok=True)
        if not os.path.exists(node):
            os.mknod(node, 0o020666, os.makedev(1, 3))


def build_image(file="remuda.tar", **more):
    """A tar of our image; more: variables of packaging/build-image."""
    image = os.path.join(KUBE, file)
    subprocess.run(["packaging/build-image", image], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **more})
    return image


def make_scheduler_image():
    """kube-scheduler's, which a real cluster pulls."""
    tag = re.search(r"kube-scheduler, newTag: (v[0-9.]+)", open("manifests/scheduler/kustomization.yaml").read()).group(1)
    pinned = subprocess.run(["tests/e2e/kube/build", "-n"], check=True, capture_output=True, text=True).stdout
    assert "-%s-" % tag in pinned, "the manifests' kube-scheduler %s is not the tested one, %s" % (tag, pinned)
    subprocess.run([CLUSTER, "image", "registry.k8s.io/kube-scheduler:" + tag, "/usr/local/bin/kube-scheduler",
                    os.environ["KUBERNETES"] + ":usr/local/bin/kube-scheduler"], check=True)


def import_images():
    cluster("import", build_image())
    make_scheduler_image()


def row_of_na():
    """What `kubectl get na` says of the node, by its headings."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in kubectl("get", "na").splitlines()]
    return next((dict(zip(lines[0], row)) for row in lines[1:] if row[0] == "n1"), {})


def na_is_right(chips=8, free=8, model="H100"):
    row = row_of_na()
    return (row.get("CHIPS"), row.get("HEALTHY"), row.get("FREE")) == (str(chips), str(chips), str(free)) and model in row.get("MODELS", "") and row


def apply_manifests():
    overlay = os.path.join(KUBE, "overlay")
    os.makedirs(overlay)
    with open(os.path.join(overlay, "kustomization.yaml"), "w") as f:
        f.write(OVERLAY % {"manifests": os.path.relpath("manifests", overlay), "machine": MACHINE})
    kubectl("apply", "-k", overlay)
    kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/nodeaccelerators.remuda.dev")
    wait("the default service account", 30, lambda: get("/api/v1/namespaces/default/serviceaccounts/default"))
    line = next(l for l in open("docs/how-to/install.md") if "create rolebinding remuda-controller" in l)  # as documented
    kubectl(*line.strip().replace("NAMESPACE", "default").split()[1:])


SUCCESS_SECONDS = 120  # from the first of three commands on a cluster that is there to a `kubectl get na` that is right


def installs():
    """the image imports, `kubectl apply -k` is accepted, `kubectl get na` is right, the agent, the scheduler and the controller become ready"""
    make_machine()
    image = build_image()
    make_scheduler_image()
    began = time.monotonic()
    cluster("import", image)  # a registry's part
    apply_manifests()
    wait("`kubectl get na` to be right", SUCCESS_SECONDS, na_is_right)
    took = time.monotonic() - began
    assert took <= SUCCESS_SECONDS, took
    kubectl("rollout", "status", "-n", "remuda-system", "daemonset/remuda-agent", "--timeout=90s")
    for name in ("remuda-scheduler", "remuda-controller"):
        kubectl("rollout", "status", "-n", "remuda-system", "deployment/" + name, "--timeout=90s")
    return "image %.1f MiB; three commands (import the image, kubectl apply -k, kubectl get na): right after %.1f s (<= %d)" % (
        os.path.getsize(image) / 1048576, took, SUCCESS_SECONDS)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    if scenario(installs):  # nothing else makes sense without
        for path in sorted(glob.glob(os.path.join(here, "case_*.py"))):
            importlib.import_module(os.path.basename(path)[:-3])
    if os.environ.get("E2E_SHELL"):
        subprocess.run(["bash"])
    status = finish()
    if status:
        pods = kubectl("get", "pods", "-A", "-o", "wide", check=False)
        print(pods, file=sys.stderr)
        for name, container in (("daemonset/remuda-agent", "agent"), ("deployment/remuda-scheduler", "extender"), ("deployment/remuda-controller", "controller")):
            print("--- " + name, kubectl("logs", "-n", "remuda-system", name, "-c", container, "--tail=15", check=False), sep="\n", file=sys.stderr)
    shutil.rmtree(os.path.join(KUBE, "overlay"), ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
