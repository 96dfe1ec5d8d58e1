/*
 * write_ahead.c: writes the file of a layer while its body is received.
 *
 * An I/O thread receives the body. Meanwhile a short job passes the bytes that have arrived to the keeper of layers.
 * The keeper writes them to a temporary file, so that the disk works from the first megabytes on. The job does not
 * wait in the queue. It may outlive the connection; then the job frees the request. If the body ends while the job is
 * at work, the job continues with the request. Only one body at a time is written ahead, because a slow disk would
 * otherwise occupy one compute thread per body. Other bodies are written ahead when that one is done, or at their end.
 */
#include "http/steps.h"
#include "service/registry/layer/keeper.h"

/* A job writes pieces of this size. A body of less than two pieces is written at its end. */
enum { PIECE_BYTES = 4 << 20 };

struct write_ahead {
    struct request *request;
    struct layer_draft draft; /* while is_running, only the job uses draft and written */
    size_t written;
    size_t told;     /* bytes of the body that the job was told of; only the I/O thread uses it */
    size_t received; /* the lock of the server guards this and what follows */
    bool is_running, has_failed, has_left;
    void (*then)(void *request); /* called at the end of the job; NULL: the body has not ended */
};

struct write_ahead *write_ahead_begin(struct request *request)
{
    const struct layer_keeper *layers = request->server->setup.layers;
    if (!request->route->keeps_body || layers == NULL || !layer_keeper_is_durable(layers) ||
        request->body_media != MEDIA_SAFETENSORS || request->body_coding != CODING_IDENTITY ||
        guard_is_chunked(&request->fields) || request->fields.content_length < 2 * PIECE_BYTES)
        return NULL;
    struct write_ahead *ahead = attn_arena_take_zeroed(request->arena, 1, sizeof *ahead);
    if (ahead == NULL)
        return NULL;
    ahead->request = request;
    ahead->draft.fd = -1;
    return ahead;
}

struct layer_draft *write_ahead_draft(struct write_ahead *ahead)
{
    return &ahead->draft;
}

static void give_up_draft(struct write_ahead *ahead)
{
    layer_keeper_give_up(ahead->request->server->setup.layers, &ahead->draft);
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

struct turn {
    bool goes_on; /* true: the job writes another piece; false: the job is over */
    bool has_left;
    void (*then)(void *request);
};

/* After the lock is released, a job that is over may use the request only if has_left or then is set. */
static struct turn take_turn(struct write_ahead *ahead, bool has_failed)
{
    struct http_server *server = ahead->request->server;
    pthread_mutex_lock(&server->lock);
    ahead->has_failed |= has_failed;
    ahead->is_running = !ahead->has_failed && !ahead->has_left && ahead->then == NULL &&
                        ahead->received - ahead->written >= PIECE_BYTES;
    server->is_writing_ahead = ahead->is_running;
    const struct turn turn = {ahead->is_running, ahead->has_left, ahead->then};
    pthread_mutex_unlock(&server->lock);
    return turn;
}

static bool write_piece(struct write_ahead *ahead)
{
    const struct request *request = ahead->request;
    const struct guard_fields *fields = &request->fields;
    const struct layer_upload upload = {request->names[0], fields->content_length, fields->if_match,
                                        fields->if_none_match};
    const bool is_written = layer_keeper_write_ahead(request->server->setup.layers, &upload, &ahead->draft,
                                                     request->body + ahead->written, PIECE_BYTES);
    ahead->written += PIECE_BYTES;
    return is_written;
}

static void write_job(void *argument)
{
    struct write_ahead *ahead = argument;
    struct request *request = ahead->request;
    struct http_server *server = request->server;
    struct turn turn = take_turn(ahead, false);
    while (turn.goes_on)
        turn = take_turn(ahead, !write_piece(ahead));
    if (turn.has_left) {
        give_up_draft(ahead);
        request_free(request);
    } else if (turn.then != NULL) {
        turn.then(request);
    }
    server_job_out(server);
}

/* ---- the I/O thread ---------------------------------------------------------------------------------------------- */

void write_ahead_more(struct write_ahead *ahead)
{
    struct http_server *server = ahead->request->server;
    if (ahead->request->body_bytes - ahead->told < PIECE_BYTES)
        return;
    ahead->told = ahead->request->body_bytes;
    pthread_mutex_lock(&server->lock);
    ahead->received = ahead->told;
    const bool starts = !ahead->is_running && !ahead->has_failed && !server->is_writing_ahead && server_job_in(server);
    ahead->is_running |= starts;
    server->is_writing_ahead |= starts;
    pthread_mutex_unlock(&server->lock);
    if (!starts || executor_continue(server->setup.executor, write_job, ahead))
        return;
    pthread_mutex_lock(&server->lock);
    ahead->is_running = server->is_writing_ahead = false;
    ahead->has_failed = true;
    pthread_mutex_unlock(&server->lock);
    server_job_out(server);
}

bool write_ahead_defers(struct write_ahead *ahead, void (*then)(void *request))
{
    struct http_server *server = ahead->request->server;
    pthread_mutex_lock(&server->lock);
    const bool is_running = ahead->is_running;
    if (is_running)
        ahead->then = then;
    pthread_mutex_unlock(&server->lock);
    return is_running;
}

bool write_ahead_leave(struct write_ahead *ahead)
{
    struct http_server *server = ahead->request->server;
    pthread_mutex_lock(&server->lock);
    ahead->has_left = true;
    const bool is_running = ahead->is_running;
    pthread_mutex_unlock(&server->lock);
    if (!is_running)
        give_up_draft(ahead);
    return is_running;
}
