/*
 * page.h: GET /: the visualizer for browsers, an index in JSON for programs.
 *
 * server/web/ is bundled into one HTML file when the server is built (scripts/bundle_page.sh) and embedded twice, as it
 * is and gzipped.
 */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

struct request;

/* HTML when Accept prefers it (a browser), else the index: curl and fetch ask for anything. Knows If-None-Match. */
void page_answer(struct request *request);

#endif
