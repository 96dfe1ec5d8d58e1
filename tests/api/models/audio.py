"""
audio.py: models of audio over HTTP: small ones of random numbers, with a tokenizer of bytes.
"""

import base64
import json
import pathlib
import struct
import sys

from suite import registry

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "others" / "models"))
sys.path.insert(0, str(ROOT / "tests" / "api" / "ops"))

import kinds  # noqa: E402
import made_audio  # noqa: E402

CHECKS = []
check = registry(CHECKS)
SAMPLES = 1920  # what the models take
SPELLED = ["a", "b", "c", "d", ".", "\u0120", "\u0120a", "ab", "\u0120ab", "\u00c3", "\u00a9", *"efghijklmno"]  # c3 a9 is an e with an accent
END, START = len(SPELLED), len(SPELLED) + 1
MARKS = {END: "<|endoftext|>", START: "<|startoftranscript|>"}
TOKENIZER = {
    "version": "1.0", "added_tokens": [
        {"id": id, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for id, text in MARKS.items()],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
    "post_processor": {"type": "TemplateProcessing", "pair": [], "single": [
        {"SpecialToken": {"id": MARKS[START], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": MARKS[END], "type_id": 0}}],
        "special_tokens": {text: {"id": text, "ids": [id], "tokens": [text]} for id, text in MARKS.items()}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {text: id for id, text in enumerate(SPELLED)},
              "merges": ["\u0120 a", "a b", "\u0120a b"]},
}
HEADS = {"audio-far": {"alignment_heads": [[2, 0]]}, "audio-none": {"alignment_heads": []}, "audio-word": {"alignment_heads": "all"},
         "audio-pairs": {"alignment_heads": [[1, 1], [0, 0]]},
         "audio-triple": {"alignment_heads": [[0, 0, 1]]}, "audio-null": {"alignment_heads": None}, "audio-torn": None}
BROKEN = {"audio-0": (0, "whisper", "conv1"), "audio-7": (7, "whisper", "conv1"), "audio-huge": (1e300, "num_mel_bins", "expected a whole")}


def stage(folder):
    model = kinds.whisper(words=START + 1)
    for name, config in {"audio": None, **HEADS}.items():
        model.save(folder / name)
        (folder / name / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        if name != "audio":
            (folder / name / "generation_config.json").write_text(json.dumps(config) if config else "{")
    for name, (mels, *_) in BROKEN.items():
        model.save(folder / name)
        (folder / name / "config.json").write_text(json.dumps({**model.config, "num_mel_bins": mels}))


def encoded(numbers, **form):
    return base64.b64encode(made_audio.wav(numbers, **form)).decode()


def post(client, inputs, model="audio", **options):
    return client.post(f"/v1/models/{model}/attention", {"inputs": inputs, "options": options})


def answer(client, inputs, model="audio", **options):
    reply = post(client, inputs, model, **options)
    assert reply.status == 200, reply.body[:400]
    return reply.json()


@check
def words_have_the_times_of_their_tokens(client, _):
    sound = made_audio.samples("tones", SAMPLES)
    said = answer(client, {"audio": sound, "target": "ab cab d. \u00e9"}, **{"return": ["word_times"]})
    ids = said["tokens"]["decoder"]["ids"][0]
    assert ids == [START, 7, 5, 2, 7, 5, 3, 4, 5, 9, 10], ids
    times = said["outputs"]["word_times"]
    assert said["shapes"]["word_times"] == [1, len(ids)] and times["start"][0][0] == times["end"][0][0] == 0, times
    words = times["words"][0]
    assert [word["text"] for word in words] == ["ab", "cab", "d.", "\u00e9"], words
    assert [word["tokens"] for word in words] == [[1, 1], [2, 4], [5, 7], [8, 10]], words
    for word in words:
        first, last = word["tokens"]
        assert [word["start"], word["end"]] == [times["start"][0][first], times["end"][0][last]], (word, times)
    starts = times["start"][0][1:]
    assert starts == sorted(starts) and starts[0] == 0 and times["end"][0][1:-1] == starts[1:], times
    assert all(0 <= end <= SAMPLES / 16000 for end in times["end"][0]), times
    given = answer(client, {"audio": sound, "target_ids": ids}, **{"return": ["word_times"]})
    assert given["outputs"] == said["outputs"]


@check
def the_text_may_spell_its_first_token(client, _):
    for target in ("ab", "<|startoftranscript|>ab"):
        tokens = answer(client, {"audio": [0.5], "target": target})["tokens"]["decoder"]
        assert tokens["ids"] == [[START, 7]] and tokens["shown"] == [["<|startoftranscript|>", "ab"]], tokens


@check
def other_heads_give_other_times(client, _):
    inputs = {"audio": made_audio.samples("noise", SAMPLES), "target": "ab cab d."}
    for name in ("audio-pairs", "audio-null"):
        assert answer(client, inputs, name, **{"return": ["word_times"]})["outputs"]["word_times"]["words"][0]
    for name, part in (("audio-far", "at place 0 no head of the 2 layers of 2"), ("audio-triple", "at place 0 no head"),
                       ("audio-none", "1 to 4 pairs"), ("audio-word", "1 to 4 pairs"), ("audio-torn", "generation_config.json is no JSON")):
        reply = post(client, inputs, name, **{"return": ["word_times"]})
        assert reply.status == 400 and part in reply.json()["error"], reply.body[:400]
        assert answer(client, inputs, name)["outputs"]["cross_attention"], name


@check
def bands_that_the_file_has_not_are_refused(client, _):
    for name, (_, *parts) in BROKEN.items():
        row = client.get(f"/v1/models/{name}").json()
        assert row["state"] == "broken" and any(part in row["reason"] for part in parts), row


@check
def a_sound_comes_in_several_forms(client, _):
    sound = [round(32767 * x) / 32768 for x in made_audio.samples("chirp", 1000)]
    features = {"return": ["features"], "format": "base64"}
    first = answer(client, {"audio": sound}, **features)["outputs"]["features"]
    assert first["shape"] == [1, 5, 12], first["shape"]
    for other in (encoded(sound), [encoded(sound)], [sound], {"shape": [1000], "data": sound}, sound + [0] * 920,
                  encoded(sound, kind=3, bits=32)):
        assert answer(client, {"audio": other}, **features)["outputs"]["features"] == first
    piped = base64.b64encode(made_audio.wav(sound)[:40] + b"\xff" * 4 + made_audio.wav(sound)[44:]).decode()
    assert answer(client, {"audio": piped}, **features)["outputs"]["features"] == first
    wide = answer(client, {"audio": encoded(sound)}, compute="float64", **{"return": ["features"]})["outputs"]["features"]
    again = answer(client, {"features": wide}, compute="float64", **{"return": ["features", "encoder_attention"][:1]})
    assert again["outputs"]["features"] == wide


@check
def what_is_no_sound_is_refused_by_name(client, _):
    long = made_audio.wav([0.0] * 32000 * 30)
    for audio, part in ((encoded([0.0], rate=8000), "8000 samples a second in 1 channels"),
                        (encoded([0.0] * 4, channels=2), "in 2 channels"), (encoded([]), "has no samples"),
                        (base64.b64encode(b"ID3").decode(), "ffmpeg -i FILE"), ("a.wav", "is not base64"),
                        (base64.b64encode(made_audio.wav([0.0] * 9)[:-1]).decode(), "it is cut off"),
                        (base64.b64encode(long).decode(), "at most 1920 (0.12 s)"), ([0.5, "NaN"], "nan at place 1"),
                        ([12000, 3], "divide integers of 16 bits"), ([], "a dimension of 0"), (7, "must be a tensor")):
        reply = post(client, {"audio": audio})
        assert reply.status == 400 and part in reply.json()["error"], (part, reply.body[:400])
        assert reply.json()["pointer"].startswith("/inputs/audio"), reply.body[:400]
    assert answer(client, {"audio": base64.b64encode(long).decode()}, truncate=True)["lengths"]["encoder"] == [6]
    for inputs, options, part in (({"audio": [0.5]}, {"return": ["word_times"]}, "give inputs.target"),
                                  ({"embeddings": [[0.0] * 8]}, {"return": ["features"]}, "no inputs.audio"),
                                  ({"input_features": [[0]]}, {}, "inputs.features"), ({"text": "a"}, {}, "reads audio")):
        reply = post(client, inputs, **options)
        assert reply.status == 400 and part in reply.json()["error"], (part, reply.body[:400])
    assert "this is no model of audio" in client.post("/v1/models/demo/attention", {
        "inputs": {"text": "a"}, "options": {"return": ["word_times"]}}).json()["error"]


@check
def frames_are_swept(client, _):
    inputs = {"audio": made_audio.samples("tones", SAMPLES), "target": "ab cab"}
    metric = {"words": [3, 5]}
    sweep = {"at": "hidden", "part": "encoder", "over": ["layer", "query"], "do": "zero", "layers": [1], "queries": [0, 4]}
    swept = answer(client, inputs, metric=metric, sweep=sweep, **{"return": ["sweep", "word_times"]})["outputs"]
    assert swept["word_times"] == answer(client, inputs, **{"return": ["word_times"]})["outputs"]["word_times"]
    for place, query in enumerate(sweep["queries"]):
        one = {**{name: value for name, value in sweep.items() if name != "over"}, "queries": [query]}
        (a, b), = answer(client, inputs, interventions=[one], words=metric["words"],
                         **{"return": ["word_scores"]})["outputs"]["word_scores"]["logits"][0][-1:]
        assert abs(swept["sweep"]["values"][0][0][place] - (a - b)) < 1e-5


@check
def pictures_and_views_show_sound(client, _):
    body = json.dumps({"inputs": {"audio": [0.5], "target": "ab d"}})
    for part in ("encoder", "decoder", "cross"):
        reply = client.send("POST", f"/v1/models/audio/attention?part={part}", body,
                            {"Content-Type": "application/json", "Accept": "image/svg+xml"})
        assert reply.status == 200, reply.body[:300]
    for view in ("bertviz", "inspectus", "rows"):
        answer(client, {"audio": [0.5], "target": "ab d"}, view=view)
    assert client.get("/v2/models/audio").json()["inputs"] == []
    reply = client.post("/v2/models/audio/infer", {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": ["a"]}]})
    assert reply.status == 400 and "inputs.audio" in reply.json()["error"], reply.body[:300]
    row = client.get("/v1/models/audio").json()
    assert (row["kind"], row["mels"], row["frames"], row["vocabulary"], row["longest"]) == ("audio", 5, 12, START + 1, kinds.PLACES), row
    names = [name for name in row["returns"] if name not in ("experts", "classes", "embedding")]
    assert set(names) == set(row["returns"]) and {"word_times", "features"} < set(names), row
    sweep = {"at": "context", "part": "cross", "over": ["layer", "head"], "do": "mean"}
    answer(client, {"audio": [[0.5], [0.25]], "target": ["ab d", "a"]}, words="next", new_tokens=1, sweep=sweep, metric={"words": [1]},
           **{"return": names})


@check
def every_form_of_a_sound_gives_the_same_bytes(client, _):
    whole = [round(32768 * number) for number in made_audio.samples("tones", 900)]
    floats = [number / 32768 for number in whole]
    raw = struct.pack(f"<{len(whole)}h", *whole)
    forms = [floats, {"shape": [len(floats)], "data": floats}, encoded(floats), [encoded(floats)],
             {"dtype": "int16", "shape": [len(whole)], "base64": base64.b64encode(raw).decode()},
             {"dtype": "int16", "shape": [1, len(whole)], "base64": base64.b64encode(raw).decode()}]
    bodies = [post(client, {"audio": form}).json()["outputs"] for form in forms]
    reply = client.send("POST", "/v1/models/audio/attention", made_audio.wav(floats), {"Content-Type": "audio/wav"})
    assert reply.status == 200, reply.body[:300]
    for outputs in (*bodies, reply.json()["outputs"]):
        assert outputs == bodies[0]
    reply = client.send("POST", "/v1/models/audio/attention?part=encoder", made_audio.wav(floats),
                        {"Content-Type": "audio/wav", "Accept": "image/svg+xml"})
    assert reply.status == 200 and reply.body.startswith(b"<svg"), reply.body[:200]


@check
def sounds_in_no_form_are_refused(client, _):
    short = base64.b64encode(b"123").decode()
    for form, says in (({"dtype": "int16", "shape": [2], "base64": short}, "/inputs/audio/shape must be"),
                       ({"dtype": "int16", "shape": [0], "base64": ""}, "/inputs/audio/shape must be"),
                       ({"dtype": "int16", "shape": [], "base64": short}, "/inputs/audio/shape must be"),
                       ({"dtype": "int16", "shape": [-1, 2], "base64": "AAAA"}, "/inputs/audio/shape"),
                       ({"dtype": "int16", "shape": [2**62, 4], "base64": "AAAA"}, "/inputs/audio/shape must be"),
                       ({"dtype": "int16", "shape": [1]}, 'has no "base64"'),
                       ({"dtype": "int16", "shape": [1], "base64": "AAA", "rate": 8000}, "/inputs/audio/rate")):
        reply = post(client, {"audio": form})
        assert reply.status == 400 and says in reply.json()["error"], (form, reply.body[:300])
    for body, says in ((b"RIFF", "the body is no WAV file"), (b"", "the body is no WAV file")):
        reply = client.send("POST", "/v1/models/audio/attention", body, {"Content-Type": "audio/wav"})
        assert reply.status == 400 and says in reply.json()["error"], reply.body[:300]
    reply = client.send("POST", "/v1/models/demo/attention", made_audio.wav([0.5]), {"Content-Type": "audio/wav"})
    assert reply.status == 400 and "audio" in reply.json()["error"], reply.body[:300]
