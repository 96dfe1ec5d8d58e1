/*
 * docs.h: GET /docs: a page that reads /openapi.json and lets a person try it.
 *
 * server/docs/ is bundled into one HTML file when the server is built (scripts/bundle_page.sh), and embedded.
 */
#ifndef HTTP_DOCS_H
#define HTTP_DOCS_H

struct request;

void docs_answer(struct request *request);

#endif
