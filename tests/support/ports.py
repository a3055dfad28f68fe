"""Ports for programs that must be told one."""
import random
import socket


def free_port():
    """From outside the range of outgoing connections, which could take it before the program does; on every address."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        low = int(f.read().split()[0])
    while True:
        port = random.SystemRandom().randrange(min(10000, low // 2), low)
        with socket.socket() as s:
            try:
                s.bind(("", port))
                return port
            except OSError:
                pass
