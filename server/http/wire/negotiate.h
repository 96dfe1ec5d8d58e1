/*
 * negotiate.h: chooses media types and codings by Accept, Accept-Encoding, Content-Type and Content-Encoding (RFC 9110,
 * sections 8.3, 8.4 and 12.5).
 */
#ifndef HTTP_WIRE_NEGOTIATE_H
#define HTTP_WIRE_NEGOTIATE_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/bytes/coding.h"
#include "codec/bytes/media.h"

/* The most precise element of Accept that fits one media type. */
struct media_wish {
    int precision; /* 0: no element fits, 1: a star for all, 2: type and star, 3: type and subtype */
    int quality;   /* the q value in thousandths */
};

/* What the Accept lines of one request say about each media type that we can send. Begins as zero bytes. */
struct negotiation {
    bool is_given;
    struct media_wish wish[MEDIA_COUNT];
};

/* Adds one Accept line; a request may have several. Elements that are not valid are ignored. */
void negotiate_add(struct negotiation *negotiation, const char *accept);
/*
 * The offered media type (offered is a set of MEDIA_BIT) that Accept prefers: by quality, then by precision, then in
 * our own order. MEDIA_COUNT when Accept allows none. application/problem+json in Accept allows JSON too, because an
 * answer that is not an error has no other JSON type.
 */
enum media negotiate_choose(const struct negotiation *negotiation, unsigned offered);
/* Whether Accept prefers application/problem+json for errors. */
bool negotiate_prefers_problem(const struct negotiation *negotiation);

/*
 * The offered content coding (offered is a set of CODING_BIT) that Accept-Encoding prefers. CODING_IDENTITY when it
 * allows none, or is NULL because the field is missing.
 */
enum coding negotiate_coding(const char *accept_encoding, unsigned offered);
/*
 * The coding that Content-Encoding names; CODING_IDENTITY for NULL. False when it names an unknown coding or several.
 */
bool negotiate_body_coding(const char *content_encoding, enum coding *coding);

/*
 * The media type that a Content-Type names, out of read, a set of MEDIA_BIT. NULL (the field is missing) means JSON.
 * MEDIA_COUNT when the type is not in the set, or is text that is not UTF-8.
 */
enum media negotiate_body(const char *content_type, unsigned read);
/*
 * Whether programs send content_type when their user named none: the type of an HTML form (curl), or plain text in UTF-8
 * (fetch).
 */
bool negotiate_is_unnamed(const char *content_type);
/* Writes the names of a set as a list: "application/json, text/csv". Returns text. */
const char *negotiate_names(unsigned set, char *text, size_t size);

#endif
