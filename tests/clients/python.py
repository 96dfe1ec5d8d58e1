#!/usr/bin/env python3
"""python.py --url URL: clients/python against a server, with NumPy's own arithmetic beside it."""

import argparse
import asyncio
import contextlib
import functools
import importlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "clients/python"
sys.path.insert(0, str(ROOT / "tests/support"))

from suite import Skipped, conclude, registry, run_tests, skip  # noqa: E402

sys.path[:1] = [str(PACKAGE), str(ROOT / "tests/clients")]  # tests/support has an attnd.py too

try:
    import numpy as np
except ImportError:
    sys.exit(skip("client-python", "no NumPy"))

import attnd  # noqa: E402

TESTS = []
test = registry(TESTS)
EYE = np.eye(2)
LAYER = {name: {"weight": EYE} for name in ("query", "key", "value")}


def softmax(scores):
    exps = np.exp(scores - scores.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


def raised(kind, call):
    try:
        call()
    except kind as problem:
        return problem
    raise AssertionError(f"no {kind.__name__}")


def refused(call):
    return raised(attnd.AttndError, call)


@test
def progress_is_told_and_the_answer_is_the_same(client):
    words = {"text": ["Anna likes tea", "Tom likes milk"]}
    options = {"return": ["sweep", "attention", "predictions"], "metric": {"words": ["tea"], "query": 3},
               "sweep": {"at": "hidden", "over": ["layer", "query"], "do": "zero"}}
    told = []
    answer, plain = (client.model_attention("demo", words, options=options, **more) for more in ({"on_progress": told.append}, {}))
    assert np.array_equal(answer["sweep"]["values"], plain["sweep"]["values"]) and answer["attention"].dtype == np.float32
    assert np.array_equal(answer["attention"], plain["attention"]) and answer["predictions"]["tokens"] == plain["predictions"]["tokens"]
    assert answer.tokens == plain.tokens and answer.effective == plain.effective and answer.facts == plain.facts
    assert all(0 <= one["done"] <= one["of"] and one["what"] in ("layer", "preparation") for one in told), told
    inputs = {"query": np.random.default_rng(1).random((700, 64)), "grad_output": np.ones((700, 64))}
    graded, wanted = (client.attention_gradients(inputs, options={"compute": "float64"}, **more).gradients for more in ({"on_progress": told.append}, {}))
    assert np.array_equal(graded["inputs"]["query"], wanted["inputs"]["query"]) and graded["inputs"]["query"].dtype == np.float64
    assert refused(lambda: client.attention([[1]], options={"digit": 3}, on_progress=told.append)).pointer == "/options/digit"


@test
def an_error_event_is_a_refusal_and_a_broken_stream_a_broken_connection(_):
    events = b"event: progress\ndata: {\"done\":1,\"of\":2,\"what\":\"layer\"}\n\n" * 2
    for last, kind in ((b"event: error\ndata: {\"error\":\"late\",\"status\":504}\n\n", attnd.AttndError), (b"event: result\ndata: {", ConnectionError)):
        told = []
        listening = socket.create_server(("127.0.0.1", 0))

        def serve(listening=listening, last=last):
            with listening, listening.accept()[0] as peer:
                peer.recv(1 << 16)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + events[:40])
                time.sleep(0.05)
                peer.sendall(events[40:] + last)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(1 << 16):  # a socket that is closed with bytes unread resets the connection
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        with attnd.Client(f"http://127.0.0.1:{listening.getsockname()[1]}") as one:
            problem = raised(kind, lambda one=one, told=told: one.attention([[1]], on_progress=told.append))
        thread.join()
        assert told == [{"done": 1, "of": 2, "what": "layer"}] * 2, told
        assert kind is ConnectionError or problem.status == 504


@test
def arrays_of_every_type_and_order_give_the_numbers_of_equation_1(client):
    random = np.random.default_rng(5)
    for dtype in ("float64", "float32", "float16", ">f8", "int16"):
        query = (4 * random.normal(size=(2, 3, 4))).astype(dtype)
        for given in (query, np.asfortranarray(query), query[:, ::-1]):
            answer = client.attention(given, options={"compute": "float64"})
            exact = given.astype(float)
            weights = softmax(exact @ exact.transpose(0, 2, 1) / 2)
            np.testing.assert_allclose(answer["attention"][:, 0], weights, atol=1e-12)
            np.testing.assert_allclose(answer["output"], weights @ exact, atol=1e-12)
    assert answer.effective["kv_len"] == 3


@test
def masks_and_options_take_arrays_too(client):
    query = np.ones((1, 2, 2, 2), "f4")
    hidden = np.array([[True, False], [True, True]])
    answer = client.attention(query, masks={"attend": hidden},
                              options={"heads": np.array([1]), "scale": np.float32(2), "return": ["attention", "mask"]})
    assert answer["attention"].shape == (1, 1, 2, 2) and answer["attention"][0, 0, 0, 1] == 0
    assert answer["mask"].dtype == bool and (answer["mask"][0, 0] == hidden).all()
    lengths = client.attention(np.ones((2, 3, 2)), masks={"key_lengths": np.array([3, 1])})
    assert (lengths["attention"][1, 0, :, 1:] == 0).all()
    assert client.attention(np.zeros((0, 2)))["output"].shape == (0, 2)


class Foreign:
    """An array as those of torch, jax, pandas and xarray are one."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


@test
def arrays_of_other_libraries_are_taken_everywhere(client):
    eye, ids = Foreign(EYE), Foreign(client.tokens("demo", "it is")["ids"])
    expected = client.attention(EYE)
    assert (client.attention(eye)["attention"] == expected["attention"]).all()
    assert (client.attention({"query": [Foreign([1.0, 0.0]), Foreign([0.0, 1.0])]})["attention"] == expected["attention"]).all()
    weights = {name: eye for name in ("query", "key", "value")}
    once = client.multi_head_attention(eye, weights, options={"num_heads": Foreign(1)})
    assert (once["output"] == client.multi_head_attention(EYE, LAYER)["output"]).all()
    found = client.multi_head_attention_gradients({"query": eye, "grad_output": eye}, weights).gradients
    assert found["inputs"]["query"].shape == (2, 2)
    assert client.model_attention("demo", {"ids": ids})["attention"].shape[-1] == 4
    assert "drawGrid" in attnd.head_view(Foreign(np.ones((2, 3, 4, 4))), url=client.url).html


@test
def weights_may_be_arrays_alone(client):
    weights = {name: EYE for name in ("query", "key", "value")}
    wanted = client.multi_head_attention(EYE, LAYER)["output"]
    assert (client.multi_head_attention(EYE, weights)["output"] == wanted).all()
    client.put_layer("python-short", weights)
    assert (client.layer_attention("python-short", EYE)["output"] == wanted).all()
    client.delete_layer("python-short")


@test
def indices_are_lists_whatever_holds_them(client):
    query = np.arange(1.0, 5).reshape(1, 4, 1, 1)
    for heads in ([0, 1, 3], np.array([0, 1, 3]), np.array([0, 1, 3], "u1"), Foreign([0, 1, 3])):
        assert client.attention(query, options={"heads": heads, "return": "scores"})["scores"].ravel().tolist() == [1, 4, 16]
    assert client.attention(query, options={"heads": range(1, 3), "return": "scores"})["scores"].ravel().tolist() == [4, 9]
    model = client.model_attention("demo", "it is", options={"layers": np.array([0, 1, 3]), "ablate": np.array([[0, 1]])})
    assert model.facts["layers"] == [0, 1, 3]
    masked = client.attention(np.ones((3, 2)), masks={"window": np.array([0, 0])}, tokens={"query": np.array(["a", "b", "c"])})
    assert (masked["attention"][0, 0] == np.eye(3)).all() and masked.tokens["query"] == ["a", "b", "c"]


@test
def nan_and_infinities_of_lists_are_sent(client):
    bias = [[0, float("-inf")], [0, float("-inf")]]
    answer = client.attention({"query": [[1, 0], [0, 1]], "value": [[1.0, 2.0], [float("nan"), float("inf")]]}, masks={"bias": bias})
    assert answer["attention"][0, 0].tolist() == [[1, 0], [1, 0]] and answer["output"].tolist() == [[1, 2], [1, 2]]
    inputs = {"query": [[1, 0], [0, 1]], "grad_output": EYE}
    assert np.isfinite(client.attention_gradients(inputs, masks={"bias": bias}).gradients["inputs"]["query"]).all()


@test
def gradients_of_a_model_are_outputs(client):
    options = {"metric": {"words": ["tea"], "query": 8}, "return": ["attention", "attention_gradient", "embedding"], "layers": [3]}
    answer = client.model_gradients("demo", "Anna likes tea, and Tom likes [MASK] too.", options=options)
    assert answer["attention"].shape[:2] == (1, 1) and answer["embedding"].shape[:2] == (1, 12) and answer["metric"].shape == (1,)
    assert answer["attention_gradient"][0, 0, 8].argmax() == 3


@test
def predicted_words_come_with_their_ids(client):
    options = {"return": ["predictions", "logit_lens"], "predictions_k": 2, "layers": [3]}
    answer = client.model_attention("demo", "the animal [MASK] .", options=options)
    for name in options["return"]:
        ids, words = answer[name]["ids"], answer[name]["tokens"]
        assert np.shape(words) == ids.shape
    assert all(isinstance(word, str) for word in np.ravel(words)) and set(answer.facts) >= {"layers", "lengths"}
    assert client.tokens("demo", " ".join(words[0][0][2]))["ids"][0][1:-1] == ids[0, 0, 2].tolist()


@test
def given_words_have_scores(client):
    options = {"return": ["word_scores", "logit_lens", "logits"], "words": ["tea", "milk"], "queries": [-2]}
    answer = client.model_attention("demo", "Anna likes [MASK]", options=options)
    scores, logits = answer["word_scores"], answer["logits"][0, 0]
    ids = answer.effective["words"]
    assert np.array_equal(scores["logits"][0, 0], logits[ids]) and scores["ranks"][0, 0, 0] == 1 + (logits > logits[ids[0]]).sum()
    assert np.allclose(scores["log_probabilities"][0, 0], logits[ids] - np.log(np.exp(logits).sum()), atol=1e-5)
    assert np.array_equal(answer["logit_lens"]["ranks"][-1], scores["ranks"])
    assert client.model_attention("demo", "it is", options={"return": "word_scores", "words": "next"})["word_scores"]["perplexity"].shape == (1,)


@test
def new_tokens_are_facts_beside_the_outputs(client):
    answer = client.model_attention("gpt2", "the cat", options={"new_tokens": 3, "return": ["attention"]})
    ids, (new,) = answer.tokens["ids"][0], answer.generated["ids"]
    assert ids[-3:] == new and answer.generated["ended_by"] == ["length"] and answer["attention"].shape[-1] == len(ids)
    alone = client.model_attention("gpt2", "the cat", options={"new_tokens": 3, "stop": "no such text", "return": "generated"})
    assert alone.generated == answer.generated and alone.outputs == {}


SWEEP = {"at": "hidden", "over": ["layer", "query"], "do": "zero"}
TEXTS = ["it is", "the animal was tired"]


@test
def sweeps_and_interventions_are_methods(client):
    sweep, metric = {**SWEEP, "do": "replace", "from": 1, "queries": [0, 1]}, {"words": ["tea", "milk"], "query": 1}
    answer = client.sweep("demo", TEXTS, sweep, metric, options={"compute": "float64"})
    same = client.model_attention("demo", TEXTS, options={"return": "sweep", "sweep": sweep, "metric": metric, "compute": "float64"})
    assert list(answer.outputs) == ["sweep"] and answer.facts == same.facts and answer["sweep"]["unchanged"].dtype == float
    assert np.array_equal(answer["sweep"]["values"], same["sweep"]["values"]) and answer["sweep"]["values"].shape == (2, 5, 2)
    more = client.sweep("demo", TEXTS, sweep, metric, options={"return": ["sweep", "attention"]}, on_progress=lambda _: None)
    assert set(more.outputs) == {"sweep", "attention"}
    for wanted in ("attention", ("attention",), np.array(["attention"])):
        assert set(client.sweep("demo", TEXTS, sweep, metric, options={"return": wanted}).outputs) == {"sweep", "attention"}
    for call, options in ((lambda options: client.intervene("demo", "it is", [], options=options), {"interventions": []}),
                          (lambda options: client.sweep("demo", TEXTS, sweep, metric, options=options), {"metric": metric}),
                          (lambda options: client.sweep("demo", TEXTS, sweep, metric, options=options), {"sweep": sweep})):
        assert f"options has {[*options][0]}" in str(raised(ValueError, lambda call=call, options=options: call(options)))
    made = [{"at": "hidden", "layers": np.array([1]), "do": "add", "value": np.full(64, 0.5, "f4")}]
    changed = client.intervene("demo", "it is", made, options={"return": ["hidden"]})["hidden"]
    plain = client.model_attention("demo", "it is", options={"return": ["hidden"]})["hidden"]
    np.testing.assert_allclose(changed[1], plain[1] + 0.5, atol=1e-6)
    assert np.array_equal(changed[0], plain[0]) and not np.allclose(changed[2], plain[2])


@test
def the_largest_weights_are_their_own_result(client):
    answer = client.model_attention("demo", "it is", options={"top_k": 1})
    maps = client.model_attention("demo", "it is")["attention"]
    assert np.array_equal(answer.largest()["indices"][..., 0], maps.argmax(-1)) and answer.largest() is answer["attention"]
    plain = client.attention(EYE)
    assert str(raised(ValueError, plain.largest)) == "attention has no largest weights: ask with options.top_k"
    assert "the answer has no lse: give step=, one of " in str(raised(ValueError, lambda: plain.largest("lse")))


@test
def parts_add_up_to_a_logit(client):
    options = {"return": ["attribution", "word_scores"], "words": ["tea", "milk"]}
    answer = client.model_attention("demo", "Anna likes [MASK]", options=options)
    parts = answer["attribution"]
    total = parts["heads"].sum(axis=(0, 2)) + parts["feed_forward"].sum(axis=0) + parts["embedding"] + parts["bias"]
    assert np.allclose(total, answer["word_scores"]["logits"], atol=1e-4)


@test
def classes_come_with_their_labels(client):
    answer = client.model_attention("head-sentiment", "the animal", options={"return": ["classes", "logits"]})
    classes = answer["classes"]
    assert classes["labels"] == ["bad", "so so", "good"] and np.array_equal(classes["logits"], answer["logits"])
    assert abs(classes["probabilities"].sum() - 1) < 1e-6
    asked = client.model_attention("head-answers", {"text": "what", "pair": "the animal"}, options={"return": "classes"})
    assert asked["classes"]["start"].shape == asked["classes"]["end"].shape and asked["classes"]["answer"][0]["text"]
    assert client.model_attention("pooled-mean", "the animal", options={"return": ["embedding"]})["embedding"].shape == (1, 32)


@test
def a_server_that_is_away_is_named(client):
    error = raised(ConnectionError, attnd.Client("http://127.0.0.1:9").models)
    assert str(error).startswith("http://127.0.0.1:9 cannot be reached: ")


@test
def the_arrays_of_an_answer_lie_in_its_memory_and_can_be_written_to(client):
    answer = client.attention(EYE, options={"return": ["output", "attention"]})
    found = client.attention_gradients({"query": EYE, "grad_output": EYE}).gradients["inputs"]["query"]
    for array in (*answer.outputs.values(), found):
        assert not array.flags.owndata and array.flags.writeable and array.flags.aligned


@test
def maps_in_half_precision_are_read(client):
    exact = client.attention(EYE)["attention"]
    for dtype in ("float16", "bfloat16"):
        rounded = client.attention(EYE, options={"dtype": dtype})["attention"]
        np.testing.assert_allclose(rounded.astype(float), exact, atol=2**-9)


@test
def a_layer_computes_is_kept_and_removed(client):
    once = client.multi_head_attention(EYE, LAYER, options={"num_heads": 1})
    np.testing.assert_allclose(once["attention"][0, 0], softmax(EYE / np.sqrt(2)), atol=1e-6)
    assert client.put_layer("python", LAYER, options={"num_heads": 1})["name"] == "python"
    assert "python" in [layer["name"] for layer in client.layers()]
    assert client.layer("python")["num_heads"] == 1
    assert (client.layer_attention("python", EYE)["output"] == once["output"]).all()
    assert refused(lambda: client.put_layer("python", LAYER, headers={"If-Match": '"other"'})).status == 412
    client.delete_layer("python")
    assert refused(lambda: client.layer("python")).status == 404


@test
def gradients_are_those_of_differences(client):
    query, key, value, grad = np.random.default_rng(3).normal(size=(4, 3, 2))
    inputs = {"query": query, "key": key, "value": value, "grad_output": grad}
    found = client.attention_gradients(inputs, options={"compute": "float64"}).gradients["inputs"]["query"]
    def loss(moved):
        return (softmax(moved @ key.T / np.sqrt(2)) @ value * grad).sum()
    for place in np.ndindex(query.shape):
        step = np.zeros_like(query)
        step[place] = 1e-5
        assert abs(found[place] - (loss(query + step) - loss(query - step)) / 2e-5) < 1e-8
    client.put_layer("python-gradient", LAYER)
    both = {"query": EYE, "grad_output": EYE}
    kept = client.layer_gradients("python-gradient", both).gradients
    given = client.multi_head_attention_gradients(both, LAYER).gradients
    assert (kept["inputs"]["query"] == given["inputs"]["query"]).all()
    client.delete_layer("python-gradient")


@test
def a_text_goes_through_a_model(client):
    facts = client.model("demo")
    assert "demo" in [model["name"] for model in client.models()]
    ids = client.tokens("demo", "it is")["ids"]
    answer = client.model_attention("demo", "it is", options={"return": ["attention", "predictions"]})
    assert answer["attention"].shape == (facts["layers"], 1, facts["heads"], len(ids[0]), len(ids[0]))
    assert answer["predictions"]["ids"].dtype == np.int64
    for given in (np.array(ids), np.array(ids[0]), [np.array(ids[0])]):
        assert (client.model_attention("demo", {"ids": given})["attention"] == answer["attention"]).all()
    vectors = np.random.default_rng(1).normal(size=(3, facts["d_model"])).astype("f4")
    both = [client.model_attention("demo", {"embeddings": given})["attention"] for given in (vectors, vectors.tolist())]
    assert (both[0] == both[1]).all()


@test
def a_refusal_says_where_what_was_expected_and_what_came(client):
    problem = refused(lambda: client.attention({"query": EYE, "key": np.ones((2, 3))}))
    assert (problem.status, problem.type, problem.pointer) == (400, "/problems/shape", "/inputs/key")
    assert (problem.expected, problem.received) == ([2, 2], [2, 3]) and problem.request_id
    assert "3 features" in str(problem) and "/inputs/key" in str(problem)
    for wrong in (np.ones(2, complex), object()):
        assert "cannot be sent" in str(raised(TypeError, lambda: client.attention({"query": wrong})))


@test
def a_connection_is_kept_and_one_that_was_closed_meanwhile_is_opened_again(client):
    connections = []
    def serve(listener):
        for _ in range(2):  # each answers twice, then closes without a word
            connection = listener.accept()[0]
            connections.append(connection)
            for _ in range(2):
                while not connection.recv(65536).endswith(b"\r\n\r\n"):
                    pass
                connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"models": []}')
            connection.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=[listener], daemon=True).start()
        other = attnd.Client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=10)
        for _ in range(4):
            assert other.models() == []
        assert len(connections) == 2


OK = b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{"models": []}'
LEFT = "waits until the client has left"


EARLY = b'HTTP/1.1 413 Large\r\nContent-Length: 26\r\nConnection: close\r\n\r\n{"error": "it is too big"}'


def busy(seconds):
    return f"HTTP/1.1 503 Busy\r\nRetry-After: {seconds}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode()


@contextlib.contextmanager
def scripted(*answers, heads=None):
    """A server with one answer for each connection: its address, and the answers that it gave so far. heads gets what it read."""
    given, heads = [], [] if heads is None else heads
    def serve(listener):
        for answer in answers:
            try:
                connection = listener.accept()[0]
            except OSError:  # the test is over
                return
            with connection, connection.makefile("rb") as sent:
                head = b"".join(iter(sent.readline, b"\r\n"))
                heads.append(head)
                size = re.search(rb"Content-Length: (\d+)", head)
                sent.read(int(size[1]) if size and answer != EARLY else 0)
                if answer == LEFT:
                    sent.read()
                given.append(answer)
                connection.sendall(b"" if answer == LEFT else answer)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=[listener], daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", given


def eventually(claim):
    for _ in range(1000):
        if claim():
            return
        time.sleep(0.01)
    raise AssertionError("it does not come to pass")


@test
def a_busy_server_is_asked_again_when_it_says_so(client):
    with scripted(busy(0), busy(0), busy(0), OK) as (url, given):
        assert attnd.Client(url).models() == [] and len(given) == 4
    with scripted(busy(0), busy(0), busy(0), busy(0), OK) as (url, given):
        assert refused(attnd.Client(url).models).status == 503 and len(given) == 4
    with scripted(busy(5), OK) as (url, given):
        assert refused(lambda: attnd.Client(url).models(timeout=5)).retry_after == 5 and len(given) == 1
    with scripted(busy(0), OK) as (url, given):
        assert refused(attnd.Client(url, retries=0).models).status == 503 and len(given) == 1
    with scripted(busy("Fri, 31 Dec 1999 23:59:59 GMT"), OK) as (url, given):
        assert refused(attnd.Client(url).models).retry_after is None and len(given) == 1


@test
def what_was_lost_before_an_answer_is_sent_again_where_that_does_no_harm(client):
    with scripted(b"", b"", OK) as (url, given):
        assert attnd.Client(url).models() == [] and len(given) == 3
    step = {"cache": "mine"}
    for call in (lambda one: one.attention(EYE, options=step), lambda one: one.delete_layer("a"),
                 lambda one: one.put_layer("a", LAYER, headers={"If-Match": '"a"'}),
                 lambda one: attnd.Client(one.url, retries=0).models()):
        with scripted(b"", OK) as (url, given):
            assert "closed the connection" in str(raised(ConnectionError, lambda: call(attnd.Client(url)))) and len(given) == 1
    with scripted(b"", OK) as (url, given):
        attnd.Client(url).attention(EYE, options={"cache": {"name": "mine", "length": 0}})
        assert len(given) == 2
    with scripted(EARLY, OK) as (url, given):  # it does not read the body
        assert refused(lambda: attnd.Client(url).attention(np.ones((4096, 4096)))).status == 413 and len(given) == 1
    with scripted(OK[:-1], OK) as (url, given):  # the answer had begun
        assert str(raised(ConnectionError, attnd.Client(url).models)).startswith(f"{url} broke off its answer") and len(given) == 1


@test
def a_call_ends_at_its_own_timeout(client):
    with scripted(LEFT, LEFT) as (url, given):
        other = attnd.Client(url)
        assert str(raised(TimeoutError, lambda: other.models(timeout=0.2))) == f"{url} gave no answer within 0.2 s"
        assert str(raised(TimeoutError, lambda: attnd.Client(url, timeout=0.1).models())).endswith("within 0.1 s")
        eventually(lambda: len(given) == 2)
    def drip(listener):  # a byte again and again is no answer either
        connection = listener.accept()[0]
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                connection.sendall(b" ")
                time.sleep(0.02)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, args=[listener], daemon=True).start()
        raised(TimeoutError, lambda: attnd.Client(f"http://127.0.0.1:{listener.getsockname()[1]}").models(timeout=0.3))


@test
def with_closes_the_connections_at_its_end(client):
    closed = []
    def serve(listener):
        with listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(OK.replace(b"close", b"keep-alive"))
            closed.append(connection.recv(1))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=[listener], daemon=True).start()
        with attnd.Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as other:
            assert other.models() == [] and closed == []
        eventually(lambda: closed == [b""])


@test
def the_address_comes_from_the_environment(client):
    os.environ["ATTND_URL"] = client.url + "/"
    try:
        assert attnd.Client().url == client.url and attnd.Client("http://127.0.0.1:9").url == "http://127.0.0.1:9"
        assert f"{client.url}/web/" in attnd.head_view(np.ones((2, 2))).html
        assert asyncio.run(attnd.AsyncClient().model("demo"))["name"] == "demo"
    finally:
        del os.environ["ATTND_URL"]
    assert attnd.Client().url == "http://127.0.0.1:8080"
    for wrong in ("localhost:8080", "http://", "http://a:b"):
        assert "is not an address" in str(raised(ValueError, lambda: attnd.Client(wrong)))


@test
def header_fields_and_keys_go_with_every_call(client):
    heads = []
    with scripted(OK, heads=heads) as (url, _):
        attnd.Client(url, "secret", headers={"traceparent": "t"}).models()
        assert b"X-API-Key: secret\r\n" in heads[0] and b"traceparent: t\r\n" in heads[0]


@test
def many_calls_of_asyncio_run_side_by_side(client):
    async def main():
        async with attnd.AsyncClient(client.url, connections=4) as other:
            answers = await asyncio.gather(*(other.attention(EYE * n, options={"compute": "float64"}) for n in range(20)))
            for n, answer in enumerate(answers):
                np.testing.assert_allclose(answer["attention"][0, 0], softmax(n * n * EYE / np.sqrt(2)), atol=1e-12)
            assert (await other.model_attention("demo", "it is"))["attention"].shape[0] == 4
            try:
                await other.attention({"query": EYE, "key": np.ones((2, 3))})
            except attnd.AttndError as problem:
                assert problem.pointer == "/inputs/key"
            else:
                raise AssertionError("it was not refused")
    asyncio.run(main())
    assert set(public(attnd.AsyncClient)) == set(public(attnd.Client)), "a call is missing"


@test
def progress_of_asyncio_is_told_in_the_event_loop(client):
    event = b'event: progress\ndata: {"done":1,"of":2,"what":"layer"}\n\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    told = []
    async def main(url):
        async with attnd.AsyncClient(url) as other:
            await other.attention(EYE, on_progress=lambda one: told.append((one["done"], threading.current_thread())))
    with scripted(head + 2 * event + b'event: result\ndata: {"outputs":{}}\n\n') as (url, _):
        asyncio.run(main(url))
    assert told == [(1, threading.current_thread())] * 2, told
    class Late:
        async def __call__(self, one):
            told.append(one)
    async def late(one, more=0):
        told.append((one, more))
    for given in (late, functools.partial(late, more=1), Late()):
        other = attnd.AsyncClient(client.url)
        for call in (lambda given=given: client.attention(EYE, on_progress=given),
                     lambda given=given, other=other: asyncio.run(other.attention(EYE, on_progress=given))):
            assert str(raised(TypeError, call)).startswith("on_progress must be a plain function")


def public(kind):
    return [name for name in vars(kind) if not name.startswith("_")]


@test
def a_cancelled_call_of_asyncio_closes_its_connection_and_frees_its_thread(client):
    async def main(url, given):
        async with attnd.AsyncClient(url, connections=1) as other:
            for _ in range(2):
                call = asyncio.create_task(other.models())
                await asyncio.sleep(0.1)
                call.cancel()
                assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)
            assert await other.models(timeout=20) == []
            assert given == [LEFT, LEFT, OK]
    with scripted(LEFT, LEFT, OK) as (url, given):
        asyncio.run(main(url, given))


@test
def all_layers_are_listed_however_many(client):
    names = [f"python-{n:03}" for n in range(101)]
    for name in names:
        client.put_layer(name, LAYER)
    found = [layer["name"] for layer in client.layers()]
    for name in names:
        client.delete_layer(name)
    assert set(names) <= set(found)


def needs(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skipped(f"no {name}") from None


@test
def labelled_arrays_of_xarray_have_the_words_and_the_numbers_of_the_model(client):
    needs("xarray")
    options = {"layers": [1, 3], "heads": [0, "2-3"], "keys": [{"from": 1, "to": 2}], "queries": [0, -1], "return": ["attention", "entropy", "hidden"]}
    answer = client.model_attention("demo", ["it is", "the animal was tired"], options=options)
    maps, whole = answer.to_xarray(), client.model_attention("demo", ["it is", "the animal was tired"])["attention"]
    assert maps.dims == ("layer", "batch", "head", "query", "key") and maps.name == "attention"
    for layer, head, query, key in ((1, 0, 0, 1), (3, 3, 5, 2), (3, 2, 5, 1)):
        assert maps.sel(layer=layer, head=head, query=query, key=key, batch=1) == whole[layer, 1, head, query, key]
    assert maps.query_word.values.tolist() == [["[CLS]", ""], ["[CLS]", "[SEP]"]]
    assert maps.key_word.values.tolist() == [["it", "is"], ["the", "animal"]]
    assert answer.to_xarray("entropy").dims == ("layer", "batch", "head", "query")
    assert answer.to_xarray("hidden")["layer"].values.tolist() == [0, 2, 4]
    plain = client.attention(np.ones((2, 1, 3, 2)), tokens={"query": ["a", "b", "c"]}, options={"queries": [-1]}).to_xarray()
    assert plain["query"].values.tolist() == [2] and plain.query_word.values.tolist() == [["c"], ["c"]] and plain.shape == (2, 1, 1, 3)
    assert client.attention(EYE).to_xarray()["key"].values.tolist() == [0, 1]
    pooled = client.model_attention("demo", "it is", options={"pool": {"rows": 2, "cols": 2}}).to_xarray()
    assert "query_word" not in pooled.coords and pooled.sizes["query"] == 2
    for options, step in (({"top_k": 1}, "attention"), ({}, "output")):
        assert "has no labels: choose one of scores" in str(raised(ValueError, lambda: client.attention(EYE, options=options).to_xarray(step)))


@test
def tables_of_pandas_have_a_row_for_each_number(client):
    needs("pandas")
    answer = client.model_attention("demo", ["it is", "the animal"], options={"layers": [2]})
    frame = answer.to_pandas()
    assert list(frame.columns) == ["layer", "batch", "head", "query", "key", "query_word", "key_word", "attention"]
    assert len(frame) == answer["attention"].size and set(frame.layer) == {2}
    row = frame[(frame.batch == 1) & (frame["head"] == 3) & (frame.query_word == "animal") & (frame.key_word == "the")]
    assert row.attention.tolist() == [answer["attention"][0, 1, 3, 2, 1]]


@test
def a_head_is_plotted_by_matplotlib(client):
    needs("matplotlib").use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415: it may be missing
    answer = client.model_attention("demo", ["it is", "the animal was tired"], options={"layers": [1, 3], "heads": [0, 2]})
    ax = answer.plot(layer=3, head=2)
    assert np.array_equal(ax.images[0].get_array(), answer["attention"][1, 0, 1, :4, :4]), "the filling of a shorter item is left out"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["[CLS]", "it", "is", "[SEP]"]
    assert ax.get_title() == "attention, layer 3, head 2"
    own = pyplot.subplots()[1]
    assert client.attention(EYE).plot(ax=own) is own and len(own.get_yticks()) == 2
    assert str(raised(ValueError, lambda: answer.plot(layer=3, head=1))) == "attention has no head 1: choose one of [0, 2]"
    mean = client.model_attention("demo", "it is", options={"return": ["attention_mean", "entropy"]})
    assert np.array_equal(mean.plot(layer=3, step="attention_mean").images[0].get_array(), mean["attention_mean"][3, 0])
    assert "entropy is no map" in str(raised(ValueError, lambda: mean.plot(step="entropy")))
    pyplot.close("all")


@test
def a_sweep_is_labelled_with_its_layers_and_its_tokens_or_heads(client):
    needs("xarray")
    needs("pandas")
    def ask(texts=TEXTS, **more):
        return client.sweep("demo", texts, {**SWEEP, "layers": [0, -1], **more}, {"words": ["tea"]})
    answer = ask()
    found = answer.to_xarray("sweep")
    assert found.dims == ("batch", "layer", "query") and found.layer.values.tolist() == [0, 4]
    assert found.query_word.values.tolist() == [["[CLS]", "it", "is", "[SEP]", "", ""], ["[CLS]", "the", "animal", "was", "tired", "[SEP]"]]
    assert found.sel(batch=1, layer=4, query=2) == answer["sweep"]["values"][1, 1, 2]
    assert np.isnan(found[0, :, 4:]).all() and np.isfinite(found[0, :, :4]).all() and np.isfinite(found[1]).all(), "it ends at 4"
    assert answer.to_pandas("sweep").sweep.count() == 2 * (4 + 6) and np.isfinite(answer["sweep"]["values"]).all(), "the answer stays"
    for queries, numbers, words in (([-1, 0], [-1, 0], ["[SEP]", "[CLS]"]), ({"from": -2, "to": -1}, [-2, -1], ["is", "[SEP]"]),
                                    ({"from": 1, "to": -2}, [1, 2, 3, 4], ["it", "is", "", ""])):
        found = ask(queries=queries).to_xarray("sweep")
        assert found["query"].values.tolist() == numbers and found.query_word.values[0].tolist() == words
        assert np.isnan(found[0, 0]).values.tolist() == [word == "" for word in words]
    assert ask(items=[0], queries=[-1]).to_xarray("sweep")["query"].values.tolist() == [3], "of one length, they have the numbers of the model"
    heads = ask(at="context", over=["layer", "head"], layers=[1, 3], heads=[0, 2], items=[1])
    frame = heads.to_pandas("sweep")
    assert list(frame.columns) == ["batch", "layer", "head", "sweep"] and set(frame.batch) == {1}, "of the items that are swept"
    assert frame[(frame.layer == 3) & (frame["head"] == 2)].sweep.tolist() == [heads["sweep"]["values"][1, 1, 1]]


@test
def a_sweep_is_plotted_around_the_unchanged_run(client):
    needs("matplotlib").use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415: it may be missing
    answer = client.sweep("demo", TEXTS, {**SWEEP, "items": [0]}, {"words": ["tea"]})
    ax = answer.plot(step="sweep")
    assert np.array_equal(ax.images[0].get_array(), answer["sweep"]["values"][0, :, :4])
    assert abs(np.mean(ax.images[0].get_clim()) - answer["sweep"]["unchanged"][0]) < 1e-5
    assert [label.get_text() for label in (*ax.get_xticklabels(), *ax.get_yticklabels())] == ["[CLS]", "it", "is", "[SEP]", *"01234"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("query", "layer", "sweep")
    assert str(raised(ValueError, lambda: answer.plot(step="sweep", batch=1))) == "sweep has no batch 1: choose one of [0]"
    for wrong in ({"layer": 9}, {"head": 0}):
        assert "leave out layer and head" in str(raised(ValueError, lambda wrong=wrong: answer.plot(step="sweep", **wrong)))
    assert str(raised(ValueError, answer.plot)) == "the answer has no attention: give step=, one of sweep"
    pyplot.close("all")


@test
def a_sweep_of_two_stacks_has_the_words_of_its_part(client):
    needs("xarray")
    inputs = {"text": ["the cat", "it is"], "target": ["a", "the cat is"]}
    for part, owner in (("encoder", "encoder"), ("decoder", "decoder"), ("cross", "decoder")):
        answer = client.sweep("t5", inputs, {**SWEEP, "at": "context", "part": part}, {"words": [3]})
        words = [[word for word in row if word] for row in answer.to_xarray("sweep").query_word.values.tolist()]
        assert words == answer.tokens[owner]["shown"], part
    assert refused(lambda: client.sweep("t5", inputs, SWEEP, {"words": [3]})).pointer == "/options/sweep"


@test
def stacks_of_an_encoder_and_a_decoder_have_words_of_their_own(client):
    needs("pandas")
    tokens = {"encoder": {"shown": [["a", "b"]]}, "decoder": {"shown": [["x"]]}}
    facts = {"tokens": tokens, "layers": {"encoder": [0], "decoder": [1]}}
    answer = attnd.Answer({"cross_attention": np.ones((1, 1, 1, 1, 2)), "encoder_attention": np.ones((1, 1, 1, 2, 2))}, facts, client.url)
    frame = answer.to_pandas("cross_attention")
    assert frame.query_word.tolist() == ["x", "x"] and frame.key_word.tolist() == ["a", "b"] and set(frame.layer) == {1}
    assert set(answer.to_pandas("encoder_attention").layer) == {0}
    assert "layers: [1]" in attnd.head_view(answer, "cross_attention").html


@test
def an_extra_that_is_missing_is_named(client):
    for name, call in (("xarray", attnd.Answer.to_xarray), ("pandas", attnd.Answer.to_pandas), ("matplotlib", attnd.Answer.plot)):
        kept = {module: sys.modules.pop(module) for module in list(sys.modules) if module.partition(".")[0] == name}
        sys.modules[name] = None
        try:
            assert str(raised(ImportError, lambda: call(client.attention(EYE)))) == f"this needs {name}: pip install 'attnd[{name}]'"
        finally:
            del sys.modules[name]
            sys.modules.update(kept)


SAMPLE = """
import asyncio
import attnd
import numpy as np

async def main() -> None:
    async with attnd.AsyncClient(headers={"traceparent": "t"}) as client:
        answer: attnd.Answer = await client.attention(np.eye(2), masks={"causal": True}, options={"heads": [0, 2]}, timeout=5)
        print(answer["attention"].shape, (await client.tokens("demo", "a", pair="b"))["ids"][0][0] + 1)

with attnd.Client(timeout=2, retries=1) as client:
    heads: int = client.model("demo")["heads"] + client.layer("a")["num_heads"]
    scale: float = client.attention([[1.0]]).effective["scale"]
    words: list[str] = client.model_attention("demo", "a")["classes"]["labels"]
    client.attention([[1.0]]).plot(layer=0, head=1)
    swept = client.sweep("demo", "a", {"at": "hidden", "over": ["layer", "query"], "do": "zero"}, {"words": ["tea"]})
    effect: float = (swept["sweep"]["values"][0] - swept["sweep"]["unchanged"][0]).max()
    made = client.intervene("demo", "a", [{"at": "context", "do": "scale", "factor": 0.5, "from": 1}], options={"top_k": 2})
    print(made.largest()["indices"], made["word_scores"]["ranks"], made["attribution"]["bias"], made["head_scores"]["induction"])
    print(made["experts"]["weights"], made["word_times"]["start"], made["classes"]["answer"])
    if made.tokens and made.generated:
        print(made.tokens["shown"][0], made.generated["ended_by"][0])
asyncio.run(main())
"""


@test
def types_hold_in_the_package_and_in_a_program_and_find_a_wrong_word(client):
    mypy = shutil.which("mypy")
    if not mypy:
        raise Skipped("no mypy")
    changes = (("causal", "casual"), ('["heads"]', '["haeds"]'), ("timeout=5", "timeuot=5"), ('["scale"]', '["mechanism"]'),
               ("[0] + 1", '[0] + "a"'), ("client.tokens(", "client.tokens(1, "), ('"at": "h', '"att": "h'), ('"do": "zero', '"do": "zeros'),
               ('["layer", "q', '["layers", "q'), ('"words"', '"word"'), ('"factor"', '"facter"'), ('"scale", "f', '"scales", "f'), *(
                   (f'["{right}"]', f'["{right}x"]') for right in ("values", "indices", "ranks", "bias", "induction", "weights", "start", "answer",
                                                                   "shown", "ended_by")))
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, f"sample{number}.py") for number in range(len(changes) + 1)]
        for file, (right, wrong) in zip(files, (("", ""), *changes)):
            file.write_text(SAMPLE.replace(right, wrong, 1))
        said = subprocess.run([mypy, "--strict", "--python-executable", sys.executable, "--cache-dir", folder, "attnd", *files],
                              cwd=PACKAGE, capture_output=True, text=True, check=False).stdout
    assert {line.partition(":")[0] for line in said.splitlines() if ": error: " in line} == set(map(str, files[1:])), said


@test
def threads_have_connections_of_their_own(client):
    right = []
    def work(seed):
        query = np.random.default_rng(seed).normal(size=(4, 3))
        for _ in range(20):
            weights = client.attention(query, options={"compute": "float64"})["attention"][0, 0]
            right.append(np.allclose(weights, softmax(query @ query.T / np.sqrt(3)), atol=1e-12))
    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 80 and all(right)


@test
def a_view_has_the_numbers_and_nothing_that_ends_its_script(client):
    shown = attnd.head_view(client.attention(EYE, tokens={"query": ["</script>", "b"]}))._repr_html_()
    assert shown.count("</script>") == 1 and "/attention.js" in shown
    assert "drawGrid" in attnd.head_view(np.ones((2, 3, 4, 4)), url=client.url).html


@test
def an_inline_view_names_no_server_and_needs_one_when_it_is_made(client):
    shown = attnd.head_view(client.attention(EYE), inline=True).html
    assert client.url not in shown and "data:text/javascript;base64," in shown and shown.count("</script>") == 1
    for away in (client.url + "/elsewhere", "http://127.0.0.1:9"):
        raised(OSError, lambda: attnd.head_view(np.ones((2, 2)), url=away, inline=True))  # noqa: B023: called at once


@test
def it_installs_from_its_folder(client):
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/source", f"{folder}/target"
        shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", target, source]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if "No module named pip" in done.stderr:
            raise Skipped("no pip")
        assert done.returncode == 0, done.stdout + done.stderr
        show = f"import sys; sys.path.insert(0, {target!r}); import attnd; print(attnd.__file__, attnd.__version__)"
        where, version = subprocess.check_output([sys.executable, "-c", show], text=True, cwd=folder).split()
        assert where.startswith(target) and version == (ROOT / "VERSION").read_text().strip()
        assert list(pathlib.Path(target).glob("attnd/py.typed"))
        assert "](.." not in (PACKAGE / "README.md").read_text(), "a link leaves the package"
        assert [file.read_text() for file in pathlib.Path(target).glob("attnd-*/**/LICENSE")] == [(ROOT / "LICENSE").read_text()]


@test
def the_types_are_those_of_the_servers_document(client):
    from renew_types import python_types_of  # noqa: PLC0415: it stands beside this file
    assert python_types_of(client.url) == (PACKAGE / "attnd/schema.py").read_text(), "run `make client-types`"


@test
def its_code_is_small(client):
    assert sum(len(path.read_text().splitlines()) for path in PACKAGE.glob("attnd/*.py") if path.name != "schema.py") <= 990


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    client = attnd.Client(options.url)
    return conclude("client-python", *run_tests(TESTS, lambda one: one(client), options.only))


if __name__ == "__main__":
    sys.exit(main())
