"""Hosts on one machine: network and UTS namespaces on a bridge, whose links have the speed that one gives them."""
import os
import shutil
import subprocess
import sys
import time

hosts = {}


def sh(*words):
    subprocess.run(words, check=True, capture_output=True)


def enter(*tools):
    """Starts this program anew inside namespaces of its own. Returns None inside them, otherwise why it cannot be done."""
    if os.environ.get("REMUDA_INSIDE") == "1":
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "link", "add", "bridge0", "type", "bridge")
        sh("ip", "link", "set", "bridge0", "up")
        return None
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    for tool in ("unshare", "nsenter", "ip") + tools:
        if not shutil.which(tool):
            return f"needs {tool}"
    probe = subprocess.run(["unshare", "-n", "-u", "-m", "-p", "-f", "--mount-proc", "ip", "link", "add", "probe0", "type", "bridge"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        return "needs root with namespaces and bridges: " + probe.stderr.strip().replace("\n", " ")
    os.environ["REMUDA_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "-n", "-m", "-p", "-f", "--mount-proc", sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]])


def make_host(name, address, mbit=None):
    """@mbit: what its link carries each way, in megabits a second; None = as much as it can."""
    p = subprocess.Popen(["unshare", "-n", "-u", "sleep", "1000"])
    while os.readlink(f"/proc/{p.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)
    hosts[name] = p
    sh("ip", "link", "add", "v-" + name, "type", "veth", "peer", "name", "eth0", "netns", str(p.pid))
    sh("ip", "link", "set", "v-" + name, "master", "bridge0", "up")
    for words in (["ip", "link", "set", "lo", "up"], ["ip", "address", "add", address + "/24", "dev", "eth0"],
                  ["ip", "link", "set", "eth0", "up"]):
        sh("nsenter", "-t", str(p.pid), "-n", *words)
    sh("nsenter", "-t", str(p.pid), "-u", "hostname", name)
    if mbit:
        # What the bucket holds the link carries at once after a rest, which no cable does; and where it holds less than comes between two looks of a busy
        # machine, that is lost: with 62 KB at 1 Gbit/s a ring of 8 ranks took twice as long. So a millisecond of it, 16 KB at least
        # and 128 KB at most (0.1 ms at 10 Gbit/s, of which a busy machine may carry less).
        burst = min(max(mbit * 125, 16 << 10), 128 << 10)
        limit = ["root", "tbf", "rate", f"{mbit}mbit", "burst", str(burst), "latency", "50ms"]
        sh("tc", "qdisc", "add", "dev", "v-" + name, *limit)
        sh("nsenter", "-t", str(p.pid), "-n", "tc", "qdisc", "add", "dev", "eth0", *limit)


def on(host, *words, **more):
    return subprocess.Popen(["/usr/bin/nsenter", "-t", str(hosts[host].pid), "-n", "-u", *words], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **more)


def sent_bytes(host):
    """What it has put on its link since it was made, headers and acknowledgements counted."""
    out = subprocess.run(["/usr/bin/nsenter", "-t", str(hosts[host].pid), "-n", "cat", "/proc/net/dev"], capture_output=True, text=True, check=True)
    return next(int(line.split()[9]) for line in out.stdout.splitlines() if line.strip().startswith("eth0:"))
