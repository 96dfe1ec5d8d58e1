/*
 * lists.c: the lists of words that the code has, by name.
 */
#include "lists.h"

#include <string.h>

#include "attn/gradient.h"
#include "base/array.h"
#include "codec/model/request.h"
#include "codec/oip/parts.h"
#include "codec/request/decoder.h"
#include "forms.h"
#include "http/wire/problems.h"

const char *lists_values_of(attn_step step)
{
    static const char *const names[] = {
        [ATTN_VALUES_NUMBERS] = "numbers", [ATTN_VALUES_SCORES] = "scores", [ATTN_VALUES_FLAGS] = "flags"};
    return names[attn_step_values(step)];
}

static void list_steps(json_t *to)
{
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        json_array_append_new(to, json_string(attn_step_name((attn_step)step)));
}

static void append_results(json_t *to, model_request_kind kind)
{
    for (int result = 0; result < MODEL_RESULT_COUNT; result++)
        if (model_result_belongs((model_result_kind)result, kind))
            json_array_append_new(to, json_string(model_result_name((model_result_kind)result)));
}

static void list_model_results(json_t *to)
{
    append_results(to, MODEL_REQUEST_ATTENTION);
}

static void list_model_gradients(json_t *to)
{
    json_array_append_new(to, json_string(attn_step_name(ATTN_STEP_ATTENTION)));
    append_results(to, MODEL_REQUEST_GRADIENTS);
}

/* The path of each, and that of an input without "inputs.", too. */
static void list_gradients(json_t *to)
{
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++) {
        const char *name = attn_gradient_name((attn_gradient)gradient);
        json_array_append_new(to, json_string(name));
        if (strncmp(name, "inputs.", strlen("inputs.")) == 0)
            json_array_append_new(to, json_string(name + strlen("inputs.")));
    }
}

static void list_dtypes(json_t *to)
{
    for (int dtype = 0; dtype < ATTN_DTYPE_COUNT; dtype++)
        json_array_append_new(to, json_string(attn_dtype_name((attn_dtype)dtype)));
}

static void list_problems(json_t *to)
{
    static const char *const types[] = {
#define PROBLEM_TYPE(code, status, type, title) "/problems/" type,
        PROBLEM_LIST(PROBLEM_TYPE)
#undef PROBLEM_TYPE
    };
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        json_array_append_new(to, json_string(types[i]));
}

/* As outputs of an inference: in capitals. */
static void list_step_outputs(json_t *to)
{
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        char capitals[OIP_NAME_MAX];
        json_array_append_new(to, json_string(oip_capitals(attn_step_name((attn_step)step), capitals)));
    }
}

/* The names of all options of a request but "return", which the outputs of an inference stand for. */
static void append_options(json_t *to, const char *request)
{
    json_t *forms = forms_of(request), *name;
    const json_t *object = json_array_get(json_object_get(forms, "/options"), 0);
    size_t i;
    json_array_foreach(json_object_get(object, "members"), i, name)
    {
        if (strcmp(json_string_value(name), "return") != 0)
            json_array_append(to, name);
    }
    json_decref(forms);
}

static void list_inference_parameters(json_t *to)
{
    static const char *const own[] = {"binary_data_output", "priority", "timeout", "content_type", "headers"};
    append_options(to, "attention");
    append_options(to, "model");
    for (size_t i = 0; mask_row_at(i) != NULL; i++)
        if (mask_row_at(i)->places & MASK_AS_PARAMETER)
            json_array_append_new(to, json_string(mask_row_at(i)->name));
    for (size_t i = 0; i < ARRAY_LENGTH(own); i++)
        json_array_append_new(to, json_string(own[i]));
}

json_t *lists_of(const char *name)
{
    static const struct {
        const char *name;
        void (*list)(json_t *to);
    } lists[] = {
        {"steps", list_steps},
        {"model results", list_model_results},
        {"model gradients", list_model_gradients},
        {"gradients", list_gradients},
        {"dtypes", list_dtypes},
        {"problems", list_problems},
        {"step outputs", list_step_outputs},
        {"inference parameters", list_inference_parameters},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
        if (strcmp(lists[i].name, name) != 0)
            continue;
        json_t *words = json_array();
        lists[i].list(words);
        return words;
    }
    return NULL;
}
