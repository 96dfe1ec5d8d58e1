"""
exact.py: attention as the interface describes it, in plain Python doubles. Every number has a bound of the error of a
computation in float32 or float64. It is written from the description alone, and shares nothing with the server.
"""

import math

EPS = {"float32": 2.0 ** -23, "float64": 2.0 ** -51}
TINY = {"float32": 1e-37, "float64": 1e-300}
LINES = ("lse", "lse_keys", "entropy", "sink")


class Array:
    """Row-major values, and the error allowed to each."""

    def __init__(self, shape, values, errors=None):
        self.shape, self.values = tuple(shape), list(values)
        self.errors = list(errors) if errors is not None else [0.0] * len(self.values)

    def row(self, *index):
        """The values and errors of the last axis at index."""
        at = 0
        for axis, size in zip(index, self.shape):
            at = at * size + axis
        width = self.shape[-1]
        return self.values[at * width:(at + 1) * width], self.errors[at * width:(at + 1) * width]


class Reference:
    """
    One computation. spec is the request as random_request.py made it: plain lists and numbers, no JSON. steps holds an
    Array for every step. Dropout before the residual is not computed: the caller compares with both outcomes.
    """

    def __init__(self, spec):
        self.spec, self.eps, self.tiny = spec, EPS[spec.compute], TINY[spec.compute]
        self.steps, self.empty_rows, self.max_abs_score = {}, [], 0.0

    def run(self, dropped=None):
        """dropped: the weights after dropout as the server gave them; which of them are 0 cannot be foretold."""
        q, k, v = self.heads_of_inputs()
        self.steps.update(q=q, k=k, v=v)
        q, k, v = turned.turn(self, q, k, v)
        if self.spec.mechanism:
            featured.attend(self, q, k, v)
        else:
            self.attend(q, k, v, dropped)
        scaled = self.scale_heads(self.steps["context"])
        concat = self.concatenate(scaled)
        self.steps["concat"] = concat
        if self.spec.gate is not None:
            concat = self.steps["gated"] = turned.gate(self, concat, self.linear(self.gate_input, self.spec.gate))
        projected = concat
        if self.spec.output is not None:
            projected = self.steps["projected"] = self.linear(concat, self.spec.output)
            self.steps["contribution"] = self.contribution()
        total = projected
        if self.spec.residual:
            total = self.steps["residual"] = self.add(projected, self.spec.query)
        if self.spec.norm and self.spec.norm["position"] == "post":
            total = self.normalise(total)
        if self.spec.network:
            total = networked.finish(self, total)
        self.steps["output"] = scaled if self.spec.rank == 4 else total
        return self

    # ---- tokens: (batch, len, features) ----

    def dot(self, x, ex, w, ew):
        value = math.fsum(a * b for a, b in zip(x, w))
        size = math.fsum(abs(a * b) for a, b in zip(x, w))
        error = math.fsum(abs(a) * eb + ea * abs(b) + ea * eb for a, ea, b, eb in zip(x, ex, w, ew))
        return value, error + self.eps * (len(x) + 2) * size + self.tiny

    def linear(self, x, layer):
        """layer: columns (a list of weight columns, each as long as a row of x) and bias (a list or None)."""
        values, errors = [], []
        none = [0.0] * x.shape[-1]
        for b in range(x.shape[0]):
            for i in range(x.shape[1]):
                row, error = x.row(b, i)
                for c, column in enumerate(layer.columns):
                    value, own = self.dot(row, error, column, none)
                    shift = layer.bias[c] if layer.bias else 0.0
                    values.append(value + shift)
                    errors.append(own + self.eps * (abs(value) + abs(shift)))
        return Array((*x.shape[:2], len(layer.columns)), values, errors)

    def add(self, x, y):
        values = [a + b for a, b in zip(x.values, y.values)]
        errors = [a + b + self.eps * (abs(s) + abs(t)) + self.tiny
                  for a, b, s, t in zip(x.errors, y.errors, x.values, y.values)]
        return Array(x.shape, values, errors)

    def normalise(self, x, norm=None):
        """norm: that of a feed-forward network. Default: the layer's."""
        norm, values, errors = norm or self.spec.norm, [], []
        d = x.shape[-1]
        gain, shift = norm["gain"] or [1.0] * d, norm["shift"] or [0.0] * d
        for b in range(x.shape[0]):
            for i in range(x.shape[1]):
                row, error = x.row(b, i)
                centre = math.fsum(row) / d if norm["type"] == "layer" else 0.0
                spread = sum(error) / d if norm["type"] == "layer" else 0.0
                off = [a - centre for a in row]
                wrong = [e + spread + self.eps * (abs(a) + abs(centre)) for e, a in zip(error, row)]
                variance = math.fsum(a * a for a in off) / d + norm["eps"]
                factor = variance ** -0.5
                relative = math.fsum(abs(a) * e + e * e for a, e in zip(off, wrong)) / d / variance + 8 * self.eps
                for f in range(d):
                    value = off[f] * factor * gain[f]
                    values.append(value + shift[f])
                    errors.append(wrong[f] * factor * abs(gain[f]) * (1 + relative) + abs(value) * relative +
                                  self.eps * (abs(value) + abs(shift[f])) + self.tiny)
        return Array(x.shape, values, errors)

    # ---- heads: (batch, heads, len, features) ----

    def split(self, x, heads):
        batch, length, width = x.shape
        d = width // heads
        order = [(b * length + i) * width + h * d + f
                 for b in range(batch) for h in range(heads) for i in range(length) for f in range(d)]
        return Array((batch, heads, length, d), [x.values[o] for o in order], [x.errors[o] for o in order])

    def concatenate(self, x):
        batch, heads, length, d = x.shape
        order = [((b * heads + h) * length + i) * d + f
                 for b in range(batch) for i in range(length) for h in range(heads) for f in range(d)]
        return Array((batch, length, heads * d), [x.values[o] for o in order], [x.errors[o] for o in order])

    def scale_heads(self, x):
        """The context times the factor of its head; a factor 0 gives 0."""
        if self.spec.head_scale is None:
            return x
        heads, size = x.shape[1], x.shape[2] * x.shape[3]
        factors = [self.spec.head_scale[at // size % heads] if size else 1.0 for at in range(len(x.values))]
        values = [value * factor if factor else 0.0 for value, factor in zip(x.values, factors)]
        errors = [error * abs(factor) + self.eps * abs(value) + self.tiny if factor else 0.0
                  for error, value, factor in zip(x.errors, values, factors)]
        return Array(x.shape, values, errors)

    def contribution(self):
        """The weights times the norms of the values behind the output projection, without its bias."""
        v, maps, spec = self.steps["present_value"], self.steps["attention"], self.spec
        (_, heads, q_len, kv_len), d_v, values, errors = maps.shape, v.shape[3], [], []
        for b in range(spec.batch):
            for h in range(heads):
                factor = abs(spec.head_scale[h]) if spec.head_scale else 1.0
                g = h * v.shape[1] // heads
                norms = [self.norm_behind(*v.row(b, g, j), h * d_v) for j in range(kv_len)] if q_len else []
                for i in range(q_len):
                    for weight, off, (norm, error) in zip(*maps.row(b, h, i), norms):
                        value = factor * abs(weight) * norm if weight and factor else 0.0
                        values.append(value)
                        errors.append(factor * (abs(weight) * error + off * (norm + error)) + 4 * self.eps * value + self.tiny
                                      if weight or off else 0.0)
        return Array(maps.shape, values, errors)

    def norm_behind(self, row, error, first):
        none = [0.0] * len(row)
        pairs = [self.dot(row, error, column[first:first + len(row)], none) for column in self.spec.output.columns]
        norm = math.hypot(*(value for value, _ in pairs))
        return norm, math.hypot(*(own for _, own in pairs)) + 4 * self.eps * norm

    def heads_of_inputs(self):
        spec = self.spec
        if spec.rank == 4:
            return spec.query, spec.key, spec.value
        query, key, value = spec.query, spec.key, spec.value
        if spec.norm and spec.norm["position"] == "pre":
            normed = self.normalise(query)
            key, value = normed if spec.key is spec.query else key, normed if spec.value is spec.query else value
            query = normed
        self.gate_input = query
        if spec.is_layer:
            query, key, value = (self.linear(x, w) for x, w in zip((query, key, value), spec.projections))
        return self.split(query, spec.heads), self.split(key, spec.kv_heads), self.split(value, spec.kv_heads)

    def attend(self, q, k, v, dropped):
        spec = self.spec
        maps = {name: ([], []) for name in ("scores", "scaled", "masked", "attention", "dropped")}
        lines = {name: ([], []) for name in (*LINES, "context")}
        allowed_map, at = [], 0
        group = spec.heads // spec.kv_heads
        for b in range(spec.batch):
            for h in range(spec.heads):
                allowed = [[spec.allows(b, h, i, j) for j in range(spec.kv_len)] for i in range(spec.q_len)]
                seen = [any(row[j] for row in allowed) for j in range(spec.kv_len)]
                for i in range(spec.q_len):
                    self.attend_row(b, h, i, allowed[i], seen, q.row(b, h, i), k, v, h // group,
                                    dropped and dropped[at:at + spec.kv_len], maps, lines)
                    at += spec.kv_len
                    allowed_map.extend(allowed[i])
        shape = (spec.batch, spec.heads, spec.q_len, spec.kv_len)
        for name, (values, errors) in maps.items():
            self.steps[name] = Array(shape, values, errors)
        self.steps["mask"] = Array(shape, allowed_map)
        self.steps.update((name, Array(shape[:3], *lines[name])) for name in LINES)
        self.steps["context"] = Array((*shape[:3], v.shape[3]), *lines["context"])
        self.steps["attention_mean"] = self.mean_over_heads(self.steps["attention"])

    def attend_row(self, b, h, i, allowed, seen, query, k, v, g, dropped, maps, lines):
        spec, keys, some = self.spec, range(self.spec.kv_len), any(allowed)
        if not some:
            self.empty_rows.append([b, h, i])
        scores, scaled, masked = [], [], []
        for j in keys:
            shown = seen[j] and some
            scores.append(self.dot(*query, *k.row(b, g, j)) if shown else (-math.inf, 0.0))
            scaled.append(self.rescale(*scores[j]) if shown else (-math.inf, 0.0))
            masked.append(self.bias(*scaled[j], b, h, i, j) if allowed[j] else (-math.inf, 0.0))
        self.max_abs_score = max([self.max_abs_score] + [abs(scaled[j][0]) for j in keys if allowed[j]])
        nothing = (-math.inf, 0.0)
        sink = spec.sinks[h] if spec.sinks else None
        weights, numbers = [(0.0, 0.0)] * len(keys), {"lse": nothing, "lse_keys": nothing, "entropy": (0.0, 0.0),
                                                      "sink": (0.0, 0.0)}
        if some or sink is not None:
            weights, numbers = self.softmax_with(masked, allowed, sink)
        if some:
            numbers["lse_keys"] = self.softmax_with(masked, allowed, None)[1]["lse"]
        kept = weights
        if spec.drops_weights():
            gain = 1 / (1 - spec.dropout["p"]) if spec.dropout["p"] < 1 else 0.0
            kept = [(p * gain, e * gain + self.eps * p * gain) for p, e in weights]
            if dropped is not None:
                kept = [(0.0, 0.0) if d == 0 else pair for d, pair in zip(dropped, kept)]
        for name, pairs in zip(maps, (scores, scaled, masked, weights, kept)):
            maps[name][0].extend(pair[0] for pair in pairs)
            maps[name][1].extend(pair[1] for pair in pairs)
        for name, (value, error) in numbers.items():
            lines[name][0].append(value), lines[name][1].append(error)
        use = [j for j in keys if allowed[j]]
        rows = {j: v.row(b, g, j) for j in use}
        for f in range(v.shape[3]):
            value, error = self.dot([kept[j][0] for j in use], [kept[j][1] for j in use],
                                    [rows[j][0][f] for j in use], [rows[j][1][f] for j in use])
            lines["context"][0].append(value)
            lines["context"][1].append(error)

    def rescale(self, score, error):
        scale, cap = self.spec.scale, self.spec.softcap
        score, error = score * scale, error * abs(scale) + 2 * self.eps * abs(score * scale) + self.tiny
        if cap is None:
            return score, error
        capped = cap * math.tanh(score / cap)
        return capped, error + 8 * self.eps * abs(capped) + self.tiny

    def bias(self, score, error, b, h, i, j):
        """The bias of the position, rounded to the compute type, then masks.bias."""
        position = self.spec.position_bias(b, h, i, j)
        score, error = self.shift(score, error + self.eps * abs(position), position)
        return self.shift(score, error, self.spec.bias_at(b, h, i, j))

    def softmax_with(self, masked, allowed, sink):
        """A sink is one more key, of which only the weight and its part of the sums are kept."""
        if sink is None:
            pairs, lse, entropy = self.softmax(masked, allowed)
            return pairs, {"lse": lse, "lse_keys": lse, "entropy": entropy, "sink": (0.0, 0.0)}
        pairs, lse, entropy = self.softmax([*masked, (sink, 0.0)], [*allowed, True])
        return pairs[:-1], {"lse": lse, "lse_keys": (-math.inf, 0.0), "entropy": entropy, "sink": pairs[-1]}

    def shift(self, score, error, bias):
        return score + bias, error + self.eps * (abs(score) + abs(bias)) + self.tiny

    def softmax(self, masked, allowed):
        top = max(s for s, _ in masked)
        terms = [math.exp(s - top) if ok else 0.0 for (s, _), ok in zip(masked, allowed)]
        total = math.fsum(terms)
        wrong = [e + 3 * self.eps * (abs(s) + abs(top)) if ok else 0.0 for (s, e), ok in zip(masked, allowed)]
        weights = [t / total for t in terms]
        mean_wrong = math.fsum(p * e for p, e in zip(weights, wrong))
        slack = self.eps * (len(weights) + 8)
        pairs = [(p, p * math.expm1(min(50.0, e + mean_wrong + slack)) + (self.tiny if ok else 0.0))
                 for p, e, ok in zip(weights, wrong, allowed)]
        lse = top + math.log(total)
        entropy = -math.fsum(p * math.log(p) for p in weights if p > 0)
        unsure = math.fsum((abs(math.log(p)) + 1) * e + abs(p * math.log(p)) * 4 * self.eps
                           for p, e in pairs if p > 0) + slack
        return pairs, (lse, max(wrong) + slack + 4 * self.eps * abs(lse)), (entropy, unsure)

    def mean_over_heads(self, weights):
        batch, heads, q_len, kv_len = weights.shape
        size, values, errors = q_len * kv_len, [], []
        for b in range(batch):
            for at in range(size):
                each = [(b * heads + h) * size + at for h in range(heads)]
                values.append(math.fsum(weights.values[e] for e in each) / heads)
                errors.append(math.fsum(weights.errors[e] for e in each) / heads + self.eps * values[-1] + self.tiny)
        return Array((batch, q_len, kv_len), values, errors)


import featured  # noqa: E402  (which needs Array)
import networked  # noqa: E402  (which needs Array)
import turned  # noqa: E402  (which needs Array)
