"""What the extender's integration tests share: a dir: store, a running extender, HTTP in kube-scheduler's own words."""
import atexit, http.client, json, os, re, signal, subprocess, tempfile, shutil, time, urllib.request

from tap import Tap  # noqa: F401 - for the tests
from waiting import wait_for

B = os.environ.get("B", "build")
GPU = "nvidia.com/gpu"


def inventory(name, total=8, healthy=None, cls="any", pool="regular", model="H100", resource=GPU, vendor="nvidia",
              runtime="cuda", tflops=100, groups=None, hardware=None):
    groups = groups or [{"name": f"{vendor}-{model.lower()}-0", "vendor": vendor, "runtime": runtime, "model": model,
                         "resource": resource, "fabric": "none", "total": total,
                         "healthy": total if healthy is None else healthy,
                         "free": 0, "tflopsBf16": tflops, "memoryBytes": 80 << 30}]
    status = {"generation": 1, "bootID": "b", "nodeClass": cls, "pool": pool, "groups": groups, "devices": []}
    if hardware:
        status["hardware"] = hardware
    return {"apiVersion": "remuda.dev/v1alpha1", "kind": "NodeAccelerators", "metadata": {"name": name}, "status": status}


def node(name, **allocatable):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": {k.replace("__", "/").replace("_dot_", "."): str(v) for k, v in allocatable.items()}}}


def pod(name, chips=1, node=None, labels=None, annotations=None, namespace="default", uid=None, resource=GPU, created=None,
        **spec):
    p = {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": name, "namespace": namespace, "uid": uid or "uid-" + name,
                      "creationTimestamp": created or "2026-11-21T10:00:00Z",
                      "labels": {"remuda.dev/" + k.replace("_", "-"): str(v) for k, v in (labels or {}).items()},
                      "annotations": {"remuda.dev/" + k: str(v) for k, v in (annotations or {}).items()}},
         "spec": {"containers": [{"name": "c", "resources": {"limits": {resource: str(chips)} if chips else {}}}], **spec}}
    if node:
        p["spec"]["nodeName"] = node
        p["status"] = {"phase": "Running"}
    return p


class Rig:
    program = "remuda-extender"

    def __init__(self, *options, objects=()):
        self.dir = tempfile.mkdtemp(prefix="remuda-extender-")
        self.options, self.process, self.env = options, None, {}
        self.store = "dir:" + self.dir
        for o in objects:
            self.put(o)

    def put(self, o, touch=None):
        m = o["metadata"]
        name = "%s.%s%s.json" % (m["name"], m.get("namespace", "") + "." if o["kind"] == "Pod" else "", o["kind"].lower())
        path = os.path.join(self.dir, name)
        with open(path + ".tmp~", "w") as f:
            json.dump(o, f)
        os.rename(path + ".tmp~", path)
        if touch is not None:
            os.utime(path, (time.time() - touch,) * 2)
        return path

    def drop(self, o):
        m = o["metadata"]
        os.unlink(os.path.join(self.dir, "%s.%s%s.json" % (
            m["name"], m.get("namespace", "") + "." if o["kind"] == "Pod" else "", o["kind"].lower())))

    def start(self):
        """run it and wait until it is ready"""
        self.log = tempfile.NamedTemporaryFile("w+", prefix="remuda-extender-", suffix=".log")
        self.process = subprocess.Popen([f"{B}/bin/{self.program}", "--store", self.store, "--listen", "127.0.0.1:0",
                                         *self.options], stderr=self.log, stdout=self.log, env={**os.environ, **self.env})
        for _ in range(3000):
            text = open(self.log.name).read()
            m = re.search(r"listening address=([0-9.]+):(\d+) metrics=(\S+)", text)
            if m:
                self.port, self.metrics_address = int(m.group(2)), m.group(3)
                break
            if self.process.poll() is not None:
                raise RuntimeError("the extender ended: " + text)
            time.sleep(0.01)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        assert self.wait(lambda: self.get("/readyz")[0] == 200, 60), "not ready: " + open(self.log.name).read()
        return self

    def wait(self, what, seconds=20):
        def tried():
            try:
                return what()
            except (ConnectionError, http.client.HTTPException):
                self.connection.close()
                return False
        return wait_for(tried, seconds)

    def get(self, path):
        self.connection.request("GET", path)
        r = self.connection.getresponse()
        return r.status, r.read().decode()

    def post(self, path, body):
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        self.connection.request("POST", path, data, {"Content-Type": "application/json"})
        r = self.connection.getresponse()
        text = r.read().decode()
        return r.status, (json.loads(text) if text else None)

    def filter(self, p, names):
        status, reply = self.post("/scheduler/filter", {"Pod": p, "Nodes": None, "NodeNames": names})
        assert status == 200, (status, reply)
        return reply

    def words(self, p, names):
        """node -> reason word, '' where it fits; also checks that the maps and the list are a partition"""
        r = self.filter(p, names)
        assert not r["Error"], r["Error"]
        out = {n: "" for n in r["NodeNames"]}
        for key in ("FailedNodes", "FailedAndUnresolvableNodes"):
            for n, m in r[key].items():
                assert n not in out
                out[n] = m.split(":")[0]
        assert sorted(out) == sorted(set(names)), (out, names)
        return out

    def scores(self, p, names):
        status, reply = self.post("/scheduler/prioritize", {"Pod": p, "NodeNames": names})
        assert status == 200, (status, reply)
        return {h["Host"]: h["Score"] for h in reply}

    def bind(self, p, node):
        m = p["metadata"]
        return self.post("/scheduler/bind", {"PodName": m["name"], "PodNamespace": m["namespace"], "PodUID": m["uid"],
                                             "Node": node})[1]["Error"]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            code = self.process.wait(10)
            assert code == 0, (code, open(self.log.name).read()[-3000:])
        shutil.rmtree(self.dir, ignore_errors=True)


class Kube:
    def __init__(self):
        self.process = subprocess.Popen(["python3", "tests/fake-apiserver"], stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        self.port = int(self.process.stdout.readline())
        self.config = tempfile.NamedTemporaryFile("w", suffix=".conf")
        json.dump({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "namespace": "remuda"}}],
                   "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}]}, self.config)
        self.config.flush()

    def admin(self, **op):
        return json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_admin", json.dumps(op).encode()))

    def get(self, path):
        return json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}"))

    def put(self, obj, silent=False):
        ns = obj["metadata"].get("namespace")
        path = {"Pod": f"/api/v1/namespaces/{ns}/pods", "Node": "/api/v1/nodes", "Lease": f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
                "NodeAccelerators": "/apis/remuda.dev/v1alpha1/nodeaccelerators"}[obj["kind"]]
        self.admin(op="put", path=path, object=obj, silent=silent)

    def pods(self):
        return {p["metadata"]["name"]: p for p in self.get("/api/v1/pods")["items"]}


class KubeRig(Rig):
    def __init__(self, kube, *options):
        super().__init__("--kubeconfig", kube.config.name, "--leader-lease-seconds", "3", *options)
        self.store = "kubernetes"
