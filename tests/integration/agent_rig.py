"""What the agent's integration tests share: a machine as a directory, a running agent, and what it answers."""
import http.client, json, os, re, shutil, signal, socket, subprocess, tempfile, time

from tap import Tap  # noqa: F401 - for the tests
from waiting import seconds_until

B = os.environ.get("B", "build")
MACHINES = "tests/data/machines"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(self.path)


class Agent:
    """A remuda-agent of its own, on a copy of a synthetic machine."""

    def __init__(self, machine="nvidia-h100-x8", config=None, options=(), env=None, program=B + "/bin/remuda-agent"):
        self.program = [program]
        self.dir = tempfile.mkdtemp(prefix="remuda-agent-")
        self.root = self.dir + "/root"
        if machine:
            subprocess.run([B + "/bin/remuda", "machine", "expand", machine if "/" in machine else f"{MACHINES}/{machine}.machine", self.root], check=True)
        else:
            os.makedirs(self.root + "/sys")
        for name in ("store", "kubelet/device-plugins", "run"):
            os.makedirs(f"{self.dir}/{name}")
        self.socket = self.dir + "/run/agent.sock"
        self.config_path = self.dir + "/agent.yaml"
        self.configure(config or "")
        self.options, self.process, self.env = list(options), None, env or {}

    def configure(self, text):
        with open(self.config_path + ".new", "w") as f:
            f.write(text)
        os.rename(self.config_path + ".new", self.config_path)

    def start(self, wait=True):
        self.log = open(self.dir + "/log", "a+")
        begin = self.log.tell()
        self.process = subprocess.Popen(
            [*self.program, "--root", self.root, "--node-name", "n1", "--listen", "127.0.0.1:0",
             "--store", "dir:" + self.dir + "/store", "--kubelet-dir", self.dir + "/kubelet/device-plugins",
             "--launch-socket", self.socket, "--config", self.config_path, *self.options],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env={**os.environ, **self.env})
        if wait:
            self.wait(lambda: "listening address=" in self.text(begin) or self.process.poll() is not None)
            m = re.findall(r"listening address=(\S+)", self.text(begin))
            if not m:
                raise RuntimeError("the agent did not start: " + self.text(begin))
            self.address = m[-1]
        return self

    def text(self, begin=0):
        with open(self.dir + "/log") as f:
            f.seek(begin)
            return f.read()

    def stop(self, sig=signal.SIGTERM):
        begin = time.time()
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
            self.process.wait(15)
        return self.process.returncode, time.time() - begin

    def remove(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def get(self, path, unix=False, method="GET", body=None):
        c = UnixConnection(self.socket) if unix else http.client.HTTPConnection(self.address, timeout=30)
        try:
            c.request(method, path, body=body)
            r = c.getresponse()
            return r.status, r.read().decode()
        finally:
            c.close()

    def status(self):
        return json.loads(self.get("/v1/inventory")[1])["status"]

    def device(self, pci):
        return next((d for d in self.status()["devices"] if d.get("pci") == pci), None)

    def health(self, pci):
        d = self.device(pci)
        return (d["health"], d["reason"]) if d else None

    def group(self, name):
        return next((g for g in self.status()["groups"] if g["name"] == name), None)

    def metrics(self):
        return self.get("/metrics")[1]

    def metric(self, name, **labels):
        """The value of the first sample with these labels, or None."""
        for line in self.metrics().splitlines():
            m = re.match(r"([a-zA-Z_]+)(?:\{(.*)\})? (\S+)$", line)
            if m and m[1] == name:
                have = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[2] or ""))
                if all(have.get(k) == v for k, v in labels.items()):
                    return float(m[3])
        return None

    @staticmethod
    def wait(condition, seconds=30, step=0.02):
        """How long it took until the condition held; None when it never did."""
        return seconds_until(condition, seconds, step, (OSError, http.client.HTTPException, ValueError))

    # --- the machine -----------------------------------------------------------------------------------------------
    def pci(self, address):
        return f"{self.root}/sys/bus/pci/devices/{address}"

    def unplug(self, address):
        link = self.pci(address)
        self.unplugged = (link, os.readlink(link) if os.path.islink(link) else None)
        os.rename(link, f"{self.dir}/unplugged-{address}")

    def plug(self, address):
        os.rename(f"{self.dir}/unplugged-{address}", self.pci(address))

    def write(self, path, text):
        path = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def append(self, path, text):
        with open(f"{self.root}/{path}", "a") as f:
            f.write(text)


def many_devices(agent, devices):
    """`devices` functions without anything else: a directory each, a driver, a UUID, a device file."""
    os.makedirs(agent.root + "/sys/bus/pci/drivers/nvidia", exist_ok=True)
    for i in range(devices):
        bdf = f"0000:{i + 16:02x}:00.0"
        base = f"sys/bus/pci/devices/{bdf}"
        for name, text in {"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "numa_node": str(i * 2 // devices),
                           "current_link_width": "16", "max_link_width": "16", "current_link_speed": "32.0 GT/s PCIe",
                           "max_link_speed": "32.0 GT/s PCIe", "subsystem_vendor": "0x10de", "subsystem_device": "0x16c1",
                           "aer_dev_fatal": "TOTAL_ERR_FATAL 0", "aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 0",
                           "aer_dev_correctable": "TOTAL_ERR_COR 0"}.items():
            agent.write(f"{base}/{name}", text + "\n")
        with open(f"{agent.root}/{base}/config", "wb") as f:
            f.write(bytes.fromhex("de103023") + bytes(60))
        os.symlink("../../drivers/nvidia", f"{agent.root}/{base}/driver")
        agent.write(f"proc/driver/nvidia/gpus/{bdf}/information",
                    f"Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-00000000-0000-4000-8000-{i:012x}\nBus Location: \t {bdf}\nDevice Minor: \t {i}\n")
        agent.write(f"dev/nvidia{i}", "")
