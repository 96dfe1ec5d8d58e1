/* options.c: decodes "options" of a request. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "attn/gradient.h"
#include "base/array.h"
#include "codec/json/tree.h"
#include "codec/request/decoder.h"

/*
 * ---- the profile: the defaults of another system. The request's own options win ----
 *
 * docs/semantics.md gives the sources, and says how the systems differ.
 */

static const struct envelope_profile PROFILES[] = {
    {"torch_sdpa", ATTN_ALIGN_TOP_LEFT, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-5, .rms_eps = 0},
    {"torch_mha", ATTN_ALIGN_TOP_LEFT, ATTN_LAYOUT_OUT_IN, .layer_eps = 1e-5, .rms_eps = 0},
    {"onnx", ATTN_ALIGN_PAST, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-5, .rms_eps = 1e-5},
    {"jax", ATTN_ALIGN_TOP_LEFT, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-6, .rms_eps = 1e-6},
    {"keras", ATTN_ALIGN_TOP_LEFT, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-3, .rms_eps = 1e-6},
    {"flash", ATTN_ALIGN_BOTTOM_RIGHT, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-5, .rms_eps = 1e-5},
    {"hf", ATTN_ALIGN_BOTTOM_RIGHT, ATTN_LAYOUT_OUT_IN, .layer_eps = 1e-12, .rms_eps = 1e-6},
};

/* struct envelope: sets the profile, and its defaults for the sections that are decoded after the options */
attn_status decode_profile(struct reading *reading, const struct node *node, void *to)
{
    const char *words[ARRAY_LENGTH(PROFILES)];
    struct envelope *envelope = to;
    size_t index;
    for (size_t i = 0; i < ARRAY_LENGTH(PROFILES); i++)
        words[i] = PROFILES[i].name;
    node_decode_word(reading, node, words, ARRAY_LENGTH(PROFILES), &index);
    if (node_has_failed(reading))
        return reading->status;
    envelope->profile = &PROFILES[index];
    envelope->request.masks.align = PROFILES[index].align;
    /* Without weights in the request, the kept layer's weights keep their layout. */
    const struct node *root = node->parent != NULL ? node->parent->parent : NULL;
    if (root != NULL && node_find(root->json, "weights"))
        envelope->request.weights.layout = PROFILES[index].layout;
    return ATTN_OK;
}

/* ---- the options ---- */

#define OPTION(field) offsetof(struct envelope, request.options.field)

enum { HEADS_MAX = 4096 };

/* size_t */
static attn_status decode_head_count(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 1, HEADS_MAX, to);
}

/* attn_options: scale */
static attn_status decode_scale(struct reading *reading, const struct node *node, void *to)
{
    attn_options *options = to;
    const char *wanted = "a number or \"none\"";
    options->has_scale = true;
    const char *word = json_tree_word(node->json);
    if (json_is_number(node->json))
        return node_decode_number(reading, node, wanted, &options->scale);
    options->scale = 1;
    if (word != NULL && strcmp(word, "none") == 0)
        return ATTN_OK;
    (word != NULL ? node_fail_value : node_fail_type)(reading, node, wanted);
    node_explain(reading, "the default is 1/√d_k: leave it out for that; \"none\" is 1");
    return reading->status;
}

/* attn_options: alibi, alibi_slopes */
static attn_status decode_alibi(struct reading *reading, const struct node *node, void *to)
{
    attn_options *options = to;
    if (json_is_boolean(node->json))
        return node_decode_bool(reading, node, &options->alibi);
    if (!json_is_array(node->json) && !json_is_object(node->json))
        return node_fail_type(reading, node, "true, false, or a list of slopes, one for each head");
    return decode_tensor(reading, node, &options->alibi_slopes);
}

/* int64_t */
static attn_status decode_max_distance(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_integer(reading, node, 1, INT64_MAX, to);
}

/* attn_relative_bias, as T5 has it by default */
static attn_status decode_relative_bias(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"table", decode_tensor, offsetof(attn_relative_bias, table), MEMBER_ALWAYS},
        {"bidirectional", node_decode_bool, offsetof(attn_relative_bias, bidirectional), MEMBER_ALWAYS},
        {"max_distance", decode_max_distance, offsetof(attn_relative_bias, max_distance), MEMBER_ALWAYS},
    };
    attn_relative_bias *relative = to;
    *relative = (attn_relative_bias){.bidirectional = true, .max_distance = 128};
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), relative);
    if (!relative->table)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"table\"");
    return reading->status;
}

/* int64_t */
static attn_status decode_buckets(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_integer(reading, node, 2, INT64_MAX, to);
}

/* attn_relative_position */
static attn_status decode_relative_position(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"key", decode_tensor, offsetof(attn_relative_position, key), MEMBER_ALWAYS},
        {"query", decode_tensor, offsetof(attn_relative_position, query), MEMBER_ALWAYS},
        {"embedding", decode_tensor, offsetof(attn_relative_position, embedding), MEMBER_ALWAYS},
        {"buckets", decode_buckets, offsetof(attn_relative_position, buckets), MEMBER_ALWAYS},
        {"max_distance", decode_max_distance, offsetof(attn_relative_position, max_distance), MEMBER_ALWAYS},
    };
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
    const attn_relative_position *own = to;
    if (!own->key && !own->query && !own->embedding)
        return node_fail(reading, node, ATTN_ERR_FIELD,
                         "has no table: \"key\" or \"query\", or \"embedding\" of a layer");
    return reading->status;
}

/* double from 0 to 1 */
static attn_status decode_probability(struct reading *reading, const struct node *node, void *to)
{
    const char *wanted = "a number from 0 to 1";
    double value;
    node_decode_number(reading, node, wanted, &value);
    if (node_has_failed(reading))
        return reading->status;
    if (!(value >= 0 && value <= 1))
        return node_fail_value(reading, node, wanted);
    *(double *)to = value;
    return ATTN_OK;
}

/* attn_options: dropout_attention, dropout_residual */
static attn_status decode_where(struct reading *reading, const struct node *node, void *to)
{
    static const char *const words[] = {"attention", "residual"};
    attn_options *options = to;
    struct node list;
    node_decode_list(reading, node, "a list of \"attention\" and \"residual\"", &list);
    if (node_has_failed(reading))
        return reading->status;
    bool given[ARRAY_LENGTH(words)] = {false};
    for (size_t i = 0; i < json_array_size(list.json); i++) {
        struct node element = node_element(&list, i);
        size_t index = 0;
        node_decode_word(reading, &element, words, ARRAY_LENGTH(words), &index);
        given[index] = true;
    }
    options->dropout_attention = given[0];
    options->dropout_residual = given[1];
    json_decref(list.json);
    return reading->status;
}

/* struct envelope: has_dropout, dropout_p, and where and seed in the options */
static attn_status decode_dropout(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"p", decode_probability, offsetof(struct envelope, dropout_p), MEMBER_ALWAYS},
        {"seed", node_decode_seed, OPTION(dropout_seed), MEMBER_ALWAYS},
        {"where", decode_where, offsetof(struct envelope, request.options), MEMBER_ALWAYS},
    };
    static const struct short_form form = {
        .member = "p",
        .types = 1U << JSON_INTEGER | 1U << JSON_REAL,
        .wanted = "a number from 0 to 1, or an object with p, seed and where",
    };
    struct envelope *envelope = to;
    struct node spelt = *node;
    short_form_spell(reading, &spelt, &form);
    if (node_has_failed(reading))
        return reading->status;
    envelope->has_dropout = true;
    envelope->request.options.dropout_attention = true;
    node_decode_members(reading, &spelt, members, ARRAY_LENGTH(members), envelope);
    if (!node_find(spelt.json, "p"))
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"p\"");
    return reading->status;
}

attn_status decode_compute(struct reading *reading, const struct node *node, void *to)
{
    static const char *const words[] = {"float32", "float64", "bfloat16"};
    enum { IN_F64 = 1, IN_BF16 = 2 };
    attn_options *options = to;
    size_t index;
    node_decode_word(reading, node, words, ARRAY_LENGTH(words), &index);
    if (node_has_failed(reading))
        return reading->status;
    options->compute = index == IN_F64 ? ATTN_F64 : ATTN_F32;
    options->bf16_products = index == IN_BF16;
    return ATTN_OK;
}

static attn_status decode_step(struct reading *reading, const struct node *node, attn_steps *want)
{
    static const char *const words[] = {
#define STEP_NAME(code, name, axes, values) name,
        ATTN_STEP_LIST(STEP_NAME)
#undef STEP_NAME
    };
    if (!json_is_string(node->json))
        return node_fail_type(reading, node, "the name of a step, such as \"output\"");
    size_t index;
    if (node_decode_word(reading, node, words, ARRAY_LENGTH(words), &index) == ATTN_OK)
        *want |= ATTN_STEP_BIT(index);
    return reading->status;
}

/* On an endpoint for gradients: "query" or "weights.query.weight", with "inputs." in front or without. */
static attn_gradient gradient_named(const char *name)
{
    char path[48];
    const attn_gradient gradient = attn_gradient_from_name(name);
    snprintf(path, sizeof path, "inputs.%s", name);
    return gradient != ATTN_GRADIENT_COUNT ? gradient : attn_gradient_from_name(path);
}

/* struct envelope: a step to return, or a tensor to differentiate by */
static attn_status decode_wanted(struct reading *reading, const struct node *node, struct envelope *envelope)
{
    const char *name = json_tree_word(node->json);
    if (!envelope_is_gradients(decoder_of(reading)->kind) || !name)
        return decode_step(reading, node, &envelope->request.options.want);
    const attn_gradient gradient = gradient_named(name);
    if (gradient != ATTN_GRADIENT_COUNT) {
        envelope->of |= (uint64_t)1 << gradient;
        return ATTN_OK;
    }
    if (attn_step_from_name(name) == ATTN_STEP_COUNT)
        return node_fail_value(reading, node,
                               "the path of something to differentiate by, such as \"query\", \"masks.bias\" or "
                               "\"weights.query.weight\", or the name of a step");
    return decode_step(reading, node, &envelope->request.options.want);
}

const struct short_form names_form = {.types = 1U << JSON_STRING, .wanted = "a name, or a list of names"};

/* struct envelope: a bit for each step, and for each gradient */
static attn_status decode_return(struct reading *reading, const struct node *node, void *to)
{
    struct node spelt = *node, list;
    short_form_spell(reading, &spelt, &names_form);
    node_decode_list(reading, &spelt, names_form.wanted, &list);
    if (node_has_failed(reading))
        return reading->status;
    struct envelope *envelope = to;
    attn_steps *want = &envelope->request.options.want;
    envelope->has_return = true;
    *want = 0;
    for (size_t i = 0; i < json_array_size(list.json) && !node_has_failed(reading); i++) {
        struct node element = node_element(&list, i);
        decode_wanted(reading, &element, envelope);
    }
    if (!node_has_failed(reading) && *want == 0 && envelope->of == 0)
        node_fail(reading, node, ATTN_ERR_VALUE, "is empty: name at least one step, such as \"output\"");
    json_decref(list.json);
    return reading->status;
}

/* struct envelope: heads to send, which other systems call otherwise */
attn_status decode_heads(struct reading *reading, const struct node *node, void *to)
{
    struct envelope *envelope = to;
    if (json_is_number(node->json))
        return node_fail_type(reading, node,
                              "a list of the heads to send, or a range such as \"0-2\" (num_heads is how many there "
                              "are)");
    return decode_selection(reading, node, &envelope->lists.heads, &envelope->request.options.heads);
}

attn_status decode_queries(struct reading *reading, const struct node *node, void *to)
{
    struct envelope *envelope = to;
    return decode_selection(reading, node, &envelope->lists.queries, &envelope->request.options.queries);
}

attn_status decode_keys(struct reading *reading, const struct node *node, void *to)
{
    struct envelope *envelope = to;
    return decode_selection(reading, node, &envelope->lists.keys, &envelope->request.options.keys);
}

/* tensor_form */
attn_status decode_format(struct reading *reading, const struct node *node, void *to)
{
    static const struct choice forms[] = {
        {"nested", TENSOR_FORM_NESTED}, {"flat", TENSOR_FORM_FLAT}, {"base64", TENSOR_FORM_BASE64}, {NULL, 0}};
    return decode_choice(reading, node, forms, to);
}

/* int */
attn_status decode_digits(struct reading *reading, const struct node *node, void *to)
{
    int64_t digits = 0;
    node_decode_integer(reading, node, 1, 17, &digits);
    *(int *)to = (int)digits;
    return reading->status;
}

/* const char *: a text in the arena */
static attn_status decode_cache_name(struct reading *reading, const struct node *node, void *to)
{
    const char *text;
    size_t length;
    if (!node_string(reading, node, &text, &length))
        return node_fail_type(reading, node, "the name of a cache");
    if (memchr(text, '\0', length) != NULL)
        return node_fail_value(reading, node, "a name of letters, digits, dots, underscores and hyphens");
    const char *copy = attn_arena_copy_text(reading->arena, text, length);
    *(const char **)to = copy;
    return copy != NULL ? ATTN_OK : node_fail_memory(reading, node);
}

/* struct envelope_cache */
static attn_status decode_cache_length(struct reading *reading, const struct node *node, void *to)
{
    struct envelope_cache *cache = to;
    int64_t length = 0;
    node_decode_integer(reading, node, 0, INT64_MAX, &length);
    cache->has_length = true;
    cache->length = (size_t)length;
    return reading->status;
}

/* struct envelope_cache: a name, or {"name", "length"} */
static attn_status decode_cache(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"name", decode_cache_name, offsetof(struct envelope_cache, name), MEMBER_ALWAYS},
        {"length", decode_cache_length, 0, MEMBER_ALWAYS},
    };
    struct envelope_cache *cache = to;
    if (!json_is_object(node->json))
        return decode_cache_name(reading, node, &cache->name);
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
    if (cache->name == NULL)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"name\"");
    return reading->status;
}

/* profile and compute come first: the others take defaults from the profile and read tensors in the compute type. */
static const struct member options_members[] = {
    {"profile", decode_profile, 0, MEMBER_ALWAYS},
    {"compute", decode_compute, offsetof(struct envelope, request.options), MEMBER_ALWAYS},
    {"num_heads", decode_head_count, OPTION(num_heads), MEMBER_ALWAYS},
    {"kv_num_heads", decode_head_count, OPTION(kv_num_heads), MEMBER_ALWAYS},
    {"scale", decode_scale, offsetof(struct envelope, request.options), MEMBER_ALWAYS},
    {"softcap", node_decode_positive, OPTION(softcap), MEMBER_ALWAYS},
    {"residual", node_decode_bool, OPTION(residual), MEMBER_OF_LAYERS},
    {"rope", decode_rope, OPTION(rope), MEMBER_ALWAYS},
    {"qk_norm", decode_qk_norm, OPTION(qk_norm), MEMBER_ALWAYS},
    {"latent_norm", decode_qk_norm, OPTION(latent_norm), MEMBER_OF_LAYERS},
    {"norm", decode_norm, offsetof(struct envelope, request.options), MEMBER_OF_LAYERS},
    {"feed_forward", decode_feed_forward_options, 0, MEMBER_OF_LAYERS},
    {"branch_norm", decode_branch_norm, offsetof(struct envelope, request.options), MEMBER_OF_MODELS},
    {"residual_scale", node_decode_positive, OPTION(residual_scale), MEMBER_OF_MODELS},
    {"dropout", decode_dropout, 0, MEMBER_ALWAYS},
    {"training", node_decode_bool, offsetof(struct envelope, training), MEMBER_ALWAYS},
    {"mechanism", decode_mechanism, OPTION(mechanism), MEMBER_ALWAYS},
    {"return", decode_return, 0, MEMBER_ALWAYS},
    {"heads", decode_heads, 0, MEMBER_ALWAYS},
    {"queries", decode_queries, 0, MEMBER_ALWAYS},
    {"keys", decode_keys, 0, MEMBER_ALWAYS},
    {"format", decode_format, offsetof(struct envelope, form), MEMBER_ALWAYS},
    {"digits", decode_digits, offsetof(struct envelope, digits), MEMBER_ALWAYS},
    {"pool", decode_pool, offsetof(struct envelope, reduction), MEMBER_ALWAYS},
    {"top_k", decode_extent, offsetof(struct envelope, reduction.top_k), MEMBER_ALWAYS},
    {"dtype", decode_map_dtype, offsetof(struct envelope, reduction), MEMBER_ALWAYS},
    {"view", decode_view, 0, MEMBER_ALWAYS},
    {"alibi", decode_alibi, offsetof(struct envelope, request.options), MEMBER_ALWAYS},
    {"relative_bias", decode_relative_bias, OPTION(relative_bias), MEMBER_ALWAYS},
    {"relative_position", decode_relative_position, OPTION(relative_position), MEMBER_ALWAYS},
    {"cache", decode_cache, offsetof(struct envelope, cache), MEMBER_ALWAYS},
    {"sinks", decode_tensor, OPTION(sinks), MEMBER_ALWAYS},
    {"head_scale", decode_tensor, OPTION(head_scale), MEMBER_ALWAYS},
    {"differential", decode_tensor, OPTION(differential), MEMBER_ALWAYS},
};

const struct member_table options_table = {"options", options_members, ARRAY_LENGTH(options_members)};

attn_status decode_options(struct reading *reading, const struct node *node, void *to)
{
    struct envelope *envelope = to;
    node_decode_members(reading, node, options_members, ARRAY_LENGTH(options_members), envelope);
    attn_options *options = &envelope->request.options;
    if (envelope->training)
        options->dropout = envelope->dropout_p;
    const attn_norm_type norms[] = {options->norm, options->qk_norm, options->latent_norm};
    double *const eps[] = {&options->norm_eps, &options->qk_norm_eps, &options->latent_norm_eps};
    for (size_t n = 0; n < ARRAY_LENGTH(norms); n++)
        if (*eps[n] == 0)
            *eps[n] = envelope_default_eps(envelope->profile, norms[n], options->compute);
    return node_has_failed(reading) ? reading->status : check_shown(reading, node, envelope);
}
