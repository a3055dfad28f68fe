#!/usr/bin/python3
"""A small residual network on the pictures of Debian's dataset-fashion-mnist, by chips of unlike speeds: six lines differ from resnet_ddp.py.

    torchrun --nproc_per_node 2 docs/examples/pytorch/resnet.py
"""
import argparse
import gzip
import os

import torch
import remuda.torch as remuda
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--samples", type=int, help="of the data, from its beginning; all of it unless given")
parser.add_argument("--weights", help="where rank 0 leaves the trained model")
arguments = parser.parse_args()
BATCH = 120


def read(name, header):
    with gzip.open(os.path.join(arguments.data, name)) as f:
        return torch.frombuffer(bytearray(f.read()[header:]), dtype=torch.uint8)


def convolution(inputs, outputs, stride=1):  # GroupNorm, as BatchNorm's result depends on how a batch is cut
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.GroupNorm(8, outputs))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = convolution(inputs, outputs, stride), convolution(outputs, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride) if inputs != outputs else nn.Identity()

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


def resnet():
    return nn.Sequential(convolution(1, 16), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 10))


run = remuda.init(BATCH)
torch.manual_seed(1)
torch.set_num_threads(1)
pictures = read("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float().div(255)[:arguments.samples]
data = TensorDataset(pictures, read("train-labels-idx1-ubyte.gz", 8).long()[:arguments.samples])
loader = DataLoader(data, batch_sampler=run.batch_sampler(data))
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()) if torch.cuda.is_available() else torch.device("cpu")
model = resnet().to(device)
model = run.wrap(model)
optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(arguments.epochs):
    for pictures, labels in loader:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures.to(device)), labels.to(device))
        loss.backward()
        optimiser.step()
        run.progress(loss)
    print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
if arguments.weights and os.environ.get("RANK", "0") == "0":
    torch.save(model.module.state_dict(), arguments.weights)
run.close()
