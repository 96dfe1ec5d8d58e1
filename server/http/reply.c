/* reply.c: the answer to a request: its status, its header fields and its body as it is sent. */
#include "http/steps.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "codec/answer/forms.h"
#include "http/wire/cors.h"
#include "http/wire/wire.h"
#include "service/registry/version.h"

/* The answer when there is no memory for any other answer. */
#define NO_MEMORY_TEXT                                                                                                 \
    "{\"error\":\"the server has no memory left for this request\",\"type\":\"/problems/no-memory\","                  \
    "\"title\":\"out of memory\",\"status\":503,\"detail\":\"the server has no memory left for this request\"}"
static const char no_memory_text[] = NO_MEMORY_TEXT;

/* Up to this size, copying the pieces of an answer together costs less than a second system call to send them. */
enum { JOINED_MAX = 64 << 10 };

/* The library takes a file in blocks of so many bytes. */
enum { BLOCK_BYTES = 64 << 10 };

struct chunks *reply_begin(struct request *request, unsigned status, enum media media)
{
    assert(request->reply.response == NULL);
    request->reply = (struct reply){
        .status = status,
        .content_type = media_name(media),
        .coding = CODING_IDENTITY,
        .chunks = chunks_begin(request->arena),
    };
    return &request->reply.chunks;
}

void reply_constant(struct request *request, enum media media, struct text_span text)
{
    reply_begin(request, MHD_HTTP_OK, media);
    request->reply.constant = text;
}

void reply_options(struct request *request, const char *allow, bool is_preflight)
{
    request->reply = (struct reply){.status = MHD_HTTP_NO_CONTENT, .coding = CODING_IDENTITY};
    request->reply.is_preflight = is_preflight;
    text_copy(request->reply.allow, sizeof request->reply.allow, allow);
}

/* Counts a refusal. For some time after it, watch.c cuts answers that no client reads. */
static void count_refusal(struct request *request, enum problem problem)
{
    if (request->reply.status == MHD_HTTP_SERVICE_UNAVAILABLE)
        atomic_store(&request->server->refused_ms, clock_now_ms());
    if (problem == PROBLEM_NO_MEMORY)
        atomic_store(&request->server->memory_refused_ms, clock_now_ms());
    metrics_add(&request->server->setup.metrics->rejected[problem], 1);
}

/* In whole seconds, at least one and at most an hour. */
static unsigned whole_seconds(double wait_s)
{
    enum { LONGEST_S = 3600 };
    const double whole_s = ceil(wait_s);
    return whole_s < 1 ? 1 : whole_s > LONGEST_S ? LONGEST_S : (unsigned)whole_s;
}

/* The body is not released while the server ends, because a job may still write it to a file (write_ahead.c). */
void reply_refusal(struct request *request)
{
    const struct refusal *refusal = &request->refusal;
    const struct problem_row *row = problems_row(refusal->problem);
    const bool as_problem = negotiate_prefers_problem(&request->fields.accept);
    if (refusal->problem != PROBLEM_DRAINING)
        attn_arena_release(request->arena, request->before_body);
    reply_begin(request, row->status, as_problem ? MEDIA_PROBLEM : MEDIA_JSON);
    answer_write_error(&refusal->error, row->type, row->title, (int)row->status, request->id, &request->reply.chunks);
    text_copy(request->reply.allow, sizeof request->reply.allow, refusal->allow);
    request->reply.challenge = refusal->challenge;
    if (row->status == MHD_HTTP_SERVICE_UNAVAILABLE)
        request->reply.retry_after_s = executor_retry_after_s(request->server->setup.executor);
    else if (refusal->problem == PROBLEM_QUOTA)
        request->reply.retry_after_s = whole_seconds(refusal->retry_after_s);
    count_refusal(request, refusal->problem);
}

void reply_conclude(struct request *request, const struct call *call)
{
    struct reply *reply = &request->reply;
    text_copy(reply->etag, sizeof reply->etag, call->etag);
    switch (call->outcome) {
    case CALL_DONE:
        return;
    case CALL_CREATED:
        reply->status = MHD_HTTP_CREATED;
        return;
    case CALL_DELETED:
        reply->status = MHD_HTTP_NO_CONTENT;
        reply->content_type = NULL;
        return;
    }
}

/* The tag of a compressed answer differs from the tag of the same answer as it is (RFC 9110, section 8.8.3.3). */
static void tag_coding(struct reply *reply, enum coding coding)
{
    const size_t length = strlen(reply->etag);
    if (length > 0 && coding != CODING_IDENTITY)
        snprintf(reply->etag + length - 1, sizeof reply->etag - (length - 1), "-%s\"", coding_name(coding));
}

/* Sets the tag of the answer to a GET. True: the client has that answer already, and the reply is 304. */
static bool settle_tag(struct request *request, enum coding coding)
{
    struct reply *reply = &request->reply;
    if (reply->etag[0] == '\0' || strcmp(request->route->method, MHD_HTTP_METHOD_GET) != 0)
        return false;
    tag_coding(reply, coding);
    if (!text_names_tag(request->fields.if_none_match, reply->etag))
        return false;
    reply->status = MHD_HTTP_NOT_MODIFIED;
    reply->content_type = NULL;
    return true;
}

bool reply_compress(struct request *request)
{
    struct reply *reply = &request->reply;
    enum coding coding = negotiate_coding(request->fields.accept_encoding, CODING_ANSWERS);
    reply->is_negotiated = true;
    if (coding != CODING_IDENTITY &&
        !coding_is_worth_for(request->answer_media, reply->chunks.last, reply->chunks.total_bytes, request->arena))
        coding = CODING_IDENTITY;
    if (settle_tag(request, coding) || coding == CODING_IDENTITY)
        return reply->chunks.is_ok;
    struct compressor *compressor = compressor_begin(coding, reply->chunks.total_bytes, request->arena);
    struct chunks compressed = chunks_begin(request->arena);
    if (compressor == NULL)
        return false;
    for (const struct chunk *chunk = reply->chunks.first; chunk != NULL; chunk = chunk->next)
        compressor_take(compressor, chunk->data, chunk->length, chunk->next == NULL, &compressed);
    reply->coding = coding;
    reply->chunks = compressed;
    return compressed.is_ok;
}

/* Joins the pieces of a small answer. A single piece is sent together with the header (response_of_pieces). */
static bool join_pieces(struct reply *reply)
{
    const char *text = chunks_join(&reply->chunks);
    reply->pieces = text != NULL ? attn_arena_take(reply->chunks.arena, 1, sizeof *reply->pieces) : NULL;
    if (reply->pieces == NULL)
        return false;
    reply->piece_count = 1;
    reply->pieces[0] = (struct MHD_IoVec){text, reply->chunks.total_bytes};
    return true;
}

bool reply_lay_out(struct request *request)
{
    struct reply *reply = &request->reply;
    size_t count = 0;
    for (const struct chunk *chunk = reply->chunks.first; chunk != NULL; chunk = chunk->next)
        count++;
    if (!reply->chunks.is_ok || count > UINT_MAX)
        return false;
    if (count > 1 && reply->chunks.total_bytes <= JOINED_MAX)
        return join_pieces(reply);
    reply->pieces = attn_arena_take(request->arena, count, sizeof *reply->pieces);
    if (reply->pieces == NULL)
        return false;
    reply->piece_count = (unsigned)count;
    size_t i = 0;
    for (const struct chunk *chunk = reply->chunks.first; chunk != NULL; chunk = chunk->next)
        reply->pieces[i++] = (struct MHD_IoVec){chunk->data, chunk->length};
    return true;
}

/* The library sends header and body of such a response by one system call. A response of several pieces takes two. */
static struct MHD_Response *response_of_text(struct text_span text)
{
    void *bytes = (void *)(uintptr_t)text.at; /* the library only reads them */
    return MHD_create_response_from_buffer(text.length, bytes, MHD_RESPMEM_PERSISTENT);
}

/*
 * Copies the next bytes of a file. They are sent only if the file is then still what it was at first. Otherwise the
 * answer breaks off, because its beginning may be on its way.
 */
static ssize_t read_file(void *cls, uint64_t position, char *to, size_t most)
{
    const struct request *request = cls;
    const struct MHD_IoVec *piece = request->reply.pieces;
    for (; position >= piece->iov_len; piece++)
        position -= piece->iov_len;
    const size_t left = piece->iov_len - (size_t)position, length = left < most ? left : most;
    memcpy(to, (const char *)piece->iov_base + position, length);
    if (version_is_overwritten(request->held))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    return (ssize_t)length;
}

/* The pieces stay in the arena, which outlives the response. */
static struct MHD_Response *response_of_pieces(struct request *request)
{
    struct reply *reply = &request->reply;
    if (reply->pieces != NULL || reply_lay_out(request)) {
        reply->sent_bytes = reply->chunks.total_bytes;
        if (reply->is_file)
            return MHD_create_response_from_callback(reply->chunks.total_bytes, BLOCK_BYTES, read_file, request, NULL);
        if (reply->piece_count == 1)
            return response_of_text((struct text_span){reply->pieces[0].iov_base, reply->pieces[0].iov_len});
        return MHD_create_response_from_iovec(reply->pieces, reply->piece_count, NULL, NULL);
    }
    *reply = (struct reply){.status = MHD_HTTP_SERVICE_UNAVAILABLE,
                            .content_type = media_name(MEDIA_JSON),
                            .coding = CODING_IDENTITY,
                            .retry_after_s = 1};
    reply->sent_bytes = sizeof no_memory_text - 1;
    return response_of_text(text_span_of(no_memory_text));
}

static struct MHD_Response *response_create(struct request *request)
{
    struct reply *reply = &request->reply;
    if (reply->content_type == NULL)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (reply->response != NULL) {
        struct MHD_Response *response = reply->response;
        reply->response = NULL;
        return response;
    }
    if (reply->constant.at == NULL)
        return response_of_pieces(request);
    reply->sent_bytes = reply->constant.length;
    return response_of_text(reply->constant);
}

/*
 * The fields of an answer. If one cannot be added, the answer is not sent: without Content-Encoding, for example, it
 * would mean something else.
 */
struct head {
    struct MHD_Response *response;
    bool is_whole;
    size_t bytes;
};

static void add_field(struct head *head, const char *name, const char *value)
{
    head->is_whole = MHD_add_response_header(head->response, name, value) == MHD_YES && head->is_whole;
    head->bytes += strlen(name) + strlen(": ") + strlen(value) + strlen("\r\n");
}

/* A streamed answer is still being written when its header is sent, and one of events computed. */
static void add_timing(struct head *head, const struct request *request)
{
    const struct request_clock *clock = &request->clock;
    const struct {
        const char *name;
        double ms;
    } stages[] = {{"receive;dur=", clock->received - clock->begun},
                  {", queue;dur=", clock->queue_ms},
                  {", parse;dur=", clock->times.parse_ms},
                  {", compute;dur=", clock->times.compute_ms},
                  {", write;dur=", clock->times.write_ms}};
    const size_t count = ARRAY_LENGTH(stages) - (request->reply.sender != NULL);
    char text[ARRAY_LENGTH(stages) * (16 + TEXT_MS_MAX)], *to = text;
    if (!clock->is_computed || request->events != NULL)
        return;
    for (size_t i = 0; i < count; i++)
        to = text_write_ms(stpcpy(to, stages[i].name), stages[i].ms);
    add_field(head, "Server-Timing", text);
}

static void add_quotas(struct head *head, const struct request *request)
{
    char policy[KEYS_FIELD_MAX], left[KEYS_FIELD_MAX];
    struct keys *keys = request->server->setup.keys;
    if (keys == NULL || request->key_name[0] == '\0' || !keys_write_fields(keys, request->key_name, policy, left))
        return;
    add_field(head, "RateLimit-Policy", policy);
    add_field(head, "RateLimit", left);
}

/* Adds one Vary with all names, because some caches read only the first Vary. */
static void add_vary(struct head *head, bool is_negotiated, bool by_origin)
{
    if (is_negotiated)
        add_field(head, MHD_HTTP_HEADER_VARY,
                  by_origin ? "Accept, Accept-Encoding, Origin" : "Accept, Accept-Encoding");
    else if (by_origin)
        add_field(head, MHD_HTTP_HEADER_VARY, "Origin");
}

static void add_fields(struct head *head, const struct request *request, const struct reply *reply)
{
    char number[24], trace[TRACE_PARENT_TEXT];
    add_field(head, "X-Request-Id", request->id);
    if (request->trace.id[0] != '\0')
        add_field(head, "traceparent", trace_write(&request->trace, trace));
    if (reply->challenge != NULL)
        add_field(head, MHD_HTTP_HEADER_WWW_AUTHENTICATE, reply->challenge);
    if (reply->content_type != NULL)
        add_field(head, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    for (const struct reply_field *field = reply->fields; field != NULL && field->name != NULL; field++)
        add_field(head, field->name, field->value);
    if (reply->json_bytes > 0) {
        snprintf(number, sizeof number, "%zu", reply->json_bytes);
        add_field(head, "Inference-Header-Content-Length", number);
    }
    if (reply->allow[0] != '\0')
        add_field(head, MHD_HTTP_HEADER_ALLOW, reply->allow);
    if (reply->etag[0] != '\0')
        add_field(head, MHD_HTTP_HEADER_ETAG, reply->etag);
    if (reply->retry_after_s > 0) {
        snprintf(number, sizeof number, "%u", reply->retry_after_s);
        add_field(head, MHD_HTTP_HEADER_RETRY_AFTER, number);
    }
    add_quotas(head, request);
    if (reply->status == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE && request->fields.content_encoding != NULL)
        add_field(head, MHD_HTTP_HEADER_ACCEPT_ENCODING, "zstd, gzip, deflate");
    if (reply->coding != CODING_IDENTITY)
        add_field(head, MHD_HTTP_HEADER_CONTENT_ENCODING, coding_name(reply->coding));
    add_vary(head, reply->is_negotiated, cors_varies(request->server->setup.cors_origin));
    if (strcmp(request->method, MHD_HTTP_METHOD_POST) == 0)
        add_field(head, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    add_timing(head, request);
    add_field(head, "X-Content-Type-Options", "nosniff");
    if (reply->content_type != NULL && strcmp(reply->content_type, media_name(MEDIA_SVG)) == 0)
        add_field(head, "Content-Security-Policy", "default-src 'none'; sandbox");
    const struct cors_answer cors = {
        .setting = request->server->setup.cors_origin,
        .origin = request->fields.origin,
        .methods = reply->is_preflight ? reply->allow : NULL,
        .is_open = request->is_open && (request->call == NULL || !request->call->is_guarded),
    };
    head->is_whole = cors_add_fields(head->response, &cors) && head->is_whole;
    if (request->closes || atomic_load(&request->server->is_draining))
        add_field(head, MHD_HTTP_HEADER_CONNECTION, "close");
}

/* Queues the response and gives up the reference to it. MHD_NO ends the connection. */
static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status, const struct head *head)
{
    const enum MHD_Result result = head->is_whole ? MHD_queue_response(connection, status, head->response) : MHD_NO;
    MHD_destroy_response(head->response);
    return result;
}

enum MHD_Result reply_queue(struct request *request)
{
    static const char from_library[] =
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 1000\r\n\r\n";
    struct reply *reply = &request->reply;
    struct head head = {response_create(request), true, sizeof from_library - 1};
    if (head.response == NULL)
        return MHD_NO;
    add_fields(&head, request, reply);
    reply->header_bytes = head.bytes;
    const bool is_small = reply->sender == NULL && reply->sent_bytes <= 4096; /* it is sent whole, or not at all */
    reply->written_bytes = is_small ? INT64_MAX : peer_written_bytes(request->connection->fd);
    if (strcmp(request->method, MHD_HTTP_METHOD_HEAD) == 0)
        reply->sent_bytes = 0;
    return queue(request->connection->mhd, reply->status, &head);
}

/* ---- a stream of events ---- */

/* Each line of the JSON is a line of data; only some views have several. */
static void add_lines(struct chunks *event, const struct chunk *chunk)
{
    const char *at = chunk->data, *const end = at + chunk->length;
    for (const char *feed; (feed = memchr(at, '\n', (size_t)(end - at))) != NULL; at = feed + 1) {
        chunks_bytes(event, at, (size_t)(feed + 1 - at));
        chunks_text(event, "data: ");
    }
    if (at == chunk->data)
        chunks_borrow(event, at, chunk->length);
    else
        chunks_bytes(event, at, (size_t)(end - at));
}

bool reply_become_event(struct request *request, const char *name)
{
    struct reply *reply = &request->reply;
    struct chunks event = chunks_begin(request->arena);
    chunks_format(&event, "event: %s\ndata: ", name);
    for (const struct chunk *chunk = reply->chunks.first; chunk != NULL; chunk = chunk->next)
        add_lines(&event, chunk);
    chunks_text(&event, "\n\n");
    event.is_ok = event.is_ok && reply->chunks.is_ok;
    reply->chunks = event;
    reply->content_type = media_name(MEDIA_EVENTS);
    reply->is_negotiated = true;
    return event.is_ok;
}

const struct chunk *reply_last_event(struct request *request)
{
    static char text[] = "event: error\ndata: " NO_MEMORY_TEXT "\n\n";
    static const struct chunk without_memory = {.data = text, .length = sizeof text - 1};
    const bool is_whole = request->refusal.problem == PROBLEM_NONE || reply_become_event(request, "error");
    return is_whole ? request->reply.chunks.first : &without_memory;
}

bool reply_make_stream(struct request *request)
{
    const struct reply reply = {.status = MHD_HTTP_OK,
                                .content_type = media_name(MEDIA_EVENTS),
                                .coding = CODING_IDENTITY,
                                .is_negotiated = true};
    struct head head = {events_response(request->events), true, 0};
    if (head.response == NULL)
        return false;
    add_fields(&head, request, &reply);
    return head.is_whole;
}

enum MHD_Result reply_queue_stream(struct request *request)
{
    const struct head head = {request->events->response, true, 0};
    request->events->response = NULL;
    return queue(request->connection->mhd, MHD_HTTP_OK, &head);
}

void reply_was_broken(struct request *request)
{
    struct reply *reply = &request->reply;
    const uint64_t before = reply->written_bytes + reply->header_bytes,
                   written = peer_written_bytes(request->connection->fd);
    const uint64_t taken = written > before ? written - before : 0;
    reply->sent_bytes = taken < reply->sent_bytes ? taken : reply->sent_bytes;
}

enum MHD_Result reply_without_memory(struct MHD_Connection *connection, struct metrics *metrics)
{
    metrics_add(&metrics->rejected[PROBLEM_NO_MEMORY], 1);
    struct head head = {response_of_text(text_span_of(no_memory_text)), true, 0};
    if (head.response == NULL)
        return MHD_NO;
    add_field(&head, MHD_HTTP_HEADER_CONTENT_TYPE, media_name(MEDIA_JSON));
    add_field(&head, "X-Content-Type-Options", "nosniff");
    add_field(&head, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    add_field(&head, MHD_HTTP_HEADER_CONNECTION, "close");
    return queue(connection, MHD_HTTP_SERVICE_UNAVAILABLE, &head);
}
