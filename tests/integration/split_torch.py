"""One rank of a pipeline in torch over gloo, for test_split_torch: RANK, WORLD_SIZE and MASTER_* of torchrun, a quota of the processor by the
cgroup of the file MEMBERS, which it joins once torch is there. `measure` times every layer; `train` runs the stage of REMUDA_LAYERS, one forward, one backward in turn."""
import json
import os
import sys
import time

import torch
import torch.distributed as dist

WIDTH, SAMPLES = 512, 128
DEPTHS = [1, 1, 2, 1, 3, 1, 1, 2, 1, 1, 2, 2]  # Linear and ReLU in each layer


def layer(depth):
    return torch.nn.Sequential(*(m for _ in range(depth) for m in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())))


def forwards_backwards(module, x):
    y = module(x)
    y.backward(torch.ones_like(y))


def measure(seconds):
    found = []
    for depth in DEPTHS:
        module, x = layer(depth), torch.randn(SAMPLES, WIDTH, requires_grad=True)
        forwards_backwards(module, x)
        begin, times = time.monotonic(), 0
        while time.monotonic() - begin < seconds / len(DEPTHS) or times < 3:
            forwards_backwards(module, x)
            times += 1
        found.append((time.monotonic() - begin) * 1e3 / times)
    print(json.dumps({"ms": found, "bytes_per_ms": measure_link()}), flush=True)


def measure_link():
    """Bytes per ms, both ways together, of activations to the next rank and from the one before: all at once, as in the pipeline."""
    rank, size, times = dist.get_rank(), dist.get_world_size(), 10
    there, back = torch.randn(SAMPLES, WIDTH), torch.empty(SAMPLES, WIDTH)
    spent = []
    dist.barrier()  # those with a large quota are done with their layers before
    for _ in range(times):
        begin = time.monotonic()
        request = dist.isend(there, (rank + 1) % size)
        dist.recv(back, (rank - 1) % size)
        request.wait()
        spent.append(time.monotonic() - begin)
    return 2 * 4 * SAMPLES * WIDTH * (times - 1) / 1e3 / sum(spent[1:])


def train(microbatches):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    first, end = (int(n) for n in os.environ["REMUDA_LAYERS"].split(":"))
    module = torch.nn.Sequential(*(layer(d) for d in DEPTHS[first:end + 1]))
    held, sent, done = [], [], []

    def forward():
        x = torch.empty(SAMPLES, WIDTH)
        if rank > 0:
            dist.recv(x, rank - 1)
        else:
            x.normal_()
        x.requires_grad_()
        y = module(x)
        held.append((x, y))
        if rank < last:
            sent.append((dist.isend(y.detach(), rank + 1), y))

    def backward():
        x, y = held.pop(0)
        gradient = torch.ones_like(y)
        if rank < last:
            dist.recv(gradient, rank + 1)
        y.backward(gradient)
        if rank > 0:
            sent.append((dist.isend(x.grad, rank - 1), x))
        done.append(time.monotonic())

    ahead = min(last - rank, microbatches)
    for _ in range(ahead):
        forward()
    for _ in range(microbatches - ahead):
        forward()
        backward()
    for _ in range(ahead):
        backward()
    for request, _ in sent:
        request.wait()
    dist.barrier()
    if rank == last:  # from the first quarter on the pipeline is full
        begin = microbatches // 4
        print(json.dumps((done[-1] - done[begin]) * 1e3 / (microbatches - 1 - begin)), flush=True)


torch.set_num_threads(1)
dist.init_process_group("gloo")
dist.barrier()
with open(os.environ["MEMBERS"], "w") as f:
    f.write(str(os.getpid()))
measure(float(sys.argv[2])) if sys.argv[1] == "measure" else train(int(sys.argv[2]))
