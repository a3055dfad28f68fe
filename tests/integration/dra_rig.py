"""A scripted kubelet's DRA side over grpcio, an agent with --dra, and claims in a folder. Messages by fake_kubelet's codec, which is not ours."""
import glob, json, os, queue, signal, subprocess, threading, time

import grpc

from agent_rig import Agent
import dra_account
from fake_kubelet import OPTIONS, every, get, pack, raw, text, unpack

DRIVER = "remuda.dev"


def wait(good, timeout=30):
    """what good() says once it is true, or the last"""
    end = time.monotonic() + timeout
    while not (said := good()) and time.monotonic() < end:
        time.sleep(0.01)
    return said


class Node:
    """An agent with DRA, its kubelet's folders, its store."""
    def __init__(self, *options, machine="nvidia-h100-x8", dra="only", config=None, env=None):
        self.agent = Agent(machine, config=config, env=env)
        self.dir = self.agent.dir
        self.root, self.store, self.cdi = self.dir + "/kubelet", self.dir + "/store", self.dir + "/cdi"
        os.makedirs(self.root + "/plugins_registry")
        self.options = ["--kubelet-root", self.root, "--cdi-dir", self.cdi, "--pod-resources", "none",
                        *(["--dra", dra] if dra else []), *options]
        self.agent.options = self.options
        self.claims = 0

    def start(self):
        self.agent.start()
        return self

    def registration(self, uid=""):
        return "%s/plugins_registry/%s%s-reg.sock" % (self.root, DRIVER, uid and "-" + uid)

    def endpoint(self, uid=""):
        return "%s/plugins/%s/dra%s.sock" % (self.root, DRIVER, uid and "-" + uid)

    def state(self):
        return dra_account.read("%s/plugins/%s" % (self.root, DRIVER))

    def slices(self):
        out = []
        for path in sorted(glob.glob(self.store + "/*.json")):
            try:
                object = json.load(open(path))
            except (ValueError, FileNotFoundError):
                continue
            if object.get("kind") == "ResourceSlice":
                out.append(object)
        return out

    def devices(self):
        return [d for s in self.slices() for d in s["spec"].get("devices", [])]

    def device(self, name):
        return next((d for d in self.devices() if d["name"] == name), None)

    def specs(self):
        return {os.path.basename(p): json.load(open(p)) for p in glob.glob(self.cdi + "/remuda.dev-claim_*.json")}

    def claim(self, *devices, uid=None, name=None, allocated=True, pool="n1", driver=DRIVER, request="gpu", write=True, namespace="default", holders=1, **more):
        """A ResourceClaim of these devices in the store; its (namespace, uid, name)."""
        self.claims += 1
        name, uid = name or "c%d" % self.claims, uid or "11111111-0000-4000-8000-%012d" % self.claims
        results = [{"request": request, "driver": driver, "pool": pool, "device": d, **more.get("result", {})} for d in devices]
        object = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": namespace, "uid": uid},
                  "spec": {"devices": {}}, "status": {"reservedFor": [{"resource": "pods", "name": "pod-%s%s" % (name, i or ""), "uid": "p%d" % i} for i in range(holders)]}}
        if allocated:
            object["status"]["allocation"] = {"devices": {"results": results, "config": more.get("config", [])}}
        if write:
            path = "%s/claim-%s.json" % (self.store, name)
            with open(self.store + "/.new", "w") as f:
                json.dump(object, f)
            os.rename(self.store + "/.new", path)
        return namespace, uid, name

    def events(self):
        """Of claims, in the store."""
        try:
            return [e for e in map(json.loads, open(self.store + "/events.jsonl")) if e["kind"] == "ResourceClaim"]
        except FileNotFoundError:
            return []

    def stop(self, sig=signal.SIGTERM):
        return self.agent.stop(sig)

    def remove(self):
        self.agent.remove()


def claims_request(claims):
    return pack(*[(1, pack((1, ns), (2, uid), (3, name))) for ns, uid, name in claims])


class Kubelet:
    def __init__(self, path):
        self.channel = grpc.insecure_channel("unix:" + path, options=OPTIONS)

    def call(self, method, request=b"", timeout=45):
        return self.channel.unary_unary(method, raw, raw)(request, timeout=timeout)

    def info(self):
        f = unpack(self.call("/pluginregistration.Registration/GetInfo", timeout=1))
        return {"type": text(f, 1), "name": text(f, 2), "endpoint": text(f, 3), "versions": [v.decode() for v in every(f, 4)]}

    def register(self):
        """as a kubelet says it; whose connection to the driver is another object's"""
        return self.call("/pluginregistration.Registration/NotifyRegistrationStatus", pack((1, True)))

    def prepare(self, *claims, version="v1", timeout=45):
        """{uid: (devices, error)}, devices [{requests, pool, device, cdi}]"""
        answer = self.call("/k8s.io.kubelet.pkg.apis.dra.%s.DRAPlugin/NodePrepareResources" % version, claims_request(claims), timeout)
        out = {}
        for entry in map(unpack, every(unpack(answer), 1)):
            value = unpack(get(entry, 2))
            assert text(entry, 1) not in out, "a uid twice"
            out[text(entry, 1)] = ([{"requests": [r.decode() for r in every(d, 1)], "pool": text(d, 2), "device": text(d, 3),
                                     "cdi": [c.decode() for c in every(d, 4)], "share": text(d, 5)} for d in map(unpack, every(value, 1))], text(value, 2))
        return out

    def unprepare(self, *claims, version="v1", timeout=45):
        answer = self.call("/k8s.io.kubelet.pkg.apis.dra.%s.DRAPlugin/NodeUnprepareResources" % version, claims_request(claims), timeout)
        return {text(e, 1): text(unpack(get(e, 2)), 1) for e in map(unpack, every(unpack(answer), 1))}

    def watch(self, version="v1"):
        return Watch(self.channel.unary_stream("/%s.DRAResourceHealth/NodeWatchResources" % version, raw, raw)(b""))

    def close(self):
        self.channel.close()


class Watch:
    """{device: (pool, health, message, time)} of each list"""
    def __init__(self, stream):
        self.stream, self.lists = stream, queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for message in self.stream:
                out = {}
                for device in map(unpack, every(unpack(message), 1)):
                    identifier = unpack(get(device, 1))
                    out[text(identifier, 2)] = (text(identifier, 1), get(device, 2, 0), text(device, 5), get(device, 3, 0))
                self.lists.put((time.monotonic(), out))
        except grpc.RpcError:
            pass

    def next(self, good=lambda l: True, timeout=30):
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            try:
                at, said = self.lists.get(timeout=left)
            except queue.Empty:
                break
            if good(said):
                return at, said
        return None, None

    def cancel(self):
        self.stream.cancel()
