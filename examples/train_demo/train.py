#!/usr/bin/env python3
"""
train.py [--out model] [--steps 5000] [--seed 1]: trains the demonstration model on sentences of grammar.py, and writes
its folder. It needs Debian's python3-torch. README.md says what is trained, and what is guided.
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

import grammar
import roles
import wordpiece
from model_numpy import write_safetensors

HERE = pathlib.Path(__file__).resolve().parent
LAYERS, HEADS, WIDTH, INNER, LONGEST = 4, 4, 64, 128, 64
INITIAL = 0.08  # standard deviation of the first weights
BATCH, RATE, WARM = 64, 3e-3, 300
GUIDE, REST = 0.5, 0.1  # weights of the two losses on attention


def config(vocabulary_size):
    return {
        "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.0, "classifier_dropout": None,
        "dtype": "float16", "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": WIDTH,
        "initializer_range": INITIAL, "intermediate_size": INNER, "is_decoder": False, "layer_norm_eps": 1e-12,
        "max_position_embeddings": LONGEST, "model_type": "bert", "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS, "pad_token_id": wordpiece.PAD, "position_embedding_type": "absolute",
        "tie_word_embeddings": True, "type_vocab_size": 2, "use_cache": False, "vocab_size": vocabulary_size,
    }


def first_weights(vocabulary_size):
    """The tensors of BertForMaskedLM under their names in transformers. The decoder is the word embedding."""
    weights = {}

    def linear(name, rows, columns):
        weights[name + ".weight"] = torch.randn(rows, columns) * INITIAL
        weights[name + ".bias"] = torch.zeros(rows)

    def norm(name):
        weights[name + ".weight"] = torch.ones(WIDTH)
        weights[name + ".bias"] = torch.zeros(WIDTH)

    for kind, rows in (("word", vocabulary_size), ("position", LONGEST), ("token_type", 2)):
        weights[f"bert.embeddings.{kind}_embeddings.weight"] = torch.randn(rows, WIDTH) * INITIAL
    norm("bert.embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"bert.encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{name}.attention.{part}", WIDTH, WIDTH)
        norm(f"{name}.attention.output.LayerNorm")
        linear(f"{name}.intermediate.dense", INNER, WIDTH)
        linear(f"{name}.output.dense", WIDTH, INNER)
        norm(f"{name}.output.LayerNorm")
    linear("cls.predictions.transform.dense", WIDTH, WIDTH)
    norm("cls.predictions.transform.LayerNorm")
    weights["cls.predictions.bias"] = torch.zeros(vocabulary_size)
    for tensor in weights.values():
        tensor.requires_grad_()
    return weights


def run(weights, ids, segments, real):
    """Logarithms of the maps, one tensor a layer, and what enters the decoder."""
    count, n = ids.shape

    def linear(x, name):
        return F.linear(x, weights[name + ".weight"], weights[name + ".bias"])

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), weights[name + ".weight"], weights[name + ".bias"], 1e-12)

    hidden_keys = torch.zeros(count, 1, 1, n).masked_fill(~real[:, None, None, :], -1e9)
    word, position, segment = (weights[f"bert.embeddings.{kind}_embeddings.weight"]
                               for kind in ("word", "position", "token_type"))
    x = norm(F.embedding(ids, word) + position[:n] + F.embedding(segments, segment), "bert.embeddings.LayerNorm")
    maps = []
    for layer in range(LAYERS):
        name = f"bert.encoder.layer.{layer}"
        q, k, v = (linear(x, f"{name}.attention.self.{part}").view(count, n, HEADS, -1).transpose(1, 2)
                   for part in ("query", "key", "value"))
        logarithms = F.log_softmax(q @ k.transpose(2, 3) / math.sqrt(WIDTH / HEADS) + hidden_keys, -1)
        maps.append(logarithms)
        context = (logarithms.exp() @ v).transpose(1, 2).reshape(count, n, WIDTH)
        x = norm(x + linear(context, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        inner = F.gelu(linear(x, f"{name}.intermediate.dense"))
        x = norm(x + linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    return maps, norm(F.gelu(linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")


def draw(rng, tokenizer):
    """A training text: mostly one sentence, sometimes two or more in a row or as a pair."""
    encoded = roles.Encoded(grammar.any_one(rng), tokenizer)
    chance = rng.random()
    more = 1 if chance < 0.20 else 4 if chance < 0.24 else 0
    as_pair = chance < 0.08
    for _ in range(more):
        other = roles.Encoded(grammar.any_one(rng), tokenizer)
        if len(encoded.ids) + len(other.ids) <= LONGEST:
            encoded.append(other, as_pair)
    return encoded


def hide(rng, encoded):
    """What the model sees, and position -> id of what it must say."""
    ids, wanted = list(encoded.ids), {}
    chance = rng.random()
    if chance < 0.45 and encoded.hidden:
        for _, position, _ in rng.sample(encoded.hidden, 1 if rng.random() < 0.8 else min(2, len(encoded.hidden))):
            wanted[position] = ids[position]
    elif chance < 0.85:
        for position, token in enumerate(ids):
            if token not in (wordpiece.CLS, wordpiece.SEP) and rng.random() < 0.12:
                wanted[position] = token
    for position, token in enumerate(encoded.ids):
        if position in wanted:
            if rng.random() < 0.9:
                ids[position] = wordpiece.MASK
        elif token > wordpiece.MASK and rng.random() < 0.002:
            ids[position] = wordpiece.UNK
    return ids, wanted


def batch_of(rng, texts):
    """The texts as tensors, the hidden words, and the rows of maps that are guided: role -> (b, i, keys, weight)."""
    n = max(len(encoded.ids) for encoded in texts)
    ids = torch.zeros(len(texts), n, dtype=torch.long)
    segments, real = torch.zeros_like(ids), torch.zeros(len(texts), n, dtype=torch.bool)
    wanted, guided = [], {role: [] for role in roles.HEADS}
    for b, encoded in enumerate(texts):
        seen, said = hide(rng, encoded)
        ids[b, :len(seen)] = torch.tensor(seen)
        segments[b, :len(seen)] = torch.tensor(encoded.segments)
        real[b, :len(seen)] = True
        wanted += [(b, position, token) for position, token in said.items()]
        unclear = {i for _, i, _, _ in encoded.known}
        for role, rows in roles.targets(encoded, seen).items():
            guided[role] += [(b, i, keys, GUIDE) for i, keys in rows.items()]
            if role in roles.RESTS:
                guided[role] += [(b, i, [0], REST) for i, token in enumerate(seen)
                                 if i not in rows and i not in unclear and token != wordpiece.MASK]
    return ids, segments, real, wanted, guided


def loss_of(weights, batch):
    """Cross-entropy of the hidden words, and of the guided rows against their right keys."""
    ids, segments, real, wanted, guided = batch
    maps, out = run(weights, ids, segments, real)
    b, i, token = torch.tensor(wanted).T
    logits = F.linear(out[b, i], weights["bert.embeddings.word_embeddings.weight"], weights["cls.predictions.bias"])
    words = F.cross_entropy(logits, token)
    attention = torch.zeros(())
    for role, rows in guided.items():
        if not rows:
            continue
        layer, head = roles.HEADS[role]
        right = np.zeros((len(rows), ids.shape[1]), dtype=bool)
        for row, (_, _, keys, _) in enumerate(rows):
            right[row, keys] = True
        b, i = torch.tensor([row[:2] for row in rows]).T
        share = torch.tensor([row[3] for row in rows])
        logarithms = maps[layer][b, head, i].masked_fill(~torch.from_numpy(right), -1e9).logsumexp(-1)
        for kind in (GUIDE, REST):
            chosen = share == kind
            if chosen.any():
                attention = attention - kind * logarithms[chosen].mean()
    return words, attention


def train(steps, seed, tokenizer):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    weights = first_weights(len(tokenizer.pieces))
    optimizer = torch.optim.Adam(list(weights.values()), lr=RATE, betas=(0.9, 0.98))
    start, sums, pool = time.monotonic(), [0.0, 0.0], []
    for step in range(1, steps + 1):
        if not pool:
            # Batches of texts that are about as long as each other, in any order.
            texts = sorted((draw(rng, tokenizer) for _ in range(16 * BATCH)), key=lambda text: len(text.ids))
            pool = [texts[at:at + BATCH] for at in range(0, len(texts), BATCH)]
            rng.shuffle(pool)
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(step / WARM, 0.5 + 0.5 * math.cos(math.pi * step / steps))
        words, attention = loss_of(weights, batch_of(rng, pool.pop()))
        optimizer.zero_grad()
        (words + attention).backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimizer.step()
        sums[0] += words.item()
        sums[1] += attention.item()
        if step % 250 == 0:
            print(f"step {step}: words {sums[0] / 250:.3f}, attention {sums[1] / 250:.3f}, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
            sums = [0.0, 0.0]
    return weights


def main():
    parser = argparse.ArgumentParser(description="train the demonstration model")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "model")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    vocabulary = wordpiece.of_grammar(grammar)
    weights = train(options.steps, options.seed, wordpiece.WordPiece(vocabulary))
    options.out.mkdir(parents=True, exist_ok=True)
    write_safetensors(options.out / "model.safetensors",
                      {name: tensor.detach().numpy().astype(np.float16) for name, tensor in weights.items()})
    (options.out / "config.json").write_text(json.dumps(config(len(vocabulary)), indent=2) + "\n")
    (options.out / "tokenizer.json").write_text(
        json.dumps(wordpiece.description(vocabulary), ensure_ascii=False, separators=(",", ":")) + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
