"""Prepares the checkpoint that resume.py reads: sound, cut short or with an object in it; no part of the job."""

import argparse
import os
from pathlib import Path

import torch
from torch import nn


class TrainState:
    def __init__(self) -> None:
        self.step = 400


parser = argparse.ArgumentParser()
parser.add_argument("path")
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--cut", action="store_true")
parser.add_argument("--with-object", action="store_true")
args = parser.parse_args()
model = nn.Sequential(nn.Linear(16, args.width), nn.Linear(args.width, 4))
state = {"model": model.state_dict()}
if args.with_object:
    state["train_state"] = TrainState()
Path(args.path).parent.mkdir(parents=True, exist_ok=True)
torch.save(state, args.path)
if args.cut:
    os.truncate(args.path, os.path.getsize(args.path) // 2)
