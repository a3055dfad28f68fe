"""How much of each batch every rank of a job has to get, from the definitions alone (docs/reference/trainingjob.md, the
planner's order of ties), in exact fractions: nothing here knows how the C code works.

A member is a rank: {"device", "program", "peaks": {"bf16": 989, ...}, "estimated", "kernel": (precision, GFLOP/s) or None}.
A row of the SpeedTable is (program or "-", model, device) -> (alpha_ms, beta_ms)."""
import heapq
from fractions import Fraction

PRECISIONS = ("bf16", "fp16", "fp32")


def exact(number):
    """The decimal that was written, not the double it becomes."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def member(group, program=None):
    """A rank on a chip of a group of an inventory."""
    peaks = {p: exact(group["tflops" + p.capitalize()]) for p in PRECISIONS if group.get("tflops" + p.capitalize(), 0) > 0}
    measured = group.get("measured")
    return {"device": group["model"], "program": program, "peaks": peaks, "estimated": bool(group.get("estimated")),
            "kernel": (measured.get("precision", "fp32"), exact(measured["gflops"])) if measured else None}


def row_of(rows, program, model, device):
    """Its own program's row; else one of a program that is not known; whoever knows no program takes any."""
    for known in ([program, "-"] if program else sorted({p for p, m, d in rows if (m, d) == (model, device)})):
        if (known, model, device) in rows:
            return tuple(exact(x) for x in rows[known, model, device])
    return None


def highest(peaks):
    return next((peaks[p] for p in PRECISIONS if p in peaks), None)


def speeds(members, rows, model):
    """-> (source, precision or None, [(alpha, beta) of each member])"""
    lines = [row_of(rows, m["program"], model, m["device"]) for m in members]
    if all(lines):
        return "measured", None, lines

    def by(rates):
        return [(Fraction(0), 1 / r) for r in rates]
    if not all(m["peaks"] or m["kernel"] for m in members):
        return "assumed", None, by([Fraction(1)] * len(members))
    kernels = {m["kernel"][0] if m["kernel"] else None for m in members}
    if len(kernels) == 1 and None not in kernels:
        return "kernel", kernels.pop(), by([m["kernel"][1] for m in members])
    # a chip that was only measured counts in its precision
    peaks = [m["peaks"] or {m["kernel"][0]: m["kernel"][1] / 1000} for m in members]
    stands = [m["estimated"] and bool(m["peaks"]) for m in members]
    for p in PRECISIONS:
        if any(p in own for own in peaks) and all(p in own or any_one for own, any_one in zip(peaks, stands)):
            return "table", p, by([highest(own) if any_one else own[p] for own, any_one in zip(peaks, stands)])
    return "table", "mixed", by([highest(own) for own in peaks])


def capacity(line, time):
    """How many samples are done by then."""
    alpha, beta = line
    return max(0, (time - alpha) // beta) if time >= alpha else 0


def least_step(lines, batch):
    """The smallest slowest step: from what all can do in the time in which parts of samples would do, one sample at a time."""
    times = sorted({alpha for alpha, beta in lines})
    time = None
    for i, start in enumerate(times):  # the real-valued step: sum of (T - alpha) / beta over those that have begun
        begun = [(a, b) for a, b in lines if a <= start]
        t = (batch + sum(a / b for a, b in begun)) / sum(1 / b for a, b in begun)
        if i + 1 == len(times) or t <= times[i + 1]:
            time = t
            break
    have = [capacity(line, time) for line in lines]
    nexts = [(alpha + beta * (n + 1), i) for i, ((alpha, beta), n) in enumerate(zip(lines, have))]
    heapq.heapify(nexts)
    done, last = sum(have), max((a + b * n for (a, b), n in zip(lines, have) if n), default=Fraction(0))
    if done >= batch:  # the real-valued shares are whole, or more than asked for: exact as they are
        return last
    while done < batch:
        last, i = heapq.heappop(nexts)
        done, have[i] = done + 1, have[i] + 1
        heapq.heappush(nexts, (lines[i][0] + lines[i][1] * (have[i] + 1), i))
    return last


def exact_plan(lines, batch):
    """Least step, then fewest workers, then the larger share for the earlier one."""
    top = [capacity(line, least_step(lines, batch)) for line in lines]
    used, reach = 0, 0
    for n in sorted(top, reverse=True):
        if reach >= batch:
            break
        used, reach = used + 1, reach + n
    shares, rest = [], batch
    for i, n in enumerate(top):
        after = sorted(top[i + 1:], reverse=True)
        with_it = sum(after[:used - 1]) if used else 0  # what the others can still do if this one is used
        share = min(n, rest - sum(1 for _ in range(used - 1))) if used and n else 0  # each later one that is used needs a sample
        if share <= 0 or with_it < rest - share:
            shares.append(0)
            continue
        shares.append(share)
        rest, used = rest - share, used - 1
    assert rest == 0 and used == 0, (lines, batch, shares)
    return shares


def cut(lines, places, batch, weighted=True):
    """The exact plan of the ranks in one order: by the entry that they serve, then by their places, then as they
    come; whoever it leaves idle has a sample of the largest share. -> the shares in the order of the lines
    places: (entry, node, group)"""
    count = len(lines)
    order = sorted(range(count), key=lambda i: (places[i], i))
    lines = [lines[i] for i in order]
    shares = exact_plan(lines, batch) if weighted else [batch // count + (i < batch % count) for i in range(count)]
    for i in range(count):
        largest = shares.index(max(shares))
        if shares[i] == 0 and shares[largest] > 1:
            shares[largest], shares[i] = shares[largest] - 1, 1
    answer = [0] * count
    for i, share in zip(order, shares):
        answer[i] = share
    return answer
