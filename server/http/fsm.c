/*
 * fsm.c: the states of a request, all in this file.
 *
 * A request is in one step at a time. Each step is a function that does its work and returns the next step. A step
 * that waits begins when the library calls again; a step that does not wait follows at once, in the same thread.
 *
 *     HEADER ──► BODY ──► AT_ONCE ──────────────────────────► REPLY ──► SENT    a small request
 *       │          ├────► QUEUE ──► SUBMIT ──► JOB ─────────► REPLY             any other
 *       │          └────► REFUSE ──► DISCARD ───────────────► REPLY             too large, or no memory
 *       ├───────────────► REFUSE ──► DISCARD, or not ───────► REPLY             its small body is read and dropped
 *       └──────────────────────────► DISCARD, or not ───────► REPLY             answered by its route from the header
 *
 *     JOB ──► STREAM ──► SENT                                                   events, which begin before the job ends
 *
 * AT_ONCE, QUEUE, SUBMIT and JOB may also refuse. While a request is in JOB, its connection is suspended, and only the
 * job uses the request. In STREAM, both do (connections/events.h).
 */
#include <string.h>

#include "base/clock.h"
#include "codec/oip/oip.h"
#include "http/steps.h"

/* step, function, the thread that runs it, whether it follows at once or waits for a call of the library */
#define STEPS(X)                                                                                                       \
    X(HEADER, take_header, IN_IO, WAITS)      /* decides on the header, or answers it */                               \
    X(BODY, take_body, IN_IO, WAITS)          /* a piece of the body, or its end */                                    \
    X(AT_ONCE, compute_here, IN_IO, FOLLOWS)  /* computes a small request */                                           \
    X(QUEUE, find_place, IN_IO, FOLLOWS)      /* counts the job, if the queue has a place for it */                    \
    X(SUBMIT, submit, IN_IO, FOLLOWS)         /* suspends the connection and submits the job */                        \
    X(JOB, compute_in_job, IN_JOB, WAITS)     /* computes; the connection is resumed after it */                       \
    X(STREAM, send_stream, IN_IO, WAITS)      /* hands the head of a stream to the library, while the job computes */  \
    X(REFUSE, write_refusal, IN_ANY, FOLLOWS) /* the only step that writes a refusal */                                \
    X(DISCARD, discard_body, IN_IO, WAITS)    /* a piece of a body that is not wanted, or its end */                   \
    X(REPLY, send_reply, IN_IO, FOLLOWS)      /* hands the reply to the library */

/* A new request is zeroed, so it is in the first step. Nothing is left to do in the last two. */
enum step {
#define STEP_ENUM(step, function, thread, wait) STEP_##step,
    STEPS(STEP_ENUM) STEP_SENT,
    STEP_CLOSE
};

typedef enum step step_function(struct request *request);
#define STEP_DECLARE(step, function, thread, wait) static step_function function;
STEPS(STEP_DECLARE)

static const struct {
    step_function *function;
    enum { IN_NONE, IN_IO, IN_JOB, IN_ANY } thread;
    enum { WAITS, FOLLOWS } wait;
} steps[STEP_CLOSE + 1] = {
#define STEP_ROW(step, function, thread, wait) [STEP_##step] = {function, thread, wait},
    STEPS(STEP_ROW)};

/*
 * A chunked body that is too large can only be answered at its end, so this many bytes beyond the limit are still read.
 */
enum { DISCARD_CHUNKED_MAX = 8 << 20 };

static enum step step_unless(enum problem problem, enum step next)
{
    return problem == PROBLEM_NONE ? next : STEP_REFUSE;
}

static void enter(struct connection *connection, enum crowd_line line, double now_ms)
{
    pthread_mutex_lock(&connection->server->lock);
    connection_enter(connection, line, now_ms);
    pthread_mutex_unlock(&connection->server->lock);
}

/* ---- header ------------------------------------------------------------------------------------------------------ */

/*
 * Counts a request after its whole header has arrived: a client that stops in the middle of a header must not delay the
 * end of the server.
 */
static void count_in(struct request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    server->requests++;
    connection_enter(request->connection, LINE_BODY, request->clock.begun);
    pthread_mutex_unlock(&server->lock);
    request->is_counted = true;
}

/*
 * A thread of the computation calls it in a task, so the job waits for it. Without memory, the answer is sent as a whole at
 * its end.
 */
static void begin_stream(void *context)
{
    struct request *request = context;
    if (!reply_make_stream(request))
        return;
    request->step = STEP_STREAM;
    events_begin(request->events);
}

static enum problem prepare_body(struct request *request)
{
    if (request->wants_events)
        request->events = events_create(request->connection, request->arena, begin_stream, request);
    if (request->wants_events && request->events == NULL)
        return refuse_memory(request, "no memory for the events of this request");
    request->ahead = write_ahead_begin(request);
    request->before_body = attn_arena_mark_here(request->arena);
    request->pieces = chunks_begin(request->arena);
    if (guard_is_chunked(&request->fields))
        return PROBLEM_NONE;
    /* The bytes after the JSON begin at an alignment for every type, so that tensors are used in place. */
    const size_t lead = (ATTN_ALIGNMENT - request->json_bytes % ATTN_ALIGNMENT) % ATTN_ALIGNMENT;
    request->body = attn_arena_take(request->arena, 1, lead + request->fields.content_length);
    if (request->body == NULL)
        return refuse_memory(request, "no memory for the body of this request");
    request->body += lead;
    return PROBLEM_NONE;
}

/*
 * Whether to read the body of a refused request. An answer before the end of the body costs the connection, even when
 * the body is empty.
 */
static bool is_worth_reading(const struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    if (request->closes || request->reply.status == MHD_HTTP_CONTENT_TOO_LARGE)
        return false;
    return !guard_has_body(fields) || (fields->content_length <= REQUEST_DISCARD_MAX && fields->expect == NULL);
}

/* The step after the reply is made, which may be before the end of the body. */
static enum step step_of_reply(struct request *request)
{
    if (request->clock.received > 0)
        return STEP_REPLY;
    if (request->is_receiving || is_worth_reading(request))
        return STEP_DISCARD;
    request->closes = true;
    return STEP_REPLY;
}

static enum step take_header(struct request *request)
{
    const struct arrival *arrival = &request->arrival;
    text_copy(request->method, sizeof request->method, arrival->method);
    request->may_stream = strcmp(arrival->version, "HTTP/1.1") == 0;
    count_in(request);
    if (admission_check(request, arrival->method, arrival->version) != PROBLEM_NONE)
        return STEP_REFUSE;
    if (request->route != NULL && request->route->answer != NULL)
        request->route->answer(request);
    if (request->refusal.problem != PROBLEM_NONE)
        return STEP_REFUSE;
    if (request->reply.status != 0)
        return step_of_reply(request);
    if (prepare_body(request) != PROBLEM_NONE)
        return STEP_REFUSE;
    request->is_receiving = true;
    return STEP_BODY;
}

/* ---- body -------------------------------------------------------------------------------------------------------- */

static enum problem append_piece(struct request *request, const char *data, size_t length)
{
    const uint64_t most = request->server->setup.max_body_bytes;
    if (request->body_bytes > most)
        return refuse(request, PROBLEM_BODY, "the body has more than %llu bytes, which is the limit (--max-body)",
                      (unsigned long long)most);
    if (request->body != NULL)
        memcpy(request->body + request->body_bytes - length, data, length);
    else
        chunks_bytes(&request->pieces, data, length);
    if (request->ahead != NULL)
        write_ahead_more(request->ahead);
    return request->pieces.is_ok ? PROBLEM_NONE : refuse_memory(request, "no memory for the body of this request");
}

static void end_body(struct request *request)
{
    request->clock.received = clock_now_ms();
    account_body(request);
}

/*
 * Finds the priority that the body asks for. The queue needs it before the body is parsed, so the bytes are searched.
 */
static executor_priority priority_of(const struct request *request)
{
    if (!request->route->has_hints || request->body == NULL || request->body_coding != CODING_IDENTITY)
        return request->priority;
    const oip_priority hint = oip_priority_hint(request->body, request->body_bytes);
    return hint == OIP_PRIORITY_HIGH ? EXECUTOR_HIGH : hint == OIP_PRIORITY_LOW ? EXECUTOR_LOW : request->priority;
}

static enum step take_body(struct request *request)
{
    const struct arrival *arrival = &request->arrival;
    request->body_bytes += arrival->length;
    if (arrival->length > 0)
        return step_unless(append_piece(request, arrival->data, arrival->length), STEP_BODY);
    end_body(request);
    if (at_once_suffices(request))
        return STEP_AT_ONCE;
    request->priority = priority_of(request);
    return STEP_QUEUE;
}

static enum step discard_body(struct request *request)
{
    request->body_bytes += request->arrival.length;
    if (request->arrival.length == 0) {
        end_body(request);
        return STEP_REPLY;
    }
    if (request->body_bytes <= request->server->setup.max_body_bytes + DISCARD_CHUNKED_MAX)
        return STEP_DISCARD;
    struct log_line line;
    log_begin(&line, request->server->setup.log, LOG_WARN, "body is far over the limit, connection closed");
    log_text(&line, "id", request->id);
    log_count(&line, "bytes_in", request->body_bytes);
    log_end(&line);
    return STEP_CLOSE;
}

/* ---- computation ------------------------------------------------------------------------------------------------- */

static enum step end_computation(struct request *request, enum problem problem)
{
    account_stopped(request, problem);
    return step_unless(problem, STEP_REPLY);
}

static enum step compute_here(struct request *request)
{
    const attn_runtime runtime = executor_runtime(request->server->setup.executor);
    request->clock.is_computed = true;
    return end_computation(request, compute_answer(request, attn_runtime_serial(runtime.kernel)));
}

static enum step compute_in_job(struct request *request)
{
    request->clock.queue_ms = clock_now_ms() - request->clock.received;
    request->clock.is_computed = true;
    enum problem problem = compute_check(request);
    if (problem == PROBLEM_NONE)
        problem = compute_answer(request, executor_runtime(request->server->setup.executor));
    return end_computation(request, problem);
}

static bool count_job_in(struct request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    const bool is_open = server_job_in(server);
    if (is_open)
        connection_enter(request->connection, LINE_COMPUTING, request->clock.received);
    pthread_mutex_unlock(&server->lock);
    return is_open;
}

static void end_request(struct request *request)
{
    account_end(request, request->termination);
    const bool is_sending = request->reply.sender != NULL && sender_leave(request->reply.sender);
    const bool is_writing = request->ahead != NULL && write_ahead_leave(request->ahead);
    if (!is_sending && !is_writing)
        request_free(request);
}

/* After the connection is resumed, an I/O thread may free the request. */
static void resume(struct request *request, enum step step)
{
    struct http_server *server = request->server;
    request->step = step;
    MHD_resume_connection(request->connection->mhd);
    server_job_out(server);
}

static void run_job(void *argument)
{
    struct request *request = argument;
    struct http_server *server = request->server;
    enum step step = STEP_JOB;
    while (step != STEP_REPLY)
        step = steps[step].function(request);
    if (request->events == NULL || !request->events->has_begun) {
        resume(request, step);
        return;
    }
    if (events_end(request->events, reply_last_event(request)))
        end_request(request);
    server_job_out(server);
}

/* Suspending and resuming are half of the system calls of a refusal, so the queue is checked before. */
static enum step find_place(struct request *request)
{
    struct http_server *server = request->server;
    if (!count_job_in(request))
        return step_unless(refuse_draining(request), STEP_SUBMIT);
    if (request->ahead != NULL || !executor_is_full(server->setup.executor, request->priority))
        return STEP_SUBMIT;
    server_job_out(server);
    return step_unless(refuse_busy(request), STEP_SUBMIT);
}

/*
 * The connection is suspended before the job is submitted, because the job may be done, and resume it, before submit
 * returns. Another request may have taken the last place.
 */
static enum step submit(struct request *request)
{
    struct executor *executor = request->server->setup.executor;
    request->step = STEP_JOB;
    MHD_suspend_connection(request->connection->mhd);
    if ((request->ahead != NULL && write_ahead_defers(request->ahead, run_job)) ||
        executor_submit(executor, request->priority, run_job, request))
        return STEP_JOB;
    refuse_busy(request);
    resume(request, STEP_REFUSE);
    return STEP_JOB;
}

/* ---- reply ------------------------------------------------------------------------------------------------------- */

static enum step write_refusal(struct request *request)
{
    reply_refusal(request);
    return step_of_reply(request);
}

static enum step send_reply(struct request *request)
{
    enter(request->connection, LINE_REPLY, clock_now_ms());
    return reply_queue(request) == MHD_YES ? STEP_SENT : STEP_CLOSE;
}

static enum step send_stream(struct request *request)
{
    enter(request->connection, LINE_REPLY, clock_now_ms());
    return reply_queue_stream(request) == MHD_YES ? STEP_SENT : STEP_CLOSE;
}

/* ---- functions that the library calls ---------------------------------------------------------------------------- */

void *fsm_begin(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);
    struct request *request = connection != NULL ? request_create(connection, target) : NULL;
    (void)cls;
    if (request != NULL)
        enter(connection, LINE_HEADER, request->clock.begun);
    return request;
}

/* The library may also call while a job has the request, or while the reply is sent. */
enum MHD_Result fsm_handle(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                           const char *version, const char *upload_data, size_t *upload_data_size, void **con_cls)
{
    struct request *request = *con_cls;
    const struct http_server *server = cls;
    (void)url; /* the library has decoded it, but routes are compared with the raw target (target.c) */
    if (request == NULL)
        return reply_without_memory(mhd, server->setup.metrics);
    enum step step = request->step;
    if (steps[step].function == NULL || steps[step].thread == IN_JOB)
        return MHD_YES;
    request->arrival = (struct arrival){method, version, upload_data, *upload_data_size};
    *upload_data_size = 0;
    do
        step = steps[step].function(request);
    while (steps[step].wait == FOLLOWS);
    if (step != STEP_JOB) /* the job has the request, and may have taken it further */
        request->step = step;
    return step == STEP_CLOSE ? MHD_NO : MHD_YES;
}

void fsm_end(void *cls, struct MHD_Connection *mhd, void **con_cls, enum MHD_RequestTerminationCode termination)
{
    struct request *request = *con_cls;
    (void)cls;
    if (request == NULL)
        return;
    *con_cls = NULL;
    request->clock.ended = clock_now_ms();
    enter(request->connection, LINE_IDLE, request->clock.ended);
    request->termination = termination;
    const unsigned status = termination != MHD_REQUEST_TERMINATED_COMPLETED_OK ? library_status(mhd) : 0;
    /* A job may still be at work on a request with events, and writes its reply. */
    if (status != 0 && request->events == NULL && request->reply.status == 0)
        account_refused(request, status);
    if (request->events != NULL)
        account_client(request);
    if (request->events == NULL || !events_leave(request->events))
        end_request(request);
}
