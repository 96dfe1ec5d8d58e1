/*
 * at_once.c: decides whether the I/O thread that received a request computes it.
 *
 * That takes some ten microseconds. Waking a compute thread, which then wakes this one, takes several times as long.
 * The decision comes before the body is decoded: the body is small, and its text bounds the tensors that it can describe
 * (codec/json/skim.h). A bound that is too high only sends the request to the queue.
 */
#include "codec/json/skim.h"
#include "http/steps.h"
#include "service/infer/model.h"

/* The JSON of the body. A safetensors file begins with the length of its header, in eight bytes. */
static struct text_span text_of(const struct request *request, const char *body)
{
    enum { LENGTH_BYTES = 8 };
    size_t length = request->body_bytes;
    if (request->has_json_bytes && request->json_bytes < length)
        length = request->json_bytes;
    if (request->body_media != MEDIA_SAFETENSORS || length < LENGTH_BYTES)
        return (struct text_span){body, length};
    uint64_t header = 0;
    for (size_t i = LENGTH_BYTES; i-- > 0;)
        header = header << 8 | (unsigned char)body[i];
    length -= LENGTH_BYTES;
    return (struct text_span){body + LENGTH_BYTES, header < length ? header : length};
}

/* An I/O thread never joins or expands a body, draws a picture, or looks for a layer in its file. */
bool at_once_suffices(const struct request *request)
{
    const struct chunk *piece = request->pieces.first;
    const char *body = request->body == NULL && piece != NULL && piece->next == NULL ? piece->data : request->body;
    const bool is_picture = request->answer_media == MEDIA_PNG || request->answer_media == MEDIA_SVG;
    const bool is_of_layer = request->names[0].length > 0 && !text_equal(request->names[0], MODEL_BUILT_IN);
    return request->events == NULL && request->route->keeps_to_limits && request->server->setup.instead == NULL &&
           !is_picture && !is_of_layer && request->body_coding == CODING_IDENTITY &&
           request->body_bytes <= REQUEST_AT_ONCE_MAX && body != NULL &&
           extent_is_small(text_of(request, body), request->body_bytes);
}
