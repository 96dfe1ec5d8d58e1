/*
 * negotiate.h: Accept and Content-Type (RFC 9110, sections 8.3 and 12.5.1).
 */
#ifndef HTTP_WIRE_NEGOTIATE_H
#define HTTP_WIRE_NEGOTIATE_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/bytes/coding.h"
#include "codec/bytes/media.h"

/* The best word that Accept has for one media type. */
struct media_wish {
    int precision; /* 0: not named, 1: by a star for all, 2: by type and star, 3: by name */
    int quality;   /* in thousandths */
};

/* All that the Accept lines of one request say about what we can send. Begins as zero bytes. */
struct negotiation {
    bool is_given;
    struct media_wish wish[MEDIA_COUNT];
};

/* Takes one Accept line in; there may be several. Elements that make no sense are passed over. */
void negotiate_add(struct negotiation *negotiation, const char *accept);
/*
 * The media type of those offered (a set of MEDIA_BIT) that Accept likes best: by quality, then by how precisely it is
 * named, then in our own order. MEDIA_COUNT when it allows none. Naming application/problem+json allows JSON: an
 * answer that is no error has one JSON type only.
 */
enum media negotiate_choose(const struct negotiation *negotiation, unsigned offered);
/* Whether errors should go out as application/problem+json. */
bool negotiate_prefers_problem(const struct negotiation *negotiation);

/*
 * The content coding of those offered (a set of CODING_BIT) that Accept-Encoding likes best; when it likes none, or is
 * NULL (no such field): CODING_IDENTITY.
 */
enum coding negotiate_coding(const char *accept_encoding, unsigned offered);
/* The coding that Content-Encoding names; NULL: CODING_IDENTITY. False when it is none of ours, or several. */
bool negotiate_body_coding(const char *content_encoding, enum coding *coding);

/*
 * The media type among those read (a set of MEDIA_BIT) that a Content-Type names; NULL (no such field) is taken for
 * JSON. MEDIA_COUNT when it is another, or text that is not UTF-8.
 */
enum media negotiate_body(const char *content_type, unsigned read);
/* Whether it names the type of an HTML form, which curl and others add to every body that was given no type. */
bool negotiate_is_form(const char *content_type);
/* Writes the names of a set as a list: "application/json, text/csv". Returns text. */
const char *negotiate_names(unsigned set, char *text, size_t size);

#endif
