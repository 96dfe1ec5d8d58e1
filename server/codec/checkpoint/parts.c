/* parts.c: values, tensors and norms that the templates of an architecture name. */
#include "codec/checkpoint/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/checkpoint/expression.h"

enum { NAME_MAX_BYTES = 512 };

/* ---- values ---- */

/* A new reference to the value of the member, an expression or itself. NULL: there is none. */
static json_t *value_of(const struct model_reader *reader, const json_t *template, const char *name)
{
    json_t *value = json_object_get(template, name);
    const char *text = json_string_value(value);
    return text != NULL && text[0] == '$' ? expression_value(reader->config, 0, text + 1) : json_incref(value);
}

double model_number(const struct model_reader *reader, const json_t *template, const char *name, double otherwise)
{
    json_t *value = value_of(reader, template, name);
    const double number = json_is_number(value) ? json_number_value(value) : otherwise;
    json_decref(value);
    return number;
}

bool model_count(const struct model_reader *reader, const json_t *template, const char *name, size_t max,
                 size_t otherwise, size_t *count)
{
    const double number = model_number(reader, template, name, (double)otherwise);
    *count = number >= 0 && number <= (double)max ? (size_t)number : 0;
    if (number >= 0 && number <= (double)max && floor(number) == number)
        return true;
    const char *text = json_string_value(json_object_get(template, name));
    char member[80];
    (void)expression_member(reader->config, text != NULL ? text + 1 : name, member, sizeof member);
    return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL,
                        "config.json: %s is %g; expected a whole number from 0 to %zu", member, number, max);
}

bool model_is_true(const struct model_reader *reader, const json_t *template, const char *name)
{
    json_t *value = value_of(reader, template, name);
    const bool is = json_is_true(value);
    json_decref(value);
    return is;
}

/* ---- tensors ---- */

/* Takes the tensor of that name behind the prefix, or behind a shorter one. */
static bool try_name(struct model_reader *reader, const char *name, const char *suffix, attn_tensor *tensor,
                     bool *found)
{
    size_t length = strlen(reader->prefix);
    bool ok = true;
    *found = false;
    for (;;) {
        char path[NAME_MAX_BYTES];
        if (snprintf(path, sizeof path, "%.*s%s%s", (int)length, reader->prefix, name, suffix) < (int)sizeof path)
            ok = tensor_table_take(&reader->table, path, tensor, found, reader->outcome);
        if (!ok || *found || length == 0)
            return ok;
        do
            length--;
        while (length > 0 && reader->prefix[length - 1] != '.');
    }
}

bool model_take(struct model_reader *reader, json_t *names, const char *suffix, const char *other, attn_tensor *tensor,
                bool *found)
{
    bool ok = true;
    const size_t count = json_is_array(names) ? json_array_size(names) : 1;
    *tensor = (attn_tensor){.data = NULL};
    *found = false;
    for (size_t i = 0; i < count && !*found && ok; i++) {
        const char *name = json_string_value(json_is_array(names) ? json_array_get(names, i) : names);
        if (name == NULL || name[0] == '\0')
            continue;
        ok = try_name(reader, name, suffix, tensor, found);
        if (ok && !*found && other != NULL)
            ok = try_name(reader, name, other, tensor, found);
    }
    return ok && (!*found || tensor_align(&reader->table, tensor, reader->outcome));
}

bool model_fail_absent(const struct model_reader *reader, json_t *names, const char *suffix)
{
    const char *name = json_string_value(json_is_array(names) ? json_array_get(names, 0) : names);
    return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.60s%.150s%s", reader->prefix,
                        name != NULL ? name : "", suffix);
}

bool model_fail_shape(const struct model_reader *reader, json_t *names, const attn_tensor *tensor)
{
    char shape[ATTN_MAX_RANK * 21 + 3];
    const char *name = json_string_value(json_is_array(names) ? json_array_get(names, 0) : names);
    return outcome_fail(reader->outcome, ATTN_ERR_SHAPE, NULL, "the tensor %.120s of shape %s does not fit the model",
                        name != NULL ? name : "", attn_shape_text(shape, sizeof shape, tensor->rank, tensor->shape));
}

bool model_take_table(struct model_reader *reader, json_t *names, size_t columns, attn_tensor *table)
{
    bool found;
    bool ok = model_take(reader, names, "", NULL, table, &found);
    if (ok && !found)
        return model_fail_absent(reader, names, "");
    if (!ok)
        return ok;
    size_t shape[2] = {1, 1};
    bool fits = table->rank >= 2 && table->dtype <= ATTN_BF16;
    for (int axis = 0; fits && axis < table->rank - 2; axis++)
        fits = table->shape[axis] == 1;
    if (fits)
        memcpy(shape, table->shape + table->rank - 2, sizeof shape);
    if (!fits || shape[0] == 0 || shape[1] == 0 || (columns != 0 && shape[1] != columns))
        return model_fail_shape(reader, names, table);
    *table = attn_tensor_view(table->data, table->dtype, 2, shape);
    return true;
}

bool model_take_pair(struct model_reader *reader, json_t *names, attn_tensor *weight, attn_tensor *bias)
{
    bool found;
    bool ok = model_take(reader, names, ".weight", ".gamma", weight, &found);
    return ok && (!found || model_take(reader, names, ".bias", ".beta", bias, &found));
}

/* ---- norms ---- */

bool model_is_vector(const attn_tensor *tensor)
{
    return tensor->data == NULL || (tensor->rank == 1 && tensor->dtype <= ATTN_BF16);
}

bool model_read_norm(struct model_reader *reader, const json_t *template, struct model_norm *norm)
{
    *norm = (struct model_norm){.type = ATTN_NORM_NONE};
    if (!json_is_object(template))
        return true;
    const char *type = json_string_value(json_object_get(template, "type"));
    json_t *names = json_object_get(template, "weights");
    const float offset = (float)model_number(reader, template, "gain_offset", 0);
    norm->type = type != NULL && strcmp(type, "rms") == 0 ? ATTN_NORM_RMS : ATTN_NORM_LAYER;
    norm->eps = model_number(reader, template, "eps", 1e-5);
    bool ok = names != NULL ? model_take_pair(reader, names, &norm->weight, &norm->bias) : true;
    if (ok && names != NULL && norm->weight.data == NULL)
        return model_fail_absent(reader, names, ".weight");
    if (ok && !(model_is_vector(&norm->weight) && model_is_vector(&norm->bias)))
        return model_fail_shape(reader, names, model_is_vector(&norm->weight) ? &norm->bias : &norm->weight);
    if (ok && offset != 0)
        ok = tensor_shift(&reader->table, &norm->weight, offset, reader->outcome);
    return ok;
}

bool model_check_norm(const struct model_reader *reader, const struct model_norm *norm, size_t width)
{
    if ((norm->weight.data == NULL || norm->weight.shape[0] == width) &&
        (norm->bias.data == NULL || norm->bias.shape[0] == width))
        return true;
    return outcome_fail(reader->outcome, ATTN_ERR_SHAPE, NULL,
                        "a norm of the model has %zu features, its tokens have %zu", norm->weight.shape[0], width);
}
