"""Turns what the demo saw into training figures and one self-contained page with SVG pictures."""
import glob
import html
import json
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import timeline_rig  # noqa: E402

BATCH = 2048  # large enough for computing, not talking, to fill a step
COLOURS = {"nvidia": "#4d8f00", "amd": "#c43a2b", "huawei": "#b3123a", "cpu": "#3f6fb5", "unknown": "#777777"}
ACTIVITY = {"load": "#9aa5b1", "forward": "#3f6fb5", "backward": "#2f9e76", "exchange": "#d98e04", "update": "#8b5fbf", "wait": "#e4e7eb", "measure": "#b5527a"}


def lines_of(path):
    result = []
    for name in sorted(glob.glob(path)):
        with open(name) as f:
            for line in f:
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                if isinstance(value, dict):
                    result.append(value)
    return result


def steps_of(timeline, steps_per_epoch):
    """{step: (begin, end) in microseconds, rank 0's}, from the end of an update to the end of the next; what begins an epoch is left to
    the evaluation before it."""
    ends = {e["step"]: e["end_usec"] for e in timeline if e["rank"] == 0 and e["what"] == "update"}
    return {step: (ends[step - 1], ends[step]) for step in ends if step - 1 in ends and step % steps_per_epoch != 0}


def median_step(steps):
    """The step that half of the others are shorter than."""
    return sorted(steps, key=lambda step: steps[step][1] - steps[step][0])[len(steps) // 2] if steps else None


def computing_usec(events, rank):
    return sum(e["end_usec"] - e["begin_usec"] for e in events if e["rank"] == rank and e["what"] in ("forward", "backward", "update"))


def excerpt(timeline, steps):
    """The median step, with what was loaded meanwhile."""
    step = median_step(steps)
    if step is None:
        return {"events": []}
    begin, end = steps[step]
    return {"step": step, "ms": (end - begin) / 1e3, "events": [e for e in timeline if e["what"] == "load" and begin <= e["begin_usec"] < end or
                                                                e["what"] != "load" and e["step"] == step]}


def caption(shards, ranks, shown, sample_counts):
    """What the picture shows, in figures of the picture."""
    if not shown["events"]:
        return shards + " shares"
    idle = ["rank %d does not compute for %.0f %%" % (r["rank"], 100 * max(0, 1 - computing_usec(shown["events"], r["rank"]) / 1e3 / shown["ms"]))
            for r in ranks]
    return "%s shares (%s): the median step, %.1f ms; of it %s" % (shards, " + ".join(map(str, sample_counts)), shown["ms"], ", ".join(idle))


def speeds_of(timeline, samples, ranks):
    """Samples a second of each rank while it computed, over the whole run."""
    return [samples[r["rank"]] * 1e6 / max(1, computing_usec(timeline, r["rank"])) for r in ranks]


def learning_seconds(summary, steps, usual_ms):
    """What the steps up to the last change of shares took beyond the usual ones: the first steps of a job are its measurement."""
    changed = [int(e["message"].split()[2]) for e in summary["events"] if e["reason"] == "SharesChanged"]
    return sum(max(0, (end - begin) / 1e3 - usual_ms) for step, (begin, end) in steps.items() if changed and step < changed[-1]) / 1e3


def training_summary(trained, epochs):
    """Every figure of gain is of the medians of all steps; theory is of what the ranks did while they computed, with equal shares."""
    per_epoch = -(-60000 // BATCH)
    result = {"dataset": "Fashion-MNIST", "samples": 60000, "epochs": epochs, "global_batch": BATCH}
    outside = {}
    for shards, (summary, folder) in trained.items():
        timeline = timeline_rig.read(*sorted(glob.glob(os.path.join(folder, "work", "*", "timeline.*"))))
        steps, ranks = steps_of(timeline, per_epoch), summary["ranks"]
        shown = excerpt(timeline, steps)
        result[shards + "_step_ms"] = round(shown.get("ms", 0), 3)
        result[shards + "_speeds"] = [round(v, 1) for v in speeds_of(timeline, {r["rank"]: r["samples"] for r in ranks}, ranks)]
        result.setdefault("wall_seconds", {})[shards] = summary["seconds"]
        outside[shards] = summary["seconds"] - summary["training_seconds"] + learning_seconds(summary, steps, shown.get("ms", 0))
        result.setdefault("timelines", {})[shards] = shown["events"]
        result.setdefault("captions", {})[shards] = caption(shards, ranks, shown, [r["batch"] for r in ranks])
        curve = sorted({p["step"]: p["accuracy"] for p in lines_of(os.path.join(folder, "work", "*", "*progress*")) if "accuracy" in p}.items())
        result.setdefault("curves", {})[shards] = [(epoch + 1, accuracy) for epoch, (_, accuracy) in enumerate(curve)]
        result.setdefault("losses", {})[shards] = thin([(p["step"], p["loss"]) for p in
                                                        lines_of(os.path.join(folder, "work", "*", "*progress*"))
                                                        if p.get("rank") == 0 and p.get("loss") is not None and "accuracy" not in p])
    ranks, speeds = trained["weighted"][0]["ranks"], result["equal_speeds"]
    saved = (result["equal_step_ms"] - result["weighted_step_ms"]) * per_epoch / 1e3
    result.update(accuracy=trained["weighted"][0]["accuracy"], gain=round(result["equal_step_ms"] / (result["weighted_step_ms"] or 1), 4),
                  theoretical_gain=round(sum(speeds) / len(speeds) / min(speeds), 4),
                  measuring_seconds=round(max(0, outside["weighted"] - outside["equal"]), 3), saved_seconds_per_epoch=round(saved, 3),
                  workers=[{"rank": r["rank"], "runtime": r["runtime"], "program": r["program"], "speed_samples_per_s": speed,
                            "speed_source": r["speed_source"], "weight": r["weight"], "samples": r["samples"]}
                           for r, speed in zip(ranks, result["weighted_speeds"])])
    result["paid_back_epochs"] = round(result["measuring_seconds"] / saved, 1) if saved > 0 else None
    result["words"] = [
        "a step took %.1f ms with equal shares and %.1f ms with weighted ones (medians of all steps): %.3f x, of %.3f x in theory (%.0f %%)" % (
            result["equal_step_ms"], result["weighted_step_ms"], result["gain"], result["theoretical_gain"], 100 * result["gain"] / result["theoretical_gain"]),
        "measuring cost %.1f s, %s" % (result["measuring_seconds"], "paid back after %.1f epochs of %.2f s each saved" % (
            result["paid_back_epochs"], saved) if saved > 0 else "and nothing was saved here that could pay it back"),
        "whole runs, with start, measuring and evaluation: %.1f s and %.1f s for %d epochs" % (
            result["wall_seconds"]["equal"], result["wall_seconds"]["weighted"], epochs)]
    return result


def thin(points, most=150):
    return points[:: max(1, len(points) // most)]


def text(x, y, words, size=12, colour="#1f2933", anchor="start", weight="normal"):
    return '<text x="%.1f" y="%.1f" font-size="%d" fill="%s" text-anchor="%s" font-weight="%s">%s</text>' % (
        x, y, size, colour, anchor, weight, html.escape(str(words)))


def svg(width, height, body, label):
    return '<svg viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>' % (width, height, html.escape(label), "".join(body))


def machines_picture(machines):
    body, y = [], 0
    for machine in machines:
        x = 190
        body.append(text(0, y + 20, machine["name"], 14, weight="bold"))
        body.append(text(0, y + 37, "%s class, %s pool" % (machine["nodeClass"], machine["pool"]), 11, "#52606d"))
        body.append(text(0, y + 52, "this machine, live" if machine["synthetic"] is None else "synthetic machine", 11, "#52606d"))
        for group in machine["groups"]:
            width = max(132, 15 * group["total"] + 14)
            if x + width > 960:
                x, y = 190, y + 66
            colour = COLOURS.get(group["vendor"], COLOURS["unknown"])
            body.append('<rect x="%d" y="%d" width="%d" height="52" rx="5" fill="%s" fill-opacity="0.09" stroke="%s"/>' % (x, y + 4, width, colour, colour))
            label = "%s, %s" % (group["model"] or group["vendor"], group["fabric"])
            body.append(text(x + 6, y + 18, label if len(label) * 5.4 < width else label[: int(width / 5.6)] + "…", 10))
            for i in range(group["total"]):
                body.append('<rect x="%d" y="%d" width="11" height="17" rx="2" fill="%s" fill-opacity="%s"/>' % (
                    x + 7 + 15 * i, y + 25, colour, "1" if i < group["healthy"] else "0.25"))
            x += width + 8
        y += 70
    return svg(980, y, body, "machines and their device groups")


def timeline_picture(events, title):
    if not events:
        return "<p>no timeline was written</p>"
    begin = min(e["begin_usec"] for e in events)
    end = max(e["end_usec"] for e in events)
    ranks = sorted({e["rank"] for e in events})
    body = [text(0, 14, title, 13, weight="bold")]
    scale = 850 / max(1, end - begin)
    for k, rank in enumerate(ranks):
        y = 26 + 34 * k
        body.append(text(0, y + 17, "rank %d" % rank, 12))
        body.append('<rect x="60" y="%d" width="850" height="24" fill="#f5f7fa"/>' % y)
        for e in events:
            if e["rank"] == rank:
                body.append('<rect x="%.2f" y="%d" width="%.2f" height="24" fill="%s"><title>step %d, %s, %.2f ms</title></rect>' % (
                    60 + (e["begin_usec"] - begin) * scale, y, max(0.4, (e["end_usec"] - e["begin_usec"]) * scale),
                    ACTIVITY.get(e["what"], "#cccccc"), e["step"], e["what"], (e["end_usec"] - e["begin_usec"]) / 1e3))
    y = 26 + 34 * len(ranks)
    body.append(text(60, y + 14, "0 ms", 11, "#52606d"))
    body.append(text(910, y + 14, "%.1f ms" % ((end - begin) / 1e3), 11, "#52606d", "end"))
    return svg(940, y + 22, body, title)


def curve_picture(training):
    points = {k: v for k, v in training["curves"].items() if v}
    if not points:
        return "<p>no accuracy was reported while training</p>"
    values = [a for curve in points.values() for _, a in curve]
    low, high = min(values) - 0.01, max(values) + 0.01
    most = max(s for curve in points.values() for s, _ in curve)
    body = []
    for i in range(5):
        a = low + (high - low) * i / 4
        y = 180 - 160 * i / 4
        body.append('<line x1="60" y1="%.1f" x2="900" y2="%.1f" stroke="#e4e7eb"/>' % (y, y))
        body.append(text(52, y + 4, "%.3f" % a, 11, "#52606d", "end"))
    for (name, curve), colour in zip(sorted(points.items()), ("#d98e04", "#3f6fb5")):
        path = [(60 + 840 * s / most, 180 - 160 * (a - low) / (high - low)) for s, a in curve]
        body.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (colour, " ".join("%.1f,%.1f" % p for p in path)))
        for (x, y), (s, a) in zip(path, curve):
            body.append('<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s: %.4f</title></circle>' % (x, y, colour, name, a))
        body.append(text(path[-1][0] - 6, path[-1][1] + (18 if name == "equal" else -9), name, 12, colour, "end"))
    body.append(text(900, 200, "epochs", 11, "#52606d", "end"))
    return svg(940, 208, body, "test accuracy after each epoch")


def loss_picture(training):
    curves = {k: v for k, v in training["losses"].items() if v}
    if not curves:
        return ""
    high = max(v for c in curves.values() for _, v in c)
    steps = max(s for c in curves.values() for s, _ in c) or 1
    body = []
    for i in range(5):
        y = 180 - 160 * i / 4
        body.append('<line x1="60" y1="%.1f" x2="900" y2="%.1f" stroke="#e4e7eb"/>' % (y, y))
        body.append(text(52, y + 4, "%.2f" % (high * i / 4), 11, "#52606d", "end"))
    for (name, curve), colour in zip(sorted(curves.items()), ("#d98e04", "#3f6fb5")):
        body.append('<polyline fill="none" stroke="%s" stroke-width="1.5" stroke-opacity="0.85" points="%s"/>' % (
            colour, " ".join("%.1f,%.1f" % (60 + 840 * s / steps, 180 - 160 * v / high) for s, v in curve)))
    body.append(text(900, 200, "step", 11, "#52606d", "end"))
    return svg(940, 208, body, "training loss of rank 0")


def decisions_table(decisions):
    rows = []
    for d in decisions:
        words = {}
        for node, reason in d["rejected"].items():
            words.setdefault(reason, []).append(node)
        why = "".join("<li><b>%s</b>%s <span class=dim>%s</span></li>" % (
            html.escape(reason.split(":")[0]), html.escape(":" + reason.split(":", 1)[1] if ":" in reason else ""),
            html.escape(", ".join(sorted(nodes)))) for reason, nodes in sorted(words.items()))
        rows.append("<tr><td><b>%s</b><br><span class=dim>%s</span></td><td>%d&nbsp;x %s%s</td><td>%s</td><td class=%s>%s</td><td><ul>%s</ul></td></tr>" % (
            html.escape(d["pod"]), html.escape(d["what"]), d["chips"], html.escape(d["resource"]),
            "<br><span class=dim>gang of %d</span>" % d["gang"] if d["gang"] > 1 else "", html.escape(d["urgency"]),
            "ok" if d["chosen"] else "waits", html.escape(d["chosen"] or "waits"), why))
    return "<table><tr><th>pod</th><th>asks for</th><th>urgency</th><th>chosen</th><th>rejected, and why</th></tr>%s</table>" % "".join(rows)


STYLE = """
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:#1f2933;max-width:1040px;margin:32px auto;padding:0 20px}
h1{font-size:27px;margin-bottom:4px}h2{margin-top:38px;border-bottom:1px solid #e4e7eb;padding-bottom:4px;font-size:20px}
svg{width:100%;height:auto;font-family:inherit}.dim{color:#52606d;font-size:13px}table{border-collapse:collapse;width:100%;font-size:13.5px}
td,th{border-bottom:1px solid #e4e7eb;padding:6px 8px;text-align:left;vertical-align:top}ul{margin:0;padding-left:16px}
.ok{color:#207a4c;font-weight:600}.waits{color:#b44d12;font-weight:600}.note{background:#fff8e6;border-left:4px solid #d98e04;padding:8px 14px}
.figures{display:flex;gap:14px;flex-wrap:wrap}.figures div{background:#f5f7fa;border-radius:8px;padding:10px 16px}.figures b{display:block;font-size:23px}
.key span{display:inline-block;margin-right:14px}.key i{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:5px;vertical-align:-1px}
"""


def figure(value, words):
    return "<div><b>%s</b><span class=dim>%s</span></div>" % (html.escape(str(value)), html.escape(words))


def page(summary, this):
    t, f = summary["training"], summary["fault"]
    workers = "".join("<tr><td>%d</td><td>%s</td><td>%s</td><td>%.0f</td><td>%.4f</td><td>%d</td></tr>" % (
        w["rank"], html.escape(w["runtime"]), html.escape(os.path.basename(w["program"])), w["speed_samples_per_s"], w["weight"], w["samples"])
        for w in t["workers"])
    key = "".join('<span><i style="background:%s"></i>%s</span>' % (c, n) for n, c in ACTIVITY.items())
    return """<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width"><title>Remuda: the main job</title>
<style>%s</style><h1>Remuda: the main job</h1><p class=dim>%d machines discovered, %d pods decided, one chip broken and mended, one model trained twice; %.0f s in all.</p>
<p class=note><b>What stands in for something else.</b> Only <b>%s</b> is a live machine. The others are synthetic: folders made from
public facts of their vendors in the form that the readers use, none was recorded; each has an agent of its own. How discovery, grouping, health and the decisions treat them is real; nothing runs on
them. The pods come from the demo in kube-scheduler's message format, not from a kube-scheduler. The training is real and ran here: <code>remuda-train-cpu</code> on
OpenBLAS and <code>remuda-train-sunway</code>, the many-core build in its portable form (64 KB tiles on threads, not on a Sunway chip).</p>
<h2>Machines and their groups</h2>%s
<h2>Decisions</h2><p>Each pod went through filter, prioritize and bind of <code>remuda-extender</code> over HTTP.</p>%s
<h2>A fault and its repair</h2><div class=figures>%s%s%s%s</div>
<p>The PCI function of <code>%s</code> (%s) was taken out of the tree of %s. The inventory said <b>%s</b>, the metric
<code>remuda_device_health</code> followed, and the next filter answer for eight chips said of the node: <i>%s</i>. After the function returned, the device
had to answer well three times over three seconds (a minute by default) before the node took eight chips again.</p>
<h2>One job on two unlike workers</h2><p>The jobs' own pages, as <code>remuda run --report</code> writes them:
<a href="job-equal.html">equal</a>, <a href="job-weighted.html">weighted</a>.</p><div class=figures>%s%s%s%s%s</div>
<p>%s.</p><p>%d epochs of %s (%d samples), batches of %d, synchronous data parallel; gradients weighted by each worker's share. In theory
the gain is the mean speed over the smallest speed, of what both did while they computed with equal shares.</p>
<table><tr><th>rank</th><th>runtime</th><th>program</th><th>samples/s (while computing)</th><th>weight</th><th>samples used</th></tr>%s</table>
<h3>Timelines</h3><p class=key>%s</p>%s%s
<h3>Test accuracy</h3>%s<h3>Loss</h3>%s</html>
""" % (STYLE, len(summary["machines"]), len(summary["decisions"]), summary["seconds"], html.escape(this), machines_picture(summary["machines"]),
       decisions_table(summary["decisions"]), figure("%.0f ms" % f["detected_ms"], "until the inventory knew"),
       figure(f["reason"], "the reason it gave"), figure("yes" if f["filtered"] else "no", "the node was filtered out"),
       figure("%.1f s" % f["recovered_seconds"] if f["recovered"] else "no", "from fault to full recovery"),
       html.escape(f["device"]), html.escape(f["pci"]), html.escape(f["node"]), html.escape(f["reason"]), html.escape(f["filter_said"]),
       figure("%.1f ms" % t["equal_step_ms"], "a step with equal shares"), figure("%.1f ms" % t["weighted_step_ms"], "with weighted shares"),
       figure("%.3f x" % t["gain"], "measured gain"), figure("%.3f x" % t["theoretical_gain"], "in theory"),
       figure("%.2f %%" % (100 * (t["accuracy"] or 0)), "test accuracy"), html.escape("; ".join(t["words"])), t["epochs"], t["dataset"], t["samples"], t["global_batch"], workers, key,
       timeline_picture(t["timelines"]["equal"], t["captions"]["equal"]),
       timeline_picture(t["timelines"]["weighted"], t["captions"]["weighted"]), curve_picture(t), loss_picture(t))
