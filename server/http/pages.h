/*
 * pages.h: answers with files that are embedded in the program: the visualizer, the page of the documentation, and
 * openapi.json.
 *
 * server/web/ and server/docs/ are each bundled into one HTML file when the server is built (mk/bundle_page.sh). Every
 * file is embedded twice: plain and gzipped. The answers support If-None-Match.
 */
#ifndef HTTP_PAGES_H
#define HTTP_PAGES_H

struct request;

/*
 * GET /: the visualizer when Accept prefers HTML, as browsers do. Any other client, such as curl and fetch, gets an
 * index in JSON.
 */
void pages_answer_root(struct request *request);
/* GET /docs: a page that shows /openapi.json and sends requests for its reader. */
void pages_answer_docs(struct request *request);
/*
 * GET /web/{folder}/{file}: what the visualizer fetches when it is wanted, such as the texts of another language, and
 * the module for pages of others. Its folder is the version: of 0.2.0, "0.2.0" never changes, and "0.2" is asked for anew.
 */
void pages_answer_file(struct request *request);
/* GET /openapi.json */
void pages_answer_openapi(struct request *request);

#endif
