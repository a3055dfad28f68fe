"""Ranks of one mpirun on two hosts, a and b (hosts_rig), with a link of some speed between them; or all on this one."""
import os
import shutil
import subprocess

import hosts_rig

ADDRESSES = (("a", "10.77.0.2"), ("b", "10.77.0.3"))


def make(folder, mbit):
    """The hosts, and what mpirun starts its daemon by on the other one."""
    for name, address in ADDRESSES:
        hosts_rig.make_host(name, address, mbit)
    with open(os.path.join(folder, "agent"), "w") as f:
        f.write("#!/bin/sh\nhost=$1; shift\ncase $host in\n")
        for name, _address in ADDRESSES:
            f.write(f"{name}) exec /usr/bin/nsenter -t {hosts_rig.hosts[name].pid} -n -u /bin/sh -c \"$*\";;\n")
        f.write("esac\nexit 1\n")
    os.chmod(f.name, 0o755)


def end():
    """The hosts are no more; others may be made."""
    for name, process in hosts_rig.hosts.items():
        process.kill()
        process.wait()
        subprocess.run(["ip", "link", "del", "v-" + name], capture_output=True)
    hosts_rig.hosts.clear()


def command(folder, words, ranks, linked, environment):
    """The line, and its environment: half of the ranks on each host."""
    line = [shutil.which("mpirun"), "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
    variables = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_base_warn_component_unused": "0",
                 **environment}
    for name in environment:
        line += ["-x", name]
    if linked:
        line = ["/usr/bin/nsenter", "-t", str(hosts_rig.hosts["a"].pid), "-n", "-u", *line, "--host", f"a:{ranks // 2},b:{ranks - ranks // 2}", "--map-by", "slot",
                "--mca", "plm_rsh_agent", os.path.join(folder, "agent"), "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "eth0",
                "--mca", "oob_tcp_if_include", "eth0"]
    return line + words, variables


def world(folder, words, ranks=2, linked=True, environment=None, timeout=120):
    """Return: what the ranks say on stdout, on stderr."""
    line, variables = command(folder, words, ranks, linked, environment or {})
    done = subprocess.run(line, capture_output=True, text=True, timeout=timeout, env=variables, cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(line)}: {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout, done.stderr


def until(folder, words, mark, ranks=2, linked=True, environment=None):
    """What the ranks say on stderr up to the line with `mark`; then they are told to end."""
    line, variables = command(folder, words, ranks, linked, environment or {})
    p = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=variables, cwd=folder)
    said = ""
    for one in p.stderr:
        said += one
        if mark in one:
            break
    p.terminate()
    p.communicate(timeout=60)
    return said
