/*
 * envelope.c: the JSON body of a request to the core's own request: skim, parse, decode.
 */
#include "codec/envelope.h"

#include <stddef.h>
#include <string.h>

#include "codec/envelope_parts.h"
#include "codec/json_path.h"
#include "codec/json_tree.h"
#include "codec/skim.h"

#define COUNT(items) (sizeof(items) / sizeof(items)[0])

static const double DEFAULT_NORM_EPS = 1e-5;

void envelope_prepare(void)
{
    json_tree_prepare();
}

/* How many bytes at the beginning are white space. */
static size_t leading_space(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && (text[n] == ' ' || text[n] == '\t' || text[n] == '\n' || text[n] == '\r'))
        n++;
    return n;
}

/* Two characters of ASCII in UTF-16, or its byte order mark: what text of another encoding begins with. */
static bool is_utf_16(const unsigned char *text, size_t length)
{
    if (length < 4)
        return false;
    return (text[0] == 0xFF && text[1] == 0xFE) || (text[0] == 0xFE && text[1] == 0xFF) ||
           (text[0] != 0 && text[1] == 0 && text[2] != 0 && text[3] == 0) ||
           (text[0] == 0 && text[1] != 0 && text[2] == 0 && text[3] != 0);
}

static attn_status check_encoding(const struct skim *body, attn_error *err)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const char *what = NULL;
    if (body->body_length >= sizeof mark - 1 && memcmp(body->body, mark, sizeof mark - 1) == 0)
        what = "begins with a byte order mark: send it without";
    else if (is_utf_16((const unsigned char *)body->body, body->body_length))
        what = "looks like UTF-16; JSON is UTF-8";
    if (!what)
        return ATTN_OK;
    attn_status status = attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request %s", what);
    skim_place(body, 0, err);
    return status;
}

static attn_status check_bytes(const struct skim *body, attn_error *err)
{
    attn_status status = check_encoding(body, err);
    if (status != ATTN_OK)
        return status;
    const char *nul = body->body_length > 0 ? memchr(body->body, '\0', body->body_length) : NULL;
    if (leading_space(body->body, body->body_length) == body->body_length) {
        status = attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request has no body; expected a JSON object with inputs");
        skim_place(body, 0, err);
        return status;
    }
    if (!nul)
        return ATTN_OK;
    status = attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request is not JSON: it holds a NUL byte");
    skim_place(body, (size_t)(nul - body->body), err);
    return status;
}

/* Where in the envelope the token begins that jansson stopped after: it quotes short ones at the end of its message. */
static size_t error_offset(const struct skim *skim, const json_error_t *error)
{
    size_t after = error->position > 0 ? (size_t)error->position : 0;
    if (after > skim->length)
        after = skim->length;
    const char *token = strstr(error->text, " near '");
    if (!token)
        return after > 0 ? after - 1 : 0;
    token += strlen(" near '");
    size_t length = strlen(token);
    length -= length > 0;
    bool is_here = length > 0 && length <= after && memcmp(skim->text + after - length, token, length) == 0;
    return after - (is_here ? length : after > 0);
}

static bool begins_like_a_number_word(const char *text, size_t length)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < COUNT(words); i++) {
        if (length >= strlen(words[i]) && memcmp(text, words[i], strlen(words[i])) == 0)
            return true;
    }
    return false;
}

/* jansson says where, but not in which member. */
static attn_status fail_overflow(const struct skim *skim, const json_error_t *error, attn_error *err)
{
    char pointer[NODE_POINTER_MAX];
    const char *bound = json_tree_integer_bound(error);
    json_path_at(skim->text, error_offset(skim, error), pointer, sizeof pointer);
    return attn_fail(err, ATTN_ERR_VALUE, pointer, "%s holds %s", pointer[0] ? pointer : "the request",
                     bound ? bound : "a number beyond what 64 bits can hold");
}

static attn_status fail_syntax(const char *at, const char *end, const json_error_t *error, attn_error *err)
{
    if (begins_like_a_number_word(at, (size_t)(end - at)))
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL,
                         "JSON has no such number: in tensors, write \"NaN\", \"Infinity\", \"-Infinity\" in quotes");
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request is not JSON: %s", error->text);
}

static attn_status fail_parse(const struct skim *skim, const json_error_t *error, attn_error *err)
{
    attn_status status;
    size_t at = skim_body_offset(skim, error_offset(skim, error));
    if (json_tree_is_starved())
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory left to read the request");
    switch (json_error_code(error)) {
    case json_error_duplicate_key:
        status = attn_fail(err, ATTN_ERR_FIELD, NULL, "a member is given twice: %s", error->text);
        break;
    case json_error_null_byte_in_key:
        status = attn_fail(err, ATTN_ERR_FIELD, NULL, "the name of a member holds \\u0000: no such member is known");
        break;
    case json_error_numeric_overflow:
        status = fail_overflow(skim, error, err);
        break;
    default:
        status = fail_syntax(skim->body + at, skim->body + skim->body_length, error, err);
        break;
    }
    skim_place(skim, at, err);
    return status;
}

static attn_status decode_root(struct decoder *decoder, json_t *tree, struct envelope *envelope)
{
    /* Options first: they say of which type the tensors are. Tokens last: they are counted against the inputs. */
    static const struct member members[] = {
        {"options", decode_options, 0, MEMBER_ALWAYS},
        {"inputs", decode_inputs, 0, MEMBER_ALWAYS},
        {"weights", decode_weights, offsetof(struct envelope, request.weights), MEMBER_OF_LAYERS},
        {"masks", decode_masks, offsetof(struct envelope, request.masks), MEMBER_ALWAYS},
        {"tokens", decode_tokens, 0, MEMBER_ALWAYS},
    };
    struct node root = {.json = tree};
    if (!json_is_object(tree))
        return node_fail_type(decoder, &root, "a JSON object");
    attn_status status = check_members(decoder, &root, members, COUNT(members));
    if (status == ATTN_OK && !json_object_get(tree, "inputs"))
        return node_fail(decoder, &root, ATTN_ERR_FIELD, "has no \"inputs\"");
    return status == ATTN_OK ? decode_members(decoder, &root, members, COUNT(members), envelope) : status;
}

static void set_defaults(struct envelope *envelope, envelope_kind kind)
{
    *envelope = (struct envelope){.form = TENSOR_FORM_NESTED};
    envelope->request.is_layer = envelope_is_layer(kind);
    attn_options *options = &envelope->request.options;
    options->compute = ATTN_F32;
    options->norm_eps = DEFAULT_NORM_EPS;
    if (!envelope_is_gradients(kind))
        options->want = (uint32_t)1 << ATTN_STEP_OUTPUT | (uint32_t)1 << ATTN_STEP_ATTENTION;
}

attn_status envelope_decode(const char *text, size_t length, envelope_kind kind, attn_arena *arena,
                            struct envelope *envelope, attn_error *err)
{
    return envelope_decode_attached(text, length, NULL, 0, kind, arena, envelope, err);
}

attn_status envelope_decode_attached(const char *text, size_t length, const struct envelope_attachment *attachments,
                                     size_t count, envelope_kind kind, attn_arena *arena, struct envelope *envelope,
                                     attn_error *err)
{
    if (length == 0 && count > 0) {
        text = "{}";
        length = strlen(text);
    }
    struct skim skim = {.body = text, .body_length = length};
    json_t *tree = NULL;
    set_defaults(envelope, kind);
    attn_status status = check_bytes(&skim, err);
    if (status == ATTN_OK)
        status = skim_body(text, length, ENVELOPE_TEXT_MAX, ENVELOPE_DEPTH_MAX, arena, &skim, err);
    if (status != ATTN_OK)
        goto done;
    json_error_t error;
    tree = json_tree_load(skim.text, skim.length, &error);
    if (!tree) {
        status = fail_parse(&skim, &error, err);
        goto done;
    }
    const struct member_table *const sections[] = {&inputs_table, &masks_table, &options_table,
                                                   envelope_is_layer(kind) ? &weights_table : NULL, NULL};
    struct decoder decoder = {.arena = arena,
                              .skim = &skim,
                              .attachments = attachments,
                              .kind = kind,
                              .compute = &envelope->request.options.compute,
                              .sections = sections,
                              .err = err};
    status = attach_all(&decoder, tree, count);
    if (status == ATTN_OK)
        status = decode_root(&decoder, tree, envelope);
done:
    json_decref(tree);
    return status;
}
