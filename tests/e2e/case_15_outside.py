"""Whoever is outside of the cluster and has a kubeconfig alone: a support bundle and the live figures come through the API server and the kubelet."""
import io
import json
import os
import subprocess
import tarfile
import time

from kube import KUBE, allocatable, cluster, get, scenario, wait

BUILD = os.path.abspath(os.environ.get("B", "build"))
ADMIN = os.path.join(KUBE, "admin.conf")
# A line of each program's metrics that no other program has.
WORDS = {"remuda-agent": b"remuda_device_health", "remuda-scheduler": b"remuda_extender_leader", "remuda-controller": b"remuda_jobs_leading"}


def our_pods():
    pods = get("/api/v1/namespaces/remuda-system/pods")["items"]
    return [p for p in pods if not p["metadata"].get("deletionTimestamp") and p["status"].get("phase") == "Running"]


def bundle():
    done = subprocess.run([os.path.join(BUILD, "bin/remuda"), "support-bundle", "-o", "-", "--store", "kubernetes", "--kubeconfig", ADMIN], capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr
    with tarfile.open(fileobj=io.BytesIO(done.stdout), mode="r:gz") as archive:
        return {m.name.split("/", 1)[1]: archive.extractfile(m).read() for m in archive.getmembers()}


def of_pod(files, pod):
    """What of the pod's own words is there."""
    name, app = pod["metadata"]["name"], pod["metadata"]["labels"]["app.kubernetes.io/name"]
    prefix = "remuda-system.%s." % name
    return {"readyz": files.get("programs/%sreadyz.txt" % prefix, b"") != b"", "metrics": WORDS[app] in files.get("programs/%smetrics.txt" % prefix, b""),
            **{"log of " + c["name"]: files.get("logs/%s%s.txt" % (prefix, c["name"]), b"") != b"" for c in pod["spec"]["containers"]}}


def bundle_from_outside():
    """a support bundle taken outside of the cluster holds readiness, metrics and logs of every pod of agent, extender and controller"""
    pods = our_pods()
    began = time.monotonic()
    files = bundle()
    took = time.monotonic() - began
    had = {p["metadata"]["name"]: of_pod(files, p) for p in pods}
    assert {p["metadata"]["labels"]["app.kubernetes.io/name"] for p in pods} == set(WORDS), pods
    assert all(all(said.values()) for said in had.values()), (had, sorted(files), files["MANIFEST"].decode()[-3000:])
    assert {p["metadata"]["name"] for p in json.loads(files["cluster/pods.json"])["items"]} == set(had), files["cluster/pods.json"]
    assert [n["metadata"]["name"] for n in json.loads(files["cluster/nodeaccelerators.json"])["items"]] == ["n1"]
    return "%d files of %d pods after %.1f s" % (len(files), len(pods), took)


def bundle_without_kubelet():
    """with the kubelet stopped the same bundle says what is missing and why, and has the rest: it was the kubelet that forwarded"""
    pods = our_pods()
    cluster("stop", "kubelet")
    try:
        began = time.monotonic()
        files = bundle()
        took = time.monotonic() - began
    finally:
        cluster("start", "kubelet")
        wait("8 chips allocatable", 90, lambda: allocatable("nvidia.com/gpu") == 8)
    had = {p["metadata"]["name"]: of_pod(files, p) for p in pods}
    assert not any(any(said.values()) for said in had.values()), had
    manifest = files["MANIFEST"].decode()
    assert all("/readyz of remuda-system/%s" % name in manifest for name in had), manifest[-3000:]
    assert json.loads(files["cluster/nodeaccelerators.json"])["items"] and "cluster/doctor.json" in files, sorted(files)
    return "%.1f s" % took


def top_from_outside():
    """remuda top --nodes outside of the cluster has its agent's answer, through the API server"""
    done = subprocess.run([os.path.join(BUILD, "bin/remuda"), "top", "--nodes", "--kubeconfig", ADMIN, "-o", "json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    node, = json.loads(done.stdout)["nodes"]
    assert node["node"] == "n1" and node["chips"] == node["usable"] == 8 and node["reason"] == "", node
    return json.dumps(node)


for case in (bundle_from_outside, top_from_outside, bundle_without_kubelet):
    scenario(case)
