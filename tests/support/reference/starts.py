"""starts.py: attention that starts in the middle, at given scores or at given weights."""

import math

from bounded import parts, times_log, total
from tensors import Tensor


def whole(given):
    """(q_len, kv_len) and (heads, q_len, kv_len) with the axes that they lack."""
    return given.reshape(*[1] * (4 - len(given.shape)), *given.shape)


def values(x, options, split):
    """v by heads; without inputs.value, every key has a value of no features."""
    batch, heads, _, kv_len = x.map.shape
    if x.value is None:
        return {"v": Tensor((batch, heads, kv_len, 0), [])}
    return {"v": x.value if x.rank == 4 else split(x.value, options.get("kv_num_heads", heads))}


def begin(steps, x):
    steps.update(given=x.map, present_value=steps["v"])


class GivenScores:
    """Scores as given. One of -infinity hides its key."""

    def __init__(self, steps):
        self.given, self.shape, self.scale = steps["given"], steps["given"].shape, 1.0
        self.rows = self.given.rows(self.shape[3])

    def row_at(self, b, h, i):
        return self.rows[(b * self.shape[1] + h) * self.shape[2] + i]

    def hides(self, b, h, i, j):
        return parts(self.row_at(b, h, i)[j])[0] == -math.inf

    def row(self, b, h, i, read, _offset):
        return [score if is_read and parts(score)[0] > -math.inf else -math.inf
                for score, is_read in zip(self.row_at(b, h, i), read)]


def attend(steps, options, dropout, weighted_sum):
    """Weights as given; a weight of 0 never reads its value."""
    v, given = steps["v"], steps["given"]
    (batch, heads, q_len, kv_len), (_, kv_heads, _, d_v) = given.shape, v.shape
    v_rows, dropped, entropy, context = v.rows(d_v), [], [], []
    for at, row in enumerate(given.rows(kv_len)):
        b, h = at // q_len // heads, at // q_len % heads
        first = (b * kv_heads + h * kv_heads // heads) * kv_len
        dropped += dropout.drop(at * kv_len, row)
        entropy.append(-total(times_log(weight) for weight in row if parts(weight)[0] > 0))
        used = [parts(weight)[0] != 0 for weight in row]
        context += weighted_sum(dropped[-kv_len:], v_rows[first:first + kv_len], used, d_v)
    steps.update(attention=given, dropped=Tensor(given.shape, dropped), context=Tensor((*given.shape[:3], d_v), context),
                 entropy=Tensor(given.shape[:3], entropy), mask=Tensor(given.shape, [True] * len(given.data)),
                 rows_without_keys=[], scale=1.0)
