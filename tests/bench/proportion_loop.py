"""A PyTorch loop for bench_proportion: MODEL BATCH STEPS DOOR LOG; whole epochs, so many steps or some more. DOOR: remuda (remuda.torch), or
both: that loop and one with DistributedDataParallel and equal parts take turns of TURN steps, as processors are not the same from minute to minute.
Writes into LOG.RANK when each step ended; both: lines "remuda|plain MS" of every step but a turn's first."""
import copy
import itertools
import sys
import time

import torch
from torch import nn


class Block(nn.Module):
    """Of a ResNet, without batch statistics, which no weighting can make exact."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(4, width)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


class Gpt(nn.Module):
    """A small decoder over bytes."""

    def __init__(self, width=128, layers=3, length=64):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, layers), nn.Linear(width, 256)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, x):
        return self.head(self.layers(self.bytes(x) + self.places, self.mask))


def resnet():
    g = torch.Generator().manual_seed(1)
    x, y = torch.rand(4096, 1, 28, 28, generator=g), torch.randint(0, 10, (4096,), generator=g)
    net = nn.Sequential(nn.Conv2d(1, 32, 3, stride=2, padding=1), nn.ReLU(), Block(32), Block(32), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(32, 10))
    return net, x, y, nn.functional.cross_entropy


def gpt():
    g = torch.Generator().manual_seed(1)
    x = torch.randint(0, 256, (4096, 65), generator=g)
    return Gpt(), x[:, :-1].contiguous(), x[:, 1:].contiguous(), lambda out, y: nn.functional.cross_entropy(out.flatten(0, 1), y.flatten())


TURN = 10


def step(model, optimiser, loss_of, x, y, ids):
    loss = loss_of(model(x[ids]), y[ids])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss


def main():
    name, batch, steps, door, log = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
    import remuda.torch as remuda
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net, x, y, loss_of = {"resnet": resnet, "gpt": gpt}[name]()
    twin = copy.deepcopy(net)
    epochs = -(-steps // -(-len(x) // batch))
    run = remuda.init(batch)
    model, batches = run.wrap(net), run.batch_sampler(len(x), epochs=epochs)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    lines = []

    def ours(ids):
        run.progress(step(model, optimiser, loss_of, x, y, ids))

    def take_turns():
        plain, size, order = nn.parallel.DistributedDataParallel(twin), batch // run.world, torch.randperm(len(x)).tolist()
        others = torch.optim.SGD(plain.parameters(), lr=0.01)
        parts = itertools.cycle([order[at + run.rank * size:at + (run.rank + 1) * size] for at in range(0, len(x), batch)])
        for number, ids in enumerate(batches):
            if number % TURN == 0 and number > 0:
                for i in range(TURN):
                    begin = time.monotonic()
                    step(plain, others, loss_of, x, y, next(parts))
                    lines.append(f"plain {(time.monotonic() - begin) * 1e3:.3f}\n" if i > 0 else "")
            begin = time.monotonic()
            ours(ids)
            lines.append(f"remuda {(time.monotonic() - begin) * 1e3:.3f}\n" if number % TURN > 0 else "")

    if door == "both":
        take_turns()
    else:
        for ids in batches:
            ours(ids)
            lines.append(f"{time.monotonic():.6f}\n")
    with open(f"{log}.{run.rank}", "w") as f:
        f.writelines(lines)
    run.close()


main()
