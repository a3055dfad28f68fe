"""A world of the reference trainer on two hosts with a link between them, under a manager on a third: what the link carries in a step,
and how long the step's exchange takes. Imported by a program, it starts that anew inside namespaces of its own (hosts_rig)."""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import hosts_rig

B = os.path.abspath(os.environ.get("B", "build"))
LAUNCH = os.path.join(B, "bin/remuda-launch")
TRAINER = os.path.join(B, "bin/remuda-train-cpu")
EDGE, IMAGES = 56, 256
GRADIENTS = 4 * (EDGE * EDGE * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10)  # bytes of mlp
# The algorithm of a sum in one level: the trainer's own choice, or a ring in the order of the ranks, blocking or not.
OWN, RING = {}, {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_allreduce_algorithm": "4", "OMPI_MCA_coll_libnbc_iallreduce_algorithm": "1"}
room = None
port = 7000


def enter(mbit):
    """Why it cannot be done, or None inside the namespaces, where the hosts are."""
    global room
    why_not = hosts_rig.enter("tc", "mpirun", "orted")
    if why_not is None and not os.access(TRAINER, os.X_OK):
        why_not = "the trainer is not built"
    if why_not:
        return why_not
    room = tempfile.mkdtemp(prefix="remuda-levels-")
    os.environ["TMPDIR"] = room
    hosts_rig.sh("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
    hosts_rig.make_host("m", "10.77.0.1")
    hosts_rig.make_host("a", "10.77.0.2", mbit)
    hosts_rig.make_host("b", "10.77.0.3", mbit)
    write_images(os.path.join(room, "data"))
    with open(os.path.join(room, "token"), "w") as f:
        f.write("0123456789abcdef0123456789abcdef\n")
    with open(os.path.join(room, "programs.yaml"), "w") as f:
        json.dump({"programs": {"cpu": {"path": TRAINER}}}, f)
    return None


def write_images(folder):
    """Noise with labels: what is in them is of no interest here."""
    os.mkdir(folder)
    for part in ("train", "t10k"):
        with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "wb") as f:
            f.write(struct.pack(">IIII", 2051, IMAGES, EDGE, EDGE) + random.Random(part).randbytes(IMAGES * EDGE * EDGE))
        with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "wb") as f:
            f.write(struct.pack(">II", 2049, IMAGES) + bytes(i % 10 for i in range(IMAGES)))


def leave():
    for p in hosts_rig.hosts.values():
        p.kill()
    shutil.rmtree(room, ignore_errors=True)


def train(steps, members, arguments, site, more=None):
    """One world. Returns bytes that host a has sent, the trainer's last line, and what everybody said."""
    global port
    port += 1
    work = os.path.join(room, str(port))
    os.mkdir(work)
    groups = [{"name": host, "runtime": "cpu", "chips": chips} for host, chips in zip("ab", members)]
    args = ["--data", os.path.join(room, "data"), "--model", "mlp", "--batch", str(sum(members)), "--steps", str(steps), *arguments]
    with open(os.path.join(work, "plan.json"), "w") as f:
        json.dump({"job": "levels", "global_batch": sum(members), "args": args, "groups": groups, **(more or {})}, f)
    before = hosts_rig.sent_bytes("a")
    token, at = os.path.join(room, "token"), f"10.77.0.1:{port}"
    started = [hosts_rig.on("m", LAUNCH, "--manage", at, "--plan", os.path.join(work, "plan.json"), "--token-file", token)]
    started += [hosts_rig.on(host, LAUNCH, "--join", at, "--group", host, "--runtime", "cpu", "--chips", str(chips), "--programs",
                             os.path.join(room, "programs.yaml"), "--token-file", token, "--work-dir", os.path.join(work, host),
                             env={**os.environ, **site}) for host, chips in zip("ab", members)]
    said = ""
    for p in started:
        try:
            said += p.communicate(timeout=100)[0]
        except subprocess.TimeoutExpired:
            p.kill()
            said += p.communicate()[0] + "(did not end)"
    sent = hosts_rig.sent_bytes("a") - before
    for name in ("out", "err"):
        try:
            with open(os.path.join(work, "a", f"rank-0.{name}")) as f:
                said += f.read()
        except OSError:
            pass
    lines = re.findall(r'^\{"accuracy".*$', said, re.M)
    return sent, json.loads(lines[-1]) if lines else None, said


def measure(members, arguments, site, more=None, few=5, many=25):
    """Of a step, by the difference of two worlds, so that what they send to begin and to end does not count: bytes that the link carries
    each way, in sizes of the gradients, and ms of its exchange."""
    (sent, last, said), (sent_more, last_more, said_more) = train(few, members, arguments, site, more), train(many, members, arguments, site, more)
    if last is None or last_more is None:
        sys.stderr.write(said[-1000:] + said_more[-1000:])
        return float("nan"), float("nan")
    steps = many - few
    return (sent_more - sent) / steps / GRADIENTS, (last_more["exchange_ms"] - last["exchange_ms"]) / steps
