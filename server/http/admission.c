/* admission.c: decides on the header alone, before the body is read, whether a request is admitted. */
#include <string.h>

#include "base/array.h"
#include "http/route.h"
#include "http/steps.h"
#include "http/wire/cors.h"
#include "http/wire/guard.h"
#include "service/registry/layer/keeper.h"

/* The limit of the first line and the fields together. Proxies allow as much, and the library has room for more. */
enum { HEADER_MAX = 32 << 10 };

enum { NAMES_MAX = 256, PARAMETERS_MAX = 16 };

/* Uses the client's own id if it holds only harmless characters, and is no API key, because ids are logged. */
static void take_id(struct request *request)
{
    struct keys *keys = request->server->setup.keys;
    const char *given = request->fields.request_id;
    if (given != NULL && text_is_name(given, strlen(given), REQUEST_ID_MAX) &&
        (keys == NULL || !keys_knows(keys, given)))
        text_copy(request->id, sizeof request->id, given);
}

/* The connection is closed after a refusal, because the framing of what follows cannot be trusted. */
static enum problem check_framing(struct request *request, const char *method, const char *version)
{
    const char *refusal = framing_refuses(MHD_VERSION, request->connection->mhd, method, request->target, version);
    if (refusal == NULL)
        refusal = guard_refuses(&request->fields, method, version);
    if (refusal == NULL)
        refusal = target_read(request->target, &request->parts);
    if (refusal == NULL && text_equal(request->parts.path, "*") && strcmp(method, MHD_HTTP_METHOD_OPTIONS) != 0)
        refusal = "only OPTIONS may ask for *";
    if (refusal == NULL && request->fields.header_bytes <= HEADER_MAX)
        return PROBLEM_NONE;
    request->closes = true;
    if (refusal != NULL)
        return refuse(request, PROBLEM_BAD_REQUEST, "%s", refusal);
    return refuse(request, PROBLEM_HEADER, "the header has %zu bytes, the limit is %d", request->fields.header_bytes,
                  HEADER_MAX);
}

/*
 * Checks Host against DNS rebinding: when the name of a foreign page points at this server, the browser of that page
 * treats both as one origin.
 */
static enum problem check_host(struct request *request)
{
    const char *host = request->fields.host;
    const bool is_ours =
        !request->server->checks_host || host == NULL || cors_host_is_ours(host, request->server->setup.host_names);
    return is_ours ? PROBLEM_NONE : refuse_host(request);
}

/* When the server has keys, the key alone decides, because no browser adds a key by itself. */
static enum problem check_page(struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    const struct http_setup *setup = &request->server->setup;
    const struct cors_page page = {fields->origin, fields->fetch_site, fields->host};
    request->is_open = routes_are_open(request->parts.path);
    request->is_foreign = setup->keys == NULL && cors_is_foreign(setup->cors_origin, &page);
    return request->is_open || !request->is_foreign ? PROBLEM_NONE : refuse_page(request);
}

/* Whether the path is one of KServe's first protocol, /v1/models/NAME:predict. No name has a colon. */
static bool is_of_first_protocol(struct text_span path)
{
    static const char models[] = "/v1/models/";
    return path.length >= sizeof models && memcmp(path.at, models, sizeof models - 1) == 0 &&
           memchr(path.at, ':', path.length) != NULL;
}

/* What other servers do at such a path, and attnd does not. NULL: nothing is known. */
static const char *find_service_of_others(struct text_span path)
{
    static const char no_text[] =
        "attnd generates no text; POST /v1/models/{model}/attention returns a model's attention "
        "for a text",
                      no_vectors[] = "attnd embeds no texts; POST /v1/models/{model}/attention with options.return "
                                     "\"output\" gives the last hidden state of each token",
                      no_extension[] =
                          "the extensions trace and logging are not offered; traceparent puts a request into "
                          "your traces, and --log-level sets the log",
                      no_shared_memory[] = "shared memory is not offered: send the bytes";
    /* A word that begins with a slash may stand anywhere in the path, any other in its last segment. */
    static const char *const services[][2] = {
        {"completion", no_text},
        {"chat", no_text},
        {"generate", no_text},
        {"responses", no_text},
        {"messages", no_text},
        {"embed", no_vectors},
        {"rerank", no_vectors},
        {"/trace/setting", no_extension},
        {"/v2/logging", no_extension},
        {"/systemsharedmemory", no_shared_memory},
        {"/cudasharedmemory", no_shared_memory},
    };
    const char *last = memrchr(path.at, '/', path.length), *end = path.at + path.length;
    for (size_t i = 0; last != NULL && i < ARRAY_LENGTH(services); i++) {
        const char *word = services[i][0], *from = word[0] == '/' ? path.at : last;
        if (memmem(from, (size_t)(end - from), word, strlen(word)) != NULL)
            return services[i][1];
    }
    return NULL;
}

static enum problem refuse_path(struct request *request)
{
    const struct text_span path = request->parts.path;
    const int length = path.length < 128 ? (int)path.length : 128;
    const char *service = find_service_of_others(path);
    char nearest[ROUTES_TEXT_MAX];
    if (service != NULL)
        return refuse(request, PROBLEM_NOT_FOUND, "there is no %.*s here: %s", length, path.at, service);
    if (is_of_first_protocol(path))
        return refuse(request, PROBLEM_NOT_FOUND,
                      "there is no %.*s here; POST /v1/models/{model}/attention runs a model, and so does POST "
                      "/v2/models/{model}/infer under the Open Inference Protocol",
                      length, path.at);
    return refuse(request, PROBLEM_NOT_FOUND, "there is no %.*s here; nearest: %s", length, path.at,
                  routes_nearest(path, nearest, sizeof nearest));
}

/* OPTIONS has no route and is answered here. */
static enum problem check_route(struct request *request)
{
    char methods[REPLY_ALLOW_MAX], below[ROUTES_TEXT_MAX];
    if (request->route != NULL)
        return PROBLEM_NONE;
    routes_methods(request->parts.path, methods, sizeof methods);
    if (methods[0] == '\0' || is_of_first_protocol(request->parts.path))
        return refuse_path(request);
    if (strcmp(request->method, MHD_HTTP_METHOD_OPTIONS) != 0)
        return refuse_method(request, methods, routes_below(request->parts.path, request->method, below, sizeof below));
    reply_options(request, methods, request->fields.origin != NULL && request->fields.asked_method != NULL);
    return PROBLEM_NONE;
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

static enum problem refuse_key(struct request *request, const struct keys_answer *answer, const char *token)
{
    if (answer->verdict == KEYS_EXHAUSTED) {
        refuse(request, PROBLEM_QUOTA, "the quota of %s per second of key %s is used up", answer->exhausted,
               answer->name);
        request->refusal.retry_after_s = answer->retry_after_s;
    } else if (answer->verdict == KEYS_FORBIDDEN) {
        refuse(request, PROBLEM_FORBIDDEN, "key %s has no right to this path", answer->name);
        request->refusal.challenge = "Bearer realm=\"attnd\", error=\"insufficient_scope\"";
    } else if (token != NULL) {
        refuse(request, PROBLEM_UNAUTHORIZED, "the API key is not known here");
        request->refusal.challenge = "Bearer realm=\"attnd\", error=\"invalid_token\"";
    } else {
        refuse(request, PROBLEM_UNAUTHORIZED,
               "this path needs an API key, as Authorization: Bearer KEY or X-API-Key: KEY");
        request->refusal.challenge = "Bearer realm=\"attnd\"";
    }
    return request->refusal.problem;
}

/* The length of the body from the header. A chunked body may have any length up to the limit. */
static uint64_t body_bytes_of(const struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    const uint64_t limit = request->server->setup.max_body_bytes;
    return guard_is_chunked(fields) || fields->content_length > limit ? limit : fields->content_length;
}

/* Checks key, rights and quota. A server without keys allows every request. */
static enum problem check_key(struct request *request)
{
    struct keys *keys = request->server->setup.keys;
    const unsigned right = routes_right(request->route);
    if (keys == NULL || right == RIGHT_NONE)
        return PROBLEM_NONE;
    const char *token = shown_token(&request->fields);
    const uint64_t body_bytes = body_bytes_of(request);
    const struct keys_answer answer =
        token != NULL ? keys_ask(keys, token, right, body_bytes) : (struct keys_answer){.verdict = KEYS_UNKNOWN};
    memcpy(request->key_name, answer.name, sizeof request->key_name);
    if (answer.verdict != KEYS_ALLOWED)
        return refuse_key(request, &answer, token);
    request->owed.bytes = (double)body_bytes;
    return PROBLEM_NONE;
}

static enum problem check_accept(struct request *request)
{
    char names[NAMES_MAX];
    const unsigned offers = request->route->offers;
    request->answer_media = negotiate_choose(&request->fields.accept, offers);
    if (request->answer_media == MEDIA_COUNT && request->route->ignores_accept)
        request->answer_media = MEDIA_JSON;
    request->wants_events = request->answer_media == MEDIA_EVENTS;
    if (request->wants_events)
        request->answer_media = MEDIA_JSON;
    if (request->answer_media < MEDIA_COUNT)
        return PROBLEM_NONE;
    return refuse(request, PROBLEM_NOT_ACCEPTABLE, "Accept allows no media type of this path: %s",
                  negotiate_names(offers, names, sizeof names));
}

static enum problem check_expectation(struct request *request)
{
    const char *expect = request->fields.expect;
    if (expect == NULL || text_equal_fold(text_span_of(expect), "100-continue"))
        return PROBLEM_NONE;
    return refuse(request, PROBLEM_EXPECTATION, "Expect may only be 100-continue");
}

static enum problem check_priority(struct request *request)
{
    static const char *const names[EXECUTOR_PRIORITIES] = {"high", "normal", "low"};
    const char *given = request->fields.priority;
    if (given == NULL)
        return PROBLEM_NONE;
    for (executor_priority i = 0; i < EXECUTOR_PRIORITIES; i++)
        if (text_equal_fold(text_span_of(given), names[i])) {
            request->priority = i;
            return PROBLEM_NONE;
        }
    return refuse(request, PROBLEM_BAD_REQUEST, "X-Priority is %.64s; expected high, normal or low", given);
}

/* Reads the client's deadline. A client can shorten the deadline of the server, but not prolong it. */
static enum problem check_timeout(struct request *request)
{
    const char *given = request->fields.request_timeout;
    double timeout_s;
    if (given == NULL)
        return PROBLEM_NONE;
    if (!text_read_real(given, &timeout_s) || timeout_s <= 0)
        return refuse(request, PROBLEM_BAD_REQUEST, "Request-Timeout is %.64s; expected seconds above 0, such as 2.5",
                      given);
    if (1e3 * timeout_s < request->deadline_ms)
        request->deadline_ms = 1e3 * timeout_s;
    return PROBLEM_NONE;
}

/* Reads how many bytes of the body are JSON, in the binary form of the Open Inference Protocol. */
static enum problem check_split(struct request *request)
{
    const char *given = request->fields.json_bytes;
    uint64_t bytes;
    if (given == NULL || request->route->reads == 0)
        return PROBLEM_NONE;
    request->has_json_bytes = text_read_count(given, &bytes) && bytes <= SIZE_MAX;
    request->json_bytes = request->has_json_bytes ? (size_t)bytes : 0;
    if (request->has_json_bytes)
        return PROBLEM_NONE;
    return refuse(request, PROBLEM_BAD_REQUEST, "Inference-Header-Content-Length is %.64s; expected a number of bytes",
                  given);
}

/* Keeps the parameter as two terminated texts in the arena. */
static enum problem read_parameter(struct request *request, struct text_span name, struct text_span value)
{
    const int length = name.length < 64 ? (int)name.length : 64;
    if (!request->route->takes_parameters)
        return refuse(request, PROBLEM_PARAMETER, "query parameter \"%.*s\" is not known; options belong in the body",
                      length, name.at);
    if (request->parameters == NULL)
        request->parameters = attn_arena_take(request->arena, PARAMETERS_MAX, sizeof *request->parameters);
    if (request->parameters != NULL && request->parameter_count == PARAMETERS_MAX)
        return refuse(request, PROBLEM_PARAMETER, "the query has more than %d parameters", PARAMETERS_MAX);
    char *texts = attn_arena_take(request->arena, 1, name.length + value.length + 2);
    if (request->parameters == NULL || texts == NULL)
        return refuse_memory(request, "no memory for the query of this request");
    if (!target_decode(name, texts) || !target_decode(value, texts + name.length + 1))
        return refuse(request, PROBLEM_PARAMETER, "query parameter \"%.*s\" is not percent-encoded text", length,
                      name.at);
    request->parameters[request->parameter_count++] = (struct text_pair){texts, texts + name.length + 1};
    return PROBLEM_NONE;
}

static enum problem check_parameters(struct request *request)
{
    struct text_span query = request->parts.query, name, value;
    enum problem problem = PROBLEM_NONE;
    while (problem == PROBLEM_NONE && target_next_parameter(&query, &name, &value))
        problem = read_parameter(request, name, value);
    return problem;
}

static enum problem check_length(struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    const uint64_t limit = request->server->setup.max_body_bytes;
    if (request->route->reads == 0)
        return guard_has_body(fields) ? refuse(request, PROBLEM_BAD_REQUEST, "%s takes no body here", request->method)
                                      : PROBLEM_NONE;
    if (fields->content_length <= limit)
        return PROBLEM_NONE;
    return refuse(request, PROBLEM_BODY, "the body has %llu bytes, the limit is %llu (--max-body)",
                  (unsigned long long)fields->content_length, (unsigned long long)limit);
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

static enum problem check_type(struct request *request)
{
    char names[NAMES_MAX];
    const struct guard_fields *fields = &request->fields;
    const unsigned reads = request->route->reads;
    request->body_coding = CODING_IDENTITY;
    if (reads == 0)
        return PROBLEM_NONE;
    if (!negotiate_body_coding(fields->content_encoding, &request->body_coding))
        return refuse(request, PROBLEM_ENCODING,
                      "Content-Encoding %.64s is not supported; send the body as it is, or in gzip, zstd or deflate",
                      fields->content_encoding);
    request->body_media = negotiate_body(meant_type(request), reads);
    if (request->body_media != MEDIA_COUNT)
        return PROBLEM_NONE;
    return refuse(request, PROBLEM_MEDIA_TYPE,
                  "Content-Type is %.96s; this path reads %s. JSON must be UTF-8 (curl: -H 'Content-Type: "
                  "application/json')",
                  fields->content_type == NULL ? "missing" : fields->content_type,
                  negotiate_names(reads, names, sizeof names));
}

/*
 * Whether to receive a body although the queue is full. A short body would arrive while the queue is still full, and a
 * client that waits for "100 Continue" need not send its body: both are refused now. A long body may find room when it
 * has arrived. A body with hints is received, because it may say that it is urgent.
 */
static enum problem check_queue(struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    const bool is_soon_there = !guard_is_chunked(fields) && fields->content_length <= REQUEST_DISCARD_MAX;
    if (fields->content_length <= REQUEST_AT_ONCE_MAX || !(is_soon_there || fields->expect != NULL) ||
        request->route->has_hints || !executor_is_full(request->server->setup.executor, request->priority))
        return PROBLEM_NONE;
    return refuse_busy(request);
}

/*
 * Refuses an upload whose If-Match or If-None-Match already fails, before gigabytes are received. This is only for a
 * client that waits for "100 Continue". Any other client is already sending; it would see a broken connection and no
 * answer.
 */
static enum problem check_conditions(struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    struct layer_keeper *layers = request->server->setup.layers;
    struct call call = {
        .err = &request->refusal.error, .in.if_match = fields->if_match, .in.if_none_match = fields->if_none_match};
    if (!request->route->keeps_body || fields->expect == NULL || layers == NULL ||
        !layer_keeper_fails_early(layers, request->names[0], &call))
        return PROBLEM_NONE;
    return refuse_call(request, &call);
}

typedef enum problem check_function(struct request *request);

/* Calls the checks in their order, until one refuses or answers. */
static enum problem check_all(struct request *request, check_function *const *check, size_t count)
{
    enum problem problem = PROBLEM_NONE;
    for (size_t i = 0; i < count && problem == PROBLEM_NONE && request->reply.status == 0; i++)
        problem = check[i](request);
    return problem;
}

enum problem admission_check(struct request *request, const char *method, const char *version)
{
    static check_function *const of_all[] = {check_host, check_page,   check_route,
                                             check_key,  check_accept, check_expectation};
    static check_function *const of_services[] = {check_priority, check_timeout, check_split, check_parameters,
                                                  check_length,   check_type,    check_queue, check_conditions};
    guard_read_fields(request->connection->mhd, &request->fields);
    take_id(request);
    (void)trace_begin(&request->trace, request->fields.traceparent, server_random(request->server));
    /* The library reads the framing of chunks less strictly than a proxy in front may do. */
    request->closes = guard_is_chunked(&request->fields);
    enum problem problem = check_framing(request, method, version);
    if (problem != PROBLEM_NONE)
        return problem;
    request->route = routes_find(request->parts.path, request->method, request->names);
    problem = check_all(request, of_all, ARRAY_LENGTH(of_all));
    if (problem == PROBLEM_NONE && request->route != NULL && request->route->answer == NULL)
        problem = check_all(request, of_services, ARRAY_LENGTH(of_services));
    return problem;
}
