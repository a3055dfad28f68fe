"""Simulated nodes: Node, NodeAccelerators and Lease objects that the test writes. There is no kubelet behind them, so the
test also plays its part: a pod that is being deleted there is removed by finish_deletions()."""
import http.client
import json
import ssl
import threading
import time

from kube import KUBE, NotFound, api, get, kubectl

GPU = "nvidia.com/gpu"
_context = ssl.create_default_context(cafile=KUBE + "/pki/ca.crt")


def parallel(requests, threads=4):
    """[(method, path, body)] over kept connections; an answer that is no success is an error."""
    queue, errors = list(reversed(requests)), []

    def work():
        connection = http.client.HTTPSConnection("127.0.0.1", 443, context=_context, timeout=30)
        while True:
            try:
                method, path, body = queue.pop()
            except IndexError:
                return
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Authorization": "Bearer admin-token", "Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= 300:
                errors.append("%s %s: %d %s" % (method, path, answer.status, text[:200]))
    workers = [threading.Thread(target=work) for _ in range(threads)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not errors, errors[:3]


def timestamp(seconds_ago=0.0):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - seconds_ago)) + ".000000Z"


def node_object(name, chips=64, resource=GPU, kind="sim"):
    size = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi", resource: str(chips)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"sim": kind, "at": name}},
            "status": {"capacity": size, "allocatable": size,
                       "conditions": [{"type": "Ready", "status": "True", "reason": "Simulated", "message": "no kubelet",
                                       "lastHeartbeatTime": timestamp()[:-8] + "Z", "lastTransitionTime": timestamp()[:-8] + "Z"}]}}


def group(name, total, healthy=None, model="H100", vendor="nvidia", runtime="cuda", resource=GPU, tflops=100):
    return {"name": name, "vendor": vendor, "runtime": runtime, "model": model, "resource": resource, "fabric": "none",
            "total": total, "healthy": total if healthy is None else healthy, "free": 0, "tflopsBf16": tflops, "memoryBytes": 80 << 30}


def status(groups, cls="any", pool="regular"):
    return {"generation": 1, "bootID": "simulated", "nodeClass": cls, "pool": pool, "groups": groups, "devices": []}


INVENTORIES = "/apis/remuda.dev/v1alpha1/nodeaccelerators"


def set_inventory(name, value):
    try:
        get(INVENTORIES + "/" + name)
    except NotFound:
        api("POST", INVENTORIES, {"apiVersion": "remuda.dev/v1alpha1", "kind": "NodeAccelerators", "metadata": {"name": name}})
    api("PATCH", INVENTORIES + "/" + name + "/status", {"status": value}, "application/merge-patch+json")


def add_node(name, *groups, cls="any", pool="regular", chips=64, resource=GPU):
    """More chips are allocatable than the inventory has, so that the reason is the extender's, not NodeResourcesFit's."""
    api("POST", "/api/v1/nodes", node_object(name, chips, resource))
    if groups:
        set_inventory(name, status(list(groups), cls, pool))


def sim_pod(name, chips, at=None, resource=GPU, labels=None, annotations=None, namespace="default", kind="sim"):
    """A pod for simulated nodes; @at: one of them, or None = any of this kind."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": dict({"remuda.dev/" + k: v for k, v in (labels or {}).items()}, sim=kind),
                         "annotations": {"remuda.dev/" + k: v for k, v in (annotations or {}).items()}},
            "spec": {"schedulerName": "remuda", "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1,
                     "automountServiceAccountToken": False, "nodeSelector": {"at": at} if at else {"sim": kind},
                     "containers": [{"name": "c", "image": "none", "resources": {"limits": {resource: str(chips)}}}]}}


def pods_of(namespace="default", kind="sim"):
    return {p["metadata"]["name"]: p for p in get("/api/v1/namespaces/%s/pods?labelSelector=sim%%3D%s" % (namespace, kind))["items"]}


def node_of(name, namespace="default"):
    return get("/api/v1/namespaces/%s/pods/%s" % (namespace, name))["spec"].get("nodeName")


def finish_deletions(namespace="default"):
    for name, p in pods_of(namespace).items():
        if p["metadata"].get("deletionTimestamp"):
            api("DELETE", "/api/v1/namespaces/%s/pods/%s" % (namespace, name), {"gracePeriodSeconds": 0})


def remove_all(kind="sim", namespaces=("default",)):
    known = {n["metadata"]["name"] for n in get("/api/v1/namespaces")["items"]}
    for namespace in known & set(namespaces):
        api("DELETE", "/api/v1/namespaces/%s/pods?labelSelector=sim%%3D%s" % (namespace, kind), {"gracePeriodSeconds": 0})
    names = [n["metadata"]["name"] for n in get("/api/v1/nodes?labelSelector=sim%%3D%s" % kind)["items"]]
    api("DELETE", "/api/v1/nodes?labelSelector=sim%%3D%s" % kind)
    for name in names:
        kubectl("delete", "nodeaccelerators", name, "--ignore-not-found", "--wait=false", check=False) if kind == "sim" else None
