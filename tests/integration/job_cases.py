"""A good job, and every documented field of it wrong in every way that its kind allows. The fields come from
docs/reference/trainingjob.md, so that a new one is tested by all that use this."""
import copy, json, os, re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOOD = {"apiVersion": "remuda.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "good", "namespace": "here"},
        "spec": {"workers": [{"runtime": "cpu", "chips": 1, "minChips": 1, "template": {"env": [{"name": "A", "value": "b"}], "resources": {"limits": {"cpu": 1}}, "shmSize": "1Gi"}}], "servers": {"runtime": "cpu", "chips": 1}, "model": "own", "args": [],
                 "strategy": "ps-sync", "programs": {"cuda": {"image": "x", "command": ["/x"]}}, "imagePullSecrets": [{"name": "pull"}], "data": {"path": "/tmp"}, "checkpoint": {"everySteps": 1},
                 "restart": {"max": 1}, "ttlSecondsAfterFinished": 60, "tls": {"secretName": "keys", "groupSecretName": "group-keys"}}}


SPLIT = {"strategy": "split", "stages": [{"layers": "0:0", "on": {"runtime": "cpu"}}], "profile": {"samples": 1, "layers": [{"name": "fc", "ms": {"cpu": 1.5}}]}}


def wrong_values(kind):
    """What a field of this kind is not."""
    numbers = re.fullmatch(r"(integer|number) ([-\d]+)\.\.([-\d]*)", kind)
    if numbers:
        low, high = int(numbers.group(2)), numbers.group(3)
        values = ["3", True, [], {}, low - 1, float("1e300")] + ([int(high) + 1] if high else [])
        return values + ([low + 0.5] if numbers.group(1) == "integer" else [])
    if kind == "boolean":
        return ["yes", 1, 0, [], "true"]
    if kind == "string" or kind.startswith("1 to 63 of"):
        return [7, True, [], {}, "a\nb", "a\u0007", "x" * 3000]
    if kind == "array":
        return ["x", 7, {}, [7], [{}], ["x"] * 300]
    if kind == "object":
        return ["x", 7, [], True]
    return ["nonsense", 7, True, [], {}, ""]  # one of several words


def place(field):
    """spec.workers[].chips -> the container, the last name, and the path that a message says."""
    steps = [s for s in re.split(r"\.|(\[\])", field.replace("RUNTIME", "cuda")) if s]
    job, said = copy.deepcopy(GOOD), ""
    if field.startswith(("spec.stages", "spec.profile")):
        job["spec"].update(copy.deepcopy(SPLIT))
        del job["spec"]["servers"]
    at = job
    for i, step in enumerate(steps):
        key = 0 if step == "[]" else step
        said += "[0]" if step == "[]" else ("." if said else "") + step
        if i == len(steps) - 1:
            return job, at, key, said
        at = at[key]


def fields():
    page = open(os.path.join(ROOT, "docs/reference/trainingjob.md")).read()
    for line in page.splitlines():
        row = re.match(r"\| `((?:metadata|spec)\.[A-Za-z_.\[\]]+)` \| (.*?) \|", line.replace("\\|", "/"))
        if row:
            yield row.group(1), row.group(2).replace("`", "")


def cases():
    """(what is wrong, the job, the field that an answer has to name)"""
    found = []
    for field, kind in fields():
        for value in wrong_values(kind):
            job, at, key, said = place(field)
            at[key] = value
            found.append((f"{field} = {json.dumps(value)[:60]}", job, said))
    for field in ("spec", "spec.workers[]", "spec.servers", "spec.programs.RUNTIME", "spec.data", "spec.checkpoint", "spec.restart"):
        job, at, key, said = place(field)
        at[key] = dict(at[key], wrokers=1)
        found.append((f"unknown field below {field}", job, said + ".wrokers"))
    for field in ("spec.workers", "spec.workers[].chips", "metadata.name", "spec.data.path", "metadata", "spec", "kind", "apiVersion"):
        job, at, key, said = place(field)
        del at[key]
        found.append((f"{field} is missing", job, "metadata.name" if field == "metadata" else said))
    NAMES = ["../x", "/etc/passwd", "-rf", "--help", "a/b", ".", "..", "a b", "Job", "x" * 64, "", "$(id)", "a;b", "\u00e9", "a_b", "a.b", "-", "a-"]
    for name in NAMES:
        job = copy.deepcopy(GOOD)
        job["metadata"]["name"] = name
        found.append((f"metadata.name = {name!r}", job, "metadata.name"))
        job = copy.deepcopy(GOOD)
        job["spec"]["dependsOn"] = [name]
        found.append((f"spec.dependsOn = [{name!r}]", job, "spec.dependsOn"))
    for field, value in (("spec.data.path", "-rf"), ("spec.data.path", "--data=/etc"), ("spec.checkpoint.path", "--force"), ("spec.workers[].group", "../g"),
                         ("spec.workers[].runtime", "../cpu"), ("spec.workers[].vendor", "-x"), ("spec.workers[].minChips", 2), ("spec.segments", [3, 3]),
                         ("spec.programs.RUNTIME.image", "--privileged"), ("spec.programs.RUNTIME.image", "../x"), ("spec.programs.RUNTIME.image", "a b"),
                         ("spec.model", "transformer"), ("spec.stages[].layers", "5:0"), ("spec.stages[].layers", "0:9"), ("spec.stages[].layers", "0"), ("spec.stages[].layers", "0:4096"),
                         ("spec.stages[].on", {"runtmie": "cpu"}), ("spec.stages", [{"layers": "0:0"}, {"layers": "1:1"}]), ("spec.profile", {}), ("spec.profile.layers", [{"ms": {"cpu": -1}}]),
                         ("spec.profile.samples", 0), ("spec.profile.samples", "8"), ("spec.profile.layers", []), ("spec.profile.layers", [{"memory_bytes": 0.5}]), ("spec.profile.layers", [{"memory": 1}]), ("spec.staleness", 3), ("spec.microbatches", 2), ("metadata.namespace", "../x"),
                         ("metadata.labels", {"../../x": "a"}), ("metadata.labels", {"--x": "a"}), ("metadata.labels", {"a/b/c": "x"}), ("metadata.labels", {"": "x"}),
                         ("metadata.labels", {"remuda.dev/job": "../../x"}), ("metadata.labels", {"a": "-rf"}), ("metadata.labels", {"a": "x" * 64}),
                         ("spec.workers[].template.env[].name", "POD_IP"), ("spec.workers[].template.env[].name", "REMUDA_JOB"), ("spec.workers[].template.env[].name", "1A"),
                         ("spec.workers[].template.shmSize", "0"), ("spec.workers[].template.shmSize", "1 Gi"), ("spec.workers[].template.resources.limits", {"nvidia.com/gpu": 1}),
                         ("spec.workers[].template.resources.limits", {"cpu": "x"}), ("spec.workers[].template.resources.requests", {"cpu": 2}),
                         ("metadata.labels", {"a": 5}), ("metadata.labels", ["a"]), ("metadata.annotations", {"../x": "a"}), ("metadata.annotations", {"a": 1})):
        job, at, key, said = place(field)
        at[key] = value
        if field == "spec.model":
            del job["spec"]["args"]
        found.append((f"{field} = {value!r}", job, said))
    return found
