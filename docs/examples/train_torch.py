#!/usr/bin/python3
"""A PyTorch loop as ranks of a world. The three lines that differ from one machine are marked.

    mpirun -np 2 -x REMUDA_TRAIN_LIBRARY=build/lib/libremuda-train.so docs/examples/train_torch.py weights.out
"""
import os
import sys

import torch

sys.path.insert(0, os.environ.get("REMUDA_TRAIN_MODULE", os.path.join(os.path.dirname(__file__), "../../trainer/wrapper")))
import remuda_train  # 1

torch.manual_seed(1)
torch.set_num_threads(1)
x = torch.rand(1000, 20)
y = (x.sum(dim=1) > 10).long()
model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimiser = torch.optim.SGD(model.parameters(), lr=0.5)

# 2 was: for ids in the loop's own batches
for ids in (run := remuda_train.open(samples=1000, batch=50, epochs=2, parameters=model.parameters())):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(model(x[ids]), y[ids]).backward()
    run.reduce(model.parameters())  # 3
    optimiser.step()
if run.rank == 0 and len(sys.argv) > 1:
    with open(sys.argv[1], "w") as f:
        f.writelines(f"{value!r}\n" for p in model.parameters() for value in p.detach().view(-1).tolist())
