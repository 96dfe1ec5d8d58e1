"""
roles.py: which head has which role, and where its largest weight belongs in a sentence.
"""

from wordpiece import CLS, MASK, SEP, UNK

# role -> (layer, head), both counted from 0. Training guides these heads; the other ten are free.
HEADS = {"previous": (0, 0), "next": (0, 1), "same": (1, 0), "subject": (2, 0), "referent": (3, 0), "bracket": (3, 1)}
# Where these roles have nothing to point at, training sends the head to [CLS].
RESTS = ("same", "subject", "referent", "bracket")


def piece(kind, span):
    """A verb shows its subject in its last piece ("koşuyor ##um"); every other word is seen at its first piece."""
    return span[1] if kind in ("subject", "agreement") else span[0]


class Encoded:
    """
    A sentence in ids: `known` holds (role, query, key, positions that decide it), `hidden` (task, position, accepted
    ids). `role` here is the role of a head: "antecedent", the noun in place of a pronoun, belongs to "referent".
    """

    def __init__(self, sentence, tokenizer):
        self.ids, spans = tokenizer.encode(sentence.words)
        self.segments = [0] * len(self.ids)
        self.known, self.hidden = [], []
        for role, query, key, needs in sentence.roles:
            self.known.append((role, piece(role, spans[query]), spans[key][0], [spans[n][0] for n in needs]))
        for task, word, accepted in sentence.hidden:
            position = piece(task, spans[word])
            ids = [self.ids[position]] if accepted is None else [tokenizer.vocabulary[word] for word in accepted]
            self.hidden.append((task, position, ids))

    def append(self, other, as_pair):
        """Puts another sentence behind this one: as one text, or as a pair of texts."""
        if not as_pair:
            self.ids.pop()
            self.segments.pop()
        shift = len(self.ids) - 1
        self.ids += other.ids[1:]
        self.segments += [int(as_pair)] * (len(other.ids) - 1)
        self.known += [(role, i + shift, j + shift, [n + shift for n in needs]) for role, i, j, needs in other.known]
        self.hidden += [(task, i + shift, ids) for task, i, ids in other.hidden]


def targets(encoded, ids):
    """
    role -> {query: [right keys]} for `ids`, the sentence as the model sees it: what is hidden decides nothing.
    """
    found = {role: {} for role in HEADS}
    seen = {}
    for i, token in enumerate(ids):
        if i > 0:
            found["previous"][i] = [i - 1]
        if i + 1 < len(ids):
            found["next"][i] = [i + 1]
        if token not in (CLS, SEP, MASK, UNK):
            if token in seen:
                found["same"][i] = list(seen[token])
            seen.setdefault(token, []).append(i)
    for role, i, j, needs in encoded.known:
        if not any(ids[n] == MASK for n in needs):
            found["referent" if role == "antecedent" else role][i] = [j]
    return found
