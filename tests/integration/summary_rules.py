"""What the summary of `remuda run -o json` promises, whatever the job was: its fields, and what must agree in it."""
import hashlib
import re
from datetime import datetime

FIELDS = {"job": str, "phase": str, "reason": str, "message": str, "seconds": float, "epochs": int, "samples_used": int, "accuracy": (float, type(None)),
          "loss": (float, type(None)), "restarts": int, "samples_per_s": float, "ranks": list, "events": list}
RANK_FIELDS = {"rank": int, "role": str, "runtime": str, "device": str, "program": str, "program_sha256": str, "weight": float, "samples": int, "restarts": int,
               "exit_code": (int, type(None))}
hashes = {}


def sha256(path):
    if path not in hashes:
        hashes[path] = hashlib.sha256(open(path, "rb").read()).hexdigest()
    return hashes[path]


def of_type(value, kind):
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return not isinstance(value, bool) and (isinstance(value, kinds) or (float in kinds and isinstance(value, int)))


def broken(s, code, spec, wall_seconds):
    """The promises that a summary breaks; [] = none. wall_seconds: how long the command took, from outside."""
    bad = [f"{name}: {s.get(name)!r}" for name, kind in FIELDS.items() if not of_type(s.get(name, bad_value), kind)]
    for rank in s.get("ranks", []):
        bad += [f"ranks[].{name}: {rank.get(name)!r}" for name, kind in RANK_FIELDS.items() if not of_type(rank.get(name, bad_value), kind)]
    if bad:
        return bad
    ranks, reasons = s["ranks"], [e["reason"] for e in s["events"]]
    workers, servers = [r for r in ranks if r["role"] == "worker"], [r for r in ranks if r["role"] == "server"]
    processes = s["restarts"] + reasons.count("Resharding") + reasons.count("Resplitting") + reasons.count("LauncherCrashed")

    def must(condition, what):
        if not condition:
            bad.append(what)

    must((s["phase"], code) in (("Succeeded", 0), ("Failed", 1), ("Cancelled", 130)), f"phase {s['phase']} with exit code {code}")
    must(re.fullmatch("[A-Z][A-Za-z]+", s["reason"]) and s["message"], f"reason {s['reason']!r}, message {s['message']!r}")
    must(0 < s["seconds"] <= wall_seconds, f"{s['seconds']} seconds of {wall_seconds}")
    must(0 <= s["epochs"] <= spec.get("epochs", 1) and (s["phase"] != "Succeeded" or s["epochs"] == spec.get("epochs", 1)), f"epochs: {s['epochs']}")
    must([r["rank"] for r in ranks] == list(range(len(ranks))) and len(workers) + len(servers) == len(ranks), "ranks are numbered from 0, workers or servers")
    must(not ranks or abs(sum(r["weight"] for r in workers) - 1) < 1e-9, f"workers' weights: {[r['weight'] for r in workers]}")
    must(all(r["weight"] == 0 and r["samples"] == 0 for r in servers), "a server has no share")
    must(s["restarts"] == reasons.count("Restarting"), f"restarts: {s['restarts']}, events {reasons}")
    must(all(r["restarts"] <= processes for r in ranks), f"a rank has more new processes than worlds: {[r['restarts'] for r in ranks]}")
    must("LeftOut" in reasons or all(r["restarts"] == processes for r in ranks) or s["phase"] != "Succeeded", f"restarts of ranks {[r['restarts'] for r in ranks]}, worlds {processes}")
    must(s["phase"] != "Succeeded" or all(r["exit_code"] == 0 for r in ranks), f"exit codes {[r['exit_code'] for r in ranks]}")
    must(all(r["exit_code"] is None or 0 <= r["exit_code"] <= 255 for r in ranks), f"exit codes {[r['exit_code'] for r in ranks]}")
    must(sum(r["samples"] for r in workers) <= s["samples_used"] and ("LeftOut" in reasons or sum(r["samples"] for r in workers) == s["samples_used"]), "samples do not add up")
    must((s["accuracy"] is None and s["loss"] is None) or s["phase"] == "Succeeded", "accuracy and loss are those of the end")
    must(all(r["program_sha256"] == sha256(r["program"]) for r in ranks if r["program"]), "program_sha256 is not that of the program")
    must(s["phase"] == "Failed" or all(r["program"] for r in ranks), "a rank without a program")
    must(all(set(e) == {"time", "reason", "message"} and e["message"] for e in s["events"]), "events have time, reason and message")
    times = [datetime.fromisoformat(e["time"].replace("Z", "+00:00")) for e in s["events"]]
    must(times == sorted(times), "events are in order")
    must(reasons and reasons[-1] == s["reason"] and s["events"][-1]["message"] == s["message"], f"the last event is the end: {reasons[-3:]}, {s['reason']}")
    return bad


bad_value = object()
