/* generation_config.c: reads which heads of a model of audio align its tokens with the sound, and end tokens. */
#include <stdio.h>

#include "codec/checkpoint/description.h"
#include "codec/checkpoint/reader.h"
#include "codec/json/tree.h"

/* All heads of the second half of the layers. */
static void take_half(size_t layers, size_t heads, struct model_alignment_head *to, struct model_alignment *alignment)
{
    for (size_t layer = layers / 2; layer < layers; layer++)
        for (size_t head = 0; head < heads; head++)
            to[alignment->count++] = (struct model_alignment_head){layer, head};
}

static void take_list(const json_t *list, size_t layers, size_t heads, struct model_alignment_head *to,
                      struct model_alignment *alignment)
{
    const size_t count = json_array_size(list);
    if (count == 0 || count > layers * heads) {
        snprintf(alignment->reason, sizeof alignment->reason,
                 "alignment_heads of generation_config.json must be a list of 1 to %zu pairs [layer, head]",
                 layers * heads);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i), *layer = json_array_get(pair, 0), *head = json_array_get(pair, 1);
        const json_int_t numbers[] = {json_is_integer(layer) ? json_integer_value(layer) : -1,
                                      json_is_integer(head) ? json_integer_value(head) : -1};
        if (json_array_size(pair) != 2 || numbers[0] < 0 || numbers[1] < 0 || (size_t)numbers[0] >= layers ||
            (size_t)numbers[1] >= heads) {
            snprintf(alignment->reason, sizeof alignment->reason,
                     "alignment_heads of generation_config.json has at place %zu no head of the %zu layers of %zu", i,
                     layers, heads);
            return;
        }
        to[i] = (struct model_alignment_head){(size_t)numbers[0], (size_t)numbers[1]};
    }
    alignment->count = count;
}

static void read_alignment(const json_t *tree, bool is_json, struct model_alignment_head *to, size_t layers,
                           size_t heads, struct model_alignment *alignment)
{
    const json_t *list = json_object_get(tree, "alignment_heads");
    *alignment = (struct model_alignment){.heads = to};
    if (!is_json)
        snprintf(alignment->reason, sizeof alignment->reason, "generation_config.json is no JSON");
    else if (list == NULL || json_is_null(list))
        take_half(layers, heads, to, alignment);
    else
        take_list(list, layers, heads, to, alignment);
}

void checkpoint_add_ends(const json_t *value, struct checkpoint_model *model)
{
    const bool is_list = json_is_array(value);
    for (size_t i = 0; i < (is_list ? json_array_size(value) : 1) && model->end_count < MODEL_ENDS_MAX; i++) {
        const json_t *id = is_list ? json_array_get(value, i) : value;
        if (json_is_integer(id) && json_integer_value(id) >= 0)
            model->ends[model->end_count++] = json_integer_value(id);
    }
}

attn_status checkpoint_read_generation(struct text_span text, struct checkpoint_model *model, attn_arena *arena,
                                       struct model_alignment *alignment, attn_error *err)
{
    const struct model_stack *decoder = &model->stacks[1];
    const bool is_audio = model->stack_count == 2 && model->stacks[0].embedding.second_kernel.data != NULL;
    const size_t layers = is_audio ? decoder->layers : 0, heads = is_audio ? decoder->blocks[0].facts.dims.heads : 0;
    struct model_alignment_head *to = attn_arena_take(arena, layers * heads, sizeof *to);
    attn_arena *trees = attn_arena_create_beside(arena);
    json_error_t error;
    *alignment = (struct model_alignment){.reason = "this is no model of audio"};
    if ((is_audio && to == NULL) || trees == NULL) {
        attn_arena_destroy(trees);
        return attn_fail_no_memory(err);
    }
    json_t *tree = text.length > 0 ? json_tree_load(text.at, text.length, trees, &error) : NULL;
    const bool is_starved = tree == NULL && text.length > 0 && json_tree_is_starved();
    checkpoint_add_ends(json_object_get(tree, "eos_token_id"), model);
    if (is_audio)
        read_alignment(tree, tree != NULL || text.length == 0, to, layers, heads, alignment);
    json_decref(tree);
    attn_arena_destroy(trees);
    return is_starved ? attn_fail_no_memory(err) : ATTN_OK;
}
