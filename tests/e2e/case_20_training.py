"""The two-worker training of the demo, in a pod."""
import glob
import json
import os
import subprocess

from kube import KUBE, cluster, create, delete_pod, kubectl, log, phase, pod, scenario, wait

BUILD = os.path.abspath(os.environ.get("B", "build"))
JOB = """apiVersion: remuda.dev/v1alpha1
kind: TrainingJob
metadata: {name: fashion}
spec:
  strategy: allreduce
  model: mlp
  globalBatch: 512
  epochs: 1
  shards: weighted
  workers: [{runtime: cpu, chips: 1}, {runtime: sunway, chips: 1}]
  data: {path: /usr/share/datasets/fashion-mnist, format: idx}
"""
PROGRAMS = """programs:
  cpu: {path: /usr/bin/remuda-train-cpu, args: [--evaluate]}
  sunway: {path: /usr/bin/remuda-train-sunway, args: [--evaluate]}
"""


def make_plain_programs():
    """Programs that know nothing of us, as somebody brings them along."""
    folder = os.path.join(KUBE, "programs")
    os.makedirs(folder, exist_ok=True)
    for name, compiler in (("sum_by_sockets", "gcc"), ("sum_by_mpi", "mpicc")):
        subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-o", os.path.join(folder, name), "tests/e2e/programs/%s.c" % name], check=True)
    return glob.glob(folder + "/*")


def make_image():
    """The trainer's image as it is shipped, and again with the programs of these scenarios: everything a training pod needs."""
    for folder, more in (("shipped", {}), ("training", {"IMAGE": "localhost/remuda-training:1", "IMAGE_PROGRAMS": " ".join(["remuda", *make_plain_programs()])})):
        folder = os.path.join(KUBE, folder)
        subprocess.run(["packaging/build-images", folder, "remuda-trainer"], check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, **more))
        for image in glob.glob(folder + "/*.tar"):
            cluster("import", image)
            os.unlink(image)


def has_image():
    return os.path.exists(os.path.join(KUBE, "training"))


def trains():
    """two unlike workers train in a pod through remuda-launch, each with the program of its runtime"""
    make_image()
    kubectl("create", "configmap", "fashion", "--from-literal=job.yaml=" + JOB, "--from-literal=programs.yaml=" + PROGRAMS)
    create(pod("fashion", "remuda.dev/cpu-group", 1, image="localhost/remuda-training:1",
               command=["/usr/bin/remuda", "run", "/job/job.yaml", "--programs", "/job/programs.yaml", "--work-dir", "/tmp/work", "-o", "json"],
               container={"volumeMounts": [{"name": "job", "mountPath": "/job"}], "env": [{"name": "HOME", "value": "/tmp"}]},
               extra={"volumes": [{"name": "job", "configMap": {"name": "fashion"}}]}))
    wait("the training pod's end", 120, lambda: phase("fashion") in ("Succeeded", "Failed"), 0.5)
    text = log("fashion")
    assert phase("fashion") == "Succeeded", text[-1500:]
    summary = json.loads(text.strip().splitlines()[-1])
    assert summary["phase"] == "Succeeded" and summary["samples_used"] == 60000, summary
    assert [r["runtime"] for r in summary["ranks"]] == ["cpu", "sunway"], summary["ranks"]
    assert summary["accuracy"] > 0.7, summary["accuracy"]
    delete_pod("fashion")
    return "accuracy %.3f after one epoch" % summary["accuracy"]


scenario(trains)
