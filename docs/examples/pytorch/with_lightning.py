#!/usr/bin/python3
"""Lightning, by chips of unlike speeds: a small network on the pictures of Debian's dataset-fashion-mnist."""
import argparse
import gzip
import os

import pytorch_lightning as lightning
import remuda.torch as remuda
import torch
from remuda.torch.lightning import Strategy
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


class Fashion(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Conv2d(1, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))

    def training_step(self, batch, _number):
        return nn.functional.cross_entropy(self.network(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


run = remuda.init(BATCH)
torch.manual_seed(1)
torch.set_num_threads(1)
pictures = read("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float().div(255)[:arguments.samples]
data = TensorDataset(pictures, read("train-labels-idx1-ubyte.gz", 8).long()[:arguments.samples])
model = Fashion()
trainer = lightning.Trainer(strategy=Strategy(run), use_distributed_sampler=False, max_epochs=arguments.epochs, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, DataLoader(data, batch_sampler=run.batch_sampler(data)))
if arguments.weights and run.rank == 0:
    torch.save(model.state_dict(), arguments.weights)
run.close()
