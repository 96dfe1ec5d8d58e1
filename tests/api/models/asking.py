"""asking.py: requests to whole models, for the parts of run.py."""


def post(client, model, inputs, **options):
    reply = client.post(f"/v1/models/{model}/attention", {"inputs": inputs, "options": options})
    assert reply.status == 200, f"{model}: {reply.status} {reply.body[:300]}"
    return reply.json()


def refusal(client, model, inputs, **options):
    reply = client.post(f"/v1/models/{model}/attention", {"inputs": inputs, "options": options})
    assert reply.status == 400, f"{model}: {reply.status} {reply.body[:300]}"
    return reply.json()
