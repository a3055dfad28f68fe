"""Steps of a wrapped model on two hosts with a link between them: what it carries, how long a step takes. Run by itself it is a rank."""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, LAYERS, WARM = 512, 8, 3


def rank(steps):
    sys.path.insert(0, os.path.join(HERE, "../../python"))
    import remuda.torch as remuda
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    run = remuda.init()
    model = run.wrap(torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))), bucket_cap_mb=2)
    optimiser, taken = torch.optim.SGD(model.parameters(), lr=0.01), []
    for step in range(WARM + steps):
        if step == WARM:
            dist.barrier()
            before = sent()
        began = time.monotonic()
        optimiser.zero_grad()
        model(torch.randn(2, WIDTH)).sum().backward()
        optimiser.step()
        taken.append(time.monotonic() - began)
    dist.barrier()
    if run.rank == 0:
        gradients = sum(4 * p.numel() for p in model.parameters())
        print(json.dumps({"levels": type(run._reducer).__name__, "bytes": (sent() - before) / steps / gradients, "seconds": taken[WARM:]}), flush=True)
    run.close()


def sent():
    """By this host, headers and acknowledgements counted."""
    with open("/proc/net/dev") as f:
        return next(int(line.split()[9]) for line in f if line.strip().startswith("eth0:"))


def measure(hosts, on, unlike, steps, port):
    """hosts: the host of each rank. `unlike`: a vendor a host, otherwise one vendor. Bytes are rank 0's host's, in sizes of the gradients."""
    ranks = [on(host, "/usr/bin/python3", os.path.abspath(__file__), str(steps),
                env={**os.environ, "RANK": str(i), "WORLD_SIZE": str(len(hosts)), "MASTER_ADDR": "10.77.0.2", "MASTER_PORT": str(port), "REMUDA_BATCH": "2",
                     "REMUDA_VENDOR": "amd" if unlike and host == "b" else "nvidia", "GLOO_SOCKET_IFNAME": "eth0", "GLOG_minloglevel": "2"})
             for i, host in enumerate(hosts)]
    said = [process.communicate(timeout=200)[0] for process in ranks]
    lines = [line for line in said[0].splitlines() if line.startswith("{")]
    return json.loads(lines[0]) if lines else {"levels": None, "bytes": float("nan"), "seconds": [], "said": said}


if __name__ == "__main__":
    rank(int(sys.argv[1]))
