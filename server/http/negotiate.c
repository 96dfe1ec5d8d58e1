/*
 * negotiate.c: Accept and Content-Type.
 */
#include "http/negotiate.h"

#include <ctype.h>
#include <stddef.h>

#include "text.h"

/* "0", "0.5", "1.000" in thousandths; -1 for anything else. */
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

/* A more precise word beats a less precise one; of two equal ones the higher quality counts. */
static void improve(struct media_wish *wish, int precision, int quality)
{
    if (precision > wish->precision || (precision == wish->precision && quality > wish->quality))
        *wish = (struct media_wish){precision, quality};
}

void negotiate_add(struct negotiation *negotiation, const char *accept)
{
    struct text_span rest = text_span_of(accept), element, range;
    while (text_next(&rest, ',', &element)) {
        if (!text_next(&element, ';', &range))
            continue;
        negotiation->is_given = true;
        const int quality = quality_of(element);
        if (quality < 0)
            continue;
        const bool is_any = text_equal(range, "*/*"), is_application = text_equal_fold(range, "application/*");
        if (is_any || is_application || text_equal_fold(range, "application/json"))
            improve(&negotiation->json, is_any ? 1 : is_application ? 2 : 3, quality);
        if (is_any || is_application || text_equal_fold(range, "application/problem+json"))
            improve(&negotiation->problem, is_any ? 1 : is_application ? 2 : 3, quality);
        const bool is_text = text_equal_fold(range, "text/*");
        if (is_any || is_text || text_equal_fold(range, "text/html"))
            improve(&negotiation->html, is_any ? 1 : is_text ? 2 : 3, quality);
    }
}

bool negotiate_takes_json(const struct negotiation *negotiation)
{
    const struct media_wish *problem = &negotiation->problem;
    return !negotiation->is_given || negotiation->json.quality > 0 || (problem->precision == 3 && problem->quality > 0);
}

bool negotiate_prefers_problem(const struct negotiation *negotiation)
{
    const struct media_wish *json = &negotiation->json, *problem = &negotiation->problem;
    return problem->precision == 3 && problem->quality > 0 &&
           (problem->quality > json->quality || (problem->quality == json->quality && json->precision < 3));
}

bool negotiate_prefers_html(const struct negotiation *negotiation)
{
    const struct media_wish *json = &negotiation->json, *html = &negotiation->html;
    return html->quality > 0 &&
           (html->quality > json->quality || (html->quality == json->quality && html->precision > json->precision));
}

static bool is_utf8_name(struct text_span name)
{
    if (name.length >= 2 && name.at[0] == '"' && name.at[name.length - 1] == '"')
        name = (struct text_span){name.at + 1, name.length - 2};
    return text_equal_fold(name, "utf-8") || text_equal_fold(name, "utf8");
}

bool negotiate_is_json(const char *content_type)
{
    if (content_type == NULL)
        return true;
    static const char charset[] = "charset=";
    const size_t length = sizeof charset - 1;
    struct text_span rest = text_span_of(content_type), piece;
    if (!text_next(&rest, ';', &piece) || !text_equal_fold(piece, "application/json"))
        return false;
    while (text_next(&rest, ';', &piece))
        if (piece.length > length && text_equal_fold((struct text_span){piece.at, length}, charset) &&
            !is_utf8_name((struct text_span){piece.at + length, piece.length - length}))
            return false;
    return true;
}
