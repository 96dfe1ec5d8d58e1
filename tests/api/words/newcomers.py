"""
newcomers.py: fifty requests that people get wrong in their first hour. From each answer, one can fix the request at once.

Numbers are those of the list of mistakes; some have several spellings. A row has the request, the status, the pointer, and what the
answer must hold. A request that is computed although it may be meant otherwise has its words in diagnostics.hints.
"""

import json
import socket

from suite import registry
from tensors import Tensor, worst_excess

TESTS = []
test = registry(TESTS)

ATTENTION, LAYER, KEPT = "/v1/attention", "/v1/multi-head-attention", "/v1/layers/words.bare"
INFER = "/v2/models/attention/infer"
QUERY = {"query": [[1, 0], [0, 1], [1, 1]]}
EYE = [[1, 0], [0, 1]]
LOWEST = -1.7976931348623157e308  # np.finfo(np.float64).min
WEIGHTS = {name: {"weight": EYE} for name in ("query", "key", "value")}
BATCH = {"query": [[[1, 0], [0, 1]], [[1, 1], [1, 0]]]}
WIDE = {"query": {"shape": [2, 8, 5, 1], "data": [1] * 80}}
HEADS = {"query": {"shape": [2, 2, 3, 1], "data": [1] * 12}}


def options(**members):
    return {"inputs": QUERY, "options": members}


def masks(inputs=QUERY, **members):
    return {"inputs": inputs, "masks": members}


def weights(**members):
    return {"inputs": QUERY, "weights": members}


def layer(**members):
    return {"inputs": QUERY, "weights": WEIGHTS, "options": members}


def tensor(**members):
    return {"inputs": [{"name": "QUERY", "datatype": "FP32", "shape": [1, 2], "data": [1, 0], **members}]}


OK = 200
# (number, path, request, or its text where it is no JSON, status, pointer, what the answer holds)
FIFTY = [
    (1, ATTENTION, options(num_head=2), 400, "/options/num_head", 'did you mean "num_heads"?'),
    (2, ATTENTION, {"inputs": QUERY, "mask": {"causal": True}}, 400, "/mask", "the word here is masks: an object"),
    (3, ATTENTION, {"inputs": QUERY, "mask": [[1, 0, 0], [1, 1, 0], [1, 1, 1]]}, 400, "/mask", "masks.attend (true may attend)"),
    (4, ATTENTION, options(heads=8), 400, "/options/heads", "num_heads is how many there are"),
    (5, ATTENTION, options(heads=[8]), 400, "/options/heads", "numbered 0 to 0, and num_heads is how many there are"),
    (6, ATTENTION, options(causal=True), 400, "/options/causal", "it belongs into masks"),
    (7, ATTENTION, options(is_causal=True), 400, "/options/is_causal", "the word here is masks.causal: aligned bottom right"),
    (8, ATTENTION, masks(causal=1), 400, "/masks/causal", "must be true, false, or an object"),
    (9, ATTENTION, masks(attention_mask=[[1, 1, 0]]), 400, "/masks/attention_mask", "the word here is masks.padding"),
    (10, ATTENTION, masks(key_padding_mask=[[False, False, True]]), 400, "/masks/key_padding_mask", "so negate it"),
    (11, ATTENTION, masks(attend=[[0, 1, 1], [0, 0, 1], [0, 0, 0]]), OK, "/masks/attend", "is the mask inverted?"),
    (11, ATTENTION, masks(padding=[[False, False, False]]), OK, "/masks/padding", "is the mask inverted?"),
    (12, ATTENTION, masks(WIDE, attend=[[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]]), 400, "/masks/attend", "masks.padding takes (batch, kv_len)"),
    (12, ATTENTION, masks(BATCH, attend=[[1, 1], [1, 0]]), OK, "/masks/attend", "masks.padding takes (batch, kv_len)"),
    (13, ATTENTION, {"inputs": {**QUERY, "attn_mask": [[1, 0, 0]]}}, 400, "/inputs/attn_mask", "the word here is masks.attend"),
    (14, ATTENTION, {"inputs": {"q": EYE, "k": EYE, "v": EYE}}, 400, "/inputs/q", "the word here is inputs.query"),
    (14, ATTENTION, {"inputs": {"query": EYE, "k": EYE}}, 400, "/inputs/k", "the word here is inputs.key"),
    (14, ATTENTION, {"inputs": {"query": EYE, "v": EYE}}, 400, "/inputs/v", "the word here is inputs.value"),
    (15, ATTENTION, QUERY, 400, "/query", "it belongs into inputs"),
    (16, ATTENTION, {"Q": EYE, "K": EYE, "V": EYE}, 400, "/Q", "the word here is inputs.query"),
    (17, ATTENTION, {"inputs": {"query": [["1", "0"]]}}, 400, "/inputs/query", "write numbers without quotes"),
    (18, ATTENTION, options(num_heads=2.0), OK, None, None),
    (19, ATTENTION, options(num_heads="2"), 400, "/options/num_heads", 'must be an integer from 1 to 4096, received "2"'),
    (20, ATTENTION, options(num_heads=3), 400, "/inputs/query", "2 features, which num_heads = 3 does not divide"),
    (21, LAYER, weights(query=EYE, key=EYE, value=EYE), OK, None, None),
    (22, LAYER, weights(Wq=EYE), 400, "/weights/Wq", "the word here is weights.query"),
    (22, LAYER, weights(q_proj=EYE), 400, "/weights/q_proj", "the word here is weights.query"),
    (22, LAYER, weights(in_proj_weight=EYE), 400, "/weights/in_proj_weight", "the word here is weights.qkv"),
    (22, LAYER, weights(c_attn=EYE), 400, "/weights/c_attn", "the word here is weights.qkv"),
    (22, LAYER, weights(query={"kernel": EYE}), 400, "/weights/query/kernel", "the word here is weight"),
    (23, LAYER, {"inputs": {"query": EYE}, "weights": {name: [[1, 0], [0, 1], [1, 1]] for name in WEIGHTS}}, 400,
     "/weights/query/weight", "it fits layout out_in"),
    (24, LAYER, layer(norm="layer"), OK, None, None),
    (24, LAYER, layer(norm=True), OK, None, None),
    (24, LAYER, layer(rope=True), OK, None, None),
    (24, LAYER, layer(dropout=0.1), OK, None, None),
    (24, ATTENTION, {"inputs": QUERY, "tokens": ["a", "b", "c"]}, OK, None, None),
    (25, LAYER, layer(norm_first=True), 400, "/options/norm_first", "the word here is options.norm.position"),
    (25, LAYER, layer(layer_norm=True), 400, "/options/layer_norm", "the word here is options.norm"),
    (25, LAYER, layer(epsilon=1e-6), 400, "/options/epsilon", "the word here is options.norm.eps"),
    (26, ATTENTION, options(dropout={"p": 0.1}), OK, None, '"active":false'),
    (27, ATTENTION, options(need_weights=True), 400, "/options/need_weights", 'options.return: "attention"'),
    (27, ATTENTION, options(**{"return": ["attn_weights"]}), 400, "/options/return/0",
     "/options/return/0 is unknown: the word here is attention: "),
    (27, ATTENTION, options(**{"return": "attention"}), OK, None, None),
    (28, ATTENTION, options(compute="fp32"), 400, "/options/compute", "the word here is float32"),
    (28, ATTENTION, options(compute="float16"), 400, "/options/compute", 'must be "float32", "float64" or "bfloat16"'),
    (29, ATTENTION, options(dtype="float16"), 400, "/options/dtype", "options.compute is the type of the computation"),
    (30, ATTENTION, options(softmax_scale=1), 400, "/options/softmax_scale", "the word here is options.scale"),
    (30, ATTENTION, options(temperature=2), 400, "/options/temperature", "1 / (temperature * sqrt(d_k))"),
    (30, ATTENTION, options(rope_theta=1e4), 400, "/options/rope_theta", "the word here is options.rope.theta"),
    (30, ATTENTION, options(rope_scaling={}), 400, "/options/rope_scaling", "the word here is options.rope.scaling"),
    (30, ATTENTION, options(num_key_value_heads=1), 400, "/options/num_key_value_heads", "the word here is options.kv_num_heads"),
    (31, ATTENTION, masks(window=2), 400, "/masks/window", "a list [left, right]"),
    (31, ATTENTION, masks(window=[-1, 0]), 400, "/masks/window/0", "null for an open side"),
    (32, ATTENTION, {"inputs": {"query": [[1, 0], [0]]}}, 400, "/inputs/query/1", "length 1, the first one 2"),
    (33, ATTENTION, {"inputs": {"query": [[1, 0]], "key": [[1, 0, 0]]}}, 400, "/inputs/key", "key has 3 features per head, query has 2"),
    (33, ATTENTION, {"inputs": {"query": [[1]], "key": [[1]], "value": [[1], [1]]}}, 400, "/inputs/value", "value and key differ in their number of positions: 2 and 1"),
    (33, ATTENTION, {"inputs": {"query": [[[1]]], "key": [[[1]], [[1]]]}}, 400, "/inputs/key", "key and query differ in their number of batch items: 2 and 1"),
    (34, ATTENTION, options(num_heads=2, kv_num_heads=1), 400, "/inputs/query", "query stands for the key, too"),
    (35, ATTENTION, '{"inputs": {"query": [[NaN, Infinity]]}}', 400, "/inputs/query/0/0", 'write "NaN", "Infinity", "-Infinity" in quotes'),
    (35, ATTENTION, '{"inputs": {"query": [[-inf, 0]]}}', 400, "/inputs/query/0/0", 'write "NaN", "Infinity", "-Infinity" in quotes'),
    (35, ATTENTION, {"inputs": {"query": [["-inf", 0]]}}, OK, None, None),
    (36, ATTENTION, masks(bias=[[0, None, None], [0, 0, None], [0, 0, 0]]), OK, None, None),
    (37, ATTENTION, '{"inputs": {"query": [[1, 0],]}}', 400, "/inputs/query/1", "no comma before a closing bracket"),
    (37, ATTENTION, "{'inputs': {'query': [[1, 0]]}}", 400, None, "names and strings in double quotes"),
    (37, ATTENTION, '{"inputs": {"query": [[1, 0]]}, "masks": {"causal": True}}', 400, None, "true in small letters"),
    (37, ATTENTION, '{"inputs": {"query": [[1, 0]]} /* all */}', 400, None, "JSON has no comments"),
    (40, ATTENTION, '{"inputs": {"query": ' + "[" * 100 + "1" + "]" * 100 + "}}", 400, "/inputs/query", "at most 4 levels of arrays"),
    (40, ATTENTION, '{"inputs": {"query": ' + "[" * 5000 + "1" + "]" * 5000 + "}}", 400, "/inputs/query", "at most 4 levels of arrays"),
    (41, ATTENTION, '{"inputs": {"query": [[1e39]]}}', 400, "/inputs/query/0/0",
     'beyond the range of float32: compute "float64" holds it; send "Infinity" if that is meant'),
    (41, ATTENTION, '{"inputs": {"query": [[1e400]]}}', 400, "/inputs/query/0/0",
     'beyond the range of float32: send "Infinity" if that is meant'),
    (41, ATTENTION, masks(bias=[[0, LOWEST, 0]] * 3), 400, "/masks/bias/0/1",
     'beyond the range of float32: compute "float64" holds it; send "-Infinity" if that is meant'),
    (41, ATTENTION, {**masks(bias=[[0, LOWEST, 0]] * 3), "options": {"compute": "float64"}}, OK, None, '"compute":"float64"'),
    (41, ATTENTION, masks(bias=[[0, "-Infinity", 0]] * 3), OK, None, None),
    (41, ATTENTION, masks(bias=[[0, -LOWEST, 0]] * 3), 400, "/masks/bias/0/1", 'beyond the range of float32: compute "float64" holds it'),
    (41, ATTENTION, '{"inputs": {"query": [[1]]}, "masks": {"bias": [[-1e400]]}}', 400, "/masks/bias/0/0",
     'beyond the range of float32: send "-Infinity" if that is meant'),
    (41, ATTENTION, '{"inputs": {"query": [[1]]}, "masks": {"bias": [[1e400]]}, "options": {"compute": "float64"}}', 400,
     "/masks/bias/0/0", "beyond the range of float64"),
    (42, "/attention", {"inputs": QUERY}, 404, None, "nearest: POST /v1/attention"),
    (42, "/v1/attention/", {"inputs": QUERY}, 404, None, "nearest: POST /v1/attention"),
    (42, "/v1/multihead-attention", {"inputs": QUERY}, 404, None, "nearest: POST /v1/multi-head-attention"),
    (42, "/v1/mha", {"inputs": QUERY}, 404, None, "nearest: POST /v1/multi-head-attention"),
    (43, ATTENTION, '{"inputs": {"query": [[1]]}, "inputs": {"query": [[1]]}}', 400, None, "a member is given twice"),
    (43, ATTENTION, b'{"inputs": {"query": [[1]]}, "tokens": ["\xfe"]}', 400, None, "UTF-8"),
    (44, ATTENTION, {"inputs": QUERY, "weights": WEIGHTS}, 400, "/weights", "send it to /v1/multi-head-attention"),
    (45, INFER, tensor(name="query"), 400, "/inputs/0/name", 'must be "QUERY"'),
    (45, INFER, tensor(datatype="float32"), 400, "/inputs/0/datatype", '"FP32"'),
    (45, INFER, tensor(name="MASK"), 400, "/inputs/0/name", '"ATTEND" or "BIAS"'),
    (46, INFER, {**tensor(), "parameters": {"padding": True}}, 400, "/parameters/padding", "is no parameter of this protocol"),
    (47, KEPT, WEIGHTS, 400, "/query", "it belongs into weights"),
    (47, KEPT, {"q_proj": EYE, "k_proj": EYE}, 400, "/q_proj", "the word here is weights.query"),
    (48, ATTENTION, options(**{"return": ["q_rotated"]}), 400, "/options/return", "need options.rope or qk_norm"),
    (49, ATTENTION, {"inputs": {"query": {"shape": [1, 2], "dtype": "float32", "data": [1, 0]}}}, OK, None, None),
    (50, ATTENTION, masks(HEADS, attend={"shape": [4, 3, 3], "data": [1] * 36}), 400, "/masks/attend", "it would fit with the shape [2,2,3,3]"),
]

WORDS_PLACE = ['"tokens"', "POST /v1/models/{model}/attention"]
MODEL, TOKENS, MODEL_INFER = "/v1/models/demo/attention", "/v1/models/demo/tokens", "/v2/models/demo/infer"
TEXT = {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": ["a"]}]}
SHARED = {"shared_memory_region": "a", "shared_memory_byte_size": 8}
ONE_BY_ONE = [[[1, 0]], [[0, 1]], [[1, 1]]]
# More slips, of the second hour: (path, request, status, pointer, what the answer holds, in one text or several)
SLIPS = [
    *((ATTENTION, {"inputs": {"query": form}}, 400, "/inputs/query", WORDS_PLACE)
      for form in (["the", "cat"], "the cat sat", [["the", "cat"]], ["a long text " * 1000], "", "no 5")),
    (ATTENTION, {"inputs": {"query": [[1, 0], ["a", "b"]]}}, 400, "/inputs/query/1/0", WORDS_PLACE),
    (ATTENTION, {"inputs": {"query": {"shape": [2], "data": ["a", "b"]}}}, 400, "/inputs/query/data", WORDS_PLACE),
    (LAYER, {"inputs": {"query": ["the", "cat"]}, "weights": WEIGHTS}, 400, "/inputs/query", WORDS_PLACE),
    (ATTENTION, {"inputs": {"query": EYE, "key": ["the", "cat"]}}, 400, "/inputs/key", WORDS_PLACE),
    (ATTENTION, {"inputs": {"query": ["-1.5", "2e3"]}}, 400, "/inputs/query", "write numbers without quotes"),
    (ATTENTION, {"inputs": "the cat"}, 400, "/inputs", ["inputs.query", "POST /v1/models/{model}/attention"]),
    (MODEL, {"inputs": "the cat"}, 400, "/inputs", "inputs.text"),
    (MODEL, {"inputs": ["the", "cat"]}, 400, "/inputs", "inputs.text"),
    (TOKENS, {"inputs": "the cat"}, 400, "/inputs", "inputs.text"),
    (MODEL, {"inputs": {"embeddings": ["the", "cat"]}}, 400, "/inputs/embeddings", "a text is inputs.text"),
    *((MODEL, {"inputs": {name: EYE}}, 400, f"/inputs/{name}", ["POST /v1/attention", "inputs.embeddings"])
      for name in ("query", "key", "value", "q")),
    (INFER, tensor(data=["the", "cat"]), 400, "/inputs/0/data", ["TEXT", "POST /v2/models/{model}/infer"]),
    *((ATTENTION, {"inputs": QUERY, "masks": form}, 400, "/masks", "masks.attend")
      for form in ([[1, 0], [1, 1]], True, "causal", {"shape": [2, 2], "data": [1, 0, 1, 1]})),
    *((ATTENTION, masks(attend=[[1, 0, value]]), 400, "/masks/attend/0/2", "masks.bias")
      for value in (-1e9, -10000, -1, "-Infinity", "-inf")),
    (ATTENTION, masks(attend=[["-Infinity", 0, 0]]), 400, "/masks/attend/0/0", "masks.bias"),
    (ATTENTION, masks(attend=-1e9), 400, "/masks/attend", "masks.bias"),
    (ATTENTION, masks(attend="-Infinity"), 400, "/masks/attend", "masks.bias"),
    (ATTENTION, masks(attend={"shape": [1, 1], "dtype": "float32", "base64": "AAAAAA=="}), 400, "/masks/attend/dtype", "masks.bias"),
    (INFER, {"inputs": [*tensor()["inputs"], {"name": "ATTEND", "datatype": "BOOL", "shape": [1], "data": [-1e9]}]}, 400,
     "/inputs/1/data/0", "added to the scores are BIAS"),
    (ATTENTION, masks(attend=[[1, 0, 2]]), 400, "/masks/attend/0/2", "received 2"),
    (ATTENTION, masks(bias=[[1, 0, 0], [1, 1, 0], [1, 1, 1]]), OK, "/masks/bias", "a mask is masks.attend"),
    (ATTENTION, masks(bias=[1, 1, 0]), OK, "/masks/bias", "0 and 1 are added to the scores"),
    (ATTENTION, masks(bias=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]), OK, None, ""),
    (ATTENTION, masks(bias=[[0.5, 0, 0], [1, 1, 0], [1, 1, 1]]), OK, None, ""),
    (ATTENTION, {"inputs": {"query": ONE_BY_ONE}}, OK, "/inputs/query", "inputs are (batch, len, d)"),
    (LAYER, {"inputs": {"query": ONE_BY_ONE}, "weights": WEIGHTS}, OK, "/inputs/query", "inputs are (batch, len, d)"),
    (ATTENTION, {"inputs": {"query": ONE_BY_ONE, "key": [EYE, EYE, EYE]}}, OK, None, ""),
    (ATTENTION, {"inputs": {"query": ONE_BY_ONE, "past_key": [ONE_BY_ONE[:1]] * 3, "past_value": [ONE_BY_ONE[:1]] * 3}}, OK, None, ""),
    (ATTENTION, {"inputs": {"query": EYE, "key": EYE, "value": [[1, 2]]}}, 400, "/inputs/value", "value and key differ"),
    (ATTENTION, {"inputs": {"query": EYE, "value": [[1, 2]]}}, 400, "/inputs/value", "value and query differ"),
    (ATTENTION, {"inputs": {"scores": EYE, "value": [[1, 2]]}}, 400, "/inputs/value", "value and scores differ"),
    (ATTENTION, options(scale="sqrt"), 400, "/options/scale", ['a number or "none"', "1/√d_k"]),
    (ATTENTION, options(scale=[1]), 400, "/options/scale", "1/√d_k"),
    (ATTENTION, '{"inputs": {"query": [[1, .7]]}}', 400, "/inputs/query/0/1", "a digit before its point"),
    (ATTENTION, '{"inputs": {"query": [[.7, 1]]}}', 400, None, "a digit before its point"),
    (ATTENTION, '{"inputs": {"query": [[1, 0x10, 2]]}}', 400, "/inputs/query/0/1", "decimal numbers alone"),
    (ATTENTION, '{"inputs": {"query": [[1 0], [0 1]]}}', 400, "/inputs/query/0/1", "a comma is missing"),
    (ATTENTION, '{"inputs": {"query": [[1]]} "options": {}}', 400, None, "a comma is missing"),
    (ATTENTION, '{"inputs" {"query": [[1]]}}', 400, None, "a : stands between a name and its value"),
    (ATTENTION, '{"inputs": {"query": [[1]]}', 400, None, "it ends too early, before its last }"),
    (ATTENTION, '{"inputs": {"query": [[1]]', 400, None, "before its last }}"),
    (ATTENTION, '{"inputs": {"query": [[1]]}}}', 400, None, "something follows its last }"),
    (ATTENTION, '{"inputs": {"query": [[1]]}, "options": {"scale": 0,5}}', 400, None, "with a point"),
    (ATTENTION, "inputs=1&options=2", 400, None, "it is a form"),
    (ATTENTION, "hello", 400, None, "begins with {"),
    (INFER, {"inputs": [{"name": "QUERY", "datatype": "FP32", "shape": [1, 2], "parameters": SHARED}]}, 400,
     "/inputs/0/parameters/shared_memory_region", "shared memory is not offered: send the bytes"),
    (INFER, {**tensor(), "outputs": [{"name": "OUTPUT", "parameters": SHARED}]}, 400,
     "/outputs/0/parameters/shared_memory_region", "shared memory is not offered: send the bytes"),
    (INFER, {**tensor(), "outputs": [{"name": "OUTPUT", "parameters": {"classification": 3}}]}, 400,
     "/outputs/0/parameters/classification", "classification is not offered"),
    *((path, {**body, "parameters": {name: 1}}, 400, f"/parameters/{name}", "sequences are not offered")
      for path, body in ((INFER, tensor()), (MODEL_INFER, TEXT)) for name in ("sequence_id", "sequence_start", "sequence_end")),
]
# 38 and 39 are about Content-Type, which the next test has.


def send(client, path, request, kind="application/json"):
    body = request if isinstance(request, bytes) else request.encode() if isinstance(request, str) else json.dumps(request).encode()
    return client.send("PUT" if path == KEPT else "POST", path, body, {"Content-Type": kind} if kind else {})


def complaint(client, path, request, status, pointer, words):
    """What the answer lacks; None when it holds what the row says."""
    reply = send(client, path, request)
    answer = reply.json()
    hints = answer.get("diagnostics", {}).get("hints", [{}])
    told = hints[0] if status == OK and pointer else answer
    text = told.get("message", "") if status == OK and pointer else json.dumps(answer, separators=(",", ":")) if status == OK \
        else answer["error"]
    words = [words or ""] if not isinstance(words, list) else words
    if reply.status == status and told.get("pointer") == pointer and all(word in text for word in words):
        return None
    return f"{json.dumps(request)[:120] if not isinstance(request, bytes) else request}: {reply.status} {answer}"[:600]


@test
def each_of_fifty_mistakes_can_be_fixed_from_its_answer(client):
    wrong = [f"{number}: {told}" for number, *row in FIFTY if (told := complaint(client, *row))]
    assert not wrong, "\n" + "\n".join(wrong)


@test
def each_slip_can_be_fixed_from_its_answer(client):
    wrong = [told for row in SLIPS if (told := complaint(client, *row))]
    assert not wrong, "\n" + "\n".join(wrong)


@test
def a_computed_slip_without_a_hint_has_none(client):
    for path, request, status, pointer, _ in SLIPS:
        if status == OK and pointer is None:
            assert "hints" not in send(client, path, request).json()["diagnostics"], request


@test
def a_post_without_a_body_is_told_what_is_missing(client):
    host, port = client.connection.host, client.connection.port
    for head in ("", "Content-Length: 0\r\n"):
        with socket.create_connection((host, port), timeout=30) as connection:
            connection.sendall(f"POST {ATTENTION} HTTP/1.1\r\nHost: {host}\r\n{head}\r\n"
                               f"GET /livez HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answers = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        assert answers.startswith("HTTP/1.1 400"), answers
        assert "the request has no body; expected a JSON object with inputs" in answers, answers
        assert answers.count("HTTP/1.1 ") == 2 and '{"live":true}' in answers, "the next request is read as one"


@test
def numbers_without_json_are_read_under_the_protocol_alone(client):
    form = '{"inputs":[{"name":"QUERY","datatype":"FP32","shape":[2,2],"data":[1,0,0,1]},' \
           '{"name":"BIAS","datatype":"FP32","shape":[2,2],"data":[%s,0,0]}]}'
    wanted = send(client, INFER, form % '0,"-Infinity"').json()["outputs"]
    for numbers in ("0,-Infinity", "0,null"):
        assert send(client, INFER, form % numbers).json()["outputs"] == wanted, numbers
    assert send(client, INFER, form % "null,0").status == 200
    bare = '{"inputs":[{"name":"QUERY","datatype":"FP32","shape":[2,2],"data":%s}]}'
    for one, other in (("[NaN,1,0,Infinity]", '["NaN",1,0,"Infinity"]'), ("[[1,NaN],[0,-Infinity]]", '[[1,"NaN"],[0,"-Infinity"]]')):
        assert send(client, INFER, bare % one).json() == send(client, INFER, bare % other).json(), one
    for numbers in ("[null,1,0,1]", "[1,nan,0,1]", "[1,-NaN,0,1]"):
        assert send(client, INFER, bare % numbers).status == 400, numbers
    assert send(client, ATTENTION, '{"inputs":{"query":[[1,NaN]]}}').status == 400


@test
def bias_k_and_bias_v_of_pytorch_are_a_cache_of_one_position(client):
    rows, key, value = [[0.3, -1.2], [0.8, 0.4], [-0.5, 0.9]], [0.7, -0.2], [1.5, 0.25]
    past = {"past_key": [[[key]]], "past_value": [[[value]]]}
    asked = {"return": ["attention", "output"], "compute": "float64"}
    layer_answer = client.post(LAYER, {"inputs": {"query": rows, **past}, "weights": WEIGHTS, "options": asked}).json()
    whole = client.post(ATTENTION, {"inputs": {"query": rows, "key": [key, *rows], "value": [value, *rows]}, "options": asked}).json()
    for name in asked["return"]:
        got = Tensor.from_json(layer_answer["outputs"][name])
        assert not worst_excess(got, Tensor.from_json(whole["outputs"][name]), 1e-14, 1e-15), name


@test
def finite_numbers_with_a_product_beyond_the_range_get_a_hint(client):
    def findings(path, request):
        reply = send(client, path, request)
        assert reply.status == OK, reply.body
        found = reply.json()["diagnostics"]
        return found, [(hint["pointer"], hint["message"]) for hint in found.get("hints", [])]

    large, huge = ({"inputs": {"query": [[x, 0], [0, x]]}} for x in (1e20, 1e200))
    for request in (large, {**large, "options": {"return": ["attention"]}}, {**large, "options": {"mechanism": "linear"}}):
        (hint,) = findings(ATTENTION, request)[1]
        assert hint == ("/options/compute", "the numbers of the request are finite, but a product of queries and keys is beyond the range "
                        'of float32 (3.4e38): compute "float64" holds numbers up to 1.8e308'), hint
    assert findings(ATTENTION, {**large, "options": {"compute": "float64"}})[1] == []
    (hint,) = findings(ATTENTION, {**huge, "options": {"compute": "float64"}})[1]
    assert hint[1].endswith("beyond the range of float64 (1.8e308): send smaller numbers"), hint
    (hint,) = findings(LAYER, {"inputs": QUERY, "weights": {**WEIGHTS, "query": [[3e38, 0], [3e38, 0]]}})[1]
    assert "a product of them is beyond the range of float32" in hint[1], hint
    (hint,) = findings(ATTENTION, {"inputs": {"query": [[3e38]], "key": [[1]]}, "masks": {"bias": 3e38}, "options": {"scale": 1}})[1]
    assert "or its sum with the bias, is beyond" in hint[1], hint
    # What is not finite in the request is named instead, also when the map is the whole answer.
    found, hints = findings(ATTENTION, {"inputs": {"query": [[1e20, "NaN"]]}, "options": {"return": ["attention"]}})
    assert found["not_finite"] == {"/inputs/query": 1} and hints == [], found
    rope = {"layout": "half", "cos": [["Infinity"]], "sin": [[1]]}
    assert findings(ATTENTION, {"inputs": {"query": [[1, 2]]}, "options": {"rope": rope}})[1] == []


@test
def a_value_has_no_place_that_a_protocol_could_lack(client):
    reply = send(client, INFER, {**tensor(), "parameters": {"compute": "bf16"}})
    assert reply.status == 400 and " is unknown: the word here is bfloat16; it must be " in reply.json()["error"], reply.json()


@test
def every_number_from_1_to_50_is_there(_):
    assert {row[0] for row in FIFTY} | {38, 39} == set(range(1, 51))


@test
def a_body_without_a_type_is_read_as_json(client):
    for kind in (None, "application/x-www-form-urlencoded"):
        reply = send(client, ATTENTION, {"inputs": QUERY}, kind)
        assert reply.status == 200, reply.body


@test
def what_is_computed_has_no_hint_without_a_reason(client):
    for number, path, request, status, pointer, _ in FIFTY:
        if status == OK and pointer is None:
            assert "hints" not in send(client, path, request).json()["diagnostics"], number


@test
def a_refusal_says_what_was_expected_and_received(client):
    told = send(client, ATTENTION, options(heads=8)).json()
    assert told["received"] == 8 and "num_heads" in told["expected"], told
    told = send(client, ATTENTION, options(**{"return": ["attn_weights"]})).json()
    assert told["received"] == "attn_weights", told
    told = send(client, ATTENTION, masks(HEADS, attend={"shape": [4, 3, 3], "data": [1] * 36})).json()
    assert told["expected"] == [2, 2, 3, 3] and told["received"] == [4, 3, 3], told
