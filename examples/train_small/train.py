#!/usr/bin/env python3
"""
train.py DIRECTORY --minutes 20 [--finish]: trains the small model for so many minutes of processor time, from where the
last run ended. DIRECTORY holds train.txt (prepare.py) and tokenizer.json (bpe.py); state.pt and curve.tsv are written
there. --finish lowers the rate to 0 and writes the folder `model`; the state stays, so that training can go on. It
needs Debian's python3-torch.
"""

import argparse
import json
import math
import pathlib
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

import rows
from bpe import BytePairs
from model_numpy import write_safetensors

LAYERS, HEADS, WIDTH, INNER, THETA, EPS = 4, 4, 128, 352, 10000.0, 1e-5
INITIAL = 0.02  # standard deviation of the first weights
BATCH, RATE, WARM = 8, 3e-3, 300
GUIDE, REST = 0.3, 0.05  # weights of the two losses on attention
SAVE_SECONDS = 120
SHOWN = 50  # steps of a line of the curve


def config(vocabulary_size):
    return {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": rows.END_ID, "eos_token_id": rows.END_ID, "dtype": "float16", "head_dim": WIDTH // HEADS,
        "hidden_act": "silu", "hidden_size": WIDTH, "initializer_range": INITIAL, "intermediate_size": INNER,
        "max_position_embeddings": rows.LONGEST, "mlp_bias": False, "model_type": "llama",
        "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "num_key_value_heads": HEADS, "pretraining_tp": 1,
        "rms_norm_eps": EPS, "rope_scaling": None, "rope_theta": THETA, "tie_word_embeddings": True,
        "use_cache": True, "vocab_size": vocabulary_size,
    }


def first_weights(vocabulary_size):
    """The tensors of LlamaForCausalLM under their names in transformers. The decoder is the word embedding."""
    weights = {"model.embed_tokens.weight": torch.randn(vocabulary_size, WIDTH) * INITIAL,
               "model.norm.weight": torch.ones(WIDTH)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        shapes = {f"self_attn.{part}_proj": (WIDTH, WIDTH) for part in "qkvo"}
        shapes |= {"mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER)}
        for part, shape in shapes.items():
            weights[f"{name}.{part}.weight"] = torch.randn(shape) / math.sqrt(shape[1])
        for part in ("self_attn.o_proj", "mlp.down_proj"):
            weights[f"{name}.{part}.weight"] /= math.sqrt(2 * LAYERS)
        for part in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{name}.{part}.weight"] = torch.ones(WIDTH)
    for tensor in weights.values():
        tensor.requires_grad_()
    return weights


def turned(x, cosines, sines):
    """Rotary positions: feature f turns with feature f + half."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), -1)


def run(weights, ids):
    """Logarithms of the maps of the guided heads (role -> batch, query, key), and what enters the decoder."""
    count, n = ids.shape
    frequencies = THETA ** (-torch.arange(0, 1, 2 * HEADS / WIDTH))
    angles = torch.arange(n)[:, None] * frequencies
    cosines, sines = angles.cos(), angles.sin()
    future = torch.ones(n, n, dtype=torch.bool).triu(1)

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weights[name + ".weight"]

    x, maps = F.embedding(ids, weights["model.embed_tokens.weight"]), {}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        inner = norm(x, name + ".input_layernorm")
        q, k, v = (F.linear(inner, weights[f"{name}.self_attn.{part}_proj.weight"]).view(count, n, HEADS, -1)
                   .transpose(1, 2) for part in "qkv")
        q, k = turned(q, cosines, sines), turned(k, cosines, sines)
        scores = (q @ k.transpose(2, 3) / math.sqrt(WIDTH / HEADS)).masked_fill(future, -1e9)
        for role, (guided, head) in rows.HEADS.items():
            if guided == layer:
                maps[role] = F.log_softmax(scores[:, head], -1)
        context = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(count, n, WIDTH)
        x = x + F.linear(context, weights[f"{name}.self_attn.o_proj.weight"])
        inner = norm(x, name + ".post_attention_layernorm")
        gate, up = (F.linear(inner, weights[f"{name}.mlp.{part}_proj.weight"]) for part in ("gate", "up"))
        x = x + F.linear(F.silu(gate) * up, weights[f"{name}.mlp.down_proj.weight"])
    return maps, norm(x, "model.norm")


def guided_rows(batch, role):
    """(b, query, right keys, weight of the loss) of a role, rests among them."""
    for b, row in enumerate(batch):
        for i, keys in (row.keys[role] or {}).items():
            if keys:
                yield b, i, keys, GUIDE
            else:
                yield b, i, [j for j in range(i + 1) if row.ids[j] == rows.END_ID], REST


def loss_of_attention(maps, batch):
    loss = torch.zeros(())
    for role, logarithms in maps.items():
        b, i, keys, share = zip(*guided_rows(batch, role)) if any(row.keys[role] for row in batch) else [()] * 4
        if not b:
            continue
        right = np.full((len(b), logarithms.shape[-1]), -1e9, dtype=np.float32)
        for number, of in enumerate(keys):
            right[number, of] = 0
        on_right = (logarithms[b, i] + torch.from_numpy(right)).logsumexp(-1)
        share = torch.tensor(share)
        for kind in (GUIDE, REST):
            if (share == kind).any():
                loss = loss - kind * on_right[share == kind].mean()
    return loss


def losses_of(weights, batch):
    """Cross-entropy of all tokens that are foretold, its mean in each kind of rows, and the loss on attention."""
    ids = torch.tensor([row.ids for row in batch])
    maps, out = run(weights, ids)
    chosen = torch.zeros_like(ids, dtype=torch.bool)
    for b, row in enumerate(batch):
        chosen[b, row.first:] = True
    logits = F.linear(out[:, :-1][chosen[:, 1:]], weights["model.embed_tokens.weight"])
    tokens = F.cross_entropy(logits, ids[chosen], reduction="none")
    kinds = np.repeat([row.kind for row in batch], [len(row.ids) - row.first for row in batch])
    means = {kind: tokens[torch.from_numpy(kinds == kind)].mean().item() for kind in rows.SHARES if kind in kinds}
    return tokens.mean(), means, loss_of_attention(maps, batch)


class Run:
    """Weights, their optimizer and how far they are; all of it is in the state file."""

    def __init__(self, directory, seed):
        self.directory, self.seed = directory, seed
        self.tokenizer = BytePairs.load(directory / "tokenizer.json")
        torch.manual_seed(seed)
        self.weights = first_weights(len(self.tokenizer.pieces))
        self.optimizer = torch.optim.AdamW(list(self.weights.values()), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
        self.step, self.seconds = 0, 0.0
        if (directory / "state.pt").exists():
            state = torch.load(directory / "state.pt", weights_only=True)
            self.step, self.seconds = state["step"], state["seconds"]
            self.optimizer.load_state_dict(state["optimizer"])
            with torch.no_grad():
                for name, tensor in self.weights.items():
                    tensor.copy_(state["weights"][name])

    def save(self):
        state = {"step": self.step, "seconds": self.seconds, "optimizer": self.optimizer.state_dict(),
                 "weights": {name: tensor.detach() for name, tensor in self.weights.items()}}
        torch.save(state, self.directory / "state.new")
        (self.directory / "state.new").replace(self.directory / "state.pt")

    def train_step(self, texts, share):
        """One batch at this share of the full rate; a step draws the same rows in every run."""
        self.step += 1
        rng = random.Random(f"{self.seed} {self.step}")
        batch = [rows.draw(rng, texts, self.tokenizer) for _ in range(BATCH)]
        for group in self.optimizer.param_groups:
            group["lr"] = RATE * share * min(1, self.step / WARM)
        tokens, means, attention = losses_of(self.weights, batch)
        self.optimizer.zero_grad()
        (tokens + attention).backward()
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
        self.optimizer.step()
        return {**means, "attention": attention.item()}

    def write_line(self, shown):
        """A line of the curve: step, tokens, minutes of processor time, mean losses."""
        path = self.directory / "curve.tsv"
        names = [*rows.SHARES, "attention"]
        if not path.exists():
            path.write_text("\t".join(["step", "tokens", "minutes", *names]) + "\n")
        means = [f"{np.mean([losses[name] for losses in shown if name in losses]):.3f}" for name in names]
        with path.open("a") as file:
            tokens = self.step * BATCH * rows.LONGEST
            print(self.step, tokens, f"{self.seconds / 60:.1f}", *means, sep="\t", file=file)

    def write_model(self, folder):
        folder.mkdir(exist_ok=True)
        write_safetensors(folder / "model.safetensors",
                          {name: tensor.detach().numpy().astype(np.float16) for name, tensor in self.weights.items()})
        (folder / "config.json").write_text(json.dumps(config(len(self.tokenizer.pieces)), indent=2) + "\n")
        (folder / "tokenizer.json").write_bytes((self.directory / "tokenizer.json").read_bytes())


def train(run, texts, minutes, finish):
    begun, before, saved, shown = time.process_time(), run.seconds, time.monotonic(), []
    while (spent := time.process_time() - begun) < 60 * minutes:
        shown.append(run.train_step(texts, 1 - spent / (60 * minutes) if finish else 1))
        run.seconds = before + time.process_time() - begun
        if len(shown) == SHOWN:
            run.write_line(shown)
            shown = []
        if not finish and time.monotonic() - saved > SAVE_SECONDS:
            run.save()
            saved = time.monotonic()
    if not finish:
        run.save()


def main():
    parser = argparse.ArgumentParser(description="train the small model")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, required=True, help="of processor time")
    parser.add_argument("--finish", action="store_true", help="lower the rate to 0, and write the model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = Run(options.directory, options.seed)
    train(run, rows.Texts(options.directory / "train.txt"), options.minutes, options.finish)
    if options.finish:
        run.write_model(options.directory / "model")


if __name__ == "__main__":
    main()
