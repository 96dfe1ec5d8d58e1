/* short_form.c: puts the long form of a member in place of its short one. */
#include "codec/json/node.h"

static bool is_long(const struct node *node, const struct short_form *form)
{
    if (form->member == NULL)
        return json_is_array(node->json);
    return json_is_object(node->json) && !(form->takes_tensor && node_find(node->json, "shape"));
}

/* A tensor beside the text stands in the tree as a list with a marker. */
static bool is_short(const struct reading *reading, const struct node *node, const struct short_form *form)
{
    size_t attachment;
    if (form->takes_tensor && (json_is_object(node->json) || node_attached(reading, node, &attachment)))
        return true;
    return form->types >> json_typeof(node->json) & 1 && !node_attached(reading, node, &attachment);
}

static json_t *long_form_of(const struct node *node, const struct short_form *form)
{
    if (form->has_switch && json_is_true(node->json))
        return json_object();
    return form->member != NULL ? json_pack("{s:O}", form->member, node->json) : json_pack("[O]", node->json);
}

attn_status short_form_spell(struct reading *reading, struct node *node, const struct short_form *form)
{
    json_t *object = node->parent->json;
    if (node_has_failed(reading) || is_long(node, form))
        return reading->status;
    if (form->has_switch && json_is_false(node->json)) {
        node->json = NULL;
        return json_object_del(object, node->name) == 0 ? ATTN_OK : node_fail_memory(reading, node);
    }
    if (!is_short(reading, node, form) && !(form->has_switch && json_is_true(node->json)))
        return node_fail_type(reading, node, form->wanted);
    json_t *spelt = long_form_of(node, form);
    if (json_object_set_new(object, node->name, spelt) != 0) /* fails without memory, also for spelt */
        return node_fail_memory(reading, node);
    node->json = spelt;
    node->is_spelt = true;
    return ATTN_OK;
}
