"""A PyTorch loop for bench_proportion: MODEL BATCH STEPS DOOR LOG; whole epochs, so many steps or some more. DOOR: remuda (remuda.torch) or plain (DistributedDataParallel, equal parts).
Writes into LOG.RANK when each step ended."""
import os
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


def main():
    name, batch, steps, door, log = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net, x, y, loss_of = {"resnet": resnet, "gpt": gpt}[name]()
    epochs = -(-steps // -(-len(x) // batch))
    if door == "remuda":
        import remuda.torch as remuda
        run = remuda.init(batch)
        model, batches, rank = run.wrap(net), run.batch_sampler(len(x), epochs=epochs), run.rank
    else:
        torch.distributed.init_process_group("gloo")
        model, rank = nn.parallel.DistributedDataParallel(net), torch.distributed.get_rank()
        part = batch // torch.distributed.get_world_size()
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1)).tolist()
        batches = (order[at + rank * part:at + (rank + 1) * part] for _ in range(epochs) for at in range(0, len(x), batch))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    ends = []
    for ids in batches:
        loss = loss_of(model(x[ids]), y[ids])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if door == "remuda":
            run.progress(loss)
        ends.append(time.monotonic())
    with open(f"{log}.{rank}", "w") as f:
        f.writelines(f"{end:.6f}\n" for end in ends)
    if door == "remuda":
        run.close()


main()
