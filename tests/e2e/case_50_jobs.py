"""TrainingJobs carried out by the controller: planned, started as pods, watched, repaired, released.

The synthetic node's H100 are stand-ins: a job that asks for them (runtime cuda) is given the CPU build of the trainer."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

from kube import KUBE, NotFound, api, create, delete_pod, events_of, get, get_pod, gone as pod_gone, kubectl, log, pending_reason, phase, pod, scenario, wait
import case_20_training as training
from scenarios import BUILD

JOBS = "/apis/remuda.dev/v1alpha1/namespaces/default/trainingjobs"
PODS = "/api/v1/namespaces/default/pods"
IMAGE = "localhost/remuda-training:1"
DATA = "/usr/share/datasets/fashion-mnist"
TERMINAL = ("Succeeded", "Failed", "Cancelled")
GPU = "nvidia.com/gpu"


def program(runtime, *args):
    return {"image": IMAGE, "command": ["/usr/bin/remuda-train-" + ("sunway" if runtime == "sunway" else "cpu"), *args]}


def make(name, workers, steps=None, **spec):
    runtimes = {w["runtime"] for w in workers} | {"cpu"}
    options = ["--steps", str(steps)] if steps else []
    body = {"apiVersion": "remuda.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name, "namespace": "default"},
            "spec": {"workers": workers, "data": {"path": DATA}, "globalBatch": 512,
                     "programs": {r: program(r, *options) for r in runtimes}, **spec}}
    return api("POST", JOBS, body)


def job(name):
    return get(JOBS + "/" + name)


def status(name):
    return job(name).get("status", {})


def pods_of(name):
    return get(PODS + "?labelSelector=remuda.dev/job=" + name)["items"]


def explain(name):
    """What there is to know of a job that did not do as it should."""
    lines = [json.dumps(status(name))]
    for p in pods_of(name):
        n = p["metadata"]["name"]
        lines.append("--- %s %s %s %s" % (n, p["status"].get("phase"), json.dumps(p["status"].get("containerStatuses"))[:500], pending_reason(n)))
        lines.append(kubectl("logs", n, "--all-containers", "--tail=12", check=False))
    with open(os.path.join(KUBE, "log", "job-" + name), "w") as f:
        f.write("\n".join(lines) + kubectl("logs", "-n", "remuda-system", "-l", "app.kubernetes.io/name=remuda-controller", "--tail=60", check=False))
    return "\n".join(lines)


def wait_for(name, what, seconds, condition):
    try:
        return wait("%s of job %s" % (what, name), seconds, lambda: (lambda s: s if condition(s) else None)(status(name)), 0.1)
    except AssertionError as e:
        raise AssertionError("%s\n%s" % (e, explain(name))) from None


def wait_end(name, seconds=120, want="Succeeded"):
    s = wait_for(name, "the end", seconds, lambda s: s.get("phase") in TERMINAL)
    assert s["phase"] == want, explain(name)
    return s


def delete(*names):
    for name in names:
        try:
            api("DELETE", JOBS + "/" + name)
        except NotFound:
            pass
    for name in names:
        wait("job %s gone" % name, 60, lambda n=name: gone(n), 0.1)
        wait("the pods of job %s gone" % name, 30, lambda n=name: not pods_of(n), 0.1)


def gone(name):
    try:
        job(name)
        return False
    except NotFound:
        return True


def remuda(*args, code=0):
    done = subprocess.run([BUILD + "/bin/remuda", *args], text=True, capture_output=True, timeout=60)
    assert done.returncode == code, (args, done.returncode, done.stdout[-500:], done.stderr[-500:])
    return done.stdout


def jobs(*args, code=0):
    return remuda("jobs", *args, "--store", "kubernetes", code=code)


def looked_at(name, s):
    """What `remuda jobs` shows of a job that has ended is what its status and its pods say."""
    assert re.search(r"^%s +.*Succeeded" % name, jobs(), re.M), jobs()
    view = json.loads(jobs("show", name, "-o", "json"))
    view = view[0] if isinstance(view, list) else view
    assert [(r["rank"], r["samples"], r["exit_code"]) for r in view["ranks"]] == [(r["rank"], r["samples"], 0) for r in s["ranks"]], (view, s["ranks"])
    assert {"Planned", "Running", "Succeeded"} <= {e["reason"] for e in view["events"]}, view["events"]
    lines = jobs("logs", name, "--rank", "0").splitlines()
    assert lines and all(line.startswith("[0] ") for line in lines), lines[:5]
    page = os.path.join(KUBE, name + ".html")
    jobs("report", name, "--file", page)
    text = open(page).read()
    for picture in ("timeline", "loss", "progress"):
        part = text[text.index('id="%s"' % picture):]
        assert "<svg" in part[:part.index("</section>")], "the report of %s has no %s" % (name, picture)
    jobs("show", "nobody", code=3)
    jobs("cancel", name, code=1)


def needs_image():
    if not training.has_image():
        training.make_image()


def processes(name):
    """pid -> words of the training processes of a job."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            environ = open(path, "rb").read().split(b"\0")
            words = open(os.path.dirname(path) + "/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        if ("REMUDA_JOB=" + name).encode() in environ and b"remuda-train" in words[0]:
            found[int(path.split("/")[2])] = dict(e.split(b"=", 1) for e in environ if b"=" in e)
    return found


def jobs_train():
    """two runtimes with weighted shares, parameter server and split train as jobs; a child waits for its parent, a circle is refused"""
    needs_image()
    models = {g["runtime"]: g["model"] for g in get("/apis/remuda.dev/v1alpha1/nodeaccelerators/n1")["status"]["groups"]}
    api("PATCH", "/apis/remuda.dev/v1alpha1/speedtables/speeds?fieldManager=e2e&force=true",
        {"apiVersion": "remuda.dev/v1alpha1", "kind": "SpeedTable", "metadata": {"name": "speeds"},
         "speeds": {"-/mlp/" + models["cuda"]: {"alpha_ms": 0, "beta_ms": 0.01}, "-/mlp/" + models["cpu"]: {"alpha_ms": 0, "beta_ms": 0.03}}},
        content_type="application/apply-patch+yaml")
    time.sleep(1)
    make("two", [{"runtime": "cuda", "chips": 1}, {"runtime": "sunway", "chips": 1}], steps=60)
    make("after", [{"runtime": "cuda", "chips": 1}], steps=5, dependsOn=["two"])
    make("round-a", [{"runtime": "cuda", "chips": 1}], dependsOn=["round-b"])
    make("round-b", [{"runtime": "cuda", "chips": 1}], dependsOn=["round-a"])
    make("served", [{"runtime": "cuda", "chips": 2}], steps=40, strategy="ps-sync", servers={"runtime": "cpu", "chips": 1})
    make("halves", [{"runtime": "cuda", "chips": 2}], steps=40, strategy="split")
    s = wait_for("after", "the wait", 30, lambda s: s.get("reason") == "WaitsForDependency")
    assert "two" in s["message"], s
    for name in ("round-a", "round-b"):
        assert "round-a -> round-b -> round-a" in wait_end(name, 30, "Failed")["message"] or "round-b -> round-a -> round-b" in status(name)["message"], status(name)
    ranks = wait("both ranks of job two", 60, lambda: (lambda found: found if len(found) == 2 else None)(processes("two")), 0.02)
    given = {int(e[b"OMPI_COMM_WORLD_RANK"]): int(e[b"REMUDA_BATCH"]) for e in ranks.values()}
    assert given == {0: 384, 1: 128}, given  # 3 to 1, as the table says
    s = wait_end("two")
    assert [(g["runtime"], g["speedSource"]) for g in s["subtasks"]] == [("cuda", "measured"), ("sunway", "measured")], s["subtasks"]
    assert [(r["rank"], r["exitCode"]) for r in s["ranks"]] == [(0, 0), (1, 0)], s["ranks"]
    assert sum(r["batch"] for r in s["ranks"]) == sum(g["batch"] for g in s["subtasks"]) == 512, s
    # The table's 3 to 1 is not what these two are: a run that lasts long enough learns better, and says so.
    said = [e for e in events_of("two") if e["reason"] == "SharesChanged"]
    assert bool(said) == (s.get("recuts", 0) > 0), (said, s.get("recuts"))
    kubectl("wait", "--for=condition=Succeeded", "--timeout=5s", "trainingjob/two")
    conditions = {c["type"]: c["status"] for c in s["conditions"]}
    assert {t: conditions.get(t) for t in ("Accepted", "Planned", "Running", "Succeeded", "Failed")} == {
        "Accepted": "True", "Planned": "True", "Running": "False", "Succeeded": "True", "Failed": conditions.get("Failed")} and conditions.get("Failed") != "True", s["conditions"]
    object_ = job("two")
    wait("the finalizer of a job that has ended gone", 30, lambda: not job("two")["metadata"].get("finalizers"))
    owners = [[(o["kind"], o["uid"], o["controller"]) for o in p["metadata"]["ownerReferences"]] for p in pods_of("two")]
    assert owners == [[("TrainingJob", object_["metadata"]["uid"], True)]] * 3, owners
    columns, row = (re.split(r"  +", line.strip()) for line in kubectl("get", "trainingjob", "two").strip().splitlines())
    assert columns == ["NAME", "PHASE", "REASON", "WORKERS", "EPOCH", "SAMPLES/S", "RESTARTS", "AGE"] and row[:5] == ["two", "Succeeded", "Completed", "0/2", "1"], (columns, row)
    assert s["samplesDone"] == 60 * 512 and s["samplesPerSecond"] > 0 and s["restarts"] == 0, s
    text = "".join(log(g["pod"]) for g in s["subtasks"])
    assert re.search(r"^\[0\] ", text, re.M), "no line of rank 0 in the logs: " + text[-500:]
    assert s["progress"]["loss"] > 0, s
    assert s["plan"]["samples"] == 60000 and sum(r["samples"] for r in s["ranks"]) == 60 * 512, s
    if not said:
        assert [(r["batch"], r["shard"], r["samples"]) for r in s["ranks"]] == [(384, "0:45000", 60 * 384), (128, "45000:60000", 60 * 128)], s["ranks"]
    looked_at("two", s)
    s = wait_end("served")
    assert [g["role"] for g in s["subtasks"]] == ["server", "worker"], s["subtasks"]
    s = wait_end("halves")
    busy = [m["busy"] for m in s["history"] if any(m["busy"])]
    assert all(any(b[rank] for b in busy) for rank in (0, 1)) or not busy, busy  # the second half counts no samples, and computes
    wait_end("after", 60)
    delete("two", "after", "round-a", "round-b", "served", "halves")
    kubectl("delete", "speedtable", "speeds")


def jobs_of_the_readme():
    """the README's TrainingJob, unchanged, completes on what `make images` and `kubectl apply -k manifests/` gave: no program and no image of its own"""
    needs_image()
    kubectl("apply", "-f", "docs/examples/two-workers.yaml")
    s = wait_end("fashion", 60)
    assert [(g["runtime"], g["role"]) for g in s["subtasks"]] == [("cpu", "worker"), ("sunway", "worker")], s["subtasks"]
    assert s["samplesDone"] == 60000 and s["restarts"] == 0 and [r["exitCode"] for r in s["ranks"]] == [0, 0], s
    wanted = re.search(r"--job-image=([^\"\s]+)", open("manifests/controller/deployment.yaml").read()).group(1)
    digest = open(os.path.join(KUBE, "shipped/digests.txt")).read().split()[0]
    known = subprocess.run(["ctr", "-a", "/run/remuda-containerd.sock", "-n", "k8s.io", "images", "ls", "name==" + wanted], capture_output=True, text=True).stdout
    assert " %s " % digest in known, (digest, known)  # as containerd calls it, and a registry would
    images = {c["image"] for p in pods_of("fashion") for c in p["spec"]["containers"]}
    assert images == {wanted}, images
    delete("fashion")
    return "%s, loss %.2f" % (wanted, s["progress"]["loss"])


UNTIMED = [{"ms": {"sunway": 4}}, {"ms": {"sunway": 4, "cuda": 1}}, {"ms": {"cuda": 1}}]  # of a chip that has others, so: not there


def opened(path):
    try:
        return open(path)
    except FileNotFoundError:
        return None


def losses_said(rank_of):
    """rank -> what its program says of each step, read on while and after it runs: rank_of is that of processes()."""
    found = {}
    for pid, environ in rank_of.items():
        path = "/proc/%d/root%s" % (pid, environ[b"REMUDA_PROGRESS"].decode())
        found[int(environ[b"OMPI_COMM_WORLD_RANK"])] = wait(path, 20, lambda: opened(path), 0.01)  # the program makes it when it has its data
    return found


def jobs_of_a_split():
    """a split over two unlike chips completes in pods: ranks stand in the order of the plan's stages, and its loss is what the last stage says"""
    needs_image()
    make("parted", [{"runtime": "cuda", "chips": 1}, {"runtime": "sunway", "chips": 1}], steps=150, epochs=2, strategy="split",
         profile={"layers": [{"memory_bytes": 4096, "activation_bytes": 1024, **layer} for layer in UNTIMED]})
    ranks = wait("both ranks of job parted", 90, lambda: (lambda found: found if len(found) == 2 else None)(processes("parted")), 0.02)
    given = {int(e[b"OMPI_COMM_WORLD_RANK"]): e[b"REMUDA_LAYERS"].decode() for e in ranks.values()}
    assert given == {0: "0:0", 1: "1:2"}, given
    files = losses_said(ranks)
    s = wait_end("parted")
    plan = [(g["entry"], g["runtime"], g["firstRank"], g["layers"]) for g in s["subtasks"]]
    assert plan == [(1, "sunway", 0, "0:0"), (0, "cuda", 1, "1:2")], plan  # not as spec.workers has them
    said = {rank: [json.loads(line) for line in file.read().splitlines()] for rank, file in files.items()}
    assert all([line["step"] for line in lines] == list(range(150)) for lines in said.values()), {r: lines[-1:] for r, lines in said.items()}
    assert {line["loss"] for line in said[0]} == {None}, said[0][:3]  # it has no loss to say
    first, last = said[1][0]["loss"], said[1][-1]["loss"]
    assert last < 0.8 * first and abs(s["progress"]["loss"] - last) < 1e-6, (first, last, s["progress"])
    assert re.search(r", loss %.4f[,\n]" % last, jobs("show", "parted")), (last, jobs("show", "parted"))
    assert s["samplesDone"] == 60000 + 32 * 512 and s["restarts"] == 0 and [r["exitCode"] for r in s["ranks"]] == [0, 0], s  # of 118 steps is an epoch
    split = [e["message"] for e in events_of("parted") if e["reason"] == "Split"]
    assert len(split) == 1 and "2 stages, by the profile's times" in split[0] and split[0].endswith("stages 0:0,1:2"), split
    delete("parted")
    return "loss %.4f, after %.4f in the first step" % (last, first)


def jobs_of_chosen_chips():
    """two chips of two kinds for a split are those on which its planned step is shortest, and its pods run there; with another placement they are not"""
    needs_image()
    models = {g["runtime"]: g["model"] for g in get("/apis/remuda.dev/v1alpha1/nodeaccelerators/n1")["status"]["groups"]}
    layers = [{"ms": {"cuda": 1, "cpu": 9}}, {"ms": {"cuda": 1, "cpu": 9}}, {"ms": {"cuda": 9, "cpu": 1}}]
    spec = {"workers": [{"model": "%s|%s" % (models["cuda"], models["cpu"]), "chips": 2}], "strategy": "split", "globalBatch": 512, "data": {"path": DATA}, "epochs": 1, "profile": {"layers": layers},
            "programs": {r: program(r, "--steps", "20") for r in ("cuda", "cpu")}}
    said = {}
    for name, more in (("chosen", {}), ("packed", {"placement": "packed"})):
        api("POST", JOBS, {"apiVersion": "remuda.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name, "namespace": "default"}, "spec": {**spec, **more}})
        s = wait_end(name, 90)
        events = {e["reason"]: e["message"] for e in events_of(name)}
        said[name] = sorted(g["runtime"] for g in s["subtasks"] for _ in range(g["ranks"])), float(re.search(r"([\d.]+) ms a microbatch", events["Split"]).group(1)), events.get("ChipsChosen")
        delete(name)
    assert said["chosen"][0] == ["cpu", "cuda"] and said["chosen"][2] and said["packed"][2] is None, said
    assert said["packed"][0] == ["cuda", "cuda"] and said["chosen"][1] < 0.5 * said["packed"][1], said
    return "a microbatch %.4g ms as planned, %.4g on packed chips" % (said["chosen"][1], said["packed"][1])


def jobs_of_any_program():
    """programs that know nothing of us run as jobs: one that meets by RANK, WORLD_SIZE, MASTER_ADDR is repaired, a plain MPI program succeeds, one that fails gives its exit code"""
    needs_image()
    def plain(name, path, *args, **spec):
        workers = [{"runtime": "cuda", "chips": 2}, {"runtime": "sunway", "chips": 1}]
        program = {"image": IMAGE, "command": ["/usr/bin/" + path]}
        api("POST", JOBS, {"apiVersion": "remuda.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name, "namespace": "default"},
                           "spec": {"workers": workers, "programs": {"cuda": program, "sunway": program}, "args": list(args), **spec}})
    plain("sockets", "sum_by_sockets", "once", restart={"max": 1})
    plain("messages", "sum_by_mpi")
    plain("seventh", "sum_by_mpi", "7")
    s = wait_end("messages", 60)
    pods = [g["pod"] for g in s["subtasks"]]
    lines = sorted(line for p in pods for line in log(p).splitlines() if ": sum" in line)
    assert lines == ["[%d] rank %d of 3: sum 3" % (i, i) for i in range(3)], lines
    assert [(r["rank"], r["exitCode"], r["restarts"]) for r in s["ranks"]] == [(i, 0, 0) for i in range(3)] and s["restarts"] == 0, s

    s = wait_end("sockets", 60)
    assert s["restarts"] == 1 and [(r["rank"], r["exitCode"], r["restarts"]) for r in s["ranks"]] == [(i, 0, 1) for i in range(3)], s
    assert [g["pod"] for g in s["subtasks"]] == ["sockets-w0-0", "sockets-w1-1"], s["subtasks"]  # the same pods, another world
    master = get_pod("sockets-w0-0")["status"]["podIP"]
    lines = sorted(jobs("logs", "sockets").splitlines())
    lines = [line for line in lines if ": sum" in line]
    want = ["[%d] rank %d of 3, local rank %d, master %s: sum 3" % (i, i, i % 2, master) for i in range(3)]
    assert set(want) == set(lines), (want, lines)
    reasons = {e["reason"] for e in events_of("sockets")}
    assert {"Planned", "Running", "Restarting", "Completed", "Succeeded"} <= reasons, reasons
    assert "RankKilled" in reasons and "RankFailed" not in reasons, reasons  # rank 0 fails too, as rank 1 is gone

    s = wait_end("seventh", 60, "Failed")
    assert [r.get("exitCode") for r in s["ranks"]][1] == 7 and "exit code 7" in s["message"], s
    assert "seventh" in jobs("show", "seventh") and "exit code 7" in jobs("show", "seventh"), jobs("show", "seventh")
    wait("no process of the jobs", 30, lambda: not [f for f in glob.glob("/proc/[0-9]*/exe") if "sum_by_" in (os.readlink(f) if os.path.lexists(f) else "")])
    delete("sockets", "messages", "seventh")


def jobs_are_deleted():
    """a job that is deleted in the middle leaves no pod, no process and no lease; one that is cancelled keeps its object"""
    needs_image()
    make("long", [{"runtime": "cuda", "chips": 2}], epochs=500)
    make("dropped", [{"runtime": "cuda", "chips": 1}], epochs=500)
    wait("training processes", 60, lambda: len(processes("long")) == 2 and processes("dropped"), 0.1)
    follower = subprocess.Popen([BUILD + "/bin/remuda", "jobs", "logs", "-f", "--rank", "0", "dropped", "--store", "kubernetes"], stdout=subprocess.PIPE, text=True)
    lines = wait("progress", 30, lambda: (lambda t: t if re.search(r"^long +Running +\d+ of 500 +\d+ +\d+(s|m|\.\dh) ", t, re.M) else None)(jobs()), 0.5)
    shown = jobs("show", "long")
    assert re.search(r"^epoch \d+ of 500, step \d+, \d+ samples, \d+ samples/s \(the last half minute\), loss [\d.]+, [\d.]+[smh] left(, between [\d.]+[smh] and [\d.]+[smh])?$", shown, re.M), (lines, shown)
    jobs("cancel", "dropped")
    delete("long")
    wait("no process of job long", 10, lambda: not processes("long"))
    s = wait_end("dropped", 30, "Cancelled")
    assert s["conditions"], s
    wait("no process of job dropped", 40, lambda: not processes("dropped"))
    assert follower.wait(30) == 0, "the log of a job that has ended is followed on"
    delete("dropped")


def jobs_are_refused():
    """a job with a field wrong is refused by kubectl apply, or by the controller, with field and remedy"""
    needs_image()

    def refused(spec, says, metadata="{name: bad}", kubectl=False):
        """By the API server as kubectl asks it (strictly, of fields too), which takes a tenth of kubectl's time."""
        text = "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: %s\nspec: %s\n" % (metadata, spec)
        if kubectl:
            done = subprocess.run(["kubectl", "apply", "-f", "-"], input=text, text=True, capture_output=True)
            assert done.returncode != 0 and says in done.stderr, (spec, done.stdout, done.stderr)
            return
        try:
            api("POST", JOBS + "?fieldValidation=Strict", text.encode(), "application/yaml")
        except RuntimeError as e:
            assert says in str(e), (spec, str(e))
        else:
            raise AssertionError("accepted: " + text)
    least = "workers: [{runtime: cpu, chips: 2}]"
    refused("{}", "spec.workers", kubectl=True)
    refused("{workers: []}", "spec.workers")
    refused("{workers: [{chips: 1}]}", "says nothing of the chips; give vendor, runtime, model or group")
    refused("{workers: [{runtime: cpu, chips: 0}]}", "spec.workers[0].chips")
    refused("{workers: [{runtime: cpu, chips: 1, minChips: 2}]}", "minChips is more than chips")
    refused("{workers: [{runtime: ../cpu, chips: 1}]}", "spec.workers[0].runtime")
    refused("{%s, urgency: urgent}" % least, "spec.urgency")
    refused("{%s, placement: best}" % least, "spec.placement")
    refused("{%s, strategy: gossip}" % least, "spec.strategy")
    refused("{%s, epochs: 0}" % least, "spec.epochs")
    refused("{%s, globalBatch: 1}" % least, "fewer than one sample for each chip; raise it or ask for fewer chips")
    refused("{%s, data: {path: /d}, model: transformer}" % least, "spec.model")
    refused("{%s, learningRate: 0}" % least, "spec.learningRate")
    refused("{%s, neighbourExchange: 1.5}" % least, "spec.neighbourExchange")
    refused("{%s, dependsOn: [bad]}" % least, "a job cannot depend on itself; remove its own name")
    refused("{%s, dependsOn: [../x]}" % least, "spec.dependsOn[0]")
    refused("{%s, data: {path: -rf}}" % least, "spec.data.path")
    refused("{%s, data: {format: csv, path: /d}}" % least, "spec.data.format")
    refused("{%s, checkpoint: {everySteps: 0}}" % least, "spec.checkpoint.everySteps")
    refused("{%s, restart: {max: -1}}" % least, "spec.restart.max")
    refused("{%s, epoch: 3}" % least, "unknown field", kubectl=True)
    refused("{%s}" % least, "metadata.name", "{name: a.b}")
    make("odd", [{"runtime": "cpu", "chips": 1}], segments=[3, 3])  # what a schema cannot say, the controller does
    assert "spec.segments[1]: 3 does not come after 3" in wait_end("odd", 20, "Failed")["message"]
    make("bare", [{"runtime": "cann", "chips": 1}], programs={})
    s = wait_for("bare", "the reason", 20, lambda s: s.get("reason") == "Unschedulable")
    assert "cann" in s["message"], s
    make("empty", [{"runtime": "cuda", "chips": 1}], programs={"cuda": {"image": IMAGE}})  # the installed table has cpu and sunway
    assert "spec.programs.cuda.command: missing, and the program table" in wait_end("empty", 20, "Failed")["message"]
    make("absent", [{"runtime": "cuda", "chips": 1}], programs={"cuda": {"command": ["/x"]}})  # in everybody's image, which has none
    wait_end("absent", 90, "Failed")
    said = log("absent-m0") + log("absent-w0-0")
    assert "/x" in said, said
    assert "FIELDS" in kubectl("explain", "trainingjob.status.subtasks")
    delete("odd", "bare", "empty", "absent")


def keep(name, claim):
    """A volume that outlives pods: a folder of the node and a claim on it."""
    folder = os.path.join(KUBE, "volume-" + claim)
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o777)
    api("POST", "/api/v1/persistentvolumes", {"metadata": {"name": claim}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": folder}, "storageClassName": "",
        "claimRef": {"namespace": "default", "name": claim}}})
    api("POST", "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": claim}, "spec": {
        "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "", "volumeName": claim}})
    return folder


def drop(claim):
    for path in ("/api/v1/namespaces/default/persistentvolumeclaims/", "/api/v1/persistentvolumes/"):
        try:
            api("DELETE", path + claim)
        except NotFound:
            pass


def steps_kept(folder):
    return sorted(int(re.search(r"step-(\d+)", f).group(1)) for f in glob.glob(folder + "/step-*.checkpoint"))


def jobs_are_repaired():
    """a rank that is killed is replaced; a device that breaks under a running job moves that group alone; both from the checkpoint"""
    needs_image()
    folder = keep("mended", "kept")
    make("mended", [{"runtime": "cuda", "chips": 1}, {"runtime": "cuda", "chips": 1, "model": "H100-SXM5-80GB"}], epochs=10000, placement="packed",
         checkpoint={"path": "/ckpt", "claim": "kept", "everySteps": 20}, restart={"max": 5})
    wait_for("mended", "the run", 60, lambda s: s.get("phase") == "Running")
    wait("a checkpoint", 60, lambda: steps_kept(folder), 0.1)
    before = {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods_of("mended")}
    victim = wait("two ranks", 20, lambda: (lambda f: f if len(f) == 2 else None)(processes("mended")))
    os.kill(sorted(victim)[1], signal.SIGKILL)
    wait_for("mended", "the restart", 40, lambda s: s.get("restarts", 0) >= 1)
    again = wait("two new ranks", 60, lambda: (lambda f: f if len(f) == 2 and not set(f) & set(victim) else None)(processes("mended")), 0.1)
    after = {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods_of("mended")}
    assert before == after, "pods changed for a dead rank: %s %s" % (before, after)

    pid, environ = sorted(again.items())[1]
    device_id = environ[b"REMUDA_DEVICES"].decode()
    device = next(d for d in get("/apis/remuda.dev/v1alpha1/nodeaccelerators/n1")["status"]["devices"] if d["id"] == device_id)
    link = os.path.join(KUBE, "machine/sys/bus/pci/devices", device["pci"])
    real, target = os.path.realpath(link), os.readlink(link)
    began = time.monotonic()
    os.rename(real, os.path.join(KUBE, "aside"))
    os.unlink(link)
    try:
        moved = wait("the group's new pod", 60, lambda: [n for n in (p["metadata"]["name"] for p in pods_of("mended")) if n.endswith("-r1")], 0.1)
        took = time.monotonic() - began
        held = [d.get("heldBy") for d in get("/apis/remuda.dev/v1alpha1/nodeaccelerators/n1")["status"]["devices"] if d["id"] == device_id]
        assert held in ([None], [["default/" + moved[0][:-3]]]), held  # without a holder again once the old pod has gone
        wait_for("mended", "the run after the move", 60, lambda s: s.get("phase") == "Running")
        now = wait("the end of the pod that was replaced", 60, lambda: (lambda f: f if moved[0][:-3] not in f else None)(
            {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods_of("mended")}), 0.1)
        same = [n for n in before if now.get(n) == before[n] and not n.endswith("-m0")]
        assert len(same) == 1 and now["mended-m0"] == before["mended-m0"], (before, now)
        other = wait("ranks on other chips", 60, lambda: (lambda f: f if len(f) == 2 else None)(processes("mended")), 0.1)
        assert device_id.encode() not in [e[b"REMUDA_DEVICES"] for e in other.values()], other
        reasons = {e["reason"] for e in events_of("mended")}
        assert {"DeviceUnhealthy", "Migrated"} <= reasons, reasons
        last = max(steps_kept(folder))
        wait("checkpoints of the new world, which went on from the old one's", 60, lambda: max(steps_kept(folder)) > last, 0.1)
        s = wait_for("mended", "the count", 30, lambda s: s.get("restarts", 0) >= 2 and s.get("progress", {}).get("step", 0) > last)
    except AssertionError as e:
        raise AssertionError("%s\n%s" % (e, explain("mended"))) from None
    finally:
        os.rename(os.path.join(KUBE, "aside"), real)
        os.symlink(target, link)
    delete("mended")
    drop("kept")
    return "a new pod %.1f s after the fault" % took


def set_pool(pool):
    """Through the agent's configuration, which it reads again when it changes."""
    path = "/api/v1/namespaces/remuda-system/configmaps/remuda-agent"
    lines = [line for line in get(path)["data"]["agent.yaml"].splitlines() if not line.startswith("pool:")]
    api("PATCH", path, {"data": {"agent.yaml": "\n".join(lines + ["pool: " + pool, ""])}}, content_type="application/merge-patch+json")
    # a pod that changes has its volumes looked at now, not within a minute
    kubectl("annotate", "pods", "-n", "remuda-system", "-l", "app.kubernetes.io/name=remuda-agent", "--overwrite", "e2e/looked=%d" % time.time_ns())
    wait("the pool in the inventory", 100, lambda: get("/apis/remuda.dev/v1alpha1/nodeaccelerators/n1")["status"]["pool"] == pool, 0.1)


def jobs_give_way():
    """a job that borrows the reserve is evicted for an emergency, writes a checkpoint in its grace time, and goes on from it"""
    needs_image()
    folder = keep("lent", "lent")
    set_pool("reserved")
    try:
        make("lent", [{"runtime": "cuda", "chips": 2}], epochs=10000, preemptible=True, checkpoint={"path": "/ckpt", "claim": "lent", "everySteps": 1000000})
        wait_for("lent", "progress", 90, lambda s: s.get("progress", {}).get("step", 0) > 0)
        assert not steps_kept(folder)
        kubectl("create", "namespace", "ops", check=False)
        wait("the service account", 30, lambda: get("/api/v1/namespaces/ops/serviceaccounts/default"))
        fire = pod("fire-8", GPU, 8, labels={"remuda.dev/urgency": "emergency"})
        fire["metadata"]["namespace"] = "ops"
        create(fire, "/api/v1/namespaces/ops/pods")
        kept = wait("a checkpoint of the evicted job", 60, lambda: steps_kept(folder), 0.1)
        s = wait_for("lent", "the wait for chips", 60, lambda s: s.get("phase") == "Pending")
        assert s["restarts"] == 0, s
        wait("the emergency to run", 60, lambda: get_pod("fire-8", "ops")["status"].get("phase") == "Running", 0.1)
        api("DELETE", "/api/v1/namespaces/ops/pods/fire-8", {"gracePeriodSeconds": 0})
        wait_for("lent", "going on", 120, lambda s: s.get("phase") == "Running" and s.get("progress", {}).get("step", 0) > kept[0])
        assert "Evicted" in {e["reason"] for e in events_of("lent")}
    except AssertionError as e:
        raise AssertionError("%s\n%s" % (e, explain("lent"))) from None
    finally:
        set_pool("regular")
    delete("lent")
    drop("lent")
    return "checkpoint after %d steps" % kept[0]


scenario(jobs_train)
scenario(jobs_of_the_readme)
scenario(jobs_of_a_split)
scenario(jobs_of_chosen_chips)
scenario(jobs_of_any_program)
scenario(jobs_are_deleted)
scenario(jobs_are_repaired)
scenario(jobs_give_way)
scenario(jobs_are_refused)
