/*
 * read.h: the description of a whole model: which tensors of a checkpoint are which part of it.
 *
 * A model has one or two stacks of layers (an encoder, a decoder), and may have a prediction head. A layer is a block:
 * an attention module with its norms, its residual and its feed-forward network. A layer of a decoder with an encoder is
 * two blocks: the attention to its own tokens, and the attention to the encoder's with the feed-forward network.
 *
 * architectures.json describes kinds of models. To the language of find.h, which is that of attention modules, an
 * entry adds:
 *
 *   "block"    in a module: what stands around the attention. Its weights, options and masks are added to those of the
 *              module. Paths of its weights begin at the layer: the module's path up to its first {n}. "feed_forward"
 *              holds {"up", "gate", "down", "norm", "branch_norm"}. "stack" names the stack, "cross": true says that
 *              keys and values come from the encoder.
 *   a weight   may also be a list: the first that the file has ("" at the end: the part may be absent). Named weights
 *              may have "part": [i, n], one of n equal parts of the rows, and "factors": a vector that multiplies the
 *              rows. "gain_offset": 1 among weights means gains of 1 + w in the file.
 *   "model"    {"stacks": {NAME: {"layers", "groups", "embedding", "norm"}}, "head", "longest", "ignored"}
 *              layers     how many; groups: how many of them have weights of their own, the others share them
 *              embedding  {"words", "scale", "positions": {"table" or "sinusoidal", "first", "counts", "last"}, "types",
 *                         "norm", "projection", "patches"}; "last": positions are added behind the projection
 *              norm       {"type", "eps", "weights"}; likewise every norm
 *              norm_in_hidden  false: transformers shows the output of the last layer before the norm
 *              head       {"dense", "activation", "norm", "tied", "output", "bias", "scale", "softcap", "of"}
 *              ignored    patterns of tensors that a file may have beside the model
 *              Names of tensors stand behind the prefix of the modules, or behind a shorter one.
 *   "refused"  beside the entries: the types that attnd cannot run, by what they are
 *   "defaults" values of members that a configuration may lack (architecture.h)
 *   "requires" values of the configuration without which attnd cannot run such a model (architecture.h)
 *   "$by"      choices by the configuration, anywhere (architecture.h)
 */
#ifndef CODEC_CHECKPOINT_READ_H
#define CODEC_CHECKPOINT_READ_H

#include "codec/checkpoint/description.h"
#include "codec/checkpoint/find.h"

/*
 * Describes the model. Everything lives in arena, and the tensors are views of the checkpoint's, which is sorted.
 *   ATTN_ERR_SYNTAX         config.json is not JSON
 *   ATTN_ERR_FIELD, _VALUE, _SHAPE  the kind of model is unknown or not there, the configuration asks for what attnd
 *                           does not have, a tensor is missing, has another shape, or has no place in the model
 *   ATTN_ERR_NO_MEMORY
 * The message is a sentence that names the member or the tensor.
 */
ATTN_MUST_CHECK attn_status checkpoint_read_model(struct checkpoint *checkpoint, attn_arena *arena,
                                                  struct checkpoint_model *model, attn_error *err);

#endif
