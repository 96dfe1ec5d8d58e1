#!/usr/bin/env python3
"""
record_audio.py: records the models of audio.tar.xz, which read audio, as record.py does other kinds.

    record_audio.py --transformers DIR

A case names a sound of made_audio.py. Beside what record.py records, an archive has what transformers' feature extractor makes of
the sound, in float64, and the times of tokens of its _extract_token_timestamps from the recorded maps.
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import made_audio  # noqa: E402
import record  # noqa: E402
import tensor_file  # noqa: E402
from kinds import kind  # noqa: E402

WHISPER = {"model_type": "whisper", "vocab_size": 60, "max_target_positions": 16, "pad_token_id": 50, "bos_token_id": 50,
           "eos_token_id": 50, "decoder_start_token_id": 51, "begin_suppress_tokens": None}
SMALL = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_source_positions": 24}
WIDE = {"d_model": 48, "encoder_layers": 1, "decoder_layers": 3, "encoder_attention_heads": 6, "decoder_attention_heads": 3,
        "encoder_ffn_dim": 40, "decoder_ffn_dim": 64, "max_source_positions": 30, "num_mel_bins": 128}

KINDS = {
    "whisper": (kind("log-mel of 80 bands", "WhisperForConditionalGeneration", **WHISPER, **SMALL),
                [("tones", 5000), ("chirp", 7680)], None),
    "whisper-128": (kind("128 bands, words of the head of its own, a scale without effect", "WhisperForConditionalGeneration",
                         **WHISPER, **WIDE, scale_embedding=True, activation_function="relu", tie_word_embeddings=False),
                    [("noise", 9600), ("silence", 999)], [[1, 2], [2, 0], [0, 1]]),
}
TARGET = [51, 52, 55, 9, 31, 9, 44, 13, 6, 57]
PREFIX = 3  # the tokens before the first word
HOP = 160


class Outputs(dict):
    """What _extract_token_timestamps reads of a generation."""

    __getattr__ = dict.__getitem__


def times_of(torch, model, answer, heads, count):
    """The start of each token behind the prefix, and the end of the last."""
    if heads is None:  # all heads of the second half of the layers
        layers = model.config.decoder_layers
        heads = [[layer, head] for layer in range(layers // 2, layers) for head in range(model.config.decoder_attention_heads)]
    outputs = Outputs(cross_attentions=[answer["cross_attentions"]], sequences=torch.tensor([TARGET]))
    frames = -(-count // HOP)
    found = model._extract_token_timestamps(outputs, heads, num_frames=frames, num_input_ids=PREFIX - 1)
    return found[0, PREFIX - 1:-1]


def record_kind(transformers, torch, name):
    """{file name: bytes}"""
    (about, config), sounds, heads = KINDS[name]
    model = record.make_model(transformers, torch, config)
    model.model.encoder.embed_positions.weight.requires_grad_(True)  # it is saved like a weight
    shapes = record.set_weights(torch, name, model)
    extractor = transformers.WhisperFeatureExtractor(feature_size=model.config.num_mel_bins)
    extractor.n_samples = 2 * HOP * config["max_source_positions"]
    outputs, inputs, cases = {}, {}, []
    for sound, count in sounds:
        import numpy  # noqa: PLC0415
        samples = numpy.array(made_audio.samples(sound, count))
        features = torch.tensor(extractor(samples, sampling_rate=made_audio.RATE, return_tensors="np").input_features)
        features = torch.tensor(record.float32(features.flatten().tolist())).reshape(features.shape)
        with torch.no_grad():
            answer = dict(model(input_features=features, decoder_input_ids=torch.tensor([TARGET]), output_attentions=True,
                                output_hidden_states=True))
        found = record.results_of(answer)
        found["token_times"] = times_of(torch, model, answer, heads, count)
        inputs[f"{sound}/input_features"] = ("F32", list(features.shape), features.flatten().tolist())
        outputs.update({f"{sound}/{key}": ("F32", list(t.shape), t.flatten().tolist()) for key, t in found.items()})
        cases.append({"name": sound, "samples": count, "input_features": f"{sound}/input_features",
                      "decoder_input_ids": [TARGET], "decoder_attention_mask": [[1] * len(TARGET)], "prefix": PREFIX,
                      "outputs": {key: list(tensor.shape) for key, tensor in found.items()}})
    version = f"transformers {transformers.__version__} (torch {torch.__version__}), eager, float64"
    text = {"about": about, "recorded_with": version, "tensors": shapes, "cases": cases}
    files = {"config.json": json.dumps(config if "-" in name else record.saved_config(model), indent=1, sort_keys=True).encode(),
             "cases.json": json.dumps(text, separators=(",", ":")).encode() + b"\n",
             "inputs.safetensors": tensor_file.write(inputs), "outputs.safetensors": tensor_file.write(outputs)}
    if heads is not None:
        files["generation_config.json"] = json.dumps({"alignment_heads": heads}).encode() + b"\n"
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--transformers", required=True, type=pathlib.Path, help="the folder with the package transformers")
    options = parser.parse_args()
    transformers, torch = record.import_transformers(options.transformers.resolve())
    record.write_archive("audio", {name: record_kind(transformers, torch, name) for name in KINDS})
    return 0


if __name__ == "__main__":
    sys.exit(main())
