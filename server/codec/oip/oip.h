/*
 * oip.h: decodes and answers inference requests in the Open Inference Protocol (version 2, as in KServe and Triton).
 *
 * https://github.com/kserve/open-inference-protocol, and Triton's binary tensor data extension. A body is JSON. In the
 * binary form, a header field gives the length of the JSON, and the bytes of the tensors with binary_data_size follow
 * it in the order of the inputs. A request becomes the same envelope as our own JSON:
 *
 *   inputs      QUERY, KEY, VALUE -> inputs.query, key, value;   ATTEND, BIAS -> masks.attend, bias
 *   outputs     OUTPUT, ATTENTION, and every other step by its name in capitals. A request that names no outputs gets
 *               OUTPUT and ATTENTION.
 *   parameters  Options by their names ("num_heads"), and the masks "causal", "sliding_window", "window". A string that
 *               holds a JSON object or list stands for it, because most clients send plain values only. Parameters of
 *               scheduling are priority (1 high, 0 or 2 usual, 3 low) and timeout (microseconds). content_type and
 *               headers, here and on tensors, are ignored, because they are hints to other servers.
 *
 * A whole model has the inputs TEXT (BYTES: texts, one for each item) or IDS (INT64: (len) or (batch, len)), and the
 * outputs OUTPUT, ATTENTION and TOKENS (BYTES, (batch, len)); with a head of classes also CLASSES (FP32) and LABELS (BYTES),
 * and with a pooling EMBEDDING (FP32, (batch, features)). Its parameters are the options of a request to a model.
 * In the binary form, each text is its length as 4 bytes, and its bytes.
 *
 * Datatypes: FP32, FP64, FP16, BF16, BOOL, INT8 … INT64, UINT8 … UINT64. They are converted to the compute type, which
 * is float64 when QUERY is FP64 and no parameter says otherwise. A conversion that loses information is refused.
 */
#ifndef CODEC_OIP_OIP_H
#define CODEC_OIP_OIP_H

#include "attn/multihead.h"
#include "base/text.h"
#include "codec/bytes/chunks.h"
#include "codec/request/envelope.h"

#define OIP_ALL_JSON SIZE_MAX

/*
 * In the place of a step, what a whole model has besides: its tokens; of its classes the probabilities, the numbers of a
 * regression, or the logits of starts and ends of answers; their labels; one vector for each item.
 */
#define OIP_TOKENS    ATTN_STEP_COUNT
#define OIP_CLASSES   ((attn_step)(ATTN_STEP_COUNT + 1))
#define OIP_LABELS    ((attn_step)(ATTN_STEP_COUNT + 2))
#define OIP_EMBEDDING ((attn_step)(ATTN_STEP_COUNT + 3))

/* Which of them a model has; OIP_LABELS come with OIP_CLASSES. */
enum { OIP_HAS_TOKENS = 1, OIP_HAS_CLASSES = 2, OIP_HAS_EMBEDDING = 4 };

/* "classes", of OIP_CLASSES and so on, or the name of the step. */
const char *oip_output_name(attn_step step);

struct oip_output {
    attn_step step;
    bool is_binary;
};

/* What a request to a whole model says. */
struct oip_model_inputs {
    const char *options; /* {"options": {…}} in JSON, not terminated; return is among them */
    size_t options_bytes, batch;
    const struct text_span *texts; /* one for each item, each terminated; NULL: the request gives IDS */
    const int64_t *ids;            /* (batch, length) */
    size_t length;
};

/* An output as it is sent. */
struct oip_sent {
    attn_tensor tensor;
    const struct text_span *texts; /* as many as the tensor has elements: BYTES; NULL: the tensor has numbers */
};

/* The priority of a request. In the protocol, 1 is the most urgent, and 0 is the usual priority. */
typedef enum { OIP_PRIORITY_USUAL, OIP_PRIORITY_HIGH, OIP_PRIORITY_LOW } oip_priority;

struct oip_request {
    struct envelope envelope;
    const char *id;                             /* NULL: none */
    const char *model, *version;                /* model_name and model_version of the body; NULL: none */
    struct oip_output outputs[ATTN_STEP_COUNT]; /* in the order of the request */
    size_t output_count;
    double timeout_ms;             /* from the parameter timeout, which is in microseconds; 0: none */
    struct oip_model_inputs whole; /* of a whole model, which has no envelope */
};

/* A body with only the numbers of QUERY: a sequence of tokens with that many features each, in the type dtype. */
struct oip_raw {
    size_t features;
    attn_dtype dtype;
};

/*
 * Decodes a request to the model "attention" (layer NULL) or to a kept layer. body[0 .. bytes) begins with json_bytes
 * of JSON (OIP_ALL_JSON: all of it is JSON). With json_bytes 0, the body is QUERY alone, in the form that raw
 * describes, and all outputs are binary. raw is NULL when the model has no such form. Everything lives in arena; the
 * body must outlive it. Errors refer to inputs by their names and to parameters by "/parameters/…". The statuses are
 * those of envelope_decode.
 */
ATTN_MUST_CHECK attn_status oip_decode(const char *body, size_t bytes, size_t json_bytes,
                                       const struct envelope_source *layer, const struct oip_raw *raw,
                                       attn_arena *arena, struct oip_request *request, attn_error *err);

/* The same for a whole model. has: OIP_HAS_… for each output that it has. The parameters are not yet decoded. */
ATTN_MUST_CHECK attn_status oip_decode_whole(const char *body, size_t bytes, size_t json_bytes, unsigned has,
                                             attn_arena *arena, struct oip_request *request, attn_error *err);

/*
 * Guesses the parameter priority from the beginning of the body, because the request is queued before it is parsed. A
 * wrong guess costs a place in the queue; oip_decode checks the parameter itself.
 */
oip_priority oip_priority_hint(const char *body, size_t bytes);

/* Checks the body, which may be empty, of a request to list, load or unload models. No member of it has an effect. */
typedef enum { OIP_INDEX, OIP_LOAD, OIP_UNLOAD } oip_repository_kind;
ATTN_MUST_CHECK attn_status oip_check_repository(const char *body, size_t bytes, oip_repository_kind kind,
                                                 attn_arena *arena, attn_error *err);

/* Rewords an error of a plan or a limit for this protocol: "/options/x" becomes "/parameters/x". */
void oip_translate(attn_error *err);

/*
 * Whether bytes follow the JSON of the answer. If so, out must not defer, because the length of the JSON is sent first.
 */
bool oip_has_binary_output(const struct oip_request *request);
/* The outputs of the request are these steps, of a plan or of its result. */
void oip_send_steps(const struct oip_request *request, const attn_tensor *steps, struct oip_sent *sent);
/*
 * Appends the answer with the outputs of the request. Returns the length of its JSON part, padded to a multiple of 64 so
 * that the first tensor is aligned, or OIP_ALL_JSON when no output is binary. Without memory out->is_ok becomes false.
 */
size_t oip_write(const struct oip_request *request, const char *model, const char *version, const struct oip_sent *sent,
                 const attn_runtime *runtime, struct chunks *out);
/* The longest answer, in bytes. Tensors need no data. */
size_t oip_bound(const struct oip_request *request, const struct oip_sent *sent);

#endif
