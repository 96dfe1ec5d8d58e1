/*
 * docs.c: GET /docs. DOCS_FOLDER comes from the Makefile: where scripts/bundle_page.sh has put its files.
 */
#include "http/docs.h"

#include "http/embedded.h"

EMBEDDED_PAGE(docs, DOCS_FOLDER);

void docs_answer(struct request *request)
{
    const struct embedded plain = EMBEDDED_PAGE_FORM(docs_plain), gzip = EMBEDDED_PAGE_FORM(docs_gzip);
    embedded_answer(request, MEDIA_HTML, &plain, &gzip);
}
