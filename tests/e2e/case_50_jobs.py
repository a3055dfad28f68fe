"""TrainingJobs carried out by the controller: planned, started as pods, watched, repaired, released."""
import json
import os

from kube import KUBE, NotFound, api, get, get_pod, kubectl, log, scenario, wait
import case_20_training as training

JOBS = "/apis/remuda.dev/v1alpha1/namespaces/default/trainingjobs"
PODS = "/api/v1/namespaces/default/pods"
IMAGE = "localhost/remuda-training:1"
DATA = "/usr/share/datasets/fashion-mnist"
TERMINAL = ("Succeeded", "Failed", "Cancelled")


def program(runtime, *args):
    return {"image": IMAGE, "command": ["/usr/bin/remuda-train-" + runtime, *args]}


def make(name, workers, **spec):
    runtimes = {w["runtime"] for w in workers} | {"cpu"}
    body = {"apiVersion": "remuda.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name, "namespace": "default"},
            "spec": {"workers": workers, "data": {"path": DATA}, "globalBatch": 512,
                     "programs": {r: program(r) for r in runtimes}, **spec}}
    return api("POST", JOBS, body)


def job(name):
    return get(JOBS + "/" + name)


def status(name):
    return job(name).get("status", {})


def pods_of(name):
    return get(PODS + "?labelSelector=remuda.dev/job=" + name)["items"]


def wait_end(name, seconds=90):
    s = wait("the end of job " + name, seconds, lambda: (lambda v: v if v.get("phase") in TERMINAL else None)(status(name)), 0.2)
    return s


def explain(name):
    """What there is to know of a job that did not do as it should."""
    lines = [json.dumps(status(name))]
    for p in pods_of(name):
        n = p["metadata"]["name"]
        lines.append("--- %s %s %s" % (n, p["status"].get("phase"), json.dumps(p["status"].get("containerStatuses"))[:600]))
        lines.append(kubectl("logs", n, "--all-containers", "--tail=15", check=False))
    return "\n".join(lines)


def delete(name):
    try:
        api("DELETE", JOBS + "/" + name)
    except NotFound:
        return
    wait("job %s gone" % name, 60, lambda: gone(name), 0.1)
    wait("the pods of job %s gone" % name, 30, lambda: not pods_of(name), 0.1)


def gone(name):
    try:
        job(name)
        return False
    except NotFound:
        return True


def needs_image():
    if not os.path.exists(os.path.join(KUBE, "training.tar")):
        training.make_image()


def job_of_two_cpus():
    """a job of two CPU workers is planned, started through remuda-launch, trains and succeeds"""
    needs_image()
    make("two", [{"runtime": "cpu", "chips": 2}], epochs=1)
    s = wait_end("two")
    assert s["phase"] == "Succeeded", explain("two")
    kubectl("wait", "--for=condition=Succeeded", "--timeout=5s", "trainingjob/two")
    delete("two")


scenario(job_of_two_cpus)
