/*
 * embedded.c: files that are part of the program, plain and gzipped, as answers.
 */
#include "http/embedded.h"

#include "http/request.h"

void embedded_answer(struct request *request, enum media media, const struct embedded *plain,
                     const struct embedded *gzip)
{
    const enum coding coding = negotiate_coding(request->fields.accept_encoding, CODING_BIT(CODING_GZIP));
    const struct embedded *chosen = coding == CODING_GZIP ? gzip : plain;
    reply_constant(request, media, chosen->text);
    request->reply.coding = coding;
    request->reply.fields = chosen->fields;
    request->reply.is_negotiated = true;
    if (text_names_tag(request->fields.if_none_match, chosen->tag)) {
        request->reply.status = MHD_HTTP_NOT_MODIFIED;
        request->reply.content_type = NULL;
    }
}
