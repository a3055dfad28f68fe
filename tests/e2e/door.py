#!/usr/bin/env python3
"""door.py PID KUBECONFIG OUT: a port of this machine's loopback, on which the API server in the network namespace of process PID answers. OUT is
KUBECONFIG with that port and the CA in it; it is there as soon as the port is."""
import asyncio
import base64
import ctypes
import os
import re
import socket
import sys

CLONE_NEWNET = 0x40000000


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def serve(listening):
    async def caller(reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", 443)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))

    await (await asyncio.start_server(caller, sock=listening)).serve_forever()


def write_config(source, target, port):
    with open(source) as f:
        text = f.read()
    with open(re.search(r"certificate-authority: ([^}\s]+)", text).group(1), "rb") as f:
        authority = base64.b64encode(f.read()).decode()
    text = re.sub(r"certificate-authority: [^}\s]+", "certificate-authority-data: " + authority, text)
    text = text.replace("https://127.0.0.1:443", "https://127.0.0.1:%d" % port)
    descriptor = os.open(target + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w") as f:
        f.write(text)
    os.rename(target + ".new", target)


def main():
    pid, source, target = sys.argv[1:]
    listening = socket.create_server(("127.0.0.1", 0))  # a socket stays in the namespace in which it was made
    with open("/proc/%s/ns/net" % pid) as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            sys.exit("door.py: setns: " + os.strerror(ctypes.get_errno()))
    write_config(source, target, listening.getsockname()[1])
    asyncio.run(serve(listening))


if __name__ == "__main__":
    main()
