/* media.c: chooses the functions that write an answer of a given media type. */
#include "codec/answer/forms.h"

attn_status answer_check(const struct answer *answer, enum media media, attn_error *err)
{
    if (answer->envelope->view == ENVELOPE_VIEW_NONE)
        return ATTN_OK;
    if (media != MEDIA_JSON)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/view",
                         "options.view is a form of JSON: accept application/json, or leave it out for %s",
                         media_name(media));
    return answer_check_view(answer, err);
}

size_t answer_bound(const struct answer *answer, enum media media)
{
    if (media == MEDIA_SAFETENSORS)
        return answer_safetensors_bound(answer, (struct answer_tensors){NULL, 0});
    if (media == MEDIA_CSV)
        return answer_csv_bound(answer);
    if (answer->envelope->view != ENVELOPE_VIEW_NONE)
        return answer_view_bound(answer);
    return answer_bytes_bound(answer->envelope, answer->plan);
}

void answer_write(const struct answer *answer, enum media media, const attn_runtime *runtime, struct chunks *out)
{
    if (media == MEDIA_SAFETENSORS)
        answer_write_safetensors(answer, (struct answer_tensors){NULL, 0}, runtime, out);
    else if (media == MEDIA_CSV)
        answer_write_csv(answer, out);
    else if (answer->envelope->view != ENVELOPE_VIEW_NONE)
        answer_write_view(answer, runtime, out);
    else
        answer_write_json(answer->envelope, answer->plan, answer->result, runtime, out);
}
