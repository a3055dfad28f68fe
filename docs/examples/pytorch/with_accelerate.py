#!/usr/bin/python3
"""A loop with Accelerate, by chips of unlike speeds: a small network on the pictures of Debian's dataset-fashion-mnist."""
import argparse
import gzip
import os

import remuda.torch as remuda
import torch
from accelerate import Accelerator
from remuda.torch.accelerate import adopt
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


run = remuda.init(BATCH)
accelerator = adopt(run, Accelerator(cpu=not torch.cuda.is_available()))
torch.manual_seed(1)
torch.set_num_threads(1)
pictures = read("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float().div(255)[:arguments.samples]
data = TensorDataset(pictures, read("train-labels-idx1-ubyte.gz", 8).long()[:arguments.samples])
loader = DataLoader(data, batch_sampler=run.batch_sampler(data))
model = nn.Sequential(nn.Conv2d(1, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))
optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
model, optimiser, loader = accelerator.prepare(model, optimiser, loader)
for epoch in range(arguments.epochs):
    for inputs, labels in loader:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimiser.step()
        run.progress(loss)
    accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
if arguments.weights and run.rank == 0:
    torch.save(accelerator.unwrap_model(model).state_dict(), arguments.weights)
run.close()
