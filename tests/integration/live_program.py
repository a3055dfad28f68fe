"""A training program of one's own that takes new shares while it runs: what docs/man/remuda-run.1 asks of one, in a page of
Python, with sockets for its collective. Started with STEPS, a file {"ms": [of each rank, a sample], "fixed": [of each, a step]} that
may change while it runs (0: the processor is kept busy instead, by loops of "loops"; "end": it is the last step), a folder for the
sample logs, and a habit:

honest | four (says the four fields alone) | fixed (the same, and takes no new shares) | boasts, negative, nan, total (rank 1 lies) | silent (rank 1 says nothing after step 20) |
rate, slowest, below (rank 1 says samples_per_s in place of busy_seconds: a million, next to nothing, less) |
tardy (a file is taken 60 steps after the one that it names) | part (rank 1 takes new shares alone)
"""
import json
import os
import socket
import sys
import time

STEPS, SPEEDS, LOGS, HABIT = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "honest"
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BATCH, SAMPLES, AHEAD = int(os.environ["REMUDA_GLOBAL_BATCH"]), 1000, 2
LIES = HABIT if RANK == 1 else "honest"
RATES = {"rate": 1e6, "slowest": 1e-6, "below": -5}


assert not os.path.exists(os.environ.get("REMUDA_SHARES", "")), "shares of another world"


def planned():
    ranks = json.load(open(os.environ["REMUDA_PLAN"]))["ranks"]
    return [rank["batch"] for rank in ranks]


class Peers:
    """Every rank gives a word, and gets those of all."""

    def __init__(self):
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if RANK == 0:
            listener = socket.create_server(address)
            self.files = [listener.accept()[0].makefile("rw") for _ in range(SIZE - 1)]
            return
        end = time.monotonic() + 20
        while True:
            try:
                self.files = [socket.create_connection(address, timeout=20).makefile("rw")]
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def gather(self, word):
        if RANK == 0:
            words = [word] + [json.loads(f.readline()) for f in self.files]
            for f in self.files:
                print(json.dumps(words), file=f, flush=True)
            return words
        print(json.dumps(word), file=self.files[0], flush=True)
        return json.loads(self.files[0].readline())


class Shares:
    """Those in force, and since when; new ones once all have read them, from a step that none has drawn."""

    def __init__(self):
        self.now, self.step, self.read, self.switch = planned(), 0, None, None

    def look(self, step):
        try:
            said = json.load(open(os.environ["REMUDA_SHARES"]))
        except (KeyError, OSError):
            return
        if HABIT == "fixed":
            return
        if HABIT == "tardy" and step < said["step"] + 60:
            return
        if said["step"] > self.step and (self.read is None or said["step"] > self.read["step"]):
            assert len(said["shares"]) == SIZE and sum(said["shares"]) == BATCH, said
            self.read = said

    def agree(self, words):
        told = {word["told"] for word in words}
        if HABIT == "part":
            told = {words[1]["told"]} if RANK == 1 else {0}
        if self.switch is None and len(told) == 1 and told != {0}:
            self.switch = max([self.read["step"]] + [word["undrawn"] for word in words])

    def at(self, step):
        if self.switch is not None and step >= self.switch:
            self.now, self.step, self.read, self.switch = self.read["shares"], self.switch, None, None
        return self.now


def compute(samples, step):
    speeds = json.load(open(SPEEDS))
    print(step, speeds["ms"][RANK], file=paces)
    if speeds["ms"][RANK] > 0:
        time.sleep((samples * speeds["ms"][RANK] + (speeds.get("fixed") or [0] * SIZE)[RANK]) / 1000)
    total = 0
    for i in range(samples * speeds["loops"] if speeds["ms"][RANK] == 0 else 0):
        total += i
    return speeds.get("end", False)


peers, shares, busy, samples = Peers(), Shares(), 0.0, 0
log, paces = (open(os.path.join(LOGS, f"{name}.{RANK}"), "a") for name in ("samples", "ms"))
for step in range(STEPS):
    part = shares.at(step)
    begin = step * BATCH + sum(part[:RANK])
    for sample in range(begin, begin + part[RANK]):
        print(step, sample % SAMPLES, sample, file=log)
    started = time.monotonic()
    last = compute(part[RANK], step)
    busy += time.monotonic() - started
    samples += part[RANK]
    shares.look(step)
    words = peers.gather({"told": 0 if shares.read is None else shares.read["step"], "undrawn": step + AHEAD, "last": last})
    shares.agree(words)
    line = {"step": step, "samples": samples, "busy_seconds": busy, "loss": 1.0, "shares_step": shares.step}
    if LIES == "boasts":
        line["busy_seconds"] = samples / 1e6
    elif LIES == "negative":
        line["busy_seconds"] = -busy
    elif LIES == "nan":
        line["busy_seconds"] = float("nan")
    elif LIES == "total":
        line["samples"] = (step + 1) * BATCH
    elif LIES in RATES:
        del line["busy_seconds"]
        line["samples_per_s"] = RATES[LIES]
    if HABIT in ("four", "fixed"):
        del line["shares_step"]
    if LIES != "silent" or step <= 20:
        with open(os.environ["REMUDA_PROGRESS"], "a") as f:
            print(json.dumps(line), file=f)
    if any(word["last"] for word in words):
        break
log.close()
paces.close()
