/* routes.c: the table of routes, and the search for a path in it. */
#include "http/route.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "service/cache/request.h"
#include "service/endpoints.h"
#include "service/infer/model.h"
#include "service/metrics.h"
#include "service/registry/version.h"

/* ---- the table ---- */

enum {
    JSON = MEDIA_BIT(MEDIA_JSON),
    EVENTS = MEDIA_BIT(MEDIA_EVENTS), /* of what takes long */
    HTML = MEDIA_BIT(MEDIA_HTML),
    FILES = JSON | MEDIA_BIT(MEDIA_SCRIPT) | MEDIA_BIT(MEDIA_TYPESCRIPT),
    METRICS = MEDIA_BIT(MEDIA_METRICS),
    BINARY = MEDIA_BIT(MEDIA_BINARY),
    TENSORS = JSON | MEDIA_BIT(MEDIA_SAFETENSORS),
    SOUND = MEDIA_BIT(MEDIA_WAV),
    RESULTS = TENSORS | EVENTS | MEDIA_BIT(MEDIA_CSV) | MEDIA_BIT(MEDIA_PNG) | MEDIA_BIT(MEDIA_SVG)
};

/* Whether pages of every origin may use a path, whatever its name. */
static bool is_any(struct text_span name)
{
    (void)name;
    return true;
}

static bool is_built_in(struct text_span name)
{
    return text_equal(name, MODEL_BUILT_IN);
}

static const struct route routes[] = {
    {"/v1/attention", "POST", RESULTS, .service = attend_attention, .reads = TENSORS, .takes_parameters = true,
     .keeps_to_limits = true, .is_open = is_any},
    {"/v1/multi-head-attention", "POST", RESULTS, .service = attend_layer, .reads = TENSORS, .takes_parameters = true,
     .keeps_to_limits = true, .is_open = is_any},
    {"/v1/attention/gradients", "POST", TENSORS | EVENTS, .service = gradients_attention, .reads = TENSORS,
     .is_open = is_any},
    {"/v1/multi-head-attention/gradients", "POST", TENSORS | EVENTS, .service = gradients_layer, .reads = TENSORS,
     .is_open = is_any},
    {"/v1/layers", "GET", JSON, .service = layers_list, .takes_parameters = true},
    {"/v1/layers/{name}", "GET", TENSORS, .service = layers_get},
    {"/v1/layers/{name}", "PUT", JSON, .service = layers_put, .reads = TENSORS, .keeps_body = true},
    {"/v1/layers/{name}", "DELETE", JSON, .service = layers_remove},
    {"/v1/layers/{name}/attention", "POST", RESULTS, .service = attend_kept, .reads = TENSORS,
     .takes_parameters = true},
    {"/v1/layers/{name}/gradients", "POST", TENSORS | EVENTS, .service = gradients_kept, .reads = TENSORS},
    {"/v1/models", "GET", JSON, .service = model_list_all},
    {"/v1/models/{model}", "GET", JSON, .service = model_list_one, .is_open = is_own_model},
    {"/v1/models/{model}/tokens", "POST", JSON, .service = model_tokens_read, .reads = JSON, .is_open = is_own_model},
    {"/v1/models/{model}/attention", "POST", TENSORS | EVENTS | MEDIA_BIT(MEDIA_PNG) | MEDIA_BIT(MEDIA_SVG),
     .service = attend_model, .reads = TENSORS | SOUND, .takes_parameters = true, .is_open = is_own_model},
    {"/v1/models/{model}/gradients", "POST", TENSORS | EVENTS, .service = gradients_model, .reads = TENSORS,
     .is_open = is_own_model},
    {"/v1/caches", "GET", JSON, .service = caches_list},
    {"/v1/caches/{name}", "GET", JSON, .service = caches_get},
    {"/v1/caches/{name}", "DELETE", JSON, .service = caches_remove, .right = RIGHT_COMPUTE},
    {"/livez", "GET", JSON, .answer = probes_answer_live, .ignores_accept = true, .is_open = is_any},
    {"/readyz", "GET", JSON, .answer = probes_answer_ready, .ignores_accept = true, .is_open = is_any},
    {"/metrics", "GET", METRICS, .answer = probes_answer_metrics, .ignores_accept = true, .right = RIGHT_METRICS},
    {"/version", "GET", JSON, .answer = probes_answer_version, .is_open = is_any},
    {"/openapi.json", "GET", JSON, .answer = pages_answer_openapi, .is_open = is_any},
    {"/docs", "GET", HTML, .answer = pages_answer_docs, .ignores_accept = true, .is_open = is_any},
    {"/web/{folder}/{file}", "GET", FILES, .answer = pages_answer_file, .ignores_accept = true, .is_open = is_any},
    {"/v2", "GET", JSON, .answer = probes_answer_v2, .ignores_accept = true},
    {"/v2/", "GET", JSON, .answer = probes_answer_v2, .ignores_accept = true},
    {"/v2/health/live", "GET", JSON, .answer = probes_answer_live, .ignores_accept = true, .is_open = is_any},
    {"/v2/health/ready", "GET", JSON, .answer = probes_answer_v2_ready, .ignores_accept = true, .is_open = is_any},
    {"/v2/models", "GET", JSON, .service = infer_models, .ignores_accept = true},
    {"/v2/models/stats", "GET", JSON, .service = infer_all_statistics, .ignores_accept = true},
    {"/v2/models/{model}", "GET", JSON, .service = infer_metadata, .ignores_accept = true, .is_open = is_built_in},
    {"/v2/models/{model}/ready", "GET", JSON, .service = infer_model_ready, .ignores_accept = true,
     .is_open = is_built_in},
    {"/v2/models/{model}/config", "GET", JSON, .service = infer_config, .ignores_accept = true, .is_open = is_built_in},
    {"/v2/models/{model}/stats", "GET", JSON, .service = infer_statistics, .ignores_accept = true,
     .is_open = is_built_in},
    {"/v2/models/{model}/infer", "POST", JSON | EVENTS, .service = infer_run, .reads = JSON | BINARY,
     .ignores_accept = true, .keeps_to_limits = true, .has_hints = true, .is_open = is_built_in},
    {"/v2/models/{model}/versions/{version}", "GET", JSON, .service = infer_metadata, .ignores_accept = true,
     .is_open = is_built_in},
    {"/v2/models/{model}/versions/{version}/ready", "GET", JSON, .service = infer_model_ready, .ignores_accept = true,
     .is_open = is_built_in},
    {"/v2/models/{model}/versions/{version}/config", "GET", JSON, .service = infer_config, .ignores_accept = true,
     .is_open = is_built_in},
    {"/v2/models/{model}/versions/{version}/stats", "GET", JSON, .service = infer_statistics, .ignores_accept = true,
     .is_open = is_built_in},
    {"/v2/models/{model}/versions/{version}/infer", "POST", JSON | EVENTS, .service = infer_run, .reads = JSON | BINARY,
     .ignores_accept = true, .keeps_to_limits = true, .has_hints = true, .is_open = is_built_in},
    {"/v2/repository/index", "POST", JSON, .service = infer_index, .reads = JSON | BINARY, .ignores_accept = true},
    {"/v2/repository/models/{model}/load", "POST", JSON, .service = infer_load, .reads = JSON, .ignores_accept = true,
     .right = RIGHT_LAYERS},
    {"/v2/repository/models/{model}/unload", "POST", JSON, .service = infer_unload, .reads = JSON,
     .ignores_accept = true, .right = RIGHT_LAYERS},
    {"/", "GET", JSON | HTML, .answer = pages_answer_root, .ignores_accept = true, .is_open = is_any},
};

enum { ROUTES = ARRAY_LENGTH(routes), WANTED_MAX = 64 };

unsigned routes_right(const struct route *route)
{
    if (route->right != 0)
        return route->right;
    if (strcmp(route->method, "PUT") == 0 || strcmp(route->method, "DELETE") == 0)
        return RIGHT_LAYERS;
    return route->service != NULL ? RIGHT_COMPUTE : RIGHT_NONE;
}

const struct route *routes_all(size_t *count)
{
    _Static_assert((int)ROUTES < (int)METRICS_ROUTES_MAX, "every route has its counters");
    *count = ROUTES;
    return routes;
}

static bool is_method(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 || (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* The number of characters before the next slash or the end. */
static size_t segment_length(const char *at, const char *end)
{
    const char *slash = memchr(at, '/', (size_t)(end - at));
    return (size_t)((slash != NULL ? slash : end) - at);
}

/*
 * The part of the pattern behind the segments that the path fits: "" when the path fits all of it. NULL: the path does
 * not fit. names receives the segments that stand for "{…}".
 */
static const char *rest_of(struct text_span path, const char *pattern, struct text_span names[ROUTE_NAMES_MAX])
{
    const char *at = path.at, *end = path.at + path.length;
    size_t named = 0;
    for (; *pattern != '\0'; pattern++) {
        if (at == end)
            return *pattern == '/' ? pattern : NULL;
        if (*pattern != '{') {
            if (*at++ != *pattern)
                return NULL;
            continue;
        }
        names[named] = (struct text_span){at, segment_length(at, end)};
        if (names[named].length == 0)
            return NULL;
        at += names[named++].length;
        pattern = strchr(pattern, '}');
    }
    return at == end ? pattern : NULL;
}

static bool fits(struct text_span path, const char *pattern, struct text_span names[ROUTE_NAMES_MAX])
{
    const char *rest = rest_of(path, pattern, names);
    return rest != NULL && *rest == '\0';
}

const struct route *routes_find(struct text_span path, const char *method, struct text_span names[ROUTE_NAMES_MAX])
{
    for (size_t i = 0; i < ROUTES; i++) {
        struct text_span found[ROUTE_NAMES_MAX] = {{"", 0}, {"", 0}};
        if (!is_method(&routes[i], method) || !fits(path, routes[i].path, found))
            continue;
        memcpy(names, found, sizeof found);
        return &routes[i];
    }
    return NULL;
}

bool routes_are_open(struct text_span path)
{
    struct text_span names[ROUTE_NAMES_MAX] = {{NULL, 0}};
    for (size_t i = 0; i < ROUTES; i++)
        if (fits(path, routes[i].path, names))
            return routes[i].is_open != NULL && routes[i].is_open(names[0]);
    return false;
}

const char *routes_methods(struct text_span path, char *text, size_t size)
{
    static const char *const methods[][2] = {
        {"GET", "GET, HEAD, "}, {"POST", "POST, "}, {"PUT", "PUT, "}, {"DELETE", "DELETE, "}};
    struct text_span names[ROUTE_NAMES_MAX];
    size_t length = 0;
    text[0] = '\0';
    for (size_t m = 0; m < ARRAY_LENGTH(methods); m++) {
        bool has = false;
        for (size_t i = 0; i < ROUTES; i++)
            has |= strcmp(routes[i].method, methods[m][0]) == 0 &&
                   (text_equal(path, "*") || fits(path, routes[i].path, names));
        if (has && length < size)
            length += (size_t)snprintf(text + length, size - length, "%s", methods[m][1]);
    }
    if (length > 0 && length < size)
        snprintf(text + length, size - length, "OPTIONS");
    return text;
}

/* ---- the nearest paths ---- */

enum { FAR = 1000, LISTED_MAX = 3, TYPING_ERRORS = 2 };

/* A ranking says how far each route is from the path that was asked. */
static size_t least_of(const size_t ranking[ROUTES])
{
    size_t least = FAR;
    for (size_t i = 0; i < ROUTES; i++)
        least = ranking[i] < least ? ranking[i] : least;
    return least;
}

/* Lists the nearest routes, none of them farther than most. Returns text. */
static const char *list(const size_t ranking[ROUTES], size_t most, char *text, size_t size)
{
    size_t length = 0, listed = 0;
    text[0] = '\0';
    for (size_t distance = least_of(ranking); distance <= most && distance < FAR && listed < LISTED_MAX; distance++)
        for (size_t i = 0; i < ROUTES && length < size; i++)
            if (ranking[i] == distance && listed++ < LISTED_MAX)
                length += (size_t)snprintf(text + length, size - length, "%s%s %s", length > 0 ? ", " : "",
                                           routes[i].method, routes[i].path);
    return text;
}

static size_t slashes_of(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '/';
    return count;
}

/* Routes of a method that go on behind the path, by the number of segments. NULL: of all methods. */
static void rank_below(size_t ranking[ROUTES], struct text_span path, const char *method)
{
    struct text_span names[ROUTE_NAMES_MAX];
    for (size_t i = 0; i < ROUTES; i++) {
        const char *rest = rest_of(path, routes[i].path, names);
        const bool is_below =
            rest != NULL && strcmp(rest, "/") != 0 && (method == NULL || is_method(&routes[i], method));
        ranking[i] = is_below ? slashes_of(rest) : FAR;
    }
}

const char *routes_below(struct text_span path, const char *method, char *text, size_t size)
{
    size_t ranking[ROUTES];
    rank_below(ranking, path, method);
    return list(ranking, FAR, text, size);
}

static bool is_alike(size_t edits, size_t length)
{
    return 3 * edits < length;
}

/* Cuts the first segment with its slash off. False: there is none left. */
static bool next_segment(const char **path, char segment[WANTED_MAX])
{
    if (**path != '/')
        return false;
    const size_t length = strcspn(*path + 1, "/");
    snprintf(segment, WANTED_MAX, "%.*s", (int)length, *path + 1);
    *path += 1 + length;
    return true;
}

/* The edits in the segments. A name costs nothing. FAR: another number of segments, or one of them is another word. */
static size_t edits_by_segment(const char *path, const char *pattern)
{
    char asked[WANTED_MAX], known[WANTED_MAX];
    size_t sum = 0;
    while (next_segment(&pattern, known)) {
        if (!next_segment(&path, asked) || asked[0] == '\0')
            return FAR;
        const size_t edits = known[0] == '{' ? 0 : nearest_distance(asked, known);
        if (edits > 0 && !is_alike(edits, strlen(known)))
            return FAR;
        sum += edits;
    }
    return *path == '\0' ? sum : FAR;
}

static size_t least_edits(const char *path)
{
    size_t edits[ROUTES];
    for (size_t i = 0; i < ROUTES; i++)
        edits[i] = nearest_distance(path, routes[i].path);
    return least_of(edits);
}

static size_t length_without_names(const char *pattern)
{
    size_t length = 0;
    for (; *pattern != '\0'; pattern++) {
        pattern = *pattern == '{' ? strchr(pattern, '}') : pattern;
        length += *pattern != '}';
    }
    return length;
}

/* By edits. */
static void rank_alike(size_t ranking[ROUTES], const char *path)
{
    for (size_t i = 0; i < ROUTES; i++) {
        const size_t edits = nearest_distance(path, routes[i].path),
                     by_segment = edits_by_segment(path, routes[i].path);
        ranking[i] = is_alike(edits, length_without_names(routes[i].path)) ? edits : FAR;
        if (by_segment < ranking[i])
            ranking[i] = by_segment;
    }
}

/* Words of other systems whose spelling differs much from ours. A segment that contains word is replaced by segment. */
static const struct {
    const char *word, *segment; /* a segment that starts with a slash replaces the whole path */
} known_words[] = {
    {"mha", "multi-head-attention"},
    {"multi", "multi-head-attention"},
    {"sdpa", "attention"},
    {"scaled", "attention"},
    {"attn", "attention"},
    {"predict", "/v2/models/{model}/infer"},
    {"infer", "/v2/models/{model}/infer"},
    {"tokenize", "/v1/models/{model}/tokens"},
    {"health", "/readyz"},
};

static bool has_word(const char *segment, size_t length, const char *word)
{
    const size_t size = strlen(word);
    for (size_t at = 0; at + size <= length; at++)
        if (text_starts_fold(segment + at, word))
            return true;
    return false;
}

/* Whether the path contains one of those words. wanted receives the path with the segment replaced. */
static bool translate(const char *path, char wanted[WANTED_MAX])
{
    for (size_t i = 0; i < ARRAY_LENGTH(known_words); i++)
        for (const char *at = path; *at == '/'; at += 1 + strcspn(at + 1, "/")) {
            const size_t length = strcspn(at + 1, "/");
            const char *segment = known_words[i].segment;
            if (!has_word(at + 1, length, known_words[i].word))
                continue;
            if (segment[0] == '/')
                snprintf(wanted, WANTED_MAX, "%s", segment);
            else
                snprintf(wanted, WANTED_MAX, "%.*s%s%s", (int)(at + 1 - path), path, segment, at + 1 + length);
            return true;
        }
    return false;
}

/* The path without its last segment. */
static struct text_span parent_of(struct text_span path)
{
    const char *slash = memrchr(path.at, '/', path.length);
    return (struct text_span){path.at, slash != NULL ? (size_t)(slash - path.at) : 0};
}

/* The search goes from what is surely meant to what is only alike; at last it leads to the documentation. */
const char *routes_nearest(struct text_span path, char *text, size_t size)
{
    char asked[WANTED_MAX], wanted[WANTED_MAX];
    size_t ranking[ROUTES];
    const bool has_end = path.length > 0 && path.at[path.length - 1] == '/';
    snprintf(asked, sizeof asked, "%.*s", (int)(path.length < WANTED_MAX ? path.length : WANTED_MAX), path.at);
    rank_below(ranking, has_end ? parent_of(path) : path, NULL);
    if (least_of(ranking) < FAR)
        return list(ranking, FAR, text, size);
    rank_alike(ranking, asked);
    if (least_edits(asked) > TYPING_ERRORS && translate(asked, wanted))
        rank_alike(ranking, wanted);
    if (least_of(ranking) < FAR)
        return list(ranking, least_of(ranking) + 1, text, size);
    for (struct text_span above = parent_of(path); above.length > 0; above = parent_of(above)) {
        rank_below(ranking, above, NULL);
        if (least_of(ranking) < FAR)
            return list(ranking, FAR, text, size);
    }
    snprintf(text, size, "GET /docs, GET /openapi.json");
    return text;
}
