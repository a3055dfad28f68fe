#!/usr/bin/python3
"""A small GPT on the licences of Debian's base-files, byte by byte: a plain DistributedDataParallel script.

    torchrun --nproc_per_node 2 docs/examples/pytorch/gpt_ddp.py
"""
import argparse
import glob
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--text", default="/usr/share/common-licenses")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--samples", type=int, help="of the text, from its beginning; all of it unless given")
parser.add_argument("--weights", help="where rank 0 leaves the trained model")
arguments = parser.parse_args()
CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 96, 4, 3, 60


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        y = self.before(x)
        x = x + self.attention(y, y, y, attn_mask=future, need_weights=False)[0]
        return x + self.perceptron(self.between(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(256, WIDTH), nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256))

    def forward(self, tokens):
        return self.head(self.blocks(self.token(tokens) + self.place))


dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
torch.manual_seed(1)
torch.set_num_threads(1)
text = b"".join(open(name, "rb").read() for name in sorted(glob.glob(arguments.text + "/*")))
rows = torch.tensor(list(text)[:len(text) // (CONTEXT + 1) * (CONTEXT + 1)]).view(-1, CONTEXT + 1)[:arguments.samples]
data = TensorDataset(rows[:, :-1], rows[:, 1:])
loader = DataLoader(data, BATCH // dist.get_world_size(), sampler=torch.utils.data.DistributedSampler(data))
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()) if torch.cuda.is_available() else torch.device("cpu")
model = GPT().to(device)
model = nn.parallel.DistributedDataParallel(model)
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(arguments.epochs):
    loader.sampler.set_epoch(epoch)
    for tokens, following in loader:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens.to(device)).flatten(0, 1), following.to(device).flatten())
        loss.backward()
        optimiser.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
if arguments.weights and os.environ.get("RANK", "0") == "0":
    torch.save(model.module.state_dict(), arguments.weights)
dist.destroy_process_group()
