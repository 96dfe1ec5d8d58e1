/*
 * pages.h: the files that are part of the program, as answers: the visualizer, the page of the documentation, and
 * openapi.json.
 *
 * server/web/ and server/docs/ are each bundled into one HTML file when the server is built (mk/bundle_page.sh).
 * Every file is embedded twice, as it is and gzipped. The answers know If-None-Match.
 */
#ifndef HTTP_PAGES_H
#define HTTP_PAGES_H

struct request;

/*
 * GET /: the visualizer when Accept prefers HTML, as browsers do. Else an index in JSON, as for curl and fetch, which
 * accept anything.
 */
void pages_answer_root(struct request *request);
/* GET /docs: a page that reads /openapi.json and lets a person try it. */
void pages_answer_docs(struct request *request);
/* GET /openapi.json */
void pages_answer_openapi(struct request *request);

#endif
