/*
 * page.c: GET /: the visualizer for browsers, an index in JSON for programs.
 *
 * PAGE_FOLDER comes from the Makefile: where scripts/bundle_page.sh has put its files.
 */
#include "http/page.h"

#include "http/embedded.h"
#include "http/request.h"

EMBEDDED_PAGE(page, PAGE_FOLDER);

void page_answer(struct request *request)
{
    const struct embedded plain = EMBEDDED_PAGE_FORM(page_plain), gzip = EMBEDDED_PAGE_FORM(page_gzip);
    if (request->answer_media == MEDIA_HTML) {
        embedded_answer(request, MEDIA_HTML, &plain, &gzip);
        return;
    }
    health_write_index(reply_begin(request, MHD_HTTP_OK, MEDIA_JSON));
    request->reply.is_negotiated = true;
}
