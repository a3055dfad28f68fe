"""The two-worker training of the demo, in a pod."""
import glob
import json
import os
import shutil
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


def libraries_of(file):
    done = subprocess.run(["ldd", file], capture_output=True, text=True)
    return {word for word in done.stdout.split() if word.startswith("/")}


def make_plain_programs():
    """Programs that know nothing of us, as somebody brings them along."""
    folder = os.path.join(KUBE, "programs")
    os.makedirs(folder, exist_ok=True)
    for name, compiler in (("sum_by_sockets", "gcc"), ("sum_by_mpi", "mpicc")):
        subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-o", os.path.join(folder, name), "tests/e2e/programs/%s.c" % name], check=True)
    return glob.glob(folder + "/*")


def make_image():
    """Our programs, the trainer, Open MPI with its plugins, and the data: everything a training pod needs."""
    tree = os.path.join(KUBE, "training")
    wanted = set()
    for pattern in ("/usr/lib/*-linux-gnu/openmpi", "/usr/lib/*-linux-gnu/pmix*", "/usr/share/openmpi", "/usr/share/pmix*", "/etc/openmpi*",
                    "/etc/pmix*", "/usr/share/datasets/fashion-mnist"):
        for path in glob.glob(pattern):
            shutil.copytree(path, tree + path, dirs_exist_ok=True, ignore_dangling_symlinks=True, ignore=shutil.ignore_patterns("*.h", "*.mod", "*.la", "include", "fortran"))
            wanted |= {f for f in glob.glob(path + "/**/*.so*", recursive=True)}
    for program in ("mpirun", "orterun", "orted"):
        real = os.path.realpath("/usr/bin/" + program)
        os.makedirs(tree + "/usr/bin", exist_ok=True)
        shutil.copy2(real, tree + "/usr/bin/" + program)
        wanted.add(real)
    shutil.copy2("/usr/bin/busybox", tree + "/usr/bin/sh")
    for library in set().union(*(libraries_of(f) for f in wanted)):
        if not os.path.exists(tree + library):
            os.makedirs(os.path.dirname(tree + library), exist_ok=True)
            shutil.copy2(os.path.realpath(library), tree + library)
    image = os.path.join(KUBE, "training.tar")
    environment = dict(os.environ, IMAGE="localhost/remuda-training:1", IMAGE_USER="0:0", IMAGE_TREE=tree, IMAGE_PROGRAMS=" ".join(["remuda-train-cpu", "remuda-train-sunway", *make_plain_programs()]))
    subprocess.run(["packaging/build-image", image], check=True, stdout=subprocess.DEVNULL, env=environment)
    cluster("import", image)


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
