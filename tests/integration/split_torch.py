"""One stage of a pipeline in torch over gloo, for test_split_torch: RANK, WORLD_SIZE and MASTER_* of torchrun. Every line of standard input is
an order, every line of standard output its answer. An order's `members` is the cgroup that the process moves to: a stage is where its chip is."""
import inspect
import json
import sys
import time

import torch
import torch.distributed as dist

try:
    from torch.distributed import pipelining
    from torch.distributed.pipelining import schedules
except ImportError:  # torch before 2.4
    pipelining = None

WIDTH, SAMPLES = 512, 128
DEPTHS = [1, 1, 2, 1, 3, 1, 1, 2, 1, 1, 2, 2]  # Linear and ReLU in each layer
MS, EXCHANGES = 1e3, 24


class Chain(torch.nn.Module):
    """torch.nn.Sequential with names that are no numbers, over which export in torch 2.4 stumbles."""

    def __init__(self, parts):
        super().__init__()
        self.names = [name for name, _ in parts]
        for name, part in parts:
            self.add_module(name, part)

    def forward(self, x):
        for name in self.names:
            x = getattr(self, name)(x)
        return x


def layer(depth):
    return Chain([part for i in range(depth) for part in ((f"linear{i}", torch.nn.Linear(WIDTH, WIDTH)), (f"relu{i}", torch.nn.ReLU()))])


def chain(first, last):
    return Chain([(f"layer{i}", layer(DEPTHS[i])) for i in range(first, last + 1)])


def loss(y, _):
    return y.square().mean()


def schedule_of(stage, microbatches):
    """torch's own: 1F1B, but in releases whose _batch_p2p waits for the last of several works and drops the others, which over gloo are then
    never sent: there GPipe, which sends one at a time. (Over NCCL a batch is one work.)"""
    kind = pipelining.ScheduleGPipe if ".pop()" in inspect.getsource(schedules._batch_p2p) else pipelining.Schedule1F1B
    return kind(stage, microbatches, loss_fn=loss)


def move(members):
    with open(members, "w") as f:
        f.write("0")


def measure(members, seconds):
    """Milliseconds of every layer, forward and backward, as a pipeline uses them: one after the other, so that each finds the caches full of its
    neighbours, each with an input of its own, and only the first one's input without a gradient."""
    modules = [layer(d) for d in DEPTHS]
    spent = [0.0] * len(modules)

    def once():
        kept, x, now = [], torch.randn(SAMPLES, WIDTH), time.monotonic()
        for i, module in enumerate(modules):
            y = module(x)
            kept.append((x, y))
            x = y.detach().requires_grad_()
            spent[i], now = spent[i] + time.monotonic() - now, time.monotonic()
        gradient = torch.ones_like(y)
        for i, (x, y) in reversed(list(enumerate(kept))):
            y.backward(gradient)
            gradient = x.grad
            spent[i], now = spent[i] + time.monotonic() - now, time.monotonic()

    once()
    dist.barrier()
    move(members)
    once()
    spent[:] = [0.0] * len(spent)
    begin, times = time.monotonic(), 0
    while time.monotonic() - begin < seconds or times < 3:
        once()
        times += 1
    return {"ms": [s * MS / times for s in spent]}


def link(members, free):
    """Bytes per ms, both ways together, of activations between this rank in its quota and one that has none: in a ring where all are
    limited everybody would be as slow as the slowest of them. As a pipeline sends: one, then layers, with cold caches and threads asleep; one
    after the other goes several times as fast. `processor_ms`: what of it a schedule feels that goes on while
    what it sends and gets is under way."""
    rank, size, spent, busy = dist.get_rank(), dist.get_world_size(), 0, 0
    there, back, module = torch.randn(SAMPLES, WIDTH), torch.empty(SAMPLES, WIDTH), layer(1)
    for limited in range(size):
        dist.barrier()
        if rank == limited:
            move(members)
        if rank not in (limited, (limited + 1) % size):
            continue
        other = (limited + 1) % size if rank == limited else limited
        for i in range(EXCHANGES):
            if rank == limited:
                module(there).sum().backward()
            begin, processor = time.monotonic(), time.process_time()
            request = dist.isend(there, other)
            dist.recv(back, other)
            request.wait()
            if rank == limited and i > 0:
                spent, busy = spent + time.monotonic() - begin, busy + time.process_time() - processor
        if rank == limited:
            move(free)
    return {"bytes_per_ms": 2 * 4 * SAMPLES * WIDTH * (EXCHANGES - 1) / MS / spent, "processor_ms": busy * MS / (EXCHANGES - 1)}


def by_send_and_recv(layers, microbatches):
    """1F1B by hand."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    module = chain(*layers)
    held, sent = [], []

    def forward():
        x = torch.empty(SAMPLES, WIDTH)
        if rank > 0:
            dist.recv(x, rank - 1)
            x.requires_grad_()
        else:
            x.normal_()
        y = module(x)
        if rank < last:
            sent.append((dist.isend(y.detach(), rank + 1), y))
        else:
            y = loss(y, None)
        held.append((x, y))

    def backward():
        x, y = held.pop(0)
        gradient = None
        if rank < last:
            gradient = torch.empty_like(y)
            dist.recv(gradient, rank + 1)
        y.backward(gradient)
        if rank > 0:
            sent.append((dist.isend(x.grad, rank - 1), x))

    def run():
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
    return run


def by_torch(text):
    """torch's own pipeline and schedule, from nothing but the text of `remuda plan launch --format stages`."""
    words = {}
    exec(text, words)
    model = chain(0, len(DEPTHS) - 1)
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    pipe = pipelining.pipeline(model, mb_args=(torch.randn(SAMPLES, WIDTH),), split_spec=words["split_spec"])
    stage = pipe.build_stage(rank, torch.device("cpu"))

    schedule = schedule_of(stage, words["n_microbatches"])
    samples = SAMPLES * words["n_microbatches"]
    x, target = torch.randn(samples, WIDTH), torch.zeros(samples, 1)
    held = len(list(stage.submod.parameters())) // 2

    def run():
        if rank == 0:
            schedule.step(x)
        elif rank == last:
            schedule.step(target=target)
        else:
            schedule.step()
    return run, held, type(schedule).__name__


def train(members, text, layers, microbatches, own):
    """A step, whose end is when all stages are done."""
    held, name = sum(DEPTHS[layers[0]:layers[1] + 1]), "1F1B"
    if pipelining is None or own:
        run = by_send_and_recv(layers, microbatches)
    else:
        run, held, name = by_torch(text)
    dist.barrier()
    move(members)
    begin = time.monotonic()
    run()
    return {"linears": held, "schedule": name, "ms": (time.monotonic() - begin) * MS}


torch.set_num_threads(1)
dist.init_process_group("gloo")
print(json.dumps({"torch": torch.__version__, "pipelining": pipelining is not None}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    answer = {"measure": measure, "link": link, "train": train}[order.pop("do")](**order)
    dist.barrier()
    print(json.dumps(answer), flush=True)
