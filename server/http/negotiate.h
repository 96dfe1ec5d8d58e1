/*
 * negotiate.h: Accept and Content-Type (RFC 9110, sections 8.3 and 12.5.1).
 */
#ifndef HTTP_NEGOTIATE_H
#define HTTP_NEGOTIATE_H

#include <stdbool.h>

/* The best word that Accept has for one media type. */
struct media_wish {
    int precision; /* 0: not named, 1: by a star for all, 2: by type and star, 3: by name */
    int quality;   /* in thousandths */
};

/* All that the Accept lines of one request say about what we can send. Begins as zero bytes. */
struct negotiation {
    bool is_given;
    struct media_wish json, problem, html;
};

/* Takes one Accept line in; there may be several. Elements that make no sense are passed over. */
void negotiate_add(struct negotiation *negotiation, const char *accept);
/* Naming application/problem+json will do: it is JSON, and an answer that is no error has one type only. */
bool negotiate_takes_json(const struct negotiation *negotiation);
/* Whether errors should go out as application/problem+json. */
bool negotiate_prefers_problem(const struct negotiation *negotiation);

/* Whether Accept would rather have text/html than JSON, as browsers say; one that takes anything would not. */
bool negotiate_prefers_html(const struct negotiation *negotiation);

/* Whether a body of this Content-Type is JSON in UTF-8; NULL (no such field) is taken for it. */
bool negotiate_is_json(const char *content_type);

#endif
