"""dummy.py: adds a mask and a step only to the tables of the sources. The checks must report every place that lacks them."""

import agreement
import sources

MASK_ROW = 'X("dummy", decode_flags, 0, MASK_IN_LAYERS | MASK_AS_PARAMETER) '
TENSOR_ROW = 'X("dummy_tensor", decode_flags, 0, MASK_AS_TENSOR) '
STEP_ROW = 'X(ATTN_STEP_DUMMY, "dummy", ATTN_AXES_MAP, ATTN_VALUES_NUMBERS) '
TABLES = {sources.MASKS: ("#define MASK_LIST(X)", MASK_ROW + TENSOR_ROW), sources.STEPS: ("#define ATTN_STEP_LIST(X)", STEP_ROW)}

# What must be missed: the check, and words of its sentence.
MISSED = {
    "the mask in requests": (agreement.check_members, "masks/dummy is decoded and not documented"),
    "the mask of kept layers": (agreement.check_kept_masks, "masks of kept layers: ['dummy']"),
    "the mask as a parameter": (agreement.check_inference, "parameters of inference: ['dummy']"),
    "the mask as a tensor": (agreement.check_inference, "inputs of inference: ['DUMMY_TENSOR']"),
    "the step in options.return": (agreement.check_words, "steps that can be returned: ['dummy']"),
    "the step in outputs": (agreement.check_words, "outputs: ['dummy']"),
    "the step in shapes": (agreement.check_words, "shapes: ['dummy']"),
    "the step as an output of inference": (agreement.check_inference, "outputs of inference: ['DUMMY']"),
}


def check_dummy_rows(document):
    read = sources.read
    sources.read = lambda name: with_dummy(name, read(name))
    try:
        for what, (check, words) in MISSED.items():
            if not any(words in sentence for sentence in check(document)):
                yield f"{check.__name__} does not miss {what}"
    finally:
        sources.read = read


def with_dummy(name, text):
    head, rows = TABLES.get(str(name), (None, ""))
    if head is not None and head not in text:
        raise ValueError(f"{name} has no {head}")
    return text.replace(head, head + rows) if head else text


CHECKS = (check_dummy_rows,)
