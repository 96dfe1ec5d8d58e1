"""
random_model.py: writes models of the size of BERT-base and of GPT-2 small with random weights: config.json and
model.safetensors, as transformers writes them. There is no tokenizer: requests have ids.
"""

import array
import json
import random
import struct

PERIOD = 1048573  # a prime: no row of a matrix repeats within it
LAYERS, WIDTH, INNER, HEADS = 12, 768, 3072, 12
CONFIGS = {
    "bert": {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
             "num_attention_heads": HEADS, "intermediate_size": INNER, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
             "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522, "pad_token_id": 0,
             "is_decoder": False},
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2Model"], "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS,
             "n_positions": 1024, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "vocab_size": 50257},
}
CONFIGS["gpt2-half"] = {**CONFIGS["gpt2"], "architectures": ["GPT2LMHeadModel"]}  # float16, with its head


def affine(name, rows, columns, of_bias):
    return {name + ".weight": [rows, columns], name + ".bias": [of_bias]}


def norm(name):
    return {name + ".weight": [WIDTH], name + ".bias": [WIDTH]}


def bert_shapes(config):
    shapes = {"embeddings.word_embeddings.weight": [config["vocab_size"], WIDTH],
              "embeddings.position_embeddings.weight": [config["max_position_embeddings"], WIDTH],
              "embeddings.token_type_embeddings.weight": [config["type_vocab_size"], WIDTH],
              **norm("embeddings.LayerNorm"), **affine("pooler.dense", WIDTH, WIDTH, WIDTH)}
    for layer in range(LAYERS):
        at = "encoder.layer.%d." % layer
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= affine(at + "attention." + name, WIDTH, WIDTH, WIDTH)
        shapes |= {**norm(at + "attention.output.LayerNorm"), **affine(at + "intermediate.dense", INNER, WIDTH, INNER),
                   **affine(at + "output.dense", WIDTH, INNER, WIDTH), **norm(at + "output.LayerNorm")}
    return shapes


def gpt2_shapes(config):
    shapes = {"wte.weight": [config["vocab_size"], WIDTH], "wpe.weight": [config["n_positions"], WIDTH], **norm("ln_f")}
    for layer in range(LAYERS):
        at = "h.%d." % layer
        shapes |= {**norm(at + "ln_1"), **affine(at + "attn.c_attn", WIDTH, 3 * WIDTH, 3 * WIDTH),
                   **affine(at + "attn.c_proj", WIDTH, WIDTH, WIDTH), **norm(at + "ln_2"),
                   **affine(at + "mlp.c_fc", WIDTH, INNER, INNER), **affine(at + "mlp.c_proj", INNER, WIDTH, WIDTH)}
    return shapes


SHAPES = {"bert": bert_shapes, "gpt2": gpt2_shapes, "gpt2-half": gpt2_shapes}


def is_gain(name):
    return name.endswith(".weight") and name.split(".")[-2] in ("LayerNorm", "ln_1", "ln_2", "ln_f")


class Numbers:
    """Normal numbers around 0 with the deviation that such models start with, and gains around 1."""

    def __init__(self, element):
        numbers = random.Random(17)
        small = array.array("f", (numbers.gauss(0, 0.04) for _ in range(PERIOD)))
        gains = array.array("f", (1 + x for x in small))
        bytes_of = array.array.tobytes if element == 4 else lambda row: struct.pack("<%de" % len(row), *row)
        self.of_kind, self.at = {False: bytes_of(small) * 2, True: bytes_of(gains) * 2}, 0
        self.element = element

    def write(self, file, count, has_gains):
        while count > 0:
            some = min(count, PERIOD)
            file.write(memoryview(self.of_kind[has_gains])[self.element * self.at:self.element * (self.at + some)])
            self.at, count = (self.at + some) % PERIOD, count - some


def make(kind, folder):
    """Makes the model unless it is there; returns the bytes of its file."""
    path = folder / "model.safetensors"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(CONFIGS[kind], indent=1) + "\n")
        element, header, end = 2 if kind.endswith("-half") else 4, {}, 0
        for name, shape in SHAPES[kind](CONFIGS[kind]).items():
            count = shape[0] * (shape[1] if len(shape) == 2 else 1)
            header[name] = {"dtype": "F%d" % (8 * element), "shape": shape, "data_offsets": [end, end + element * count]}
            end += element * count
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        draft, numbers = path.with_suffix(".draft"), Numbers(element)
        with draft.open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name, tensor in header.items():
                start, stop = tensor["data_offsets"]
                numbers.write(file, (stop - start) // element, is_gain(name))
        draft.rename(path)
    return path.stat().st_size
