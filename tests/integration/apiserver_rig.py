"""A real kube-apiserver and etcd of its own on free ports, without root: what several tests and benches stand on. Nodes get no
taint when they are made (TaintNodesByCondition): there is no controller that would take it away."""
import base64, concurrent.futures, http.client, json, os, ssl, subprocess, sys, threading, time, urllib.error, urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import free_port


def binary():
    """The Kubernetes to test on: REMUDA_KUBERNETES, a path; else what `make e2e` builds (of the version E2E_KUBERNETES), if it is there."""
    path = os.environ.get("REMUDA_KUBERNETES", "")
    if not path:
        version = os.environ.get("E2E_KUBERNETES", "")
        build = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/kube/build")
        path = subprocess.run([build, "-n"] + [version] * bool(version), check=True, capture_output=True, text=True).stdout.strip()
    return path if os.path.isfile(path) and os.access(path, os.X_OK) else None


class Cluster:
    def __init__(self, folder, kubernetes):
        self.folder, self.kubernetes = folder, kubernetes
        self.port, self.etcd_port = free_port(), free_port()
        self.processes = {}
        run = lambda *a: subprocess.run(a, cwd=folder, check=True, capture_output=True)
        run("openssl", "genrsa", "-out", "sa.key", "2048")
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=test-ca")
        for name, subject in (("server", "/CN=kube-apiserver"), ("admin", "/CN=admin/O=system:masters")):
            run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
            with open(os.path.join(folder, "ext"), "w") as f:
                f.write("subjectAltName=DNS:kubernetes,IP:127.0.0.1\n")
            run("openssl", "x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", name + ".crt")
        with open(os.path.join(folder, "tokens.csv"), "w") as f:
            f.write('good-token,admin,1,"system:masters"\nnext-token,admin,1,"system:masters"\nweak-token,weak,2,"nobody"\n')
        self.context = ssl.create_default_context(cafile=os.path.join(folder, "ca.crt"))

    def spawn(self, name, *command):
        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            self.processes[name] = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def start_etcd(self):
        url = f"http://127.0.0.1:{self.etcd_port}"
        self.spawn("etcd", "etcd", "--data-dir", "etcd", "--listen-client-urls", url, "--advertise-client-urls", url,
                   "--listen-peer-urls", f"http://127.0.0.1:{free_port()}", "--unsafe-no-fsync", "--log-level", "error")

    def start_apiserver(self, *more):
        self.spawn("apiserver", self.kubernetes, "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
                   f"--secure-port={self.port}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--tls-cert-file=server.crt",
                   "--tls-private-key-file=server.key", "--cert-dir=certs", "--client-ca-file=ca.crt",
                   "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=sa.key",
                   "--service-account-signing-key-file=sa.key", "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC",
                   "--token-auth-file=tokens.csv", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", "--endpoint-reconciler-type=none", *more)
        for _ in range(600):
            try:
                if self.api("GET", "/readyz", raw=True) == b"ok":
                    return
            except (OSError, urllib.error.URLError):
                pass
            time.sleep(0.1)
        raise RuntimeError("the API server does not become ready")

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self):
        for name in list(self.processes):
            self.kill(name)

    def api(self, method, path, body=None, raw=False, content_type="application/json"):
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", method=method,
                                         data=body if body is None or isinstance(body, bytes) else json.dumps(body).encode(),
                                         headers={"Authorization": "Bearer good-token", "Content-Type": content_type})
        with urllib.request.urlopen(request, context=self.context, timeout=20) as answer:
            data = answer.read()
        return data if raw else json.loads(data)

    def call(self, method, path, body=None, content_type="application/json"):
        """Over one connection a thread: for those who call thousands of times."""
        connections = self.__dict__.setdefault("connections", threading.local())
        if not hasattr(connections, "mine"):
            connections.mine = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=60)
        connections.mine.request(method, path, None if body is None else json.dumps(body),
                                 {"Authorization": "Bearer good-token", "Content-Type": content_type})
        answer = connections.mine.getresponse()
        data = answer.read()
        assert answer.status < 300, (method, path, answer.status, data[:300])
        return json.loads(data)

    def create_all(self, path, objects):
        self.each(lambda o: self.call("POST", path, o), objects)

    @staticmethod
    def each(do, objects):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(do, objects))

    def compact(self):
        key = base64.b64encode(b"x").decode()
        def etcd(path, body):
            request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}{path}", data=json.dumps(body).encode())
            return json.loads(urllib.request.urlopen(request, timeout=10).read())
        revision = etcd("/v3/kv/range", {"key": key})["header"]["revision"]
        etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    def config(self, name, user):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            json.dump({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                       "clusters": [{"name": "k", "cluster": {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": "ca.crt"}}],
                       "users": [{"name": "u", "user": user}]}, f)
        return path
