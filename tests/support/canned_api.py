#!/usr/bin/env python3
"""An API server of canned pages, as fast as a socket takes them: what a list costs is then its reader's time alone.

canned_api.py NODES PODS [--bare] [--tls]: prints its port. Nodes look as real ones do (20 images, conditions, managedFields: 6 KB), of eight
chips each, with an inventory and a lease; with --bare they have none of our labels yet; --tls is by a certificate of its own. Writes are answered and forgotten. Every line on
stdin, "PODS NODES", is from then on the number of events a second: a pod's that changes or waits, a node's heartbeat."""
import asyncio, json, os, random, ssl, subprocess, sys, tempfile, time, urllib.parse

CHIPS = "nvidia.com/gpu"
PAST = "2026-11-21T10:00:00Z"


def name_of(i):
    return f"node-{i:05d}.cluster.local"


def metadata(name, uid, version, **more):
    return {"name": name, "uid": uid, "resourceVersion": str(version), "creationTimestamp": PAST,
            "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {f"f:a{k}": {} for k in range(40)}}], **more}


def node(i, version, bare):
    ours = {"remuda.dev/node-class": "any", "remuda.dev/pool": "regular", "remuda.dev/nvidia.count": "8",
            "remuda.dev/nvidia.H100.count": "8", "remuda.dev/group.h": "8"}
    labels = {"kubernetes.io/hostname": name_of(i), "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": f"z{i % 3}",
              **{f"example.com/label-{k}": f"v{k}" for k in range(10)}, **({} if bare else ours)}
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", CHIPS: "8"}
    conditions = [{"type": t, "status": "True", "lastHeartbeatTime": PAST, "lastTransitionTime": PAST, "reason": "KubeletReady",
                   "message": "kubelet is posting ready status"} for t in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")]
    images = [{"names": [f"registry.example.com/team/image-{k:02d}@sha256:{'ab' * 32}", f"registry.example.com/team/image-{k:02d}:v1.{i % 9}"],
               "sizeBytes": 123456789 + k} for k in range(20)]
    return {"metadata": metadata(name_of(i), f"u-{i}", version, labels=labels), "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions, "images": images,
                       "nodeInfo": {"bootID": "b", "kernelVersion": "6.1"}}}


def pod(i, version, nodes, chips, bound=True):
    amounts = {CHIPS: str(chips), "cpu": "2", "memory": "4Gi"}
    container = {"name": "c", "image": "registry.example.com/x:1", "env": [{"name": f"E{k}", "value": "v" * 20} for k in range(10)],
                 "resources": {"limits": amounts, "requests": amounts},
                 "volumeMounts": [{"name": "kube-api-access", "mountPath": "/var/run/secrets"}]}
    return {"metadata": metadata(f"pod-{i}", f"p-{i}", version, namespace=f"ns{i % 20}", labels={"app": f"a{i % 50}"}),
            "spec": {**({"nodeName": name_of(i * 7919 % nodes)} if bound else {}), "containers": [container]},
            "status": {"phase": "Running" if bound else "Pending", "startTime": PAST,
                       "containerStatuses": [{"name": "c", "state": {"running": {}}, "ready": True}]}}


def inventory(i):
    group = {"name": "h", "vendor": "nvidia", "runtime": "cuda", "model": "H100", "resource": CHIPS, "fabric": "nvlink", "total": 8,
             "healthy": 8, "free": 0, "tflopsBf16": 989, "memoryBytes": 85899345920}
    devices = [{"id": f"GPU-{i}-{k}", "group": "h", "index": k, "pci": "0000:18:00.0", "numa": 0, "nodes": [f"/dev/nvidia{k}"],
                "health": "healthy", "reason": "", "since": PAST} for k in range(8)]
    return {"apiVersion": "remuda.dev/v1alpha1", "kind": "NodeAccelerators", "metadata": metadata(name_of(i), f"i-{i}", 3),
            "status": {"generation": 1, "bootID": "b", "nodeClass": "any", "pool": "regular", "groups": [group], "devices": devices}}


def lease(i):
    return {"metadata": metadata(name_of(i), f"l-{i}", 4, namespace="kube-node-lease"),
            "spec": {"holderIdentity": name_of(i), "leaseDurationSeconds": 40, "renewTime": "2026-11-21T10:00:00.000000Z"}}


NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
INVENTORIES = "/apis/remuda.dev/v1alpha1/nodeaccelerators"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def own_certificate():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=canned",
                        "-keyout", file.name, "-out", file.name + ".crt"], check=True, stderr=subprocess.DEVNULL)
        context.load_cert_chain(file.name + ".crt", file.name)
        os.unlink(file.name + ".crt")
    return context


class Server:
    def __init__(self, nodes, pods, bare):
        self.nodes, self.pods, self.bare = nodes, pods, bare
        self.items = {NODES: [json.dumps(node(i, 1, bare)) for i in range(nodes)], PODS: [json.dumps(pod(i, 2, nodes, 1 + i % 2)) for i in range(pods)],
                      INVENTORIES: [json.dumps(inventory(i)) for i in range(nodes)], LEASES: [json.dumps(lease(i)) for i in range(nodes)]}
        self.watchers, self.rates, self.version, self.random = {}, (0, 0), 100000, random.Random(2)

    def page(self, path, query):
        items, first = self.items.get(path, []), int(query.get("continue") or 0)
        end = first + int(query.get("limit") or 500)
        more = f',"continue":"{end}"' if end < len(items) else ""
        return f'{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"99999"{more}}},"items":[{",".join(items[first:end])}]}}'.encode()

    async def answer(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target, _ = head.split("\r\n")[0].split(" ")
                for line in head.split("\r\n"):
                    if line.lower().startswith("content-length:"):
                        await reader.readexactly(int(line.split(":")[1]))
                url = urllib.parse.urlsplit(target)
                query = dict(urllib.parse.parse_qsl(url.query))
                if method == "GET" and "watch" in query:
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
                    self.watchers[url.path] = writer
                    await reader.read()  # until it leaves
                    return
                body = self.page(url.path, query) if method == "GET" else b'{"kind":"Status","status":"Success","code":200}'
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    def tell(self, path, what):
        if path in self.watchers and not self.watchers[path].is_closing():
            line = json.dumps({"type": "MODIFIED", "object": what}).encode() + b"\n"
            self.watchers[path].write(b"%x\r\n" % len(line) + line + b"\r\n")

    def pod_event(self):
        """Every second pod is bound and takes other chips; the others wait, of one chip or of eight."""
        self.version += 1
        if self.version % 2:
            self.tell(PODS, pod(self.random.randrange(self.pods), self.version, self.nodes, self.random.choice([1, 2])))
        else:
            self.tell(PODS, pod(self.pods + self.random.randrange(2000), self.version, self.nodes, self.random.choice([1, 8]), bound=False))

    def node_event(self):
        self.version += 1
        self.tell(NODES, node(self.random.randrange(self.nodes), self.version, self.bare))

    async def play(self):
        due, last = [0.0, 0.0], time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            for kind, event in enumerate((self.pod_event, self.node_event)):
                due[kind] += self.rates[kind] * (now - last)
                while due[kind] >= 1:
                    due[kind] -= 1
                    event()
            last = now

    async def listen(self):
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0, limit=1 << 20, ssl=own_certificate() if "--tls" in sys.argv else None)
        print(server.sockets[0].getsockname()[1], flush=True)
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        playing = asyncio.ensure_future(self.play())
        while line := await orders.readline():
            self.rates = tuple(float(x) for x in line.split())
        playing.cancel()


if __name__ == "__main__":
    asyncio.run(Server(int(sys.argv[1]), int(sys.argv[2]), "--bare" in sys.argv).listen())
