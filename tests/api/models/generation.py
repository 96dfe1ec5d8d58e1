"""
generation.py: options.new_tokens. The reference asks for the logits of one request after the other, and takes the largest of the
last row. Whatever else is asked for is that of a request with the ids that were found.
"""

import importlib.util
import json
import random

from audio import made_audio
import tokens
from asking import post, refusal
from suite import one_in, registry

CHECKS = []
check = registry(CHECKS)
ALWAYS = ("bart-scaled", "marian", "mbart", "umt5", "whisper", "llama-dynamic", "phi3-long", "phi3-short", "mistral", "gpt_oss", "mixtral", "bloom", "opt", "gemma2")
HEADED = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "MTModel")
NEW = 4
KINDS = {}  # name of a model here: its configuration


def stage(folder):
    """Recorded models with a head of words behind a decoder: those of ALWAYS, and some of the others."""
    spec = importlib.util.spec_from_file_location("recorded_models", tokens.OWN / "run.py")
    recorded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorded)
    configs = {name: json.loads((path / "config.json").read_text()) for name, path in sorted(recorded.folders().items())}
    fitting = [name for name, config in configs.items() if config.get("architectures", [""])[0].endswith(HEADED)]
    for i, name in enumerate(fitting):
        if name in ALWAYS or i % one_in(9) == 0:
            recorded.prepare(recorded.folders()[name], folder / f"generating-{name}")
            KINDS[f"generating-{name}"] = configs[name]
    stage_ends(folder)
    stage_early(recorded, folder)


EARLY = (34, 23, 9, 53, 5, 29, 7, 57, 15, 48, 13, 28, 34, 33, 47, 7, 37)  # behind which old rotations find other tokens


def stage_early(recorded, folder):
    """Rotations that change with the length, from 16 tokens on: long before the model's longest sequence."""
    recorded.prepare(recorded.folders()["llama-dynamic"], folder / "early")
    path = folder / "early" / "config.json"
    config = json.loads(path.read_text())
    path.unlink()
    path.write_text(json.dumps({**config, "max_position_embeddings": 64,
                                "rope_scaling": {"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 16}}))


ENDS = (289, 266)  # what GPT-2 finds behind IDS


def stage_ends(folder):
    """GPT-2 with other end tokens: a list in config.json, or one in generation_config.json."""
    for name, own, generation in (("ending-list", [400, ENDS[0]], None), ("ending-generation", 400, [401, ENDS[1]])):
        model = folder / name
        model.mkdir()
        for file in ("model.safetensors", "tokenizer.json"):
            (model / file).symlink_to(tokens.OWN / "gpt2" / file)
        config = json.loads((tokens.OWN / "gpt2" / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**config, "eos_token_id": own}))
        if generation is not None:
            (model / "generation_config.json").write_text(json.dumps({"eos_token_id": generation}))


def ends_of(config):
    """The end tokens of a configuration, which may stand within that of a text tower."""
    found = config.get("eos_token_id")
    for inner in config.values():
        if found is None and isinstance(inner, dict):
            found = inner.get("eos_token_id")
    return found if isinstance(found, list) else [] if found is None else [found]


def generating(client):
    """(name, kind, ends) of the models that generate."""
    for name, config in {**KINDS, "whole-gpt2": None, "whole-t5": None}.items():
        row = client.get(f"/v1/models/{name}").json()
        if row["state"] == "ready" and "generated" in row["returns"]:
            config = config or json.loads((tokens.OWN / name.partition("-")[2] / "config.json").read_text())
            yield row, ends_of(config)


def chosen(client, model, inputs, member, ids, ends, new=NEW):
    """The new tokens of one item, one request for each, and why they end."""
    made = []
    while True:
        logits = post(client, model, {**inputs, member: ids + made}, queries=[-1], **{"return": ["logits"]})["outputs"]["logits"][0][0]
        made.append(max(range(len(logits)), key=lambda i: (logits[i], -i)))
        if made[-1] in ends or len(made) == new:
            return made, "end" if made[-1] in ends else "length"


def inputs_of(row, chance):
    """Three items: inputs without the sequence that is continued, the member of that, and its rows."""
    def rows(lengths):
        return [[chance.randrange(3, min(row["vocabulary"], 50)) for _ in range(length)] for length in lengths]

    if row["kind"] == "decoder":
        return {}, "ids", rows((5, 1, 3))
    if row["kind"] == "audio":
        return {"audio": [made_audio.samples(str(i), 900) for i in range(3)]}, "target_ids", rows((2, 1, 3))
    return {"ids": rows((4, 6, 2))}, "target_ids", rows((2, 1, 3))


def item_of(inputs, i):
    return {name: value[i] for name, value in inputs.items()}


@check
def each_new_token_has_the_largest_logit(client, _):
    chance, seen = random.Random(41), set()
    for row, ends in generating(client):
        model, (inputs, member, rows) = row["name"], inputs_of(row, chance)
        told = post(client, model, {**inputs, member: rows}, new_tokens=NEW, **{"return": ["generated"]})
        assert told["outputs"] == {} and told["shapes"] == {} and told["effective"]["new_tokens"] == NEW, model
        for i, ids in enumerate(rows):
            wanted = chosen(client, model, item_of(inputs, i), member, ids, ends)
            got = told["generated"]["ids"][i], told["generated"]["ended_by"][i]
            assert got == wanted, (model, i, got, wanted)
        alone = post(client, model, {**item_of(inputs, 1), member: rows[1]}, new_tokens=NEW, **{"return": "generated"})
        assert alone["generated"]["ids"] == told["generated"]["ids"][1:2], model
        seen.add(row["kind"])
    assert seen == {"decoder", "encoder-decoder", "audio"}, seen


@check
def rotations_that_change_with_the_length_are_those_of_the_whole_sequence(client, _):
    told = post(client, "early", {"ids": [EARLY]}, new_tokens=8, **{"return": ["generated"]})
    assert told["generated"]["ids"] == [chosen(client, "early", {}, "ids", list(EARLY), [], 8)[0]], told["generated"]


@check
def more_than_the_server_may_answer_is_refused_before_there_is_room_for_it(client, _):
    reply = client.post("/v1/models/whole-gpt2/attention", {"inputs": {"ids": [[5]] * 4000}, "options": {"new_tokens": 20, "return": ["generated"]}})
    told = reply.json()
    assert reply.status == 413 and told["pointer"] == "/options/new_tokens" and "20 for each of 4000 items" in told["error"], told


WANTED = {"decoder": ["attention", "hidden", "output", "logits", "predictions", "word_scores", "logit_lens", "rollout", "head_scores", "entropy"]}


@check
def all_results_have_the_bytes_of_one_request_with_these_ids(client, _):
    chance = random.Random(42)
    for row, _ in generating(client):
        model, (inputs, member, rows) = row["name"], inputs_of(row, chance)
        options = {"words": "next", "predictions_k": 2, "return": WANTED["decoder"]}
        told = post(client, model, {**inputs, member: rows}, new_tokens=NEW, **options)
        whole = [ids + new for ids, new in zip(rows, told["generated"]["ids"])]
        same = post(client, model, {**inputs, member: whole}, **options)
        for name in ("outputs", "shapes", "lengths", "tokens", "layers", "diagnostics"):
            assert told.get(name) == same.get(name), (model, name)
        if row["kind"] == "decoder":
            assert told["tokens"]["ids"] == whole, model


@check
def a_decoder_behind_an_encoder_begins_with_its_start_token(client, _):
    for model, inputs in (("whole-t5", {"ids": [[5, 6, 7], [9]]}), ("generating-marian", {"ids": [[5, 6, 7], [9]]})):
        start = (KINDS.get(model) or json.loads((tokens.OWN / "t5" / "config.json").read_text()))["decoder_start_token_id"]
        alone = post(client, model, inputs, new_tokens=3, **{"return": ["attention"]})
        given = post(client, model, {**inputs, "target_ids": [[start], [start]]}, new_tokens=3, **{"return": ["attention"]})
        assert alone["generated"] == given["generated"] and alone["outputs"] == given["outputs"], model
        assert alone["tokens"]["decoder"]["ids"][0][0] == start and "cross_attention" in alone["outputs"], model


@check
def a_text_is_continued_behind_its_tokens(client, _):
    text = "the animal did not"
    told = post(client, "whole-gpt2", {"text": text}, new_tokens=3, **{"return": ["generated"]})
    ids = post(client, "whole-gpt2", {"text": text}, **{"return": ["entropy"]})["tokens"]["ids"][0]
    assert told["tokens"]["ids"][0] == ids + told["generated"]["ids"][0] and told["lengths"] == [len(ids) + 3]
    assert "offsets" not in told["tokens"] and len(told["tokens"]["shown"][0]) == len(ids) + 3
    spelled = client.post("/v1/models/whole-gpt2/tokens", {"inputs": {"ids": told["generated"]["ids"][0]}}).json()["text"]
    assert told["generated"]["text"] == spelled, told["generated"]


@check
def it_stops_at_ids_and_texts(client, _):
    inputs = {"ids": [[5, 6, 7], [9, 4]]}
    free = post(client, "whole-gpt2", inputs, new_tokens=6, **{"return": ["generated"]})["generated"]
    stop = free["ids"][0][2]
    first = free["ids"][0].index(stop)
    by_id = post(client, "whole-gpt2", inputs, new_tokens=6, stop=stop, **{"return": ["generated"]})["generated"]
    assert by_id["ids"][0] == free["ids"][0][:first + 1] and by_id["ended_by"][0] == "stop", (by_id, free)
    for i, ids in enumerate(free["ids"]):
        last = ids.index(stop) + 1 if stop in ids else 6
        assert by_id["ids"][i] == ids[:last], (i, by_id, free)
    token = client.post("/v1/models/whole-gpt2/tokens", {"inputs": {"ids": free["ids"][0][:2]}}).json()["text"][0]
    by_text = post(client, "whole-gpt2", {"ids": inputs["ids"][0]}, new_tokens=6, stop=["no such text", token.strip()],
                   **{"return": ["generated"]})["generated"]
    assert by_text["ended_by"] == ["stop"] and token.strip() in by_text["text"][0] and len(by_text["ids"][0]) <= 2, (by_text, token)
    both = post(client, "whole-gpt2", inputs, new_tokens=6, stop=[stop, 0], **{"return": ["attention"]})
    assert both["lengths"] == [len(ids) + len(new) for ids, new in zip(inputs["ids"], both["generated"]["ids"])]


@check
def pictures_views_and_files_show_the_whole_sequence(client, _):
    body = {"inputs": {"ids": [5, 6, 7]}, "options": {"new_tokens": 3}}
    whole = {"inputs": {"ids": post(client, "whole-gpt2", body["inputs"], new_tokens=3)["tokens"]["ids"][0]}}
    for accept in ("image/png", "image/svg+xml"):
        pictures = [client.send("POST", "/v1/models/whole-gpt2/attention?layer=1", json.dumps(sent),
                                {"Content-Type": "application/json", "Accept": accept}) for sent in (body, whole)]
        assert pictures[0].status == 200 and pictures[0].body == pictures[1].body, accept
    views = [client.post("/v1/models/whole-gpt2/attention", {**sent, "options": {**sent.get("options", {}), "view": "rows"}})
             for sent in (body, whole)]
    assert views[0].status == 200 and views[0].body == views[1].body
    file = client.send("POST", "/v1/models/whole-gpt2/attention", json.dumps({**body, "options": {**body["options"], "return": ["generated"]}}),
                       {"Content-Type": "application/json", "Accept": "application/vnd.attnd.safetensors"})
    assert file.status == 200 and b"ended_by" in file.body, file.body[:300]


@check
def an_end_token_of_either_configuration_ends_it(client, _):
    free = post(client, "whole-gpt2", IDS, new_tokens=6, **{"return": ["generated"]})["generated"]["ids"][0]
    for name, last in zip(("ending-list", "ending-generation"), ENDS):
        told = post(client, name, IDS, new_tokens=6, **{"return": ["generated"]})["generated"]
        assert told == {**told, "ids": [free[:free.index(last) + 1]], "ended_by": ["end"]}, (name, told, free)


IDS = {"ids": [5, 6, 7]}
REFUSED = (
    ("bert", IDS, {"new_tokens": 2}, "/options/new_tokens", "reads in both directions"),
    ("classes-gpt2", IDS, {"new_tokens": 2}, "/options/new_tokens", "needs a head of words"),
    ("whole-gpt2", {"embeddings": [[0.0] * 32]}, {"new_tokens": 2}, "/options/new_tokens", "inputs.text or inputs.ids"),
    ("whole-gpt2", {"text": "a", "pair": "b"}, {"new_tokens": 2}, "/options/new_tokens", "inputs.pair"),
    ("whole-gpt2", IDS, {"new_tokens": 4000}, "/options/new_tokens", "the model takes at most"),
    ("whole-gpt2", IDS, {"new_tokens": 0}, "/options/new_tokens", ""),
    ("whole-gpt2", IDS, {"new_tokens": 4097}, "/options/new_tokens", ""),
    ("whole-gpt2", IDS, {"new_tokens": 2, "stop": ""}, "/options/stop", "is empty"),
    ("whole-gpt2", IDS, {"new_tokens": 2, "stop": {"a": 1}}, "/options/stop", ""),
    ("whole-gpt2", IDS, {"stop": "a"}, "/options/stop", "options.new_tokens"),
    ("whole-gpt2", IDS, {"return": ["generated"]}, "/options/return", "options.new_tokens"),
    ("whole-gpt2", IDS, {"new_tokens": 2, "ablate": [[0, 0]]}, "/options/ablate", "generate first"),
    ("whole-gpt2", IDS, {"new_tokens": 2, "interventions": [{"at": "hidden", "do": "zero"}]}, "/options/interventions", "generate first"),
    ("whole-gpt2", IDS, {"new_tokens": 2, "temperature": 0.7}, "/options/temperature", "most probable"),
    ("whole-gpt2", IDS, {"new_tokens": 2, "top_p": 0.9}, "/options/top_p", "most probable"),
    ("whole-gpt2", IDS, {"max_new_tokens": 2}, "/options/max_new_tokens", "options.new_tokens"),
    ("bare", IDS, {"new_tokens": 2}, "/options/new_tokens", "reads in both directions"),
)


@check
def what_cannot_be_generated_is_refused_by_name(client, _):
    for model, inputs, options, pointer, part in REFUSED:
        told = refusal(client, model, inputs, **options)
        assert told["pointer"] == pointer and part in told["error"], (model, options, told["pointer"], told["error"])
    told = client.post("/v2/models/whole-gpt2/infer", {"parameters": {"new_tokens": 2}, "inputs": [
        {"name": "IDS", "datatype": "INT64", "shape": [1, 2], "data": [5, 6]}]})
    assert told.status == 400 and "new_tokens" in told.json()["error"], told.body[:300]
    told = client.post("/v1/models/whole-gpt2/tokens", {"inputs": {"text": "a"}, "options": {"new_tokens": 2}})
    assert told.status == 400 and told.json()["pointer"] == "/options/new_tokens", told.body[:300]
