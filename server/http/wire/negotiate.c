/* negotiate.c: reads Accept, Accept-Encoding, Content-Type and Content-Encoding. */
#include "http/wire/negotiate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* Reads a quality such as "0", "0.5" or "1.000" in thousandths. -1 for any other text. */
static int read_quality(struct text_span text)
{
    if (text.length == 0 || text.length > 5 || (text.at[0] != '0' && text.at[0] != '1'))
        return -1;
    if (text.length > 1 && text.at[1] != '.')
        return -1;
    int quality = (text.at[0] - '0') * 1000;
    for (size_t i = 2, weight = 100; i < text.length; i++, weight /= 10) {
        if (!isdigit((unsigned char)text.at[i]))
            return -1;
        quality += (text.at[i] - '0') * (int)weight;
    }
    return quality <= 1000 ? quality : -1;
}

static int quality_of(struct text_span parameters)
{
    struct text_span parameter;
    while (text_next(&parameters, ';', &parameter))
        if (parameter.length >= 2 && (parameter.at[0] == 'q' || parameter.at[0] == 'Q') && parameter.at[1] == '=')
            return read_quality((struct text_span){parameter.at + 2, parameter.length - 2});
    return 1000;
}

/* A more precise element replaces a less precise one. Of two equally precise ones, the higher quality counts. */
static void improve(struct media_wish *wish, int precision, int quality)
{
    if (precision > wish->precision || (precision == wish->precision && quality > wish->quality))
        *wish = (struct media_wish){precision, quality};
}

/* How precisely a range such as "image/" + "*" matches the media type. 0: it does not match. */
static int precision_of(struct text_span range, const char *name)
{
    const size_t type = strcspn(name, "/") + 1;
    if (text_equal(range, "*/*"))
        return 1;
    if (range.length == type + 1 && range.at[type] == '*' && strncasecmp(range.at, name, type) == 0)
        return 2;
    return text_equal_fold(range, name) ? 3 : 0;
}

void negotiate_add(struct negotiation *negotiation, const char *accept)
{
    struct text_span rest = text_span_of(accept), element, range;
    while (text_next(&rest, ',', &element)) {
        if (!text_next(&element, ';', &range))
            continue;
        negotiation->is_given = true;
        const int quality = quality_of(element);
        for (int media = 0; media < MEDIA_COUNT && quality >= 0; media++) {
            const int precision = precision_of(range, media_name((enum media)media));
            if (precision > 0)
                improve(&negotiation->wish[media], precision, quality);
        }
    }
}

static bool is_better(struct media_wish a, struct media_wish b)
{
    return a.quality > b.quality || (a.quality == b.quality && a.precision > b.precision);
}

enum media negotiate_choose(const struct negotiation *negotiation, unsigned offered)
{
    const struct media_wish any = {1, 1000}, problem = negotiation->wish[MEDIA_PROBLEM];
    struct media_wish best = {0, 0};
    enum media chosen = MEDIA_COUNT;
    for (int media = 0; media < MEDIA_COUNT; media++) {
        if (!(offered & MEDIA_BIT(media)))
            continue;
        struct media_wish wish = negotiation->is_given ? negotiation->wish[media] : any;
        if (media == MEDIA_JSON && wish.quality == 0 && problem.precision == 3)
            wish = problem;
        if (wish.quality > 0 && is_better(wish, best)) {
            best = wish;
            chosen = (enum media)media;
        }
    }
    return chosen;
}

bool negotiate_prefers_problem(const struct negotiation *negotiation)
{
    const struct media_wish *json = &negotiation->wish[MEDIA_JSON], *problem = &negotiation->wish[MEDIA_PROBLEM];
    return problem->precision == 3 && problem->quality > 0 &&
           (problem->quality > json->quality || (problem->quality == json->quality && json->precision < 3));
}

/* "x-gzip" is an old name of gzip (RFC 9110, section 8.4.1.3). */
static bool names_coding(struct text_span name, enum coding coding)
{
    return text_equal_fold(name, coding_name(coding)) || (coding == CODING_GZIP && text_equal_fold(name, "x-gzip"));
}

enum coding negotiate_coding(const char *accept_encoding, unsigned offered)
{
    struct media_wish wish[CODING_COUNT + 1] = {[CODING_IDENTITY] = {1, 1}}, best = {0, 0};
    struct text_span rest = text_span_of(accept_encoding == NULL ? "" : accept_encoding), element, name;
    while (text_next(&rest, ',', &element)) {
        if (!text_next(&element, ';', &name))
            continue;
        const int quality = quality_of(element);
        for (int coding = 0; coding <= CODING_COUNT && quality >= 0; coding++)
            if (text_equal(name, "*") || names_coding(name, (enum coding)coding))
                improve(&wish[coding], text_equal(name, "*") ? 1 : 3, quality);
    }
    enum coding chosen = CODING_IDENTITY;
    for (int coding = 0; coding <= CODING_COUNT; coding++)
        if (((offered | CODING_BIT(CODING_IDENTITY)) & CODING_BIT(coding)) && wish[coding].quality > best.quality) {
            best = wish[coding];
            chosen = (enum coding)coding;
        }
    return chosen;
}

bool negotiate_body_coding(const char *content_encoding, enum coding *coding)
{
    *coding = CODING_IDENTITY;
    if (content_encoding == NULL)
        return true;
    for (int known = 0; known <= CODING_COUNT; known++)
        if (names_coding(text_trim(text_span_of(content_encoding)), (enum coding)known)) {
            *coding = (enum coding)known;
            return true;
        }
    return false;
}

static bool is_utf8_name(struct text_span name)
{
    if (name.length >= 2 && name.at[0] == '"' && name.at[name.length - 1] == '"')
        name = (struct text_span){name.at + 1, name.length - 2};
    return text_equal_fold(name, "utf-8") || text_equal_fold(name, "utf8");
}

static bool is_utf8(struct text_span parameters)
{
    static const char charset[] = "charset=";
    const size_t length = sizeof charset - 1;
    struct text_span piece;
    while (text_next(&parameters, ';', &piece))
        if (piece.length > length && text_equal_fold((struct text_span){piece.at, length}, charset) &&
            !is_utf8_name((struct text_span){piece.at + length, piece.length - length}))
            return false;
    return true;
}

enum media negotiate_body(const char *content_type, unsigned read)
{
    struct text_span rest, name;
    if (content_type == NULL)
        return read & MEDIA_BIT(MEDIA_JSON) ? MEDIA_JSON : MEDIA_COUNT;
    rest = text_span_of(content_type);
    if (!text_next(&rest, ';', &name))
        return MEDIA_COUNT;
    for (int media = 0; media < MEDIA_COUNT; media++)
        if ((read & MEDIA_BIT(media)) && text_equal_fold(name, media_name((enum media)media)) && is_utf8(rest))
            return (enum media)media;
    return MEDIA_COUNT;
}

bool negotiate_is_unnamed(const char *content_type)
{
    struct text_span rest = text_span_of(content_type), name;
    return text_next(&rest, ';', &name) && (text_equal_fold(name, "application/x-www-form-urlencoded") ||
                                            (text_equal_fold(name, "text/plain") && is_utf8(rest)));
}

const char *negotiate_names(unsigned set, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (int media = 0; media < MEDIA_COUNT && length < size; media++)
        if (set & MEDIA_BIT(media))
            length += (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "",
                                       media_name((enum media)media));
    return text;
}
