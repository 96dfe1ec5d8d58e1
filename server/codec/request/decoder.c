/* decoder.c: opens a document and puts a marker for each tensor beside it into the tree, at the tensor's path. */
#include "codec/request/decoder.h"

#include <assert.h>
#include <string.h>

#include "codec/words/words.h"

struct decoder decoder_begin(envelope_kind kind, const attn_dtype *compute, attn_arena *arena, attn_error *err)
{
    static const char *const elsewhere[] = {
        [MEMBER_OF_LAYERS] = "belongs to an attention layer: send it to /v1/multi-head-attention",
        [MEMBER_OF_GRADIENTS] = "belongs to gradients: send it to the path that ends in /gradients",
        [MEMBER_OF_MODELS] = "belongs to the layers of a whole model (--model)",
        [MEMBER_OF_ATTENTION] = "belongs to attention without weights or gradients: send it to /v1/attention",
    };
    unsigned scopes = 0;
    if (envelope_is_layer(kind))
        scopes |= 1U << MEMBER_OF_LAYERS;
    if (envelope_is_gradients(kind))
        scopes |= 1U << MEMBER_OF_GRADIENTS;
    if (kind == ENVELOPE_ATTENTION)
        scopes |= 1U << MEMBER_OF_ATTENTION;
    return (struct decoder){
        .reading = {.arena = arena, .scopes = scopes, .elsewhere = elsewhere, .foreign = request_words, .err = err},
        .kind = kind,
        .compute = compute,
        .texts_place = "labels of vectors are \"tokens\", and a whole model takes texts: POST "
                       "/v1/models/{model}/attention"};
}

bool path_is_in(const char *path, const char *section)
{
    const size_t length = strlen(section);
    return strncmp(path, section, length) == 0 && (path[length] == '.' || path[length] == '\0');
}

enum { CHOICES_MAX = 16 };

attn_status decode_choice(struct reading *reading, const struct node *node, const struct choice *choices, void *to)
{
    const char *words[CHOICES_MAX];
    size_t index = 0, count = 0;
    for (; choices[count].word != NULL; count++) {
        assert(count < CHOICES_MAX);
        words[count] = choices[count].word;
    }
    if (node_decode_word(reading, node, words, count, &index) == ATTN_OK)
        memcpy(to, &choices[index].value, sizeof choices[index].value);
    return reading->status;
}

attn_status decode_opposite(struct reading *reading, const struct node *node, void *to)
{
    bool given = true;
    node_decode_bool(reading, node, &given);
    *(bool *)to = !given;
    return reading->status;
}

attn_status decode_not_negative(struct reading *reading, const struct node *node, void *to)
{
    static const char *const wanted = "a number of at least 0";
    node_decode_number(reading, node, wanted, to);
    return *(double *)to >= 0 ? reading->status : node_fail_value(reading, node, wanted);
}

attn_status decode_count(struct reading *reading, const struct node *node, int64_t low, int64_t high, size_t *to)
{
    int64_t count = 0;
    node_decode_integer(reading, node, low, high, &count);
    *to = (size_t)count;
    return reading->status;
}

enum { PATH_DEPTH_MAX = 8 }; /* levels of a path; the deepest known path has 7 */

/* The object named node->name. It is made when the tree has none. */
static attn_status enter_object(struct decoder *decoder, const json_t *parent, struct node *node, const char *path)
{
    node->json = node_find(parent, node->name);
    if (json_is_object(node->json))
        return ATTN_OK;
    if (node->json)
        return node_fail(&decoder->reading, node, ATTN_ERR_FIELD, "is no object that the tensor \"%s\" could be in",
                         path);
    node->json = json_object();
    return node->json ? ATTN_OK : node_fail_memory(&decoder->reading, node);
}

static attn_status put_marker(struct decoder *decoder, json_t *parent, const struct node *node, size_t number)
{
    if (node_find(parent, node->name))
        return node_fail(&decoder->reading, node, ATTN_ERR_FIELD, "is given twice: a binary tensor has the same name");
    json_t *marker = json_pack("[I]", (json_int_t)decoder->reading.skim->lifted_count + (json_int_t)number);
    return json_object_set_new(parent, node->name, marker) == 0 ? ATTN_OK : node_fail_memory(&decoder->reading, node);
}

/* Goes down from the root along names: a copy of the path, which is cut at its dots. */
static attn_status attach(struct decoder *decoder, json_t *tree, char *names, size_t number)
{
    const char *path = decoder->attachments[number].path;
    struct node way[PATH_DEPTH_MAX + 1] = {{.json = tree}};
    for (size_t depth = 1; depth <= PATH_DEPTH_MAX; depth++) {
        char *dot = strchr(names, '.');
        if (dot)
            *dot = '\0';
        json_t *parent = way[depth - 1].json;
        way[depth] = (struct node){.parent = &way[depth - 1], .name = names};
        if (!dot)
            return put_marker(decoder, parent, &way[depth], number);
        bool is_new = !node_find(parent, names);
        if (enter_object(decoder, parent, &way[depth], path) != ATTN_OK)
            return decoder->reading.status;
        if (is_new && json_object_set_new(parent, names, way[depth].json) != 0)
            return node_fail_memory(&decoder->reading, &way[depth]);
        names = dot + 1;
    }
    return node_fail(&decoder->reading, &way[1], ATTN_ERR_FIELD, "has no member as deep as the tensor \"%.80s\"", path);
}

static attn_status attach_all(struct decoder *decoder, json_t *tree, size_t count)
{
    const struct node root = {.json = tree};
    const bool is_of_model = decoder->reading.scopes >> MEMBER_OF_MODELS & 1; /* its experts may be many */
    if (count > ENVELOPE_ATTACHMENTS_MAX && !is_of_model)
        return node_fail(&decoder->reading, &root, ATTN_ERR_TOO_LARGE,
                         "has %zu binary tensors; at most %d are possible", count, ENVELOPE_ATTACHMENTS_MAX);
    if (!json_is_object(tree)) /* decode_root refuses it */
        return ATTN_OK;
    for (size_t i = 0; i < count && !node_has_failed(&decoder->reading); i++) {
        const char *path = decoder->attachments[i].path;
        char *names = attn_arena_copy_text(decoder->reading.arena, path, strlen(path));
        (void)(names ? attach(decoder, tree, names, i) : node_fail_memory(&decoder->reading, &root));
    }
    return decoder->reading.status;
}

attn_status decoder_open(struct decoder *decoder, const struct envelope_source *source, struct document *document)
{
    const bool is_bare = source->length == 0 && source->count > 0;
    const char *text = is_bare ? "{}" : source->text;
    const size_t length = is_bare ? strlen(text) : source->length;
    decoder->reading.skim = &document->skim;
    decoder->attachments = source->attachments;
    struct reading *reading = &decoder->reading;
    if (node_note(reading, document_read(text, length, reading->arena, document, reading->err)) == ATTN_OK)
        attach_all(decoder, document->tree, source->count);
    return reading->status;
}

attn_status decode_elements(struct reading *reading, const struct node *node, const struct element_list *of,
                            void **items, size_t *count)
{
    struct node list;
    node_decode_list(reading, node, of->wanted, &list);
    *count = json_array_size(list.json);
    if (*count > of->most)
        node_fail(reading, node, ATTN_ERR_TOO_LARGE, "has %zu %s; at most %zu are possible", *count, of->name,
                  of->most);
    *items = node_take(reading, node, *count, of->bytes);
    for (size_t i = 0; i < *count && !node_has_failed(reading); i++) {
        const struct node element = node_element(&list, i);
        node_note(reading, of->decode(reading, &element, (char *)*items + i * of->bytes));
    }
    json_decref(list.json);
    return reading->status;
}
