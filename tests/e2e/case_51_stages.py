"""Splits that are carried out in pods over real time: a stage becomes slow and its layers move by way of a checkpoint; replicas of pipelines over unlike
chips train side by side. The speeds are simulated: a rank sleeps for most of a step. A minute and a half: with E2E_STAGES=all, as at night."""
import json
import os
import re
import statistics
import subprocess

from kube import events_of, scenario, wait
from case_50_jobs import BUILD, DATA, delete, drop, explain, keep, losses_said, make, needs_image, processes, program, status, wait_end

BATCH, MICROBATCHES, STEPS, FROM, BASE, TIMES = 128, 4, 60, 12, 2000, 6


def measured(base=BASE):
    """The layers of the model as this machine computes them."""
    done = subprocess.run([BUILD + "/bin/remuda-train-cpu", "--data", DATA, "--model", "cnn", "--batch", str(BATCH), "--microbatches", str(MICROBATCHES), "--simulate-slow", str(base),
                           "--measure", "--measure-layers", "--measure-seconds", "1"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["layers"]


def profile(layers, times):
    return {"samples": BATCH // MICROBATCHES,
            "layers": [{"name": "l%d" % i, "ms": {runtime: x["ms"] * more for runtime, more in times.items()}, "memory_bytes": x["state_bytes"], "activation_bytes": x["output_bytes"],
                        "params_bytes": x["parameter_bytes"], "held_bytes": x["held_bytes"]} for i, x in enumerate(layers)]}


def of_job(name, count, but=()):
    return wait("%d training processes of job %s" % (count, name), 90, lambda: (lambda f: f if len(f) == count and not set(f) & set(but) else None)(processes(name)), 0.05)


def layers_of(ranks):
    return ",".join(e[b"REMUDA_LAYERS"].decode() for _, e in sorted((int(e[b"OMPI_COMM_WORLD_RANK"]), e) for e in ranks.values()))


def seconds_between(file):
    """The median time between the steps that the program tells of."""
    at = {x["step"]: x["seconds"] for x in map(json.loads, filter(None, file.read().splitlines())) if "busy_seconds" in x}
    return {step: at[step] - at[step - 1] for step in at if step - 1 in at}


def jobs_of_a_slow_stage():
    """a stage of a split becomes slow in its pod: it is named, the layers move by way of a checkpoint, steps get short again, no step is lost; no pod is made anew"""
    needs_image()
    keep("shifted", "kept-stages")
    layers = measured()
    ms = [x["ms"] for x in layers]
    slow = 0 if sum(ms[:2]) < sum(ms[1:]) else 1  # of whom the largest layer is
    percents = [str(BASE * TIMES if i == slow else BASE) for i in range(2)]
    command = program("cuda", "--steps", str(STEPS), "--simulate-slow", "%d,%d" % (BASE, BASE), "--simulate-slow-from", ",".join([str(FROM), *percents]))
    make("shifted", [{"runtime": "cuda", "chips": 1}, {"runtime": "cuda", "chips": 1}], strategy="split", model="cnn", globalBatch=BATCH, microbatches=MICROBATCHES,
         programs={"cuda": command, "cpu": command}, profile=profile(layers, {"cuda": 1}), checkpoint={"path": "/ckpt", "claim": "kept-stages", "everySteps": 100000})
    try:
        first = of_job("shifted", 2)
        before, said = layers_of(first), losses_said(first)
        pods = {s["pod"] for s in status("shifted")["subtasks"]}
        second = of_job("shifted", 2, first)
        after, again = layers_of(second), losses_said(second)
        s = wait_end("shifted", 180)
    except AssertionError as e:
        raise AssertionError("%s\n%s" % (e, explain("shifted"))) from None
    events = {e["reason"]: e["message"] for e in events_of("shifted")}
    assert re.match(r"rank %d of group \S+, stage %d with layers" % (slow, slow), events["Straggler"]) and events["Resplitting"].endswith("stages " + after), events
    assert before != after and {s["pod"] for s in s["subtasks"]} == pods, (before, after, pods)
    assert s["restarts"] == 0 and s["samplesDone"] == STEPS * BATCH, (s["restarts"], s["samplesDone"], events)
    late = [t for step, t in seconds_between(said[0]).items() if step > FROM + 1]
    then = list(seconds_between(again[0]).values())
    assert statistics.median(then) < 0.6 * statistics.median(late), (late, then)
    delete("shifted")
    drop("kept-stages")
    return "stages %s became %s; a step %.0f ms, then %.0f" % (before, after, 1e3 * statistics.median(late), 1e3 * statistics.median(then))


def jobs_of_replicas():
    """two pipelines over unlike chips train side by side in pods, cut differently, each with its part of the batch; the job ends with every sample used once"""
    needs_image()
    base, times = 1500, 3
    layers = measured(base)
    programs = {r: program(r, "--steps", "24", "--simulate-slow", ",".join([str(base * more)] * 4)) for r, more in (("cuda", 1), ("sunway", times), ("cpu", 1))}
    make("paired", [{"runtime": "cuda", "chips": 3}, {"runtime": "sunway", "chips": 1}], strategy="split", model="cnn", globalBatch=BATCH, microbatches=MICROBATCHES, replicas=2,
         programs=programs, profile=profile(layers, {"cuda": 1, "sunway": times}))
    try:
        ranks = of_job("paired", 4)
        s = wait_end("paired", 180)
    except AssertionError as e:
        raise AssertionError("%s\n%s" % (e, explain("paired"))) from None
    pipelines = {}
    for environ in ranks.values():
        pipelines.setdefault(environ[b"REMUDA_PIPELINE"].decode(), []).append((environ[b"REMUDA_LAYERS"].decode(), int(environ[b"REMUDA_PIPELINE_BATCH"])))
    assert len(pipelines) == 2, pipelines
    for stages in pipelines.values():
        firsts = sorted(tuple(map(int, layers.split(":"))) for layers, _ in stages)
        assert firsts[0][0] == 0 and all(b[0] == a[1] + 1 for a, b in zip(firsts, firsts[1:])) and len({batch for _, batch in stages}) == 1, pipelines
    cuts = {stages for stages in (tuple(sorted(layers for layers, _ in stages)) for stages in pipelines.values())}
    parts = sorted(stages[0][1] for stages in pipelines.values())
    assert sum(parts) == BATCH and len(cuts) == 2, pipelines
    assert s["samplesDone"] == 24 * BATCH and s["restarts"] == 0 and [r["exitCode"] for r in s["ranks"]] == [0] * 4, s
    split = [e["message"] for e in events_of("paired") if e["reason"] == "Split"]
    delete("paired")
    return "batches of %s; %s" % (" and ".join(map(str, parts)), split[0][:200])


for case in (jobs_of_a_slow_stage, jobs_of_replicas) if os.environ.get("E2E_STAGES") == "all" else ():
    scenario(case)
