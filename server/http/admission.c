/*
 * admission.c: decides on the header alone, before the body is read, whether a request is admitted.
 */
#include "http/admission.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/name.h"
#include "http/reply.h"
#include "http/routes.h"
#include "http/wire/authority.h"
#include "http/wire/cors.h"
#include "http/wire/framing.h"
#include "service/registry/layer/keeper.h"

/* The limit of the first line and the fields together. Proxies allow as much, and the library has room for more. */
enum { HEADER_MAX = 32 << 10 };

enum { NAMES_MAX = 256, PARAMETERS_MAX = 16 };

/* Uses the client's own id if it holds only harmless characters, and is no API key, because ids are logged. */
static void take_id(struct request *request)
{
    struct keys *keys = request->server->setup.keys;
    const char *given = request->fields.request_id;
    if (given != NULL && name_is_valid(given, strlen(given), REQUEST_ID_MAX) &&
        (keys == NULL || !keys_knows(keys, given)))
        text_copy(request->id, sizeof request->id, given);
}

/* A refusal sets the status of the reply. */
static bool is_refused(const struct request *request)
{
    return request->reply.status != 0;
}

/*
 * Whether the framing of the request is valid. False: the reply refuses the request and the connection is closed,
 * because the framing of what follows cannot be trusted.
 */
static bool is_sound(struct request *request, const char *method, const char *version)
{
    const char *refusal = framing_refuses(MHD_VERSION, request->connection->mhd, method, request->target, version);
    if (refusal == NULL)
        refusal = guard_refuses(&request->fields, method, version);
    if (refusal == NULL)
        refusal = target_read(request->target, &request->parts);
    if (refusal == NULL && text_equal(request->parts.path, "*") && strcmp(method, MHD_HTTP_METHOD_OPTIONS) != 0)
        refusal = "only OPTIONS may ask for *";
    if (refusal == NULL && request->fields.header_bytes <= HEADER_MAX)
        return true;
    request->closes = true;
    if (refusal != NULL)
        reply_refuse(request, PROBLEM_BAD_REQUEST, "%s", refusal);
    else
        reply_refuse(request, PROBLEM_HEADER, "the header has %zu bytes, the limit is %d", request->fields.header_bytes,
                     HEADER_MAX);
    return false;
}

/*
 * Checks Host against DNS rebinding: when the name of a foreign page points at this server, the browser of that page
 * treats both as one origin.
 */
static bool is_host_ours(struct request *request)
{
    const char *host = request->fields.host;
    if (!request->server->checks_host || host == NULL || authority_is_ours(host, request->server->setup.host_names))
        return true;
    reply_refuse_host(request);
    return false;
}

/* When the server has keys, the key alone decides, because no browser adds a key by itself. */
static bool admits_page(struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    const struct http_setup *setup = &request->server->setup;
    const struct cors_page page = {fields->origin, fields->fetch_site, fields->host};
    request->is_open = routes_are_open(request->parts.path);
    request->is_foreign = setup->keys == NULL && cors_is_foreign(setup->cors_origin, &page);
    if (request->is_open || !request->is_foreign)
        return true;
    reply_refuse_page(request);
    return false;
}

/* Whether the path is one of KServe's first protocol, /v1/models/NAME:predict. No name has a colon. */
static bool is_of_first_protocol(struct text_span path)
{
    static const char models[] = "/v1/models/";
    return path.length >= sizeof models && memcmp(path.at, models, sizeof models - 1) == 0 &&
           memchr(path.at, ':', path.length) != NULL;
}

/* What other servers do at a path with that last segment, and attnd does not. NULL: nothing is known. */
static const char *find_service_of_others(struct text_span path)
{
    static const char no_text[] =
        "attnd generates no text; POST /v1/models/{model}/attention returns a model's attention "
        "for a text",
                      no_vectors[] = "attnd embeds no texts; POST /v1/models/{model}/attention with options.return "
                                     "\"output\" gives the last hidden state of each token";
    static const char *const services[][2] = {
        {"completion", no_text}, {"chat", no_text},     {"generate", no_text},  {"responses", no_text},
        {"messages", no_text},   {"embed", no_vectors}, {"rerank", no_vectors},
    };
    const char *last = memrchr(path.at, '/', path.length), *end = path.at + path.length;
    for (size_t i = 0; last != NULL && i < ARRAY_LENGTH(services); i++)
        if (memmem(last, (size_t)(end - last), services[i][0], strlen(services[i][0])) != NULL)
            return services[i][1];
    return NULL;
}

static void refuse_path(struct request *request)
{
    const struct text_span path = request->parts.path;
    const int length = path.length < 128 ? (int)path.length : 128;
    const char *service = find_service_of_others(path);
    char nearest[ROUTES_TEXT_MAX];
    if (service != NULL)
        reply_refuse(request, PROBLEM_NOT_FOUND, "there is no %.*s here: %s", length, path.at, service);
    else if (is_of_first_protocol(path))
        reply_refuse(request, PROBLEM_NOT_FOUND,
                     "there is no %.*s here; POST /v1/models/{model}/attention runs a model, and so does POST "
                     "/v2/models/{model}/infer under the Open Inference Protocol",
                     length, path.at);
    else
        reply_refuse(request, PROBLEM_NOT_FOUND, "there is no %.*s here; nearest: %s", length, path.at,
                     routes_nearest(path, nearest, sizeof nearest));
}

/* Finds the route. False: the reply is ready, either a refusal or the answer to OPTIONS. */
static bool has_route(struct request *request)
{
    char methods[REPLY_ALLOW_MAX], below[ROUTES_TEXT_MAX];
    if (request->route != NULL)
        return true;
    routes_methods(request->parts.path, methods, sizeof methods);
    if (methods[0] == '\0' || is_of_first_protocol(request->parts.path))
        refuse_path(request);
    else if (strcmp(request->method, MHD_HTTP_METHOD_OPTIONS) == 0)
        reply_options(request, methods, request->fields.origin != NULL && request->fields.asked_method != NULL);
    else
        reply_refuse_method(request, methods, routes_below(request->parts.path, request->method, below, sizeof below));
    return false;
}

/* The key that the client sent as "Authorization: Bearer …" or "X-API-Key: …". NULL: none. "": another scheme. */
static const char *shown_token(const struct guard_fields *fields)
{
    static const char scheme[] = "Bearer ";
    const char *shown = fields->authorization;
    if (shown == NULL)
        return fields->api_key;
    return text_starts_fold(shown, scheme) ? shown + sizeof scheme - 1 + strspn(shown + sizeof scheme - 1, " ") : "";
}

static void refuse_unknown(struct request *request, const char *token)
{
    reply_refuse(request, PROBLEM_UNAUTHORIZED,
                 token == NULL ? "this path needs an API key, as Authorization: Bearer KEY or X-API-Key: KEY"
                               : "the API key is not known here");
    request->reply.challenge =
        token == NULL ? "Bearer realm=\"attnd\"" : "Bearer realm=\"attnd\", error=\"invalid_token\"";
}

static void refuse_exhausted(struct request *request, const struct keys_answer *answer)
{
    reply_refuse(request, PROBLEM_QUOTA, "the quota of %s per second of key %s is used up", answer->exhausted,
                 answer->name);
    reply_retry_after(request, answer->retry_after_s);
}

/* The length of the body from the header. A chunked body may have any length up to the limit. */
static uint64_t body_bytes_of(const struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    const uint64_t limit = request->server->setup.max_body_bytes;
    return guard_is_chunked(fields) || fields->content_length > limit ? limit : fields->content_length;
}

/* Checks key, rights and quota. A server without keys allows every request. */
static bool is_allowed(struct request *request)
{
    struct keys *keys = request->server->setup.keys;
    const unsigned right = routes_right(request->route);
    if (keys == NULL || right == RIGHT_NONE)
        return true;
    const char *token = shown_token(&request->fields);
    const uint64_t body_bytes = body_bytes_of(request);
    const struct keys_answer answer =
        token != NULL ? keys_ask(keys, token, right, body_bytes) : (struct keys_answer){.verdict = KEYS_UNKNOWN};
    memcpy(request->key_name, answer.name, sizeof request->key_name);
    switch (answer.verdict) {
    case KEYS_ALLOWED:
        request->owed.bytes = (double)body_bytes;
        return true;
    case KEYS_UNKNOWN:
        refuse_unknown(request, token);
        break;
    case KEYS_FORBIDDEN:
        reply_refuse(request, PROBLEM_FORBIDDEN, "key %s has no right to this path", answer.name);
        request->reply.challenge = "Bearer realm=\"attnd\", error=\"insufficient_scope\"";
        break;
    case KEYS_EXHAUSTED:
        refuse_exhausted(request, &answer);
        break;
    }
    return false;
}

static bool is_acceptable(struct request *request)
{
    char names[NAMES_MAX];
    const unsigned offers = request->route->offers;
    request->answer_media = negotiate_choose(&request->fields.accept, offers);
    if (request->answer_media == MEDIA_COUNT && request->route->ignores_accept)
        request->answer_media = MEDIA_JSON;
    if (request->answer_media < MEDIA_COUNT)
        return true;
    reply_refuse(request, PROBLEM_NOT_ACCEPTABLE, "Accept allows no media type of this path: %s",
                 negotiate_names(offers, names, sizeof names));
    return false;
}

static bool is_expectation_known(struct request *request)
{
    const char *expect = request->fields.expect;
    if (expect == NULL || text_equal_fold(text_span_of(expect), "100-continue"))
        return true;
    reply_refuse(request, PROBLEM_EXPECTATION, "Expect may only be 100-continue");
    return false;
}

/* Keeps the parameter as two terminated texts in the arena. False: the reply refuses it. */
static bool read_parameter(struct request *request, struct text_span name, struct text_span value)
{
    char *texts = attn_arena_take(request->arena, 1, name.length + value.length + 2);
    if (texts == NULL)
        reply_no_memory(request, "no memory for the query of this request");
    else if (!target_decode(name, texts) || !target_decode(value, texts + name.length + 1))
        reply_refuse(request, PROBLEM_PARAMETER, "query parameter \"%.*s\" is not percent-encoded text",
                     name.length < 64 ? (int)name.length : 64, name.at);
    else
        request->parameters[request->parameter_count++] = (struct text_pair){texts, texts + name.length + 1};
    return !is_refused(request);
}

static bool admits_parameters(struct request *request)
{
    struct text_span query = request->parts.query, name, value;
    if (query.length > 0)
        request->parameters = attn_arena_take(request->arena, PARAMETERS_MAX, sizeof *request->parameters);
    while (!is_refused(request) && target_next_parameter(&query, &name, &value)) {
        if (!request->route->takes_parameters)
            reply_refuse(request, PROBLEM_PARAMETER,
                         "query parameter \"%.*s\" is not known; options belong in the body",
                         name.length < 64 ? (int)name.length : 64, name.at);
        else if (request->parameters == NULL)
            reply_no_memory(request, "no memory for the query of this request");
        else if (request->parameter_count == PARAMETERS_MAX)
            reply_refuse(request, PROBLEM_PARAMETER, "the query has more than %d parameters", PARAMETERS_MAX);
        else
            (void)read_parameter(request, name, value);
    }
    return !is_refused(request);
}

static bool admits_length(struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    const uint64_t limit = request->server->setup.max_body_bytes;
    if (fields->content_length > limit)
        reply_refuse(request, PROBLEM_BODY, "the body has %llu bytes, the limit is %llu (--max-body)",
                     (unsigned long long)fields->content_length, (unsigned long long)limit);
    return !is_refused(request);
}

/*
 * Content-Type, or NULL where it must be ignored. Some programs send the type of a form (`curl -d`) or of plain text
 * (fetch in Node.js) when their user named none. A page may send both to any server without a preflight, but then its
 * browser adds Origin or Sec-Fetch-Site. Under /v2, clients send any type with an empty body.
 */
static const char *meant_type(const struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    if (fields->content_type == NULL || (!guard_has_body(fields) && text_starts_fold(request->route->path, "/v2/")))
        return NULL;
    const bool is_page = fields->origin != NULL || fields->fetch_site != NULL;
    return negotiate_is_unnamed(fields->content_type) && !is_page ? NULL : fields->content_type;
}

static bool admits_type(struct request *request)
{
    char names[NAMES_MAX];
    const struct guard_fields *fields = &request->fields;
    if (!negotiate_body_coding(fields->content_encoding, &request->body_coding))
        reply_refuse(request, PROBLEM_ENCODING,
                     "Content-Encoding %.64s is not supported; send the body as it is, or in gzip, zstd or deflate",
                     fields->content_encoding);
    else if ((request->body_media = negotiate_body(meant_type(request), request->route->reads)) == MEDIA_COUNT)
        reply_refuse(request, PROBLEM_MEDIA_TYPE,
                     "Content-Type is %.96s; this path reads %s. JSON must be UTF-8 (curl: -H 'Content-Type: "
                     "application/json')",
                     fields->content_type == NULL ? "missing" : fields->content_type,
                     negotiate_names(request->route->reads, names, sizeof names));
    return !is_refused(request);
}

/* Reads how many bytes of the body are JSON, in the binary form of the Open Inference Protocol. */
static bool admits_split(struct request *request)
{
    const char *given = request->fields.json_bytes;
    uint64_t bytes;
    if (given == NULL)
        return true;
    request->has_json_bytes = text_read_count(given, &bytes) && bytes <= SIZE_MAX;
    request->json_bytes = request->has_json_bytes ? (size_t)bytes : 0;
    if (!request->has_json_bytes)
        reply_refuse(request, PROBLEM_BAD_REQUEST,
                     "Inference-Header-Content-Length is %.64s; expected a number of bytes", given);
    return request->has_json_bytes;
}

static bool admits_priority(struct request *request)
{
    static const char *const names[EXECUTOR_PRIORITIES] = {"high", "normal", "low"};
    const char *given = request->fields.priority;
    if (given == NULL)
        return true;
    for (executor_priority i = 0; i < EXECUTOR_PRIORITIES; i++)
        if (text_equal_fold(text_span_of(given), names[i])) {
            request->priority = i;
            return true;
        }
    reply_refuse(request, PROBLEM_BAD_REQUEST, "X-Priority is %.64s; expected high, normal or low", given);
    return false;
}

/* Reads the client's deadline. A client can shorten the deadline of the server, but not prolong it. */
static bool admits_timeout(struct request *request)
{
    const char *given = request->fields.request_timeout;
    double timeout_s;
    if (given == NULL)
        return true;
    if (!text_read_real(given, &timeout_s) || timeout_s <= 0) {
        reply_refuse(request, PROBLEM_BAD_REQUEST, "Request-Timeout is %.64s; expected seconds above 0, such as 2.5",
                     given);
        return false;
    }
    if (1e3 * timeout_s < request->deadline_ms)
        request->deadline_ms = 1e3 * timeout_s;
    return true;
}

/*
 * Whether to receive a body although the queue is full. A short body would arrive while the queue is still full, and a
 * client that waits for "100 Continue" need not send its body: both are refused now. A long body may find room when it
 * has arrived. A body with hints is received, because it may say that it is urgent.
 */
static bool is_worth_its_body(struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    const bool is_soon_there = !guard_is_chunked(fields) && fields->content_length <= REQUEST_DISCARD_MAX;
    if (fields->content_length <= REQUEST_AT_ONCE_MAX || !(is_soon_there || fields->expect != NULL) ||
        request->route->has_hints || !executor_is_full(request->server->setup.executor, request->priority))
        return true;
    reply_busy(request);
    return false;
}

/*
 * Refuses an upload whose If-Match or If-None-Match already fails, before gigabytes are received. This is only for a
 * client that waits for "100 Continue". Any other client is already sending; it would see a broken connection and no
 * answer.
 */
static bool admits_conditions(struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    struct layer_keeper *layers = request->server->setup.layers;
    attn_error error = {.status = ATTN_OK};
    struct call call = {.err = &error, .in.if_match = fields->if_match, .in.if_none_match = fields->if_none_match};
    if (!request->route->keeps_body || fields->expect == NULL || layers == NULL ||
        !layer_keeper_fails_early(layers, request->names[0], &call))
        return true;
    reply_failure(request, &error, call.refusal);
    return false;
}

/* Refuses a body on routes that read none. */
static bool is_bare(struct request *request)
{
    if (guard_has_body(&request->fields))
        reply_refuse(request, PROBLEM_BAD_REQUEST, "%s takes no body here", request->method);
    request->body_coding = CODING_IDENTITY;
    return !is_refused(request);
}

static bool admits_body(struct request *request)
{
    if (!admits_priority(request) || !admits_timeout(request))
        return false;
    if (request->route->reads == 0)
        return admits_parameters(request) && is_bare(request);
    return admits_split(request) && admits_parameters(request) && admits_length(request) && admits_type(request) &&
           is_worth_its_body(request) && admits_conditions(request);
}

bool admission_admits(struct request *request, const char *method, const char *version)
{
    guard_read_fields(request->connection->mhd, &request->fields);
    take_id(request);
    (void)trace_begin(&request->trace, request->fields.traceparent, server_random(request->server));
    /* The library reads the framing of chunks less strictly than a proxy in front may do. */
    request->closes = guard_is_chunked(&request->fields);
    if (!is_sound(request, method, version))
        return false;
    request->route = routes_find(request->parts.path, request->method, request->names);
    if (!is_host_ours(request) || !admits_page(request) || !has_route(request) || !is_allowed(request) ||
        !is_acceptable(request) || !is_expectation_known(request))
        return false;
    return request->route->answer != NULL || admits_body(request);
}
