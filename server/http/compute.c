/*
 * compute.c: computes the answer to a request whose body has arrived: reads the body, runs the service, finishes the
 * reply. All of it runs in one thread, an I/O thread or a compute thread.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "http/steps.h"
#include "service/limits.h"
#include "service/registry/model/version.h"

static bool is_late(const struct request *request)
{
    return clock_now_ms() - request->clock.received > request->deadline_ms;
}

static bool is_cancelled(const struct request *request)
{
    return is_late(request) || atomic_load_explicit(&request->server->is_cancelled, memory_order_relaxed) ||
           (request->events != NULL ? !events_goes_on(request->events, clock_now_ms())
                                    : atomic_load_explicit(&request->connection->is_abandoned, memory_order_relaxed));
}

static enum problem refuse_late(struct request *request)
{
    return refuse(request, PROBLEM_DEADLINE,
                  "the answer was not there after %g s, and the work was stopped (--deadline, Request-Timeout)",
                  request->deadline_ms / 1e3);
}

enum problem compute_check(struct request *request)
{
    if (is_late(request))
        return refuse_late(request);
    if (atomic_load(&request->server->is_cancelled))
        return refuse_draining(request);
    return is_cancelled(request) ? refuse(request, PROBLEM_CANCELLED, "the client left while the request waited")
                                 : PROBLEM_NONE;
}

/* A job during its computation. The body may set a deadline that is shorter than that of the request. */
struct job {
    struct request *request;
    attn_runtime inner; /* of a stream: progress is counted in tasks, unless the service counts layers or tokens */
};

struct counted {
    struct progress *progress;
    attn_task *task;
    void *argument;
};

static void run_counted(void *context, size_t index, size_t worker)
{
    const struct counted *counted = context;
    counted->task(counted->argument, index, worker);
    progress_add(counted->progress, PROGRESS_TASK, 1, 0);
}

static void count_tasks(void *context, size_t tasks, attn_task *task, void *argument)
{
    const struct job *job = context;
    struct counted counted = {&job->request->events->progress, task, argument};
    progress_add(counted.progress, PROGRESS_TASK, 0, tasks);
    job->inner.run(job->inner.context, tasks, run_counted, &counted);
}

static void shorten_deadline(const struct job *job)
{
    const struct call *call = job->request->call;
    if (call->timeout_ms > 0 && call->timeout_ms < job->request->deadline_ms)
        job->request->deadline_ms = call->timeout_ms;
}

static bool job_is_cancelled(void *cancel_context)
{
    const struct job *job = cancel_context;
    const double timeout_ms = job->request->call != NULL ? job->request->call->timeout_ms : 0;
    return is_cancelled(job->request) || (timeout_ms > 0 && clock_now_ms() - job->request->clock.received > timeout_ms);
}

/* Joins the pieces of a chunked body. NULL without memory, and when the request is cancelled. */
static const char *whole_body(struct request *request)
{
    if (request->body != NULL)
        return request->body;
    char *body = attn_arena_take(request->arena, 1, request->pieces.total_bytes);
    size_t used = 0;
    for (const struct chunk *piece = request->pieces.first; body != NULL && piece != NULL; piece = piece->next) {
        if (attn_arena_is_cancelled(request->arena))
            return NULL;
        memcpy(body + used, piece->data, piece->length);
        used += piece->length;
    }
    return body;
}

/* The body in the form that the service reads: in one run and expanded. */
static attn_status read_body(struct request *request, struct text_span *body, attn_error *err)
{
    *body = (struct text_span){whole_body(request), request->body_bytes};
    if (body->at == NULL)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the body of this request");
    if (request->body_coding == CODING_IDENTITY)
        return ATTN_OK;
    return coding_expand(request->body_coding, *body, request->server->setup.max_body_bytes, request->arena, body, err);
}

/* Compresses and lays out the answer of the service, or begins to stream it. This runs in the thread that computed. */
static bool finish_answer(struct request *request, const struct call *call)
{
    const double since = clock_now_ms();
    bool is_ok;
    if (call->answer_json_bytes > 0)
        request->answer_media = MEDIA_BINARY;
    request->reply.content_type = media_name(request->answer_media);
    request->reply.json_bytes = call->answer_json_bytes;
    reply_conclude(request, call);
    if (request->reply.content_type == NULL)
        return true;
    if (request->events != NULL)
        is_ok = reply_become_event(request, "result") && reply_lay_out(request);
    else if (request->reply.chunks.has_deferred)
        is_ok = sender_begin(request, call->in.runtime);
    else
        is_ok = reply_compress(request) && reply_lay_out(request);
    request->reply.is_file = call->sends_file && request->reply.coding == CODING_IDENTITY;
    request->clock.times.write_ms += clock_now_ms() - since;
    return is_ok;
}

static attn_status run_service(struct request *request, struct call *call)
{
    service_function *instead = request->server->setup.instead;
    const attn_status status = (instead != NULL ? instead : request->route->service)(call);
    request->clock.times = call->times;
    request->flops = call->flops;
    request->owed = call->owed;
    request->held = call->version;
    if (model_version_of(request->held) != NULL) { /* its answer needs nothing of it, and may be read slowly */
        version_release(request->held);
        request->held = NULL;
    }
    request->is_open = request->is_open && !call->is_guarded;
    return status;
}

/* Whether the deadline stopped the work. Work that stops during writing reports a lack of memory instead. */
static bool is_stopped_late(const struct request *request, attn_status status)
{
    return (status == ATTN_OK || status == ATTN_ERR_CANCELLED || status == ATTN_ERR_NO_MEMORY) && is_late(request);
}

/*
 * Charges the key for the answer to a GET before it is sent, so that the next GET is refused if the quota is used up.
 * Its size is known only now.
 */
static attn_status owe_answer(struct request *request, struct call *call)
{
    const struct reply *reply = &request->reply;
    if (strcmp(request->method, MHD_HTTP_METHOD_GET) != 0 || reply->content_type == NULL)
        return ATTN_OK;
    assert(reply->sender == NULL); /* no answer to a GET is written while it is sent */
    const attn_status status = limits_spend(call, &(struct keys_cost){(double)reply->chunks.total_bytes, 0});
    request->owed = call->owed;
    return status;
}

/* Says why the service failed, or why its answer could not be finished. */
static enum problem refuse_answer(struct request *request, const struct call *call, attn_status status)
{
    if (is_stopped_late(request, status))
        return refuse_late(request);
    return status != ATTN_OK ? refuse_call(request, call) : refuse_memory(request, "no memory for the answer");
}

/* Fills in the input of the service. */
static struct call_input input_of(struct request *request, struct text_span body, const attn_runtime *runtime)
{
    const struct http_setup *setup = &request->server->setup;
    return (struct call_input){
        .body = body.at,
        .body_bytes = body.length,
        .received_bytes = request->body_bytes,
        .body_media = request->body_media,
        .answer_media = request->answer_media,
        .has_json_bytes = request->has_json_bytes,
        .json_bytes = request->json_bytes,
        .names = request->names,
        .parameters = request->parameters,
        .parameter_count = request->parameter_count,
        .if_match = request->fields.if_match,
        .if_none_match = request->fields.if_none_match,
        .key = request->key_name,
        .keys = request->key_name[0] != '\0' ? setup->keys : NULL,
        .is_foreign = request->is_foreign,
        .queue_ms = request->clock.queue_ms,
        .limits = setup->limits,
        .layers = setup->layers,
        .models = setup->models,
        .draft = request->ahead != NULL ? write_ahead_draft(request->ahead) : NULL,
        .caches = setup->caches,
        .runtime = runtime,
        .progress = request->events != NULL ? &request->events->progress : NULL,
        .fonts = setup->fonts,
    };
}

/* Runs the service and finishes its answer. */
static enum problem answer(struct request *request, struct job *job, struct call *call, attn_status status)
{
    bool is_finished = false;
    if (status == ATTN_OK)
        status = run_service(request, call);
    shorten_deadline(job);
    if (call->is_kept)
        attn_arena_watch(request->arena, NULL, NULL);
    if (status == ATTN_OK && (call->is_kept || !is_late(request)))
        is_finished = finish_answer(request, call);
    attn_arena_watch(request->arena, NULL, NULL);
    if (is_finished && call->sends_file)
        status = version_confirm(call, ATTN_OK); /* a compressor has read the file */
    if (is_finished && status == ATTN_OK)
        status = owe_answer(request, call);
    return is_finished && status == ATTN_OK ? PROBLEM_NONE : refuse_answer(request, call, status);
}

enum problem compute_answer(struct request *request, attn_runtime runtime)
{
    struct job job = {.request = request, .inner = runtime};
    struct text_span body;
    crash_request_begins(request->id, request->target);
    runtime.is_cancelled = job_is_cancelled;
    runtime.cancel_context = &job;
    if (request->events != NULL) {
        runtime.run = count_tasks;
        runtime.context = &job;
    }
    attn_arena_watch(request->arena, job_is_cancelled, &job);
    const attn_status status = read_body(request, &body, &request->refusal.error);
    struct call call = {
        .in = input_of(request, body, &runtime),
        .out = reply_begin(request, MHD_HTTP_OK, request->answer_media),
        .err = &request->refusal.error,
        .owed = request->owed,
    };
    call.out->may_defer = request->may_stream && request->events == NULL;
    request->call = &call;
    const enum problem problem = answer(request, &job, &call, status);
    request->call = NULL;
    crash_request_ends();
    return problem;
}
