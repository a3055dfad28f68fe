"""Brute force for the planners, in exact fractions, from the definitions alone: nothing here knows how the C
code works. planners.py WHAT CASES [SEED] asks build/oracle/planner_lines and compares every answer.

WHAT: shards (limits and models of every kind), least (--drop-harmful), reshard, segments (lines, levels, tables)."""
import itertools
import json
import math
import os
import random
import subprocess
import sys
from fractions import Fraction

MAX_DIFFERENCES_SHOWN = 5


def exact(number):
    """The decimal that was written, not the double it becomes."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


# --- shards -------------------------------------------------------------------------------------------------
def ms(worker, b):
    """Time of b samples (a Fraction), None past the end of a table."""
    if b == 0:
        return Fraction(0)
    if "speed" in worker:
        return 1000 * b / exact(worker["speed"])
    if "table" in worker:
        before = (Fraction(0), Fraction(0))
        for point in worker["table"]:
            x, y = exact(point[0]), exact(point[1])
            if x == 0:
                continue
            if b <= x:
                return before[1] + (y - before[1]) * (b - before[0]) / (x - before[0])
            before = (x, y)
        return None
    return exact(worker["alpha_ms"]) + exact(worker["beta_ms"]) * b


def choices(worker, batch):
    """Every allowed share and its time."""
    found = [(0, Fraction(0))]
    for b in range(1, batch + 1):
        if b % worker.get("multiple", 1) or b < worker.get("min", 0) or b > worker.get("max", batch):
            continue
        time = ms(worker, Fraction(b))
        if time is not None:
            found.append((b, time))
    return found


def best_shards(case, communication=None):
    """All plans, by recursion over the workers: (step [+ communication], used, shares negated)."""
    batch = case["batch"]
    workers = case.get("workers") or [w for g in case["groups"] for w in g["workers"]]
    allowed = [choices(w, batch) for w in workers]
    best = None

    def ring(p):
        if communication is None or p <= 1:
            return Fraction(0)
        a, b = exact(communication["alpha_ms"]), exact(communication["beta_ms_per_byte"])
        return 2 * (p - 1) * a + Fraction(2 * (p - 1), p) * communication["bytes"] * b

    def go(i, rest, step, used, shares):
        nonlocal best
        if best is not None and communication is None and step > best[0]:
            return
        if i == len(allowed):
            if rest == 0:
                key = (step + ring(used), used, [-b for b in shares])
                if best is None or key < best:
                    best = key
            return
        for b, time in allowed[i]:
            if b <= rest:
                go(i + 1, rest - b, max(step, time), used + (b > 0), shares + [b])

    go(0, batch, Fraction(0), 0, [])
    return best, workers


def ideal_ms(workers, batch):
    """The least step of real-valued shares: the best subset at its own least time, by halving."""
    best = None
    for used in itertools.product([False, True], repeat=len(workers)):
        chosen = [w for w, u in zip(workers, used) if u]
        tops = [min(float(batch), w.get("max", batch), w["table"][-1][0] if "table" in w else batch) for w in chosen]
        if sum(tops) < batch or sum(w.get("min", 0) for w in chosen) > batch:
            continue
        if any(w.get("min", 0) > top for w, top in zip(chosen, tops)):
            continue
        floors = [float(ms(w, Fraction(w.get("min", 0)))) for w in chosen]
        low, high = max(floors + [0.0]), max(float(ms(w, Fraction(top))) for w, top in zip(chosen, tops))

        def reached(time):
            return sum(samples_in(w, time, top) for w, top in zip(chosen, tops)) >= batch * (1 - 1e-12)
        if reached(low):
            high = low
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        best = high if best is None else min(best, high)
    return best


def samples_in(worker, time, top):
    if "speed" in worker:
        return min(top, time / 1000 * worker["speed"])
    if "table" in worker:
        most, x0, y0 = 0.0, 0.0, 0.0
        for x, y in worker["table"]:
            if x > x0 and y0 <= time:
                most = float(x) if y <= time else x0 + (x - x0) * (time - y0) / (y - y0)
            x0, y0 = float(x), float(y)
        return min(top, most)
    if time < worker["alpha_ms"]:
        return 0.0
    return min(top, (time - worker["alpha_ms"]) / worker["beta_ms"]) if worker["beta_ms"] else top


def check_shards(case, answer, communication=None):
    best, workers = best_shards(case, communication)
    if best is None:
        return None if answer.startswith("error") else "no plan exists, got one"
    if answer.startswith("error"):
        return "a plan exists: %s" % best[2]
    got = json.loads(answer)
    shares = [w["batch"] for w in got["workers"]]
    wanted = [-b for b in best[2]]
    if shares != wanted:
        return "want %s, got %s" % (wanted, shares)
    step = max(ms(w, Fraction(b)) for w, b in zip(workers, shares))
    if abs(got["step_ms"] - float(step)) > 1e-12 * float(step):
        return "step_ms %r, want %r" % (got["step_ms"], float(step))
    if got["ideal_ms"] > got["step_ms"]:
        return "ideal_ms above step_ms"
    if case["batch"] % 4 == 0:  # slow to work out: every so often is enough
        ideal = ideal_ms(workers, case["batch"])
        if abs(got["ideal_ms"] - ideal) > 1e-9 * max(ideal, 1e-9):
            return "ideal_ms %r, want %r" % (got["ideal_ms"], ideal)
    equal = [ms(w, Fraction(case["batch"], len(workers))) for w in workers]
    part = Fraction(case["batch"], len(workers))
    possible = all(e is not None and part >= w.get("min", 0) and part <= w.get("max", part)
                   for e, w in zip(equal, workers))
    if possible != (got["equal_ms"] is not None):
        return "equal_ms %r" % got["equal_ms"]
    if possible and abs(got["equal_ms"] - float(max(equal))) > 1e-12 * float(max(equal)):
        return "equal_ms %r, want %r" % (got["equal_ms"], float(max(equal)))
    at = 0
    for w, b in zip(got["workers"], shares):
        if w["weight"] != b / case["batch"] or w["begin"] != at or (b == 0 and w["end"] != at):
            return "weight or begin of %s" % w
        if abs((w["end"] - at) - Fraction(case["epoch"] * b, case["batch"])) >= 1:
            return "range of %s is not in proportion" % w
        at = w["end"]
    return None if at == case["epoch"] else "the ranges end at %d" % at


def some_number(rng, top):
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randint(1, top)
    if kind == 1:
        return round(rng.uniform(0.1, top), 1) or 1
    if kind == 2:
        return round(rng.uniform(0.01, top), 2) or 1
    return rng.uniform(0.01, top)


def some_worker(rng, name, batch):
    worker = {"name": name}
    kind = rng.randrange(3)
    if kind == 0:
        worker["speed"] = some_number(rng, 6)
    elif kind == 1:
        worker["alpha_ms"] = rng.choice([0, 0, some_number(rng, 500)])
        worker["beta_ms"] = rng.choice([0, some_number(rng, 900)]) if rng.random() < 0.2 else some_number(rng, 900)
    else:
        points, x, y = [], 0, 0
        for _ in range(rng.randint(1, 4)):
            x += rng.randint(1, max(1, batch // 2))
            y += rng.choice([0, rng.randint(0, 900), rng.randint(0, 900) / 4, rng.uniform(0, 900)])
            points.append([x, y])
        worker["table"] = ([[0, 0]] if rng.random() < 0.3 else []) + points
    if rng.random() < 0.3:
        worker["min"] = rng.randint(0, max(1, batch // 2))
    if rng.random() < 0.3:
        worker["max"] = rng.randint(max(0, worker.get("min", 0)), batch + 2)
    if rng.random() < 0.3:
        worker["multiple"] = rng.randint(1, 4)
    return worker


def some_shards(rng):
    count = rng.randint(1, 5)
    batch = rng.randint(1, {1: 20, 2: 20, 3: 16, 4: 12, 5: 9}[count])
    workers = [some_worker(rng, "w%d" % i, batch) for i in range(count)]
    style = rng.randrange(4)
    if style == 0:  # nothing but models
        for w in workers:
            for key in ("min", "max", "multiple"):
                w.pop(key, None)
    elif style == 1:  # many equal speeds: ties
        for w in workers:
            for key in ("speed", "alpha_ms", "beta_ms", "table"):
                w.pop(key, None)
            w["speed"] = rng.choice([1, 1, 2, 0.1, 0.3, 3])
    elif style == 2:  # one multiple for all
        m = rng.randint(1, 3)
        for w in workers:
            w["multiple"] = m
    case = {"batch": batch, "epoch": rng.randint(1, 1000), "workers": workers}
    if rng.random() < 0.2 and count > 1:
        cut = rng.randint(1, count - 1)
        case["groups"] = [{"name": "g0", "workers": workers[:cut]}, {"name": "g1", "workers": workers[cut:]}]
        del case["workers"]
    return case


def some_least(rng):
    case = some_shards(rng)
    case["communication"] = {"alpha_ms": rng.choice([0, some_number(rng, 300)]),
                             "beta_ms_per_byte": rng.choice([0, 0.1, 0.25, rng.uniform(0, 1)]),
                             "bytes": rng.randint(0, 2000)}
    return case


# --- reshard ------------------------------------------------------------------------------------------------
def some_reshard(rng):
    count, batch = rng.randint(1, 4), rng.randint(1, 10)
    epoch, cuts = rng.randint(0, 200), sorted(rng.randint(0, batch) for _ in range(count - 1))
    shares = [b - a for a, b in zip([0] + cuts, cuts + [batch])]
    plan, before = {"batch": batch, "step_ms": 1, "workers": []}, 0
    for i, b in enumerate(shares):
        plan["workers"].append({"name": "w%d" % i, "batch": b, "weight": b / batch, "step_ms": 1,
                                "begin": epoch * before // batch, "end": epoch * (before + b) // batch})
        before += b
    if rng.random() < 0.2:  # as after an earlier reshard: what was used, and ranges in pieces
        since = rng.randint(0, 30)
        for w in plan["workers"]:
            middle = (w["begin"] + w["end"]) // 2 + since
            w["ranges"] = [[w.pop("begin") + since, middle], [middle, w.pop("end") + since]]
            w["used"] = []
        plan["workers"][0]["used"] = [[0, since]] if since else []
        plan["position"] = since
    since = plan.get("position", 0)
    steps = rng.randint(0, epoch // batch)
    measured = []
    for i, b in enumerate(shares):
        style = rng.random()
        if style < 0.15:
            measured.append({"name": "w%d" % i, "gone": True})
        elif style < 0.7 and b > 0:
            measured.append({"name": "w%d" % i, "step_ms": rng.choice([0.3, 1, 2, rng.randint(1, 40) / 4, some_number(rng, 9)])})
            if rng.random() < 0.2:
                measured[-1]["max"] = rng.randint(1, batch)
        elif b > 0 or style < 0.9:
            measured.append(some_worker(rng, "w%d" % i, batch))
    for i in range(rng.choice([0, 0, 1])):
        measured.append(some_worker(rng, "new%d" % i, batch))
    rng.shuffle(measured)
    if not measured:
        measured = [{"name": "new", "speed": 5}]
    return {"plan": plan, "position": since + (steps * batch if rng.random() < 0.9 else epoch),
            "cost_ms": rng.choice([0, 1, some_number(rng, 50)]), "measured": measured}


def first_of(ranges, count):
    taken, rest = [], []
    for begin, end in ranges:
        n = min(count, end - begin)
        count -= n
        taken += range(begin, begin + n)
        rest += range(begin + n, end)
    return taken, rest


def check_reshard(case, answer):
    plan, batch = case["plan"], case["plan"]["batch"]
    measured = {m["name"]: m for m in case["measured"]}
    order = [w["name"] for w in plan["workers"]]
    order += [m["name"] for m in case["measured"] if m["name"] not in order]
    force = {w["name"]: w for w in plan["workers"]}
    held = {n: w.get("ranges") or [[w.get("begin", 0), w.get("end", 0)]] for n, w in force.items()}
    whole = sum(e - b for r in held.values() for b, e in r)
    done = case["position"] - plan.get("position", 0)
    models, forced = {}, False
    for name in order:
        m, b = measured.get(name), force.get(name, {}).get("batch", 0)
        if m is None or m.get("gone"):
            forced = forced or b > 0
            continue
        model = dict(m)
        if "step_ms" in m:
            model.update({"alpha_ms": 0, "beta_ms": exact(m["step_ms"]) / b})
        forced = forced or (b > 0 and ms(model, Fraction(b)) is None)
        models[name] = model
    if answer.startswith("error"):
        best = best_shards({"batch": batch, "workers": list(models.values())})[0] if models else None
        return None if best is None else answer
    got = json.loads(answer)
    if [w["name"] for w in got["workers"]] != order:
        return "order"
    remaining = whole - done
    wanted = {n: -b for n, b in zip(models, best_shards({"batch": batch, "workers": list(models.values())})[0][2])}
    new = max(ms(models[n], Fraction(b)) for n, b in wanted.items())
    current = max([ms(models[n], Fraction(force[n]["batch"])) or 0 for n in models if n in force] + [0])
    same = all(wanted.get(n, 0) == force.get(n, {}).get("batch", 0) for n in order)
    gain = Fraction(remaining, batch) * (current - new)
    change = forced or (not same and remaining > 0 and gain >= exact(case["cost_ms"]))
    if got["decision"] != ("change" if change else "keep"):
        return "%s, want change = %s (gain %s)" % (got["decision"], change, float(gain))
    if got["remaining"] != remaining or (not forced and abs(got["gain_ms"] - float(gain)) > 1e-9 * max(1, abs(gain))):
        return "remaining or gain_ms"
    seen, before = [], 0
    for w in got["workers"]:
        name = w["name"]
        b = wanted.get(name, 0) if change else force.get(name, {}).get("batch", 0)
        if w["batch"] != b:
            return "%s: batch %d, want %d" % (name, w["batch"], b)
        taken, left = first_of(held.get(name, []), whole if done == whole else done // batch * force.get(name, {}).get("batch", 0))
        own = [s for begin, end in w["ranges"] for s in range(begin, end)]
        used = [s for begin, end in w["used"] for s in range(begin, end)]
        if sorted(used) != sorted(taken + [s for r in force.get(name, {}).get("used", []) for s in range(*r)]):
            return "%s: used %s" % (name, w["used"])
        quota = remaining * (before + b) // batch - remaining * before // batch if change else len(left)
        if len(own) != quota:
            return "%s: %d samples, want %d" % (name, len(own), quota)
        if own[:len(left)] != left[:len(own)]:
            return "%s: does not keep its own" % name
        seen += own + used
        before += b
    every = sorted(seen)
    return None if every == list(range(plan.get("position", 0) + whole)) else "not every sample once"


# --- segments -----------------------------------------------------------------------------------------------
def call_ms(case, size):
    if "cost" in case:
        points = [(exact(x), exact(y)) for x, y in case["cost"]]
        if size <= points[0][0] or len(points) == 1:
            return points[0][1]
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            if size <= x1:
                break
        return y0 + (y1 - y0) * (size - x0) / (x1 - x0)
    levels = case.get("levels") or [case]
    return sum(exact(l["alpha_ms"]) + exact(l["beta_ms_per_byte"]) * size for l in levels)


def end_of(case, cuts):
    end, first, runs = Fraction(0), 0, []
    for last in cuts:
        size = sum(t["bytes"] for t in case["tensors"][first:last + 1])
        start = max(end, exact(case["tensors"][last]["ready_ms"]))
        end = start + call_ms(case, size)
        runs.append((first, last, size, start, end))
        first = last + 1
    return end, runs


def buckets(case, first, rest):
    cuts, held, wanted = [], 0, first
    for i, tensor in enumerate(case["tensors"]):
        held += tensor["bytes"]
        if held >= wanted or i + 1 == len(case["tensors"]):
            cuts.append(i)
            held, wanted = 0, rest
    return cuts


def baselines(case):
    n, total = len(case["tensors"]), sum(t["bytes"] for t in case["tensors"])
    mib, held = 1 << 20, 0
    for i, tensor in enumerate(case["tensors"]):
        held += tensor["bytes"]
        if held * 10000 >= total * 9654:
            break
    return {"one": [n - 1], "per_tensor": list(range(n)), "ddp_25mb": buckets(case, mib, 25 * mib),
            "horovod_64mb": buckets(case, 64 * mib, 64 * mib), "ascend_9654": sorted({i, n - 1})}


def best_end(case, most):
    """Every way to cut, as whole numbers of one unit: the least end, and with how few segments."""
    tensors, n = case["tensors"], len(case["tensors"])
    ready = [exact(t["ready_ms"]) for t in tensors]
    sums = [0]
    for tensor in tensors:
        sums.append(sums[-1] + tensor["bytes"])
    cost = {(i, j): call_ms(case, sums[j] - sums[i]) for i in range(n) for j in range(i + 1, n + 1)}
    unit = 1
    for number in ready + list(cost.values()):
        unit = unit * number.denominator // math.gcd(unit, number.denominator)
    ready = [int(r * unit) for r in ready]
    cost = {at: int(c * unit) for at, c in cost.items()}
    best = None

    def go(i, end, count):
        nonlocal best
        if i == n:
            if best is None or (end, count) < best:
                best = (end, count)
            return
        if count == most:
            return
        for j in range(i + 1, n + 1):
            go(j, max(end, ready[j - 1]) + cost[i, j], count + 1)

    go(0, 0, 0)
    return Fraction(best[0], unit), best[1]


def check_segments(case, answer):
    if answer.startswith("error"):
        return answer
    got = json.loads(answer)
    n, most = len(case["tensors"]), case.get("max_segments", 8)
    best = best_end(case, most)
    cuts = [s["last"] for s in got["segments"]]
    end, runs = end_of(case, cuts)
    if end != best[0]:
        return "ends at %s, best is %s" % (float(end), float(best[0]))
    if len(cuts) != best[1]:
        return "%d segments, %d do the same" % (len(cuts), best[1])
    ready = exact(case["tensors"][-1]["ready_ms"])
    near = lambda a, b: abs(a - float(b)) <= 1e-12 * max(1.0, float(b))
    if not near(got["end_ms"], end) or not near(got["exposed_ms"], end - ready):
        return "end_ms or exposed_ms"
    for s, (first, last, size, start, stop) in zip(got["segments"], runs):
        if (s["first"], s["last"], s["bytes"]) != (first, last, size) or not near(s["start_ms"], start) \
                or not near(s["end_ms"], stop):
            return "segment %s" % s
    if got["hccl_indices"] != (cuts if len(cuts) <= 8 else None):
        return "hccl_indices %s" % got["hccl_indices"]
    for name, own in baselines(case).items():
        exposed = end_of(case, own)[0] - ready
        if not near(got["baselines"][name], exposed):
            return "baseline %s: %r, want %r" % (name, got["baselines"][name], float(exposed))
        if len(own) <= most and end - ready > exposed:
            return "worse than %s" % name
    return None


def some_segments(rng):
    n = min(rng.randint(1, 14), rng.randint(1, 14))  # up to 14, and more often few
    ready, tensors = 0, []
    large = rng.random() < 0.3
    style = rng.randrange(3)
    for i in range(n):
        step = rng.choice([0, 1, rng.randint(0, 30)]) if style == 0 else \
            round(rng.uniform(0, 20), 3) if style == 1 else rng.uniform(0, 20)
        ready = ready + step if style != 1 else round(ready + step, 3)
        size = rng.choice([0, rng.randint(1, 10), rng.randint(1, 1000)]) * (rng.choice([1, 100000]) if large else 1)
        tensors.append({"name": "t%d" % i, "bytes": size, "ready_ms": ready})
    case = {"tensors": tensors}
    if rng.random() < 0.7:
        case["max_segments"] = rng.randint(1, 10)
    unit = 1e-5 if large else 1e-2
    number = lambda top: rng.choice([0, rng.randint(0, 9), round(rng.uniform(0, top), 3), rng.uniform(0, top)])
    slope = lambda: rng.choice([0, unit, 3 * unit, rng.uniform(0, unit)])
    kind = rng.randrange(4)
    if kind == 0:
        case["levels"] = [{"alpha_ms": number(9), "beta_ms_per_byte": slope()} for _ in range(2)]
    elif kind == 1:
        x, points = 0, []
        for i in range(rng.randint(1, 5)):
            x += rng.randint(1, 300) * (1000 if large else 1)
            y = number(30) if i == 0 or rng.random() < 0.3 else points[-1][1] + number(30)
            points.append([x, y])
        if len(points) > 1 and points[-1][1] < points[-2][1]:
            points[-1][1] = points[-2][1]
        case["cost"] = points
    else:
        case["alpha_ms"], case["beta_ms_per_byte"] = number(20), slope()
    return case


# --- asking ---------------------------------------------------------------------------------------------------
KINDS = {"shards": (some_shards, check_shards),
         "least": (some_least, lambda case, answer: check_shards(case, answer, case["communication"])),
         "reshard": (some_reshard, check_reshard),
         "segments": (some_segments, check_segments)}


def ask(what, cases):
    program = os.path.join(os.environ.get("B", "build"), "oracle", "planner_lines")
    lines = "".join("%s %s\n" % (what, json.dumps(case)) for case in cases)
    answers = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(cases), "the planner stopped after %d of %d" % (len(answers), len(cases))
    return answers


def differences(what, count, seed):
    make, check = KINDS[what]
    rng = random.Random("%s %s" % (what, seed))
    cases = [make(rng) for _ in range(count)]
    found = []
    for case, answer in zip(cases, ask(what, cases)):
        wrong = check(case, answer)
        if wrong is not None:
            found.append("%s: %s\n  %s" % (what, wrong, json.dumps(case)))
    return found


if __name__ == "__main__":
    found = differences(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "1")
    for line in found[:MAX_DIFFERENCES_SHOWN]:
        print(line)
    print("%s: %s cases, %d differences" % (sys.argv[1], sys.argv[2], len(found)))
    sys.exit(1 if found else 0)
