"""A manager and two groups as three hosts (network and UTS namespaces) for the tests of the rendezvous. Imported by a test,
it starts that test anew inside namespaces of its own."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import hosts_rig
from hosts_rig import enter, hosts, make_host, sh
import tap

B = os.path.abspath(os.environ.get("B", "build"))
LAUNCH = os.path.join(B, "bin/remuda-launch")
DATA = "/usr/share/datasets/fashion-mnist"


def skip_all(why):
    print(f"ok 1 - two levels over gRPC # SKIP {why}")
    print("1..1")
    sys.exit(0)


why_not = enter("mpirun", "orted")
if why_not:
    skip_all(why_not)

room = tempfile.mkdtemp(prefix="remuda-two-")


def path(name):
    return os.path.join(room, name)


def write(name, text):
    with open(path(name), "w") as f:
        f.write(text)
    return path(name)


def on(host, *words):
    return hosts_rig.on(host, *words, env={**os.environ, "PATH": path("bin")})  # no ssh is to be found


def manager(plan, *more):
    return on("mgr", LAUNCH, "--manage", "10.77.0.1:7000", "--plan", plan, "--token-file", path("token"), *more)


def group(host, runtime, chips=2, token="token", name=None, *more):
    return on(host, LAUNCH, "--join", "10.77.0.1:7000", "--group", name or host, "--runtime", runtime, "--chips", str(chips),
              "--programs", path(f"{runtime}.yaml"), "--token-file", path(token), "--work-dir", path(host), *more)


def end(p, seconds=60):
    try:
        out = p.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        p.kill()
        out = p.communicate()[0] + "(did not end)"
    return p.returncode, out


def strays():
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                comm = open(f"/proc/{pid}/comm").read().strip()
                state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z" and (comm in ("orted", "mpirun") or comm.startswith("remuda")):
                found.append((pid, comm))
    return found + glob.glob(path("t/remuda-group-*"))


def gone_within(seconds):
    stop = time.monotonic() + seconds
    while time.monotonic() < stop and strays():
        time.sleep(0.05)
    return not strays()


def plan(args, **more):
    return write("plan.json", json.dumps({"job": "two", "global_batch": 256, "samples": 60000, "args": args,
                                          "groups": [{"name": "g1", "runtime": "cpu", "chips": 2, "speed": 3},
                                                     {"name": "g2", "runtime": "sunway", "chips": 2, "speed": 1}], **more}))


os.environ["TMPDIR"] = path("t")  # private folders and Open MPI's, told apart from those of other tests
os.mkdir(path("t"))
os.mkdir(path("bin"))
for tool in ("mpirun", "orted", "python3", "sleep", "sh"):
    os.symlink(shutil.which(tool), path("bin/" + tool))
sh("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
for host, address in (("mgr", "10.77.0.1"), ("g1", "10.77.0.2"), ("g2", "10.77.0.3")):
    make_host(host, address)
write("token", "0123456789abcdef0123456789abcdef\n")
write("other-token", "fedcba9876543210fedcba9876543210\n")
write("show.py", "import json, os, sys, time\nprint(json.dumps(dict(os.environ)), flush=True)\ntime.sleep(float(sys.argv[1]))\n")
for runtime in ("cpu", "sunway"):
    write(f"{runtime}.yaml", json.dumps({"programs": {runtime: {"path": sys.executable, "args": [path("show.py")]}}}))

def launcher_of(p):
    return int(open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()[0]) if \
        open(f"/proc/{p.pid}/comm").read().strip() == "nsenter" else p.pid


def finish():
    for p in hosts.values():
        p.kill()
    shutil.rmtree(room, ignore_errors=True)
    tap.end()
