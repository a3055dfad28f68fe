#!/usr/bin/python3
"""The Trainer of Hugging Face's transformers, by chips of unlike speeds: a small GPT-2 of random weights on the licences of Debian's base-files.

    remuda run docs/examples/pytorch/gpt.yaml --programs programs.yaml     # as gpt.yaml says, with this script in place of gpt.py
"""
import argparse
import glob

import remuda.torch as remuda
import torch
from remuda.torch.transformers import Trainer  # in place of transformers.Trainer
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--text", default="/usr/share/common-licenses")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--samples", type=int, help="of the text, from its beginning; all of it unless given")
parser.add_argument("--output", default="huggingface.out", help="folder of checkpoints")
parser.add_argument("--weights", help="where rank 0 leaves the trained model")
arguments = parser.parse_args()
CONTEXT, BATCH = 64, 60

run = remuda.init(BATCH)
torch.manual_seed(1)
torch.set_num_threads(1)
text = b"".join(open(name, "rb").read() for name in sorted(glob.glob(arguments.text + "/*")))
rows = torch.tensor(list(text)[:len(text) // CONTEXT * CONTEXT]).view(-1, CONTEXT)[:arguments.samples]
data = [{"input_ids": row, "labels": row} for row in rows]
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=CONTEXT, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
settings = TrainingArguments(arguments.output, num_train_epochs=arguments.epochs, per_device_train_batch_size=BATCH // run.world, learning_rate=1e-3,
                             save_strategy="no", report_to=[], disable_tqdm=True, logging_steps=5, use_cpu=not torch.cuda.is_available())
Trainer(run=run, model=model, args=settings, train_dataset=data).train()
if arguments.weights and run.rank == 0:
    torch.save(model.state_dict(), arguments.weights)
run.close()
