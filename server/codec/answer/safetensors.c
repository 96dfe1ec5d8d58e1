/* safetensors.c: writes a result as a safetensors file. */
#include "codec/answer/forms.h"

#include <string.h>

#include "codec/answer/reduce.h"

enum { ENTRIES_MAX = ATTN_STEP_COUNT + 1 + ATTN_GRADIENT_COUNT };

/* Lists every output with its name. The tensors are those of the result, or without one those of the plan. */
static size_t list_entries(const struct answer *answer, const attn_tensor *tensors, struct answer_tensors more,
                           struct safetensors_entry entries[ENTRIES_MAX])
{
    size_t count = 0;
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!(answer->plan->want >> step & 1))
            continue;
        const char *name = attn_step_name((attn_step)step);
        if (reduce_keeps_top(&answer->envelope->reduction, step)) {
            attn_tensor indices = answer->envelope->reduction.top_indices;
            if (answer->result == NULL)
                indices = attn_tensor_view(NULL, ATTN_I64, tensors[step].rank, tensors[step].shape);
            entries[count++] = (struct safetensors_entry){"attention.indices", indices};
            name = "attention.weights";
        }
        entries[count++] = (struct safetensors_entry){name, tensors[step]};
    }
    for (size_t i = 0; i < more.count; i++)
        entries[count++] = more.list[i];
    return count;
}

/* Joins the text. Without memory the text is "" and out->is_ok is false. */
static struct safetensors_text make_text(const char *name, const struct chunks *text, struct chunks *out)
{
    const char *value = chunks_join(text);
    out->is_ok = out->is_ok && value != NULL;
    return (struct safetensors_text){name, value != NULL ? value : "", text->total_bytes};
}

void answer_write_safetensors(const struct answer *answer, struct answer_tensors more, const attn_runtime *runtime,
                              struct chunks *out)
{
    struct safetensors_entry entries[ENTRIES_MAX];
    struct safetensors_text texts[3];
    size_t count = list_entries(answer, answer->result->step, more, entries), text_count = 0;
    struct chunks effective = chunks_begin(out->arena), diagnostics = chunks_begin(out->arena),
                  tokens = chunks_begin(out->arena);
    answer_write_effective(answer->envelope, answer->plan, runtime, &effective);
    texts[text_count++] = make_text("effective", &effective, out);
    answer_write_diagnostics(answer->envelope, answer->plan, answer->result, &diagnostics);
    texts[text_count++] = make_text("diagnostics", &diagnostics, out);
    if (answer_has_tokens(answer->envelope)) {
        answer_write_tokens(answer->envelope, &tokens);
        texts[text_count++] = make_text("tokens", &tokens, out);
    }
    safetensors_write(entries, count, texts, text_count, out);
}

size_t answer_safetensors_bound(const struct answer *answer, struct answer_tensors more)
{
    struct safetensors_entry entries[ENTRIES_MAX];
    size_t count = list_entries(answer, answer->plan->step, more, entries);
    size_t bound = safetensors_write_bound(entries, count, NULL, 0);
    /* The facts are JSON within JSON: quotes and backslashes are escaped again. No control characters are left. */
    size_t facts = answer_facts_bound(answer->envelope, answer->plan), sum;
    return facts > SIZE_MAX / 2 || __builtin_add_overflow(bound, 2 * facts, &sum) ? SIZE_MAX : sum;
}
