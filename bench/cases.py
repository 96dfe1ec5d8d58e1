"""
cases.py: what is measured: the cases, how much work each is, and what is aimed at.
"""

ELEMENT = {"float32": 4, "float64": 8}
GROUP = 4  # query heads to a key head, of the word grouped
DOCUMENTS = 8  # of the word of that name: runs of one length, which lengths must be multiples of
FEATURES = 256  # of performer
WIDENING = 4  # of a block's feed-forward network
NARROW = ("float16", "bfloat16")
NORMS = ("layernorm", "rmsnorm", "prenorm")
# Beside a case with this word runs the same without it (padded in place of odd), under this label.
BESIDE = {"past": "whole", "float16": "float32", "bfloat16": "float32", "bf16products": "float32", "odd": "padded", "dropout": "without",
          "mean": "without", "plan": "run", "unpacked": "packed", "layernorm": "without", "rmsnorm": "without", "prenorm": "without", "gate": "without"}  # fmt: skip
SAME_RESULTS = ("past", "odd")  # the case beside gives the same numbers

# What is aimed at: times as fast as ONNX Runtime's faster operator, and shares of the peak by the features of a head.
AIMS = {
    "avx2": {"causal": 2.2, "maps": 2.0, "layer": 1.15, 64: 0.72, 128: 0.76, "gradients": 0.72, "causal gradients": 0.62},
    "best": {"causal": 2.4, "maps": 2.3, "layer": 1.3, 64: 0.80, 128: 0.82, "gradients": 0.76, "causal gradients": 0.70},
}


class Case:
    """One computation: its name, its line for the contenders (see bench_case.h), and how much work it is."""

    def __init__(self, kind, batch, heads, q_len, kv_len, dim, causal=0, window=0, maps=0, words=(), dtype="float32",
                 threads=1):
        self.kind, self.dtype, self.threads = kind, dtype, threads
        self.batch, self.heads, self.q_len, self.kv_len, self.dim = batch, heads, q_len, kv_len, dim
        self.causal, self.window, self.maps, self.words = causal, window, maps, tuple(words)
        numbers = [kind, dtype, threads, batch, heads, q_len, kv_len, dim, causal, window, maps, *self.words]
        self.line = " ".join(map(str, numbers))

    def with_changes(self, **changes):
        own = {name: getattr(self, name) for name in ("kind", "batch", "heads", "q_len", "kv_len", "dim", "causal",
                                                      "window", "maps", "words", "dtype", "threads")}  # fmt: skip
        return Case(**{**own, **changes})

    def name(self):
        shape = "%d,%d,%d,%d" % (self.batch, self.heads, self.q_len, self.dim)
        if self.kind != "attention":
            length = "%d" % self.q_len if self.q_len == self.kv_len else "%d/%d" % (self.q_len, self.kv_len)
            batch = "batch %d " % self.batch if self.batch > 1 else ""
            shape = "%s %sd %d h %d len %s" % (self.kind, batch, self.heads * self.dim, self.heads, length)
        elif self.q_len != self.kv_len:
            shape = "decode %d,%d,%d/%d,%d" % (self.batch, self.heads, self.q_len, self.kv_len, self.dim)
        words = [shape] + [word for word in self.words if word == "gradients"]
        words += ["causal"] if self.causal else []
        words += ["window %d" % self.window] if self.window else []
        words += [word for word in self.words if word != "gradients"]
        words += ["maps"] if self.maps else []
        return " ".join(words + (["f64"] if self.dtype == "float64" else []))

    def beside(self):
        """(label, the case that is measured in the same rounds, whether its results are the same), or None."""
        if self.kind == "block" and not {"bare", "gradients"} & set(self.words):
            return "bare", self.with_changes(words=(*self.words, "bare")), False
        for word in self.words:
            if word in BESIDE and self.kind != "block" and not (self.kind == "layer" and word == "past"):
                others = tuple(other for other in self.words if other != word) + (("padded",) if word == "odd" else ())
                return BESIDE[word], self.with_changes(words=others), word in SAME_RESULTS
        return None

    def tiny(self):
        """The same words at a size for a test of what is computed."""
        past = 24 if self.q_len != self.kv_len else 0
        q_len = 1 if self.q_len == 1 else 32
        return self.with_changes(batch=min(self.batch, 2), heads=4, q_len=q_len, kv_len=past + q_len, dim=16,
                                 window=min(self.window, 8))  # fmt: skip

    # ---- work ----

    def pairs(self):
        """Query-key pairs of a head that are let through."""
        total = 0
        for i in range(self.q_len):
            end = i + 1 + self.kv_len - self.q_len
            start = max(0, end - self.window) if self.window else 0
            stop = end if self.causal else self.kv_len
            if "documents" in self.words:
                each = self.kv_len // DOCUMENTS
                start, stop = max(start, i // each * each), min(stop, (i // each + 1) * each)
            total += stop - start
        return total

    def flops(self):
        """Multiplications and additions of the products, hidden pairs left out; exp and divisions are not counted."""
        if "plan" in self.words:
            return 0
        is_differentiated = "gradients" in self.words
        features, tokens = self.heads * self.dim, self.batch * self.q_len
        if "linear" in self.words or "performer" in self.words:
            phi = FEATURES if "performer" in self.words else self.dim
            products = 4 if "performer" in self.words else 2  # the projection is a product, too
            return products * self.batch * self.heads * (self.q_len + self.kv_len) * phi * self.dim
        # Attention: two products forward, five backward; by a weight: one forward, two backward.
        attention = (14 if is_differentiated else 4) * self.batch * self.heads * self.pairs() * self.dim
        weights = (4 if self.kind != "attention" else 0) + ("gate" in self.words) + 2 * WIDENING * (self.kind == "block")
        return attention + (6 if is_differentiated else 2) * weights * tokens * features**2

    def bytes(self):
        """What must be read and written at least: inputs and weights once, results once."""
        features, tokens = self.heads * self.dim, self.batch * self.q_len
        element, narrow = ELEMENT[self.dtype], 2 if set(NARROW) & set(self.words) else ELEMENT[self.dtype]
        total = 2 * tokens * features * element
        total += self.batch * self.heads * self.q_len * self.kv_len * element if self.maps else 0
        total += self.batch * self.q_len * self.kv_len * element if "mean" in self.words else 0
        cached = self.batch * (self.kv_len - (self.q_len if self.kind != "attention" else 0)) * features
        if self.kind == "attention":
            total += 2 * cached * narrow // (GROUP if "grouped" in self.words else 1)
        else:
            weights = 4 + ("gate" in self.words) + 2 * WIDENING * (self.kind == "block")
            total += weights * features**2 * narrow + 2 * cached * element
            total *= 2 if "gradients" in self.words else 1
        if self.kind == "attention" and "gradients" in self.words:
            total += (2 * self.batch * self.kv_len + tokens) * features * element
        return total

    # ---- aims ----

    def aims(self, kernel):
        """{what: bound}: share of the limit, times as fast as ONNX Runtime, at most so much of the time beside."""
        words, is_decode = set(self.words), self.kind == "attention" and self.q_len == 1
        aim = AIMS.get(kernel, AIMS["best"])
        if words & {"plan", "unpacked"}:
            return {}
        if self.kind == "layer" and self.q_len == 1 and words & set(NARROW):
            return {"share": 0.8}
        if self.dtype != "float32" or words & {"alibi", "sinks", "documents", "grouped", "rope", "padded", "odd"}:
            return {}
        if is_decode:
            return self.aims_of_decoding(words)
        if self.kind == "block" and not words & {"bare", "gradients"}:
            return {"beside": 1 / 0.92}  # norm, residual, activation and gate take 8 % of the whole
        if "bf16products" in words:
            return {"beside": 1 / 1.6} if kernel == "avx512_bf16" else {}
        if "gradients" in words:
            return {"share": aim["causal gradients" if self.causal else "gradients"]}
        if "linear" in words:
            return {"share": 0.4} if self.q_len == 4096 else {}
        if words or self.kind == "block":
            return {}
        if self.kind == "layer":
            return {"peer": aim["layer"]}
        return self.aims_of_attention(aim)

    def aims_of_decoding(self, words):
        if "past" in words:
            return {"beside": 1.1}
        return {"beside": 1 / 1.7} if words & set(NARROW) else {"share": 0.8} if self.kv_len == 4096 else {}

    def aims_of_attention(self, aim):
        if self.q_len < 64:
            return {}
        aims = {"peer": aim["maps"] if self.maps else aim["causal"] if self.causal else 1.15}
        if self.window == 256:
            aims["share"] = 0.55
        elif not self.causal and not self.maps and self.q_len >= 1024:
            aims["share"] = aim[self.dim]
        return aims


# ---- the table ----


def attention(batch, heads, length, dim, *words, **more):
    return Case("attention", batch, heads, length, length, dim, words=words, **more)


def decode(batch, heads, kv_len, dim, *words, **more):
    return Case("attention", batch, heads, 1, kv_len, dim, words=words, **more)


def layer(features, heads, length, *words, **more):
    return Case("layer", 1, heads, length, length, features // heads, words=words, **more)


def block(features, heads, length, *words, **more):
    return Case("block", 1, heads, length, length, features // heads, words=words, **more)


def all_cases():
    """The table of every run, for one thread."""
    return [
        attention(1, 8, 512, 64), attention(1, 8, 512, 64, causal=1), attention(1, 8, 512, 64, maps=1),
        attention(1, 8, 512, 64, causal=1, maps=1),
        attention(1, 12, 1024, 64), attention(1, 12, 1024, 64, causal=1), attention(1, 12, 1024, 64, maps=1),
        attention(1, 8, 4096, 64), attention(1, 8, 4096, 64, causal=1), attention(1, 8, 4096, 64, causal=1, window=256),
        attention(1, 8, 512, 32), attention(1, 8, 512, 96), attention(1, 8, 512, 128), attention(1, 8, 2048, 128),
        attention(1, 8, 128, 64), attention(32, 8, 64, 64), attention(1, 1, 8, 8),
        attention(1, 8, 512, 64, "mean"), attention(1, 8, 512, 64, "dropout"),
        attention(1, 8, 512, 64, "alibi"), attention(1, 8, 4096, 64, "alibi", causal=1),
        attention(1, 8, 512, 64, "sinks"), attention(1, 8, 4096, 64, "documents"),
        attention(1, 8, 4096, 64, "documents", causal=1), attention(1, 8, 512, 64, "grouped", causal=1),
        attention(1, 8, 512, 64, "rope", causal=1), attention(1, 8, 512, 64, "odd"),
        attention(1, 8, 4096, 64, "linear"), attention(1, 8, 4096, 64, "linear", causal=1),
        attention(1, 8, 1024, 64, "performer"), attention(1, 8, 1024, 64, "performer", causal=1),
        attention(1, 8, 512, 64, "bf16products"), attention(1, 8, 4096, 64, "bf16products"),
        attention(1, 8, 4096, 64, "bf16products", causal=1), attention(1, 8, 2048, 128, "bf16products"),
        decode(1, 8, 4096, 64), decode(1, 32, 4096, 128), decode(1, 8, 4096, 64, "past"),
        decode(1, 32, 4096, 128, "past"), decode(1, 8, 4096, 64, "bfloat16"), decode(1, 32, 4096, 128, "bfloat16"),
        decode(1, 8, 4096, 64, "float16"), decode(1, 32, 4096, 128, "float16"),
        decode(1, 8, 4096, 64, "alibi"), decode(1, 32, 4096, 128, "grouped"), decode(1, 8, 4096, 64, "odd"),
        layer(512, 8, 128, maps=1), layer(512, 8, 512, maps=1), layer(768, 12, 128, maps=1),
        layer(768, 12, 512, maps=1), layer(768, 12, 512, "mean"), layer(512, 8, 512, "rope", maps=1),
        layer(768, 12, 512, "layernorm"), layer(768, 12, 512, "rmsnorm"), layer(768, 12, 512, "prenorm"),
        layer(768, 12, 512, "gate"), layer(768, 12, 128, "bfloat16"), layer(768, 12, 4, "bfloat16"),
        layer(768, 12, 4, "float16"), Case("layer", 32, 12, 1, 512, 64, words=("past",)),
        Case("layer", 1, 32, 1, 512, 128, words=("past", "bfloat16")),
        Case("layer", 1, 32, 1, 512, 128, words=("past", "float16")),
        Case("layer", 1, 32, 1, 512, 128, words=("unpacked", "past", "float16")),
        layer(768, 12, 4, "unpacked", "float16"), layer(768, 12, 128, "unpacked", "bfloat16"),
        attention(1, 1, 8, 8, "plan"), layer(768, 12, 4, "plan"), layer(768, 12, 512, "plan"),
        block(768, 12, 512), block(768, 12, 512, "gate"), block(768, 12, 512, "prenorm", "gate"),
        block(768, 12, 512, "prenorm", "rmsnorm"),
        attention(1, 8, 512, 64, "gradients"), attention(1, 8, 512, 64, "gradients", causal=1),
        attention(1, 12, 1024, 64, "gradients"), attention(1, 8, 4096, 64, "gradients"),
        layer(768, 12, 512, "gradients"), block(768, 12, 512, "gradients"),
        attention(1, 8, 512, 64, dtype="float64"), attention(1, 8, 512, 64, dtype="float64", maps=1),
        decode(1, 8, 4096, 64, dtype="float64"), layer(512, 8, 512, dtype="float64", maps=1),
        attention(1, 8, 512, 64, "gradients", dtype="float64"),
    ]  # fmt: skip


QUICK = {"1,8,512,64", "1,8,512,64 maps", "1,8,512,64 causal", "decode 1,8,1/4096,64", "layer d 512 h 8 len 128 maps"}
