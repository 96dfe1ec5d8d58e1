/*
 * test_envelope_refusals.c: refusals of server/codec/request; no input crashes its decoders.
 */
#include "codec/request/envelope.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/gradient.h"
#include "codec/json/skim.h"
#include "codec/json/tree.h"
#include "envelope_stage.h"
#include "failing_json.h"
#include "shared.h"

#define Q             "\"inputs\":{\"query\":[[1]]}"
#define A             ENVELOPE_ATTENTION
#define L             ENVELOPE_LAYER
#define OPTIONS(text) "{" Q ",\"options\":{" text "}}"
#define MASKS(text)   "{" Q ",\"masks\":{" text "}}"

#define INPUTS(text)  "{\"inputs\":{" text "}}"
#define WEIGHTS(text) "{" Q ",\"weights\":{" text "}}"
#define TOKENS(text)  "{" Q ",\"tokens\":{" text "}}"

/* The kind of request, its text, and the expected error. */
struct row {
    envelope_kind kind;
    const char *text;
    attn_status status;
    const char *pointer, *fragment;
};

/* The frame */
static const struct row frame_rows[] = {
    {A, "", ATTN_ERR_SYNTAX, "", "has no body"},
    {A, "1", ATTN_ERR_FIELD, "", "must be a JSON object, received 1"},
    {A, "[[1]]", ATTN_ERR_FIELD, "", "must be a JSON object, received an array"},
    {A, "{}", ATTN_ERR_FIELD, "", "has no \"inputs\""},
    {A, "{\"inputs\":{}}", ATTN_ERR_FIELD, "/inputs", "has no \"query\""},
    {A, "{\"inputs\":[1]}", ATTN_ERR_FIELD, "/inputs", "must be an object"},
    {A, "{" Q "," Q "}", ATTN_ERR_FIELD, "", "given twice"},
    {A, "{" Q ",\"a\\u0000b\":1}", ATTN_ERR_FIELD, "", "\\u0000"},
    {A, "{" Q ",\"extra\":[1]}", ATTN_ERR_FIELD, "/extra",
     "unknown member; known here: options, inputs, masks, tokens"},
    {L, "{" Q ",\"extra\":[1]}", ATTN_ERR_FIELD, "/extra", "options, inputs, weights, masks, tokens"},
    {A, "{" Q ",\"option\":{}}", ATTN_ERR_FIELD, "/option", "did you mean \"options\"?"},
    {A, "{" Q ",\"a/b~c\":{}}", ATTN_ERR_FIELD, "/a~1b~0c", "unknown member"},
    {A, "{" Q ",\"weights\":{}}", ATTN_ERR_FIELD, "/weights", "/v1/multi-head-attention"},
    {A, "{" Q "} x", ATTN_ERR_SYNTAX, "", "something follows its last }"},
    {A, "{" Q ",}", ATTN_ERR_SYNTAX, "", "no comma before a closing bracket"},
    {A, "{" Q ", \n }", ATTN_ERR_SYNTAX, "", "no comma before a closing bracket"},
    {A, "{'inputs':{}}", ATTN_ERR_SYNTAX, "", "in double quotes"},
    {A, "{\u201Cinputs\u201D:{}}", ATTN_ERR_SYNTAX, "", "names and strings in double quotes"},
    {A, "{inputs:{}}", ATTN_ERR_SYNTAX, "", "names and strings in double quotes"},
    {A, MASKS("\"causal\":True"), ATTN_ERR_SYNTAX, "", "true in small letters"},
    {A, MASKS("\"causal\":None"), ATTN_ERR_SYNTAX, "", "null where Python has None"},
    {A, MASKS("\"attend\":[[1,False]]"), ATTN_ERR_SYNTAX, "/masks/attend/0/1", "false in small letters"},
    {A, "{" Q "} // all", ATTN_ERR_SYNTAX, "", "no comments"},
    {A, "{" Q " /* all */}", ATTN_ERR_SYNTAX, "", "no comments"},
    {A, "# all\n{" Q "}", ATTN_ERR_SYNTAX, "", "no comments"},
    {A, OPTIONS("\"scale\":inf"), ATTN_ERR_SYNTAX, "", "in quotes"},
    {A, INPUTS("\"query\":[[-inf]]"), ATTN_ERR_SYNTAX, "/inputs/query/0/0", "in quotes"},
    {A, OPTIONS("\"scale\":1e999"), ATTN_ERR_VALUE, "/options/scale", "beyond what 64 bits can hold"},
    {A, OPTIONS("\"num_heads\":99999999999999999999"), ATTN_ERR_VALUE, "/options/num_heads",
     "an integer above 9223372036854775807"},
    {A, MASKS("\"causal\":{\"offset\":-99999999999999999999}"), ATTN_ERR_VALUE, "/masks/causal/offset",
     "an integer below -9223372036854775808"},
    {A, "{" Q ",\"masks\":{\"x\":[{\"a\":[2]},[[\"b]\\\"\",\"c\"],{\"d/e\":99999999999999999999}]]}}", ATTN_ERR_VALUE,
     "/masks/x/1/1/d~1e", "an integer above"},
    {A, "\xEF\xBB\xBF{" Q "}", ATTN_ERR_SYNTAX, "", "begins with a byte order mark"},
    {A, "{\"inputs\xFE\":{}}", ATTN_ERR_SYNTAX, "", "byte 0xfe; JSON is UTF-8"},
    {A, "\xFF\xFE{0", ATTN_ERR_SYNTAX, "", "looks like UTF-16; JSON is UTF-8"},
    {A, OPTIONS("\"scale\":NaN"), ATTN_ERR_SYNTAX, "", "in quotes"},
    {A, MASKS("\"bias\":-Infinity"), ATTN_ERR_SYNTAX, "", "in quotes"},
    {A, INPUTS("\"query\":[[NaN]]"), ATTN_ERR_SYNTAX, "/inputs/query/0/0", "in quotes"},
    {A, INPUTS("\"query\":[[Infinity]]"), ATTN_ERR_SYNTAX, "/inputs/query/0/0", "in quotes"},
};

/* Members of another section */
static const struct row section_rows[] = {
    {A, "{\"query\":[[1]]}", ATTN_ERR_FIELD, "/query", "it belongs into inputs. Known here: options"},
    {A, OPTIONS("\"causal\":true"), ATTN_ERR_FIELD, "/options/causal", "it belongs into masks"},
    {A, OPTIONS("\"attend\":[[1]]"), ATTN_ERR_FIELD, "/options/attend", "it belongs into masks"},
    {A, MASKS("\"num_heads\":2"), ATTN_ERR_FIELD, "/masks/num_heads", "it belongs into options"},
    {A, "{" Q ",\"dropout\":{}}", ATTN_ERR_FIELD, "/dropout", "it belongs into options"},
    {L, OPTIONS("\"qkv\":{}"), ATTN_ERR_FIELD, "/options/qkv", "it belongs into weights"},
    {A, OPTIONS("\"qkv\":{}"), ATTN_ERR_FIELD, "/options/qkv", "unknown member; known here"},
    {A, OPTIONS("\"rope_\":{}"), ATTN_ERR_FIELD, "/options/rope_", "did you mean \"rope\"?"},
};

/* Booleans are no numbers */
static const struct row boolean_rows[] = {
    {A, INPUTS("\"query\":[[1,true]]"), ATTN_ERR_FIELD, "/inputs/query/0/1", "expected a number, received true"},
    {A, INPUTS("\"query\":{\"shape\":[true],\"data\":[1]}"), ATTN_ERR_FIELD, "/inputs/query/shape/0", "received true"},
    {A, INPUTS("\"query\":{\"shape\":[1],\"data\":[false]}"), ATTN_ERR_FIELD, "/inputs/query/data/0", "received false"},
    {A, MASKS("\"bias\":[[true,false],[false,true]]"), ATTN_ERR_FIELD, "/masks/bias/0/0",
     "expected a number, received true"},
    {A, MASKS("\"bias\":true"), ATTN_ERR_FIELD, "/masks/bias", "must be a number, or a tensor"},
    {A, MASKS("\"key_lengths\":[true]"), ATTN_ERR_FIELD, "/masks/key_lengths/0", "expected a number, received true"},
    {A, MASKS("\"causal\":{\"offset\":true}"), ATTN_ERR_FIELD, "/masks/causal/offset", "an integer, or a list"},
    {A, INPUTS("\"query\":{\"shape\":[2],\"dtype\":\"bool\",\"base64\":\"AQI=\"}"), ATTN_ERR_VALUE,
     "/inputs/query/base64", "bytes 0 and 1"},
};

/* Tensors */
static const struct row tensor_rows[] = {
    {A, INPUTS("\"query\":null"), ATTN_ERR_FIELD, "/inputs", "has no \"query\""},
    {A, INPUTS("\"query\":1"), ATTN_ERR_FIELD, "/inputs/query", "must be a tensor"},
    {A, INPUTS("\"query\":\"x\""), ATTN_ERR_FIELD, "/inputs/query", "received \"x\""},
    {A, INPUTS("\"query\":[\"x\"]"), ATTN_ERR_FIELD, "/inputs/query", "POST /v1/models/{model}/attention"},
    {A, INPUTS("\"query\":[\"1.5\"]"), ATTN_ERR_FIELD, "/inputs/query", "holds strings: write numbers without quotes"},
    {A, INPUTS("\"query\":[[\"1\",\"2\"]]"), ATTN_ERR_FIELD, "/inputs/query", "holds strings"},
    {A, INPUTS("\"query\":[[{}]]"), ATTN_ERR_FIELD, "/inputs/query", "must be a tensor"},
    {A, INPUTS("\"query\":{\"shape\":[2],\"dtype\":\"float64\",\"base64\":\"nHUAiDzkN36cdQCIPOQ3fg==\"}"),
     ATTN_ERR_VALUE, "/inputs/query/base64",
     "element 0, 1.0000000000000001e+300, is beyond the range of float32: compute \"float64\" holds it"},
    {A, INPUTS("\"query\":[[1,2],[3]]"), ATTN_ERR_SHAPE, "/inputs/query/1", "length 1, the first one 2"},
    {A, INPUTS("\"query\":[[1,null]]"), ATTN_ERR_FIELD, "/inputs/query/0/1", "expected a number"},
    {A, INPUTS("\"query\":[[1e39]]"), ATTN_ERR_VALUE, "/inputs/query/0/0", "range of float32"},
    {A, INPUTS("\"query\":[[1,]]"), ATTN_ERR_SYNTAX, "/inputs/query/0/1", "no comma before a closing"},
};

/* Tensors as objects */
static const struct row tensor_object_rows[] = {
    {A, INPUTS("\"query\":{}"), ATTN_ERR_FIELD, "/inputs/query", "has no \"data\""},
    {A, INPUTS("\"query\":{\"data\":[1]}"), ATTN_ERR_FIELD, "/inputs/query", "has no \"shape\""},
    {A, INPUTS("\"query\":{\"shape\":[1],\"dtype\":\"bool\"}"), ATTN_ERR_FIELD, "/inputs/query", "has no \"base64\""},
    {A, INPUTS("\"query\":{\"shape\":[1],\"base64\":\"AA==\"}"), ATTN_ERR_FIELD, "/inputs/query", "has no \"dtype\""},
    {A, INPUTS("\"query\":{\"shape\":[1],\"data\":[1],\"dtype\":\"int4\"}"), ATTN_ERR_VALUE, "/inputs/query/dtype",
     "\"float16\""},
    {A, INPUTS("\"query\":{\"shape\":[1],\"data\":[1],\"order\":\"C\"}"), ATTN_ERR_FIELD, "/inputs/query/order",
     "unknown member; known here: shape, data, dtype"},
    {A, INPUTS("\"query\":{\"shape\":1,\"data\":[1]}"), ATTN_ERR_FIELD, "/inputs/query/shape", "list of integers"},
    {A, INPUTS("\"query\":{\"shape\":[[1]],\"data\":[1]}"), ATTN_ERR_FIELD, "/inputs/query/shape", "flat list"},
    {A, INPUTS("\"query\":{\"shape\":[-1],\"data\":[1]}"), ATTN_ERR_VALUE, "/inputs/query/shape", "negative"},
    {A, INPUTS("\"query\":{\"shape\":[1.5],\"data\":[1]}"), ATTN_ERR_VALUE, "/inputs/query/shape/0", "integer"},
    {A, INPUTS("\"query\":{\"shape\":[1,1,1,1,1],\"data\":[1]}"), ATTN_ERR_SHAPE, "/inputs/query/shape", "at most 4"},
    {A, INPUTS("\"query\":{\"shape\":[4294967296,4294967296],\"data\":[1]}"), ATTN_ERR_TOO_LARGE, "/inputs/query/shape",
     "no memory can hold"},
    {A, INPUTS("\"query\":{\"shape\":[2305843009213693952],\"dtype\":\"uint8\",\"base64\":\"\"}"), ATTN_ERR_TOO_LARGE,
     "/inputs/query", "more elements"},
    {A, INPUTS("\"query\":{\"shape\":[2],\"data\":[1]}"), ATTN_ERR_SHAPE, "/inputs/query/data", "has 1 numbers"},
    {A, INPUTS("\"query\":{\"shape\":[1],\"data\":[[1]]}"), ATTN_ERR_SHAPE, "/inputs/query/data", "flat"},
    {A, INPUTS("\"query\":{\"shape\":[1],\"data\":\"x\"}"), ATTN_ERR_FIELD, "/inputs/query/data", "flat list"},
    {A, INPUTS("\"query\":{\"shape\":[1],\"dtype\":\"f32\",\"base64\":\"AA==\"}"), ATTN_ERR_VALUE,
     "/inputs/query/dtype", "\"float32\", \"float64\""},
    {A, INPUTS("\"query\":{\"shape\":[2],\"dtype\":\"uint8\",\"base64\":\"AA==\"}"), ATTN_ERR_SHAPE,
     "/inputs/query/base64", "has 1 bytes, its shape asks for 2"},
    {A, INPUTS("\"query\":{\"shape\":[1000000000000,1],\"dtype\":\"float32\",\"base64\":\"AA==\"}"), ATTN_ERR_SHAPE,
     "/inputs/query/base64", "has 1 bytes, its shape asks for 4000000000000"},
    {A, INPUTS("\"query\":{\"shape\":[1],\"dtype\":\"uint8\",\"base64\":\"AA\"}"), ATTN_ERR_VALUE,
     "/inputs/query/base64", "padding"},
    {A, INPUTS("\"query\":{\"shape\":[1],\"dtype\":\"uint8\",\"base64\":\"A!==\"}"), ATTN_ERR_VALUE,
     "/inputs/query/base64", "character 1"},
    {A, INPUTS("\"query\":{\"shape\":[1],\"dtype\":\"uint8\",\"base64\":1}"), ATTN_ERR_FIELD, "/inputs/query/base64",
     "string of base64"},
    {A, INPUTS("\"query\":{\"shape\":[1],\"dtype\":\"int64\",\"base64\":\"////////fwA=\"}"), ATTN_ERR_VALUE,
     "/inputs/query/base64", "float32"},
};

/* Tensors of masks */
static const struct row mask_tensor_rows[] = {
    {A, MASKS("\"attend\":{\"shape\":[1],\"dtype\":\"float32\",\"base64\":\"AACAPw==\"}"), ATTN_ERR_VALUE,
     "/masks/attend/dtype", "bool or an integer type"},
    {A, MASKS("\"attend\":{\"shape\":[1],\"dtype\":\"bool\",\"base64\":\"Ag==\"}"), ATTN_ERR_VALUE,
     "/masks/attend/base64", "bytes 0 and 1"},
    {A, MASKS("\"key_lengths\":{\"shape\":[1],\"dtype\":\"float32\",\"base64\":\"AACAPw==\"}"), ATTN_ERR_VALUE,
     "/masks/key_lengths/dtype", "integer type"},
    {A, MASKS("\"attend\":[[\"true\"]]"), ATTN_ERR_FIELD, "/masks/attend", "write true and false without quotes"},
    {A, MASKS("\"attend\":[2]"), ATTN_ERR_VALUE, "/masks/attend/0", "true, false, 0 or 1"},
    {A, MASKS("\"attend\":2"), ATTN_ERR_VALUE, "/masks/attend", "true, false, 0 or 1, received 2"},
    {A, MASKS("\"bias\":1e300"), ATTN_ERR_VALUE, "/masks/bias", "range of the compute type"},
};

/* Inputs, weights and profiles */
static const struct row input_rows[] = {
    {A, INPUTS("\"query\":[[1]],\"grad_output\":1"), ATTN_ERR_FIELD, "/inputs/grad_output", "belongs to gradients"},
    {A, OPTIONS("\"profile\":\"tensorflow\""), ATTN_ERR_VALUE, "/options/profile", "torch_sdpa"},
    {A, OPTIONS("\"profile\":1"), ATTN_ERR_FIELD, "/options/profile", "torch_sdpa"},
    {A, INPUTS("\"query\":[[1]],\"keyy\":[[1]]"), ATTN_ERR_FIELD, "/inputs/keyy", "did you mean \"key\"?"},
    {L, WEIGHTS("\"query\":1"), ATTN_ERR_FIELD, "/weights/query",
     "an object with weight and bias, or the weight alone"},
    {L, WEIGHTS("\"query\":[[1],[2,3]]"), ATTN_ERR_SHAPE, "/weights/query/1", "length 2, the first one 1"},
    {L, WEIGHTS("\"query\":{\"shape\":[1,1],\"data\":[]}"), ATTN_ERR_SHAPE, "/weights/query/data", "has 0 numbers"},
    {L, WEIGHTS("\"query\":{\"bias\":[1]}"), ATTN_ERR_FIELD, "/weights/query", "has no \"weight\""},
    {L, WEIGHTS("\"qkv\":{\"bias\":[1]}"), ATTN_ERR_FIELD, "/weights/qkv", "has no \"weight\""},
    {L, WEIGHTS("\"qkv\":{\"weight\":[1],\"order\":\"x\"}"), ATTN_ERR_VALUE, "/weights/qkv/order", "\"per_head\""},
    {L, WEIGHTS("\"layout\":\"x\""), ATTN_ERR_VALUE, "/weights/layout", "\"in_out\" or \"out_in\""},
    {L, WEIGHTS("\"layout\":1"), ATTN_ERR_FIELD, "/weights/layout", "received 1"},
};

/* Masks */
static const struct row mask_rows[] = {
    {A, MASKS("\"casual\":true"), ATTN_ERR_FIELD, "/masks/casual", "did you mean \"causal\"?"},
    {A, MASKS("\"causal\":1"), ATTN_ERR_FIELD, "/masks/causal", "true, false, or an object"},
    {A, MASKS("\"causal\":{\"align\":\"x\"}"), ATTN_ERR_VALUE, "/masks/causal/align",
     "\"bottom_right\" or \"top_left\""},
    {A, MASKS("\"causal\":{\"offset\":1.5}"), ATTN_ERR_VALUE, "/masks/causal/offset", "an integer"},
    {A, MASKS("\"causal\":{\"offset\":[1.5]}"), ATTN_ERR_VALUE, "/masks/causal/offset/0", "an integer"},
    {A, MASKS("\"window\":3"), ATTN_ERR_FIELD, "/masks/window", "[left, right]"},
    {A, MASKS("\"window\":[1]"), ATTN_ERR_VALUE, "/masks/window", "[left, right]"},
    {A, MASKS("\"window\":[1,-1]"), ATTN_ERR_VALUE, "/masks/window/1",
     "an integer of at least 0, or null for an open side, received -1"},
    {A, MASKS("\"window\":[1,[2]]"), ATTN_ERR_FIELD, "/masks/window/1", "received an array"},
    {A, MASKS("\"window\":[\"a\",1]"), ATTN_ERR_FIELD, "/masks/window/0", "received \"a\""},
    {A, MASKS("\"window\":[1,99999999999999999999]"), ATTN_ERR_VALUE, "/masks/window",
     "holds an integer above 9223372036854775807"},
    {A, MASKS("\"window\":[1,]"), ATTN_ERR_SYNTAX, "/masks/window", "not JSON"},
    {A, MASKS("\"sliding_window\":0"), ATTN_ERR_VALUE, "/masks/sliding_window", "at least 1"},
    {A, MASKS("\"sliding_window\":\"1\""), ATTN_ERR_FIELD, "/masks/sliding_window", "integer"},
    {A, MASKS("\"key_lengths\":true"), ATTN_ERR_FIELD, "/masks/key_lengths",
     "must be an integer, or a list with one integer for each batch item, received true"},
    {A, MASKS("\"documents\":1"), ATTN_ERR_FIELD, "/masks/documents", "a list of integers"},
    {A, MASKS("\"documents\":[\"a\"]"), ATTN_ERR_FIELD, "/masks/documents", "holds strings"},
    {A, MASKS("\"documents\":[0.5]"), ATTN_ERR_VALUE, "/masks/documents/0", "integer"},
    {A, MASKS("\"documents\":{\"key\":[1]}"), ATTN_ERR_FIELD, "/masks/documents", "has no \"query\""},
    {A, MASKS("\"documents\":{\"query\":[1]}"), ATTN_ERR_FIELD, "/masks/documents", "has no \"key\""},
    {A, MASKS("\"documents\":{\"query\":[1],\"keys\":[1]}"), ATTN_ERR_FIELD, "/masks/documents/keys", "\"key\"?"},
};

/* Blocks */
static const struct row block_rows[] = {
    {A, MASKS("\"blocks\":[[true]]"), ATTN_ERR_FIELD, "/masks/blocks", "an object"},
    {A, MASKS("\"blocks\":{}"), ATTN_ERR_FIELD, "/masks/blocks", "has no \"size\": give size and attend, or a pattern"},
    {A, MASKS("\"blocks\":{\"size\":2}"), ATTN_ERR_FIELD, "/masks/blocks", "has no \"attend\""},
    {A, MASKS("\"blocks\":{\"size\":0,\"attend\":[[true]]}"), ATTN_ERR_VALUE, "/masks/blocks/size",
     "from 1 to 1073741824, received 0"},
    {A, MASKS("\"blocks\":{\"size\":[1],\"attend\":[[true]]}"), ATTN_ERR_VALUE, "/masks/blocks/size",
     "[q_size, kv_size]"},
    {A, MASKS("\"blocks\":{\"size\":[1,0],\"attend\":[[true]]}"), ATTN_ERR_VALUE, "/masks/blocks/size/1", "from 1"},
    {A, MASKS("\"blocks\":{\"size\":\"1\",\"attend\":[[true]]}"), ATTN_ERR_FIELD, "/masks/blocks/size", "an integer"},
    {A, MASKS("\"blocks\":{\"size\":1,\"attend\":true}"), ATTN_ERR_FIELD, "/masks/blocks/attend", "a tensor"},
    {A, MASKS("\"blocks\":{\"pattern\":\"star\"}"), ATTN_ERR_VALUE, "/masks/blocks/pattern", "\"bigbird\""},
    {A, MASKS("\"blocks\":{\"pattern\":1}"), ATTN_ERR_FIELD, "/masks/blocks/pattern", "\"strided\""},
    {A, MASKS("\"blocks\":{\"pattern\":\"strided\"}"), ATTN_ERR_FIELD, "/masks/blocks", "has no \"stride\""},
    {A, MASKS("\"blocks\":{\"pattern\":\"strided\",\"stride\":0}"), ATTN_ERR_VALUE, "/masks/blocks/stride", "from 1"},
    {A, MASKS("\"blocks\":{\"pattern\":\"longformer\"}"), ATTN_ERR_FIELD, "/masks/blocks", "has no \"window\""},
    {A, MASKS("\"blocks\":{\"pattern\":\"longformer\",\"window\":-1}"), ATTN_ERR_VALUE, "/masks/blocks/window",
     "from 0"},
    {A, MASKS("\"blocks\":{\"pattern\":\"longformer\",\"window\":1,\"seed\":1}"), ATTN_ERR_FIELD, "/masks/blocks/seed",
     "known here: pattern, size, window, global_tokens"},
    {A, MASKS("\"blocks\":{\"pattern\":\"bigbird\",\"random_blocks\":65}"), ATTN_ERR_VALUE,
     "/masks/blocks/random_blocks", "from 0 to 64"},
    {A, MASKS("\"blocks\":{\"pattern\":\"bigbird\",\"seed\":-1}"), ATTN_ERR_VALUE, "/masks/blocks/seed", "at least 0"},
    {A, MASKS("\"blocks\":{\"pattern\":\"chunked\"}"), ATTN_ERR_FIELD, "/masks/blocks",
     "has no \"size\", which pattern"},
    {A, MASKS("\"blocks\":{\"pattern\":\"prefix\"}"), ATTN_ERR_FIELD, "/masks/blocks", "has no \"length\""},
    {A, MASKS("\"blocks\":{\"pattern\":\"prefix\",\"length\":true}"), ATTN_ERR_FIELD, "/masks/blocks/length",
     "an integer"},
};

/* What becomes of scores */
static const struct row score_rows[] = {
    {A, OPTIONS("\"alibi\":1"), ATTN_ERR_FIELD, "/options/alibi", "true, false, or a list of slopes"},
    {A, OPTIONS("\"alibi\":[true]"), ATTN_ERR_FIELD, "/options/alibi/0", "a number"},
    {A, OPTIONS("\"relative_bias\":{}"), ATTN_ERR_FIELD, "/options/relative_bias", "has no \"table\""},
    {A, OPTIONS("\"relative_bias\":[[1]]"), ATTN_ERR_FIELD, "/options/relative_bias", "an object"},
    {A, OPTIONS("\"relative_bias\":{\"table\":[[1]],\"max_distance\":0}"), ATTN_ERR_VALUE,
     "/options/relative_bias/max_distance", "at least 1"},
    {A, OPTIONS("\"relative_bias\":{\"table\":[[1]],\"bidirectional\":1}"), ATTN_ERR_FIELD,
     "/options/relative_bias/bidirectional", "true or false"},
    {A, OPTIONS("\"sinks\":1"), ATTN_ERR_FIELD, "/options/sinks", "a tensor"},
    {A, OPTIONS("\"num_heads\":0"), ATTN_ERR_VALUE, "/options/num_heads", "from 1 to 4096, received 0"},
    {A, OPTIONS("\"num_heads\":4097"), ATTN_ERR_VALUE, "/options/num_heads", "from 1 to 4096"},
    {A, OPTIONS("\"num_heads\":2.5"), ATTN_ERR_VALUE, "/options/num_heads", "an integer from 1 to 4096, received 2.5"},
    {A, OPTIONS("\"num_heads\":0.0"), ATTN_ERR_VALUE, "/options/num_heads", "received 0.0"},
    {A, OPTIONS("\"num_heads\":\"2\""), ATTN_ERR_FIELD, "/options/num_heads", "received \"2\""},
    {A, OPTIONS("\"kv_num_heads\":-1"), ATTN_ERR_VALUE, "/options/kv_num_heads", "from 1 to 4096"},
    {A, OPTIONS("\"scale\":\"half\""), ATTN_ERR_VALUE, "/options/scale", "\"none\""},
    {A, OPTIONS("\"scale\":\"none\\u0000x\""), ATTN_ERR_VALUE, "/options/scale", "\"none\""},
    {A, OPTIONS("\"scale\":[1]"), ATTN_ERR_FIELD, "/options/scale", "received an array"},
    {A, OPTIONS("\"scale\":{}"), ATTN_ERR_FIELD, "/options/scale", "received an object"},
    {A, OPTIONS("\"softcap\":0"), ATTN_ERR_VALUE, "/options/softcap", "above 0"},
    {A, OPTIONS("\"softcap\":true"), ATTN_ERR_FIELD, "/options/softcap", "above 0"},
    {A, OPTIONS("\"residual\":true"), ATTN_ERR_FIELD, "/options/residual", "/v1/multi-head-attention"},
    {A, OPTIONS("\"norm\":{}"), ATTN_ERR_FIELD, "/options/norm", "/v1/multi-head-attention"},
};

/* What becomes of the output, dropout, the way to compute */
static const struct row layer_rows[] = {
    {L, OPTIONS("\"residual\":1"), ATTN_ERR_FIELD, "/options/residual", "true or false"},
    {L, OPTIONS("\"norm\":{\"type\":\"x\"}"), ATTN_ERR_VALUE, "/options/norm/type", "\"layer\" or \"rms\""},
    {L, OPTIONS("\"norm\":{\"position\":\"x\"}"), ATTN_ERR_VALUE, "/options/norm/position", "\"post\" or \"pre\""},
    {L, OPTIONS("\"norm\":{\"eps\":0}"), ATTN_ERR_VALUE, "/options/norm/eps", "above 0"},
    {A, OPTIONS("\"dropout\":true"), ATTN_ERR_FIELD, "/options/dropout", "a number from 0 to 1, or an object"},
    {A, OPTIONS("\"dropout\":2"), ATTN_ERR_VALUE, "/options/dropout", "a number from 0 to 1, received 2"},
    {A, OPTIONS("\"dropout\":{}"), ATTN_ERR_FIELD, "/options/dropout", "has no \"p\""},
    {A, OPTIONS("\"dropout\":{\"p\":1.5}"), ATTN_ERR_VALUE, "/options/dropout/p", "from 0 to 1, received 1.5"},
    {A, OPTIONS("\"dropout\":{\"p\":1.1}"), ATTN_ERR_VALUE, "/options/dropout/p", "from 0 to 1, received 1.1"},
    {A, OPTIONS("\"dropout\":{\"p\":0.5,\"seed\":-1}"), ATTN_ERR_VALUE, "/options/dropout/seed", "at least 0"},
    {A, OPTIONS("\"dropout\":{\"p\":0.5,\"where\":\"x\"}"), ATTN_ERR_FIELD, "/options/dropout/where", "a list"},
    {A, OPTIONS("\"dropout\":{\"p\":0.5,\"where\":[\"x\"]}"), ATTN_ERR_VALUE, "/options/dropout/where/0",
     "\"attention\" or \"residual\""},
    {A, OPTIONS("\"training\":1"), ATTN_ERR_FIELD, "/options/training", "true or false"},
    {A, OPTIONS("\"compute\":\"float16\""), ATTN_ERR_VALUE, "/options/compute",
     "\"float32\", \"float64\" or \"bfloat16\""},
    {A, OPTIONS("\"mechanism\":\"x\""), ATTN_ERR_VALUE, "/options/mechanism", "\"softmax\""},
};

/* What is returned, and how */
static const struct row selection_rows[] = {
    {A, OPTIONS("\"return\":1"), ATTN_ERR_FIELD, "/options/return", "a name, or a list of names"},
    {A, OPTIONS("\"return\":\"out\""), ATTN_ERR_VALUE, "/options/return", "received \"out\""},
    {A, OPTIONS("\"return\":\"output\\u0000\""), ATTN_ERR_VALUE, "/options/return", "output"},
    {A, OPTIONS("\"return\":[]"), ATTN_ERR_VALUE, "/options/return", "empty"},
    {A, OPTIONS("\"return\":[\"NaN\"]"), ATTN_ERR_VALUE, "/options/return/0", "\"output\""},
    {A, OPTIONS("\"return\":[\"outputs\"]"), ATTN_ERR_VALUE, "/options/return/0", "received \"outputs\""},
    {A, OPTIONS("\"return\":[1]"), ATTN_ERR_FIELD, "/options/return/0", "name of a step"},
    {A, OPTIONS("\"heads\":1"), ATTN_ERR_FIELD, "/options/heads", "a list of the heads to send"},
    {A, OPTIONS("\"heads\":[]"), ATTN_ERR_VALUE, "/options/heads", "selects nothing"},
    {A, OPTIONS("\"heads\":[[2,1]]"), ATTN_ERR_VALUE, "/options/heads/0", "which ends before it begins"},
    {A, OPTIONS("\"heads\":[[-1,-2]]"), ATTN_ERR_VALUE, "/options/heads/0", "which ends before it begins"},
    {A, OPTIONS("\"heads\":\"2-1\""), ATTN_ERR_VALUE, "/options/heads", "which ends before it begins"},
    {A, OPTIONS("\"heads\":[\"2-3\",[1,2,3]]"), ATTN_ERR_FIELD, "/options/heads/1", "an index, or a range such as"},
    {A, OPTIONS("\"heads\":\"2\""), ATTN_ERR_VALUE, "/options/heads", "a list of indices, or a range such as \"0-2\""},
    {A, OPTIONS("\"heads\":[\"-2--1\"]"), ATTN_ERR_VALUE, "/options/heads/0", "{\"from\": -3, \"to\": -1}"},
    {A, OPTIONS("\"heads\":{\"from\":2}"), ATTN_ERR_FIELD, "/options/heads", "must have \"from\" and \"to\""},
    {A, OPTIONS("\"heads\":{\"from\":2,\"end\":3}"), ATTN_ERR_FIELD, "/options/heads/end", "unknown member"},
    {A, OPTIONS("\"heads\":[[7]]"), ATTN_ERR_FIELD, "/options/heads/0", "an index, or a range"},
    {A, OPTIONS("\"queries\":[0.5,1]"), ATTN_ERR_VALUE, "/options/queries/0", "integer"},
    {A, OPTIONS("\"queries\":[\"a\"]"), ATTN_ERR_VALUE, "/options/queries/0",
     "must be an index, or a range such as \"0-2\""},
    {A, OPTIONS("\"keys\":\"0-1048576\""), ATTN_ERR_TOO_LARGE, "/options/keys", "more than 1048576"},
    {A, OPTIONS("\"keys\":[[0,600000],[0,600000]]"), ATTN_ERR_TOO_LARGE, "/options/keys", "more than 1048576"},
    {A, OPTIONS("\"keys\":{\"from\":0,\"to\":9223372036854775807}"), ATTN_ERR_TOO_LARGE, "/options/keys",
     "more than 1048576"},
    {A, OPTIONS("\"format\":\"csv\""), ATTN_ERR_VALUE, "/options/format", "\"nested\", \"flat\" or \"base64\""},
    {A, OPTIONS("\"digits\":18"), ATTN_ERR_VALUE, "/options/digits", "from 1 to 17"},
    {A, OPTIONS("\"max\":18"), ATTN_ERR_FIELD, "/options/max", "unknown member"},
};

/* What is shown of maps */
static const struct row shown_rows[] = {
    {A, OPTIONS("\"pool\":{}"), ATTN_ERR_FIELD, "/options/pool", "neither \"rows\" nor \"cols\""},
    {A, OPTIONS("\"pool\":4"), ATTN_ERR_FIELD, "/options/pool", "an object"},
    {A, OPTIONS("\"pool\":{\"rows\":0}"), ATTN_ERR_VALUE, "/options/pool/rows", "from 1 to"},
    {A, OPTIONS("\"pool\":{\"cols\":2,\"op\":\"sum\"}"), ATTN_ERR_VALUE, "/options/pool/op", "\"max\" or \"mean\""},
    {A, OPTIONS("\"top_k\":0"), ATTN_ERR_VALUE, "/options/top_k", "from 1 to"},
    {A, OPTIONS("\"top_k\":1,\"pool\":{\"rows\":1}"), ATTN_ERR_FIELD, "/options/top_k", "choose one of them"},
    {A, OPTIONS("\"top_k\":1,\"return\":[\"output\"]"), ATTN_ERR_FIELD, "/options/top_k", "not in options.return"},
    {A, OPTIONS("\"dtype\":\"int8\""), ATTN_ERR_VALUE, "/options/dtype", "\"uint8\""},
    {A, OPTIONS("\"dtype\":\"uint8\",\"return\":[\"masked\"]"), ATTN_ERR_VALUE, "/options/dtype",
     "\"masked\" need not"},
    {A, OPTIONS("\"view\":\"row\""), ATTN_ERR_VALUE, "/options/view", "\"inspectus\" or \"rows\""},
    {A, OPTIONS("\"view\":\"rows\",\"format\":\"flat\""), ATTN_ERR_FIELD, "/options/format", "options.view"},
    {A, OPTIONS("\"view\":\"rows\",\"top_k\":1"), ATTN_ERR_FIELD, "/options/top_k", "options.view"},
    {A, OPTIONS("\"view\":\"rows\",\"return\":[\"lse\"]"), ATTN_ERR_FIELD, "/options/return", "options.view"},
};

/* Tokens */
static const struct row token_rows[] = {
    {A, TOKENS("\"query\":\"a\""), ATTN_ERR_FIELD, "/tokens/query", "a list of strings"},
    {A, TOKENS("\"query\":[1]"), ATTN_ERR_FIELD, "/tokens/query/0", "a string, received 1"},
    {A, TOKENS("\"query\":[\"a\",[\"b\"]]"), ATTN_ERR_FIELD, "/tokens/query/1", "a string"},
    {A, TOKENS("\"query\":[[\"a\"],\"b\"]"), ATTN_ERR_FIELD, "/tokens/query/1", "a list of strings"},
    {A, TOKENS("\"query\":[[\"a\"],[\"b\",\"c\"]]"), ATTN_ERR_SHAPE, "/tokens/query/1", "has 2 labels"},
    {A, TOKENS("\"query\":[\"a\",\"b\"]"), ATTN_ERR_SHAPE, "/tokens/query", "2 labels for 1 positions"},
    {A, TOKENS("\"key\":[[\"a\"],[\"b\"]]"), ATTN_ERR_SHAPE, "/tokens/key", "2 lists for a batch of 1"},
    {A, TOKENS("\"value\":[\"a\"]"), ATTN_ERR_FIELD, "/tokens/value", "unknown member"},
};

static const struct {
    const struct row *rows;
    size_t count;
} tables[] = {
    {frame_rows, COUNT(frame_rows)},
    {section_rows, COUNT(section_rows)},
    {boolean_rows, COUNT(boolean_rows)},
    {tensor_rows, COUNT(tensor_rows)},
    {tensor_object_rows, COUNT(tensor_object_rows)},
    {mask_tensor_rows, COUNT(mask_tensor_rows)},
    {input_rows, COUNT(input_rows)},
    {mask_rows, COUNT(mask_rows)},
    {block_rows, COUNT(block_rows)},
    {score_rows, COUNT(score_rows)},
    {layer_rows, COUNT(layer_rows)},
    {selection_rows, COUNT(selection_rows)},
    {shown_rows, COUNT(shown_rows)},
    {token_rows, COUNT(token_rows)},
};

START_TEST(refusals_have_their_code_pointer_and_reason)
{
    for (size_t i = 0; i < tables[_i].count; i++) {
        const struct row *row = &tables[_i].rows[i];
        const struct refusal refusal = {row->text, row->status, row->pointer, row->fragment};
        check_refusal(&refusal, decode_as(row->kind, row->text));
        ck_assert(row->status != ATTN_ERR_SYNTAX || (err.line > 0 && err.column > 0));
        ck_assert_int_eq(envelope_decode(row->text, strlen(row->text), row->kind, arena, &envelope, NULL), row->status);
    }
}
END_TEST

START_TEST(expected_and_received_are_json)
{
    static const struct {
        const char *text, *expected, *received;
    } cases[] = {
        {INPUTS("\"query\":[[1,2],[3]]"), "2", "1"},
        {INPUTS("\"query\":{\"shape\":[2],\"data\":[1]}"), "2", "1"},
        {OPTIONS("\"num_heads\":0"), "\"an integer from 1 to 4096\"", "0"},
        {OPTIONS("\"compute\":\"a\\\"b\""), "\"\\\"float32\\\", \\\"float64\\\" or \\\"bfloat16\\\"\"", "\"a\\\"b\""},
        {OPTIONS("\"softcap\":{}"), "\"a number above 0\"", "\"object\""},
        {OPTIONS("\"softcap\":[1,]"), "\"a number above 0\"", "\"array\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ck_assert_int_ne(decode_as(ENVELOPE_ATTENTION, cases[i].text), ATTN_OK);
        ck_assert_str_eq(err.expected, cases[i].expected);
        ck_assert_str_eq(err.received, cases[i].received);
    }
}
END_TEST

/* If a name is longer than a pointer may be, the error has its beginning. */
START_TEST(a_pointer_that_is_too_long_is_cut)
{
    char name[400], text[sizeof name + 64];
    memset(name, '~', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text, "{" Q ",\"%s\":1}", name);
    ck_assert_int_eq(decode_as(A, text), ATTN_ERR_FIELD);
    ck_assert_uint_gt(strlen(err.field), 100);
    ck_assert_uint_lt(strlen(err.field), sizeof err.field);
    for (size_t i = 1; err.field[i] != '\0'; i++)
        ck_assert_int_eq(err.field[i], i % 2 == 1 ? '~' : '0');
}
END_TEST

START_TEST(syntax_errors_have_line_and_column_of_the_body)
{
    static const struct {
        const char *text;
        size_t line, column;
    } cases[] = {
        {"{\"inputs\":{\"query\":[[1,2],\n[3,x]]}}", 2, 4},
        {"{\"inputs\":{\"query\":[[1,2],[3,4]]},\n \"options\": oops}", 2, 13},
        {"{\"inputs\":{\"query\":[[1,2],[3,4]]}\n\n \"options\": {}}", 3, 2},
        {"{\"masks\":{\"window\":\n[1 2]},\"inputs\":{\"query\":[[1]]}}", 2, 4},
        {"[1,2", 1, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ck_assert_int_eq(decode_as(ENVELOPE_ATTENTION, cases[i].text), ATTN_ERR_SYNTAX);
        ck_assert_msg(err.line == cases[i].line && err.column == cases[i].column, "%s: %zu:%zu %s", cases[i].text,
                      err.line, err.column, err.message);
    }
}
END_TEST

START_TEST(a_nul_byte_is_refused_wherever_it_stands)
{
    static const char text[] = "{\"inputs\":\n{\"query\":[[1]]}}";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        copy[i] = '\0';
        ck_assert_int_eq(envelope_decode(copy, sizeof text - 1, A, arena, &envelope, &err), ATTN_ERR_SYNTAX);
        ck_assert_ptr_nonnull(strstr(err.message, "NUL"));
    }
}
END_TEST

START_TEST(every_prefix_of_a_request_is_refused)
{
    static const char text[] =
        "{\"inputs\":{\"query\":[[1,2],[3,4]]},\"masks\":{\"window\":[1,null]},\"tokens\":{\"query\":[\"a\",\"b\"]}}";
    for (size_t length = 0; length < sizeof text - 1; length++)
        ck_assert_int_eq(envelope_decode(text, length, A, arena, &envelope, &err), ATTN_ERR_SYNTAX);
    accept(text);
}
END_TEST

START_TEST(an_envelope_beyond_the_limit_is_too_large)
{
    size_t length = JSON_TEXT_MAX + 100;
    char *text = malloc(length + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', length);
    memcpy(text, "{\"a\":\"\\n", 8);
    text[length - 2] = '"';
    text[length - 1] = '}';
    text[length] = '\0';
    ck_assert_int_eq(decode_as(A, text), ATTN_ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.message, "without its tensors"));
    free(text);
}
END_TEST

/* One that takes every way through the decoder that allocates. */
static const char whole_request[] =
    "{\"inputs\":{\"query\":[[1,2],[3,4]],\"key\":{\"shape\":[2,2],\"dtype\":\"float64\",\"base64\":"
    "\"AAAAAAAA8D8AAAAAAAAAQAAAAAAAAPA/AAAAAAAAAEA=\"},\"value\":{\"shape\":[2,2],\"data\":[1,2,3,4]}},"
    "\"masks\":{\"causal\":{\"offset\":1},\"bias\":0.5,\"attend\":[[true,true]],\"window\":[1,null]},"
    "\"options\":{\"heads\":[0,0],\"return\":[\"output\"],\"dropout\":{\"p\":0.5,\"where\":[\"attention\"]}},"
    "\"tokens\":{\"query\":[\"NaN\",\"b\"],\"key\":[[\"c\",\"d\"]]}}";

START_TEST(every_arena_too_small_is_a_clean_refusal)
{
    attn_status status = ATTN_ERR_NO_MEMORY;
    size_t tries = 0;
    for (size_t limit = 64; status != ATTN_OK; limit += 64, tries++) {
        attn_arena *small = attn_arena_create(limit);
        if (!small)
            continue;
        err = (attn_error){0};
        status = envelope_decode(whole_request, strlen(whole_request), A, small, &envelope, &err);
        ck_assert_msg(status == ATTN_OK || (status == ATTN_ERR_NO_MEMORY && err.status == status), "%zu: %s", limit,
                      err.message);
        attn_arena_destroy(small);
    }
    ck_assert_uint_gt(tries, 10);
}
END_TEST

START_TEST(every_failing_allocation_of_jansson_is_a_clean_refusal)
{
    fail_json_begin();
    json_fails_for_good = _i == 1;
    attn_status status = ATTN_ERR_NO_MEMORY;
    size_t tries = 0;
    for (; status != ATTN_OK; tries++) {
        json_allocations_left = tries;
        status = decode_as(A, whole_request);
        ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%zu: %s", tries, err.message);
    }
    fail_json_end();
    ck_assert_uint_gt(tries, 50);
}
END_TEST

/* The JSON test suite: y_ must be read, n_ must be refused. */
struct suite_file {
    char name[256];
    char *text;
    size_t length;
};

static bool read_suite_file(const char *folder, const char *name, struct suite_file *file)
{
    char path[2 * SHARED_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(file->name, sizeof file->name, "%s", name);
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return false;
    enum { FILE_MAX = 1 << 20 };
    file->text = malloc(FILE_MAX);
    ck_assert_ptr_nonnull(file->text);
    file->length = fread(file->text, 1, FILE_MAX, stream);
    fclose(stream);
    return true;
}

/* The file between two texts. */
static attn_status decode_framed(const struct suite_file *file, const char *before, const char *after)
{
    size_t before_length = strlen(before), length = before_length + file->length + strlen(after);
    char *text = malloc(length + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, before, before_length);
    memcpy(text + before_length, file->text, file->length);
    memcpy(text + before_length + file->length, after, strlen(after));
    err = (attn_error){0};
    attn_arena_reset(arena);
    attn_status status = envelope_decode(text, length, A, arena, &envelope, &err);
    free(text);
    return status;
}

static void check_file(const struct suite_file *file)
{
    bool is_json = file->name[0] == 'y', is_wrong = file->name[0] == 'n';
    attn_status bare = decode_framed(file, "", "");
    ck_assert_msg(bare != ATTN_OK, "%s", file->name);
    ck_assert_msg(!is_json || bare != ATTN_ERR_SYNTAX, "%s: %s", file->name, err.message);
    attn_status wrapped = decode_framed(file, "{\"inputs\":{\"query\":[[1]]},\"extra\":", "}");
    ck_assert_msg(wrapped != ATTN_OK, "%s", file->name);
    ck_assert_msg(!is_json || wrapped == ATTN_ERR_FIELD, "%s: %s", file->name, err.message);
    /* As a tensor, so that lifted arrays are read to their end. */
    attn_status tensor = decode_framed(file, "{\"inputs\":{\"query\":", "}}");
    ck_assert_msg(!is_wrong || tensor != ATTN_OK, "%s", file->name);
    ck_assert_msg(!is_json || tensor != ATTN_ERR_SYNTAX, "%s: %s", file->name, err.message);
}

START_TEST(the_json_test_suite_is_judged_rightly)
{
    char folder[SHARED_PATH_MAX];
    if (!shared_has(folder, "corpora/json/parsing"))
        return;
    DIR *directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    size_t files = 0;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        struct suite_file file;
        if (!strstr(entry->d_name, ".json") || !read_suite_file(folder, entry->d_name, &file))
            continue;
        check_file(&file);
        free(file.text);
        files++;
    }
    closedir(directory);
    ck_assert_uint_gt(files, 300);
}
END_TEST

CHECK_MAIN("envelope_refusals")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, refusals_have_their_code_pointer_and_reason, 0, COUNT(tables));
    tcase_add_test(tests, expected_and_received_are_json);
    tcase_add_test(tests, a_pointer_that_is_too_long_is_cut);
    tcase_add_test(tests, syntax_errors_have_line_and_column_of_the_body);
    tcase_add_test(tests, a_nul_byte_is_refused_wherever_it_stands);
    tcase_add_test(tests, every_prefix_of_a_request_is_refused);
    tcase_add_test(tests, an_envelope_beyond_the_limit_is_too_large);
    tcase_add_test(tests, every_arena_too_small_is_a_clean_refusal);
    tcase_add_loop_test(tests, every_failing_allocation_of_jansson_is_a_clean_refusal, 0, 2);
    tcase_add_test(tests, the_json_test_suite_is_judged_rightly);
}
