"""What the tests of remuda run share: jobs, program tables, runs whose summaries are judged, and what is left of them."""
import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import summary_rules
import tap
from tap import ok
from waiting import wait_for

B = os.path.abspath(os.environ.get("B", "build"))
RUN = os.path.join(B, "bin/remuda")
HERE = socket.gethostname()  # a run takes chips of this machine alone, whatever stands in the store
TWO = [{"runtime": "cpu", "chips": 2}]
room = tempfile.mkdtemp(prefix="remuda-run-")


def path(name):
    return os.path.join(room, name)


def write(name, text, mode=0o644):
    with open(path(name), "w") as f:
        f.write(text)
    os.chmod(path(name), mode)
    return path(name)


def table(**programs):
    return write("programs.yaml", json.dumps({"programs": programs}))


def job(name, workers, **spec):
    value = {"apiVersion": "remuda.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
             "spec": {"workers": workers, **spec}}
    return write(f"{name}.yaml", json.dumps(value))


def command(file, *more):
    return [RUN, "run", file, "--programs", path("programs.yaml"), "--work-dir", path("work"), "-o", "json", *more]


promises, summaries, began = [], 0, {}


def judge(file, code, out, seconds):
    """Every summary that any job here gives keeps what summaries promise."""
    global summaries
    if not out.strip() or "jobs" in json.loads(out):
        return
    summaries += 1
    broken = summary_rules.broken(json.loads(out), code, json.load(open(file))["spec"], seconds)
    if broken:
        promises.append((os.path.basename(file), broken))


def run(file, *more, timeout=120):
    begin = time.monotonic()
    r = subprocess.run(command(file, *more), capture_output=True, text=True, timeout=timeout)
    judge(file, r.returncode, r.stdout, time.monotonic() - begin)
    return r, json.loads(r.stdout) if r.stdout.strip() else None


def start(file, *more):
    p = subprocess.Popen(command(file, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    began[p] = time.monotonic()
    return p


def finish(p):
    try:
        out, errors = p.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        p.kill()
        return "", "did not end"
    judge(p.args[2], p.returncode, out, time.monotonic() - began[p])
    return out, errors


def processes(mark):
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
            with open(f"/proc/{pid}/stat") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if mark.encode() in line and state != "Z":
            found.append((int(pid), line.replace(b"\0", b" ").decode(errors="replace")))
    return found


os.environ["TMPDIR"] = path("t")  # Open MPI's session folders, told apart from those of other jobs on this machine
os.mkdir(path("t"))
made = set()


def worlds():
    """What a world makes: its folders are named in the job's folder while it lives."""
    for file in glob.glob(path("work/*/world")):
        made.update(open(file).read().split())
    return {folder for folder in made if os.path.exists(folder)} | set(glob.glob(path("t/*")))


def clean_within(mark, seconds):
    return wait_for(lambda: not processes(mark) and not worlds(), seconds, 0.05)


def rank_pid(p, rank=1):
    return json.load(open(path(f"work/{p.args[2].split('/')[-1][:-5]}/rank-{rank}.report")))["pid"]


# Any program: it finds its place in the variables, and lives as long as it is told.
write("plain.py", """import os, sys, time, json
names = ("RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT REMUDA_JOB REMUDA_ROLE REMUDA_VENDOR "
         "REMUDA_DEVICES REMUDA_WEIGHT REMUDA_BATCH REMUDA_PLAN REMUDA_PROGRESS REMUDA_SHARD GROUP_RANK GROUP_WORLD_SIZE "
         "TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT RANK_TABLE_FILE RANK_ID RANK_SIZE DEVICE_ID MS_WORKER_NUM MS_ROLE "
         "MS_SCHED_HOST MS_SCHED_PORT MS_NODE_ID PADDLE_TRAINER_ID PADDLE_TRAINERS_NUM PADDLE_TRAINER_ENDPOINTS "
         "PADDLE_CURRENT_ENDPOINT TRAINING_ROLE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_MCA_pml OMPI_MCA_btl UCX_TLS").split()
print(json.dumps({n: os.environ.get(n) for n in names}))
print(json.dumps(sys.argv[1:]), flush=True)
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0
if len(sys.argv) > 2 and os.environ["RANK"] == sys.argv[2]:
    sys.exit(int(sys.argv[3]))
time.sleep(seconds)
""")
python = {"path": sys.executable, "args": [path("plain.py")], "environment": ["HOME"]}


def end(least):
    """All of the test's summaries, so many at least, keep what they promise."""
    ok(summaries >= least and not promises, f"all {summaries} summaries keep what they promise", "\n".join(map(str, promises)))
    shutil.rmtree(room, ignore_errors=True)
    tap.end()
