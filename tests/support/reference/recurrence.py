"""
recurrence.py: linear attention with an update rule, without its state: by the weights of all keys, which solve a triangular
system, and by what a state of before still adds.
"""

from bounded import dots, exp, total
from tensors import Tensor


class Head:
    """One key head: the keys that are seen, and what each position keeps of each feature."""

    def __init__(self, keys, gates, betas, seen):
        self.keys, self.betas, self.seen = keys, betas, seen
        self.kept = []  # kept[n][m]: of the m-th key that is seen, when the n-th has come; kept[n][-1]: of the state before
        for n, t in enumerate(seen):
            before = self.kept[-1] if n else [[1.0] * len(gates[t])]
            decayed = [[a * g for a, g in zip(row, gates[t])] for row in before]
            self.kept.append([*decayed[:-1], [1.0] * len(gates[t]), decayed[-1]])

    def asked(self, x, n, m):
        """What x asks, at the n-th key that is seen, of each feature of what the m-th has left."""
        return [a * b for a, b in zip(x, self.kept[n][m])]

    def overlap(self, x, n, m):
        return dots(self.asked(x, n, m), [self.keys[self.seen[m]]])[0]

    def weights(self, query, n):
        """A row of G (I + L)^-1, by back substitution."""
        row = [self.overlap(query, n, m) for m in range(n + 1)]
        for m in range(n, -1, -1):
            if self.betas:
                later = [row[t] * self.betas[self.seen[t]] * self.overlap(self.keys[self.seen[t]], t, m)
                         for t in range(m + 1, n + 1)]
                row[m] = row[m] - total(later) if later else row[m]
        return row


def columns_of(rows):
    return list(map(list, zip(*rows)))


def learnt(head, values, past):
    """What each key that is seen adds to the state, by forward substitution."""
    rows = []
    for n, t in enumerate(head.seen):
        row = list(values[t])
        if head.betas:
            if past:
                row = [v - p for v, p in zip(row, dots(head.asked(head.keys[t], n, -1), columns_of(past)))]
            for m, earlier in enumerate(rows):
                share = head.overlap(head.keys[t], n, m)
                row = [v - share * u for v, u in zip(row, earlier)]
            row = [head.betas[t] * v for v in row]
        rows.append(row)
    return rows


def attend(steps, mask, scale):
    """attention, context and present_state."""
    q, k, v = steps["q_rotated"], steps["k_rotated"], steps["v"]
    (batch, heads, length, d_k), kv_heads, d_v = q.shape, k.shape[1], v.shape[3]
    past = steps["past_state"].rows(d_k * d_v) if steps["past_state"] else [None] * (batch * kv_heads)
    attention, context, states, allowed, steps["rows_without_keys"] = [], [], [], [], []
    for b in range(batch):
        seen = [t for t in range(length) if mask.allows(b, 0, t, t)]
        for kv_head in range(kv_heads):
            at = b * kv_heads + kv_head
            keys, values = (x.rows(x.shape[3])[at * length:(at + 1) * length] for x in (k, v))
            gates = [[exp(g) for g in row] for row in per_head(steps["decay"], kv_heads, b, kv_head)] \
                if steps["decay"] else [[1.0] * d_k] * length
            gates = [row * (d_k // len(row)) for row in gates]
            betas = [row[0] for row in per_head(steps["beta"], kv_heads, b, kv_head)] if steps["beta"] else None
            before = [past[at][f * d_v:(f + 1) * d_v] for f in range(d_k)] if past[at] else None
            states += state_behind(Head(keys, gates, betas, seen), values, before, (d_k, d_v))
            for h in range(kv_head * heads // kv_heads, (kv_head + 1) * heads // kv_heads):
                queries = q.rows(d_k)[(b * heads + h) * length:(b * heads + h + 1) * length]
                rows = head_rows(Head(keys, gates, betas, seen), queries, values, before, scale)
                for i, (weights, out) in enumerate(rows):
                    attention += weights
                    context += out
                    allowed += [j <= i and j in seen for j in range(length)]
                    if not before and not any(t <= i for t in seen):
                        steps["rows_without_keys"].append((b, h, i))
    steps["attention"] = Tensor((batch, heads, length, length), attention)
    steps["mask"] = Tensor((batch, heads, length, length), allowed)
    steps["context"] = Tensor((batch, heads, length, d_v), context)
    steps["present_state"] = Tensor((batch, kv_heads, d_k, d_v), states)


def per_head(x, kv_heads, b, kv_head):
    """The rows of a head in (batch, len, heads * width) or (batch, heads, len, width); one head stands for all."""
    if len(x.shape) == 3:
        length, width = x.shape[1], max(x.shape[2] // kv_heads, 1)
        first = kv_head * width if x.shape[2] >= kv_heads else 0
        return [row[first:first + width] for row in x.rows(x.shape[2])[b * length:(b + 1) * length]]
    length = x.shape[2]
    head = b * x.shape[1] + (kv_head if x.shape[1] == kv_heads else 0)
    return x.rows(x.shape[3])[head * length:(head + 1) * length]


def head_rows(head, queries, values, past, scale):
    """Weights and context of each query."""
    for i, query in enumerate(queries):
        n = sum(t <= i for t in head.seen) - 1
        row, out = [0.0] * len(queries), [[] for _ in values[0]]
        if n >= 0:
            given = [value[:] for value in values]
            for m, weight in enumerate(head.weights(query, n)):
                t = head.seen[m]
                row[t] = scale * weight * (head.betas[t] if head.betas else 1.0)
                if past and head.betas:
                    forgotten = dots(head.asked(head.keys[t], m, -1), columns_of(past))
                    given[t] = [v - p for v, p in zip(given[t], forgotten)]
            out = [[row[t] * given[t][c] for t in head.seen[:n + 1]] for c in range(len(values[0]))]
        if past:
            asked = head.asked(query, n, -1) if n >= 0 else query
            out = [[*terms, scale * p] for terms, p in zip(out, dots(asked, columns_of(past)))]
        yield row, [total(terms) if terms else 0.0 for terms in out]


def state_behind(head, values, past, shape):
    rows, last = learnt(head, values, past), len(head.seen) - 1
    for f in range(shape[0]):
        for c in range(shape[1]):
            terms = [head.kept[last][m][f] * head.keys[t][f] * rows[m][c] for m, t in enumerate(head.seen)]
            if past:
                terms.append((head.kept[last][-1][f] if head.seen else 1.0) * past[f][c])
            yield total(terms) if terms else 0.0
