"""sharing.py: several servers change one directory of layers, and the directory itself goes away and comes back."""

import concurrent.futures
import fcntl
import itertools
import os
import pathlib
import shutil
import threading

from attnd import wait_until
from layer import TENSORS, answered, as_file, expect, layer, put, refused, send
from suite import registry

ROUNDS = 25
CHECKS = []
check = registry(CHECKS)


# ---- conditions ----

def race(actions):
    """The answers of actions that begin at the same time."""
    start = threading.Barrier(len(actions))

    def run(action):
        start.wait()
        return action()

    with concurrent.futures.ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


def one_wins(replies, won, lost):
    """The index of the answer that has the status won, when all others have the status lost."""
    statuses = [reply.status for reply in replies]
    expect(sorted(statuses) == sorted([won] + [lost] * (len(replies) - 1)), f"{statuses}: {replies[-1].body}")
    return statuses.index(won)


@check
def a_condition_lets_one_change_pass_whichever_server_gets_it(stage):
    """Two clients of each of two servers, so that threads and processes race."""
    seeds = itertools.count()
    with stage.server() as one, stage.server() as other:
        clients = [server.client() for server in (one, other) for _ in range(2)]

        def race_of_puts(won, **condition):
            """The tag of the winner's layer. No file is like another: a change to the same bytes has the same tag."""
            files = [as_file(layer(next(seeds))) for _ in clients]
            winner = one_wins(race([lambda client=client, file=file: put(client, "raced", file, **condition)
                                    for client, file in zip(clients, files)]), won, 412)
            for client in clients:
                got = send(client, "GET", "/v1/layers/raced", Accept=TENSORS)
                expect(got.body == files[winner], "not the layer of the winner")
            return got.headers["ETag"]

        for _ in range(ROUNDS):
            tag = race_of_puts(201, If_None_Match="*")
            for _ in range(2):
                tag = race_of_puts(200, If_Match=tag)
            one_wins(race([lambda client=client: send(client, "DELETE", "/v1/layers/raced", If_Match=tag)
                           for client in clients]), 204, 412)
            expect(not stage.file("raced").exists(), "the file is still there")
        expect(stage.temporaries() == [], stage.temporaries())


@check
def a_lock_that_another_process_keeps_refuses_changes_and_hangs_nothing(stage):
    directory = os.open(stage.folder, os.O_RDONLY)
    try:
        with stage.server() as server:
            client = server.client()
            answered(put(client, "kept", layer(1)), 201)
            fcntl.flock(directory, fcntl.LOCK_EX)
            late = send(client, "DELETE", "/v1/layers/kept", Request_Timeout="0.3")
            expect(late.status == 504, late.status)
            refused(put(client, "kept", layer(2)), 503, "locked")
            answered(send(client, "GET", "/v1/layers/kept"))
            fcntl.flock(directory, fcntl.LOCK_UN)
            answered(put(client, "kept", layer(2)))
    finally:
        os.close(directory)


# ---- a directory that goes away ----

def said(server, words):
    return [line for line in server.lines if words in line]


def told_once(server, words, what):
    wait_until(lambda: said(server, words), what)
    expect(len(said(server, words)) == 1, said(server, words))


@check
def a_directory_that_vanishes_is_told_and_found_again(stage):
    folder = pathlib.Path(stage.folder) / "layers"
    folder.mkdir()
    with stage.server(layers=folder) as server:
        client = server.client()
        for name in "ab":
            answered(put(client, name, layer(1)), 201)
        content = (folder / "a.safetensors").read_bytes()
        shutil.rmtree(folder)
        told_once(server, "warn the directory of layers is gone", "no word of the directory that is gone")
        refused(put(client, "a", layer(2)), 503, "No such file")
        refused(send(client, "DELETE", "/v1/layers/a"), 503, "No such file")
        refused(send(client, "GET", "/v1/layers/a"), 404)
        expect(client.get("/readyz").status == 200, "a server without its layers still computes")
        folder.mkdir()
        (folder / "c.safetensors").write_bytes(content)
        told_once(server, "info the directory of layers is found again", "the new directory is not found")
        expect(send(client, "GET", "/v1/layers/c", Accept=TENSORS).body == content, "the layer of the new directory")
        expect([row["name"] for row in answered(send(client, "GET", "/v1/layers"))["layers"] if "." not in row["name"]]
               == ["c"], "other layers than those of the new directory")
        facts = answered(put(client, "a", layer(2)), 201)
        expect((folder / "a.safetensors").stat().st_size == facts["bytes"], "a layer outside of the new directory")
        expect(len(said(server, "the directory of layers")) == 2, said(server, "the directory of layers"))


@check
def a_directory_that_is_moved_away_takes_no_change_until_it_is_back(stage):
    folder, elsewhere = pathlib.Path(stage.folder) / "layers", pathlib.Path(stage.folder) / "elsewhere"
    folder.mkdir()
    with stage.server(layers=folder) as server:
        client = server.client()
        facts = answered(put(client, "a", layer(1)), 201)
        folder.rename(elsewhere)
        refused(put(client, "a", layer(2)), 503, "No such file")
        told_once(server, "warn the directory of layers is gone", "no word of the directory that is gone")
        elsewhere.rename(folder)
        told_once(server, "info the directory of layers is found again", "the directory that is back is not found")
        expect(answered(send(client, "GET", "/v1/layers/a")) == facts, "another layer than before")
        folder.rename(elsewhere)
        folder.mkdir()
        answered(put(client, "a", layer(2)), 201)
        expect((folder / "a.safetensors").exists(), "the change went to the directory of before")
