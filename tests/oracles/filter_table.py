"""The filter table and the score tuple once more, from the objects of a store alone; knows nothing of the C code.

Cluster(inventories, bound pods, options).reason(pod, node) and .key(pod, node): what filter and prioritize should say. Covered:
classes with overflow, pools, urgency by label and by PriorityClass, resources, models, health, busy chips, groups, equal nodes, networks,
programs and their checksums, weighted and equal shares by annotation and by TrainingJob (exact fractions), holds for older pods, selectors,
affinity and taints, placements uniform, largest-free and fastest. Not here: gangs and leases (scheduler-extender/decide/test_gang.c, test_gang_step.c), packed
(its order is checked by properties)."""
from fractions import Fraction

LABEL = "remuda.dev/"
UNRESOLVABLE = ["NoSuchResource", "WrongModel", "SingleChipNode", "MultiChipNode", "ReservedPool", "TooFewChips", "NoProgram", "NoSuchGroup",
                "UnequalNode", "NetworkTooSlow", "ShareTooLarge"]
FAILED = ["ChipsUnhealthy", "ChipsBusy", "NoWholeGroup", "GangIncomplete", "ShareTooSmall"]


def chips_of(pod):
    """resource -> chips, as Kubernetes counts: the sum of containers and sidecars, or the largest init container's moment"""
    asked = {}
    for c in pod["spec"]["containers"]:
        for r, n in c["resources"].get("limits", {}).items():
            asked[r] = asked.get(r, 0) + int(n)
    sidecars = {}
    for c in pod["spec"].get("initContainers", []):
        limits = {r: int(n) for r, n in c["resources"].get("limits", {}).items()}
        if c.get("restartPolicy") == "Always":
            for r, n in limits.items():
                sidecars[r] = sidecars.get(r, 0) + n
                asked[r] = asked.get(r, 0) + n
                asked["peak " + r] = max(asked.get("peak " + r, 0), sidecars[r])
        else:
            for r, n in limits.items():
                asked["peak " + r] = max(asked.get("peak " + r, 0), sidecars.get(r, 0) + n)
    return {r: max(n, asked.get("peak " + r, 0)) for r, n in
            {**{k[5:]: 0 for k in asked if k.startswith("peak ")}, **{k: v for k, v in asked.items() if not k.startswith("peak ")}}.items()
            if max(n, asked.get("peak " + r, 0)) > 0}


def label(pod, name):
    return pod["metadata"].get("labels", {}).get(LABEL + name)


def annotation(pod, name):
    return pod["metadata"].get("annotations", {}).get(LABEL + name)


def shares(speeds, batch):
    """The plan with the least slowest worker; of those with the fewest workers; of those with the larger shares first."""
    best = None
    for s in set(speeds):
        low, high = 1, batch  # the least b for which everybody, at b / s, does the whole batch
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if sum(Fraction(middle) / s * x // 1 for x in speeds) >= batch else (middle + 1, high)
        best = Fraction(low) / s if best is None or Fraction(low) / s < best else best
    caps = [int(best * x // 1) for x in speeds]
    used, total = 0, 0
    for c in sorted(caps, reverse=True):
        if total >= batch:
            break
        used, total = used + 1, total + c
    plan, left = [], batch
    for i, cap in enumerate(caps):
        later = sorted(caps[i + 1:], reverse=True)
        give = 0
        if used > 0:
            for b in range(min(cap, left), 0, -1):
                rest = left - b
                if rest <= sum(later[:used - 1]) and (rest >= used - 1):
                    give = b
                    break
        plan.append(give)
        if give:
            left, used = left - give, used - 1
    assert left == 0 and sum(plan) == batch, (speeds, batch, plan)
    return best, plan


def label_holds(expression, value):
    """one matchExpression, of a label's value or None where the node has no such label"""
    operator, values = expression["operator"], expression.get("values", [])
    if operator in ("NotIn", "DoesNotExist"):
        return value is None or (operator == "NotIn" and value not in values)
    if value is None:
        return False
    if operator in ("Gt", "Lt"):
        return value.lstrip("-").isdigit() and (int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0]))
    return operator == "Exists" or value in values


def allowed(pod, node):
    """what NodeAffinity, NodeUnschedulable and TaintToleration of kube-scheduler say of a Node object"""
    spec, labels = pod["spec"], node["metadata"].get("labels", {})
    if any(labels.get(k) != v for k, v in spec.get("nodeSelector", {}).items()):
        return False
    terms = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
    if terms is not None and not any(
            (t.get("matchExpressions") or t.get("matchFields")) and
            all(label_holds(e, labels.get(e["key"])) for e in t.get("matchExpressions", [])) and
            all(label_holds(e, node["metadata"]["name"]) for e in t.get("matchFields", [])) for t in terms):
        return False
    taints = list(node.get("spec", {}).get("taints", []))
    if node.get("spec", {}).get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    return all(t["effect"] == "PreferNoSchedule" or any(
        x.get("effect", "") in ("", t["effect"]) and (x.get("key", "") in ("", t["key"])) and
        (x.get("operator") == "Exists" or (x.get("key") == t["key"] and x.get("value", "") == t.get("value", "")))
        for x in spec.get("tolerations", [])) for t in taints)


class Cluster:
    def __init__(self, inventories, bound, lend_reserve=False, emergency_namespaces=(), emergency_classes=(), overflow=("none", 100), jobs=(),
                 programs=None):
        """jobs: TrainingJob objects; programs: runtime -> sha256 or "" of the program table"""
        self.classes, self.overflow, self.programs = emergency_classes, overflow, programs or {}
        self.jobs = {(j["metadata"]["namespace"], j["metadata"]["name"]): j["spec"] for j in jobs}
        self.status = {i["metadata"]["name"]: i["status"] for i in inventories}
        self.lend, self.namespaces = lend_reserve, emergency_namespaces
        self.bound = bound
        self.held = {}  # (node, group) -> chips
        for p in bound:
            for part in annotation(p, "groups").split(","):
                g, n = part.split("=")
                key = (p["spec"]["nodeName"], g)
                self.held[key] = self.held.get(key, 0) + int(n)

    def job(self, pod):
        return self.jobs.get((pod["metadata"]["namespace"], label(pod, "job")))

    def class_chips(self, pod):
        """the whole job's chips, which the class rule counts"""
        job = self.job(pod)
        return sum(w["chips"] for w in job["workers"]) if job else sum(chips_of(pod).values()) * int(label(pod, "gang-size") or 1)

    def overflows(self, pod, node):
        single, mode, status = self.class_chips(pod) <= 1, self.overflow[0], self.status
        if mode not in ("both", "single-to-multi" if single else "multi-to-single") or (not single and self.class_chips(pod) > 4):
            return False
        resource, chips = next(iter(chips_of(pod).items()))
        others = [n for n in status if status[n]["nodeClass"] == ("multi" if single else "single")]
        groups = [(n, g) for n in others for g in status[n]["groups"] if g["resource"] == resource]
        used = sum(chips_of(p).get(resource, 0) for p in self.bound if p["spec"]["nodeName"] in others and (self.class_chips(p) <= 1) == single)
        if chips > sum(g["healthy"] for _, g in groups) * self.overflow[1] // 100 - used:
            return False
        if not single:
            return True
        if any(p["spec"]["nodeName"] == node and self.class_chips(p) > 1 for p in self.bound):
            return False  # not idle
        whole = sum(g["total"] > 1 and self.free(n, g) == g["total"] for n, g in groups)
        broken = any(self.free(node, g) > 0 and (self.free(node, g) < g["total"] or g["total"] == 1) for g in self.groups(pod, node, resource))
        return whole > 1 or broken  # never the last whole group

    def has_program(self, pod, node, resource, chips):
        job, group = self.job(pod), self.serving(pod, node, resource, chips)
        if job is None or group is None:
            return True
        reported = {p["runtime"]: p.get("sha256", "") for p in self.status[node].get("programs", [])}
        wanted, runtime = self.programs.get(group["runtime"], ""), group["runtime"]
        if wanted and reported.get(runtime):
            return wanted == reported[runtime]
        serves = {runtime} | ({"opencl", "sunway"} if runtime == "cpu" else set())
        return runtime in reported or bool(serves & (set(job.get("programs", {})) | set(self.programs)))

    def emergency(self, pod):
        return pod["spec"].get("priorityClassName") in self.classes or label(pod, "urgency") == "emergency" and ("*" in self.namespaces or pod["metadata"]["namespace"] in self.namespaces)

    def groups(self, pod, node, resource):
        accepted = (annotation(pod, "models") or "").split("|") if annotation(pod, "models") else None
        return [g for g in self.status[node]["groups"] if g["resource"] == resource and (accepted is None or g["model"] in accepted)]

    def free(self, node, g):
        return max(0, g["healthy"] - self.held.get((node, g["name"]), 0))

    def configuration(self, node):
        s = self.status[node]
        fastest = max(((i["mbps"], i["kind"]) for i in s.get("hardware", {}).get("network", [])), default=None)
        return sorted((g["vendor"], g["model"], g["total"]) for g in s["groups"]), fastest

    def network(self, node):
        return max([i["mbps"] for i in self.status[node].get("hardware", {}).get("network", [])] or [0])

    def members(self, pod):
        return [p for p in self.bound if label(pod, "job") and label(p, "job") == label(pod, "job") and
                p["metadata"]["namespace"] == pod["metadata"]["namespace"]]

    def serving(self, pod, node, resource, chips, fastest=False):
        """the group that would serve it: the tightest with room (the fastest, if asked), else the first that is accepted"""
        groups = self.groups(pod, node, resource)
        room = [g for g in groups if self.free(node, g) >= chips]
        if not room:
            return groups[0] if groups else None
        return max(room, key=lambda g: (g["tflopsBf16"], -self.free(node, g))) if fastest else min(room, key=lambda g: self.free(node, g))

    def share(self, pod, node, resource, chips, fastest=False):
        """(step, shares of the pod's own chips, its memory), or None where nothing is weighted; shares None: they are equal"""
        job = self.job(pod)
        if not annotation(pod, "batch") and not job:
            return None
        batch = int(annotation(pod, "batch") or job["globalBatch"])
        speeds = []
        for p in self.members(pod):
            for part in annotation(p, "groups").split(","):
                g, n = part.split("=")
                speeds += [Fraction(next(x["tflopsBf16"] for x in self.status[p["spec"]["nodeName"]]["groups"] if x["name"] == g))] * int(n)
        g = self.serving(pod, node, resource, chips, fastest)
        if not annotation(pod, "batch") and job["shards"] == "equal":
            every = speeds + [Fraction(g["tflopsBf16"])] * chips
            return (Fraction(batch, len(every)) / min(every) if batch % len(every) == 0 else None), None, g["memoryBytes"]
        step, plan = shares(speeds + [Fraction(g["tflopsBf16"])] * chips, batch)
        return step, plan[len(speeds):], g["memoryBytes"]

    def reason(self, pod, node):
        if node not in self.status:
            return "NodeUnknown"
        asked = chips_of(pod)
        if not asked:
            return ""
        s, n = self.status[node], self.class_chips(pod)
        broken = set()
        if s["nodeClass"] == "single" and n > 1 and not self.overflows(pod, node):
            broken.add("SingleChipNode")
        if s["nodeClass"] == "multi" and n == 1 and not self.overflows(pod, node):
            broken.add("MultiChipNode")
        if s["nodeClass"] == "multi" and n > 1 and sum(asked.values()) == 1 and not self.job(pod) and not self.members(pod):
            broken.add("GangIncomplete")
        if s["pool"] == "reserved" and not self.emergency(pod) and not (self.lend and label(pod, "preemptible") == "true"):
            broken.add("ReservedPool")
        for resource, chips in asked.items():
            groups = self.groups(pod, node, resource)
            whole = label(pod, "same-group") == "true"
            if not any(g["resource"] == resource for g in s["groups"]):
                broken.add("NoSuchResource")
            elif not groups:
                broken.add("WrongModel")
            elif sum(g["total"] for g in groups) < chips:
                broken.add("TooFewChips")
            elif whole and max(g["total"] for g in groups) < chips:
                broken.add("NoSuchGroup")
            if groups and sum(g["healthy"] for g in groups) < chips:
                broken.add("ChipsUnhealthy")
            elif groups and sum(self.free(node, g) for g in groups) < chips:
                broken.add("ChipsBusy")
            elif groups and whole and max(self.free(node, g) for g in groups) < chips:
                broken.add("NoWholeGroup")
            if groups and len(asked) == 1 and not self.has_program(pod, node, resource, chips):
                broken.add("NoProgram")
            if groups and len(asked) == 1:
                share = self.share(pod, node, resource, chips)
                if share and share[1] and 0 in share[1]:
                    broken.add("ShareTooSmall")
                elif share and share[1] and annotation(pod, "memory-sample-bytes") and \
                        max(share[1]) * int(annotation(pod, "memory-sample-bytes")) > share[2]:
                    broken.add("ShareTooLarge")
        if label(pod, "equal-nodes") == "true" and self.members(pod):
            first = min(self.members(pod), key=lambda p: p["metadata"]["name"])["spec"]["nodeName"]
            if first != node and self.configuration(first) != self.configuration(node):
                broken.add("UnequalNode")
        if label(pod, "min-network-mbps") and self.network(node) < int(label(pod, "min-network-mbps")):
            broken.add("NetworkTooSlow")
        return next((w for w in UNRESOLVABLE + FAILED if w in broken), "")

    def hold(self, old, now):
        """(node, when it could start there, chips to spare then) for an older pod of several chips that can start nowhere; None = no hold.
        Soonest first, then the fewest chips that must become free, then by name. Ends are start + activeDeadlineSeconds."""
        (resource, chips), = chips_of(old).items()
        best, never = None, float("inf")
        if any(self.reason(old, n) == "" for n in self.status):
            return None
        for node in self.status:
            if self.reason(old, node) not in ("ChipsBusy", "NoWholeGroup"):
                continue
            room = lambda c: sum(c.free(node, g) for g in c.groups(old, node, resource))
            ends = sorted((p["spec"]["activeDeadlineSeconds"] + p["start"], p["metadata"]["name"]) for p in self.bound
                          if p["spec"]["nodeName"] == node and "activeDeadlineSeconds" in p["spec"])
            start, spare = never, 0
            for i, (end, _) in enumerate(ends):
                gone = {name for _, name in ends[:i + 1]}
                later = self.without(gone)
                if later.reason(old, node) == "":
                    start, spare = max(end, now), room(later) - chips
                    break
            candidate = (start, max(0, chips - room(self)), node)
            if best is None or candidate < best[0]:
                best = candidate, (node, start, spare)
        return best and best[1]

    def without(self, names):
        import copy
        c = copy.copy(self)
        c.bound = [p for p in self.bound if p["metadata"]["name"] not in names]
        c.held = {}
        for p in c.bound:
            for part in annotation(p, "groups").split(","):
                g, n = part.split("=")
                c.held[p["spec"]["nodeName"], g] = c.held.get((p["spec"]["nodeName"], g), 0) + int(n)
        return c

    def held_back(self, pod, node, hold, old, now):
        """does the hold of `old` keep a younger pod from the node?"""
        if hold is None or hold[0] != node or pod["metadata"]["creationTimestamp"] <= old["metadata"]["creationTimestamp"]:
            return False
        if self.emergency(pod) and not self.emergency(old):
            return False
        if now + pod["spec"].get("activeDeadlineSeconds", float("inf")) <= hold[1] < float("inf"):
            return False
        return all(chips_of(pod).get(r, 0) > hold[2] for r in chips_of(old) if r in chips_of(pod)) and bool(set(chips_of(pod)) & set(chips_of(old)))

    def key(self, pod, node, placement):
        """smaller is better: pool, class, placement, step (first under fastest)"""
        asked = chips_of(pod)
        s, n = self.status[node], self.class_chips(pod)
        pool = (s["pool"] != "reserved") if self.emergency(pod) else (s["pool"] == "reserved")
        cls = {"any": 1, "multi" if n > 1 else "single": 0}.get(s["nodeClass"], 2)
        (resource, chips), = asked.items()
        groups = self.groups(pod, node, resource)
        share = self.share(pod, node, resource, chips, placement == "fastest")
        step = share[0] if share else 0
        if placement == "uniform":
            place = sum(self.held.get((node, g["name"]), 0) for g in groups)
        elif placement == "largest-free":
            place = -sum(self.free(node, g) for g in groups)
        else:
            room = [g["tflopsBf16"] for g in groups if self.free(node, g) >= chips]
            place = -(max(room) if room else min(g["tflopsBf16"] for g in groups if self.free(node, g) > 0))
        return (step, pool, cls, place) if placement == "fastest" else (pool, cls, place, step)
