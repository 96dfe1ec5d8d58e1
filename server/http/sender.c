/*
 * sender.c: sends an answer that is still being written.
 *
 * Two batches (stream.h) take turns: an I/O thread copies one to the socket while a short job fills the other. Such a
 * job does not wait in the queue. When the socket is faster than the job, the connection is suspended until the job is
 * done. When the client is slow, both batches are full and no thread waits. The job may outlive the connection; then
 * the job frees the request.
 *
 * After the header was sent, the only way to report a failure is to break off: chunks without an end, or fewer bytes
 * than announced. A client of HTTP/1.0 cannot tell such an answer from a whole one, so its answers are not streamed.
 */
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "codec/bytes/stream.h"
#include "http/steps.h"

/* The library asks for at most this many bytes at a time. */
enum { BLOCK_BYTES = 64 << 10 };

struct sender {
    struct request *request;
    struct stream stream;        /* while is_filling, only the job uses it */
    size_t current;              /* the batch that is sent; only the I/O thread uses this and the next two */
    const struct chunk *at;      /* the next chunk of the current batch; NULL: the batch has been sent */
    size_t offset;               /* the offset within at */
    bool is_ready[2];            /* full and not sent; the lock of the server guards this and what follows */
    bool is_filling, is_waiting; /* is_waiting: the connection is suspended until the job is done */
    bool has_left, has_failed;
    double write_ms;
};

double sender_write_ms(struct sender *sender)
{
    struct http_server *server = sender->request->server;
    pthread_mutex_lock(&server->lock);
    const double write_ms = sender->write_ms;
    pthread_mutex_unlock(&server->lock);
    return write_ms;
}

bool sender_leave(struct sender *sender)
{
    struct http_server *server = sender->request->server;
    pthread_mutex_lock(&server->lock);
    sender->has_left = true;
    const bool is_filling = sender->is_filling;
    pthread_mutex_unlock(&server->lock);
    if (!is_filling)
        stream_end(&sender->stream);
    return is_filling;
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

static bool fill(struct sender *sender)
{
    struct http_server *server = sender->request->server;
    const attn_runtime runtime = executor_runtime(server->setup.executor);
    return !atomic_load(&server->is_cancelled) && stream_fill(&sender->stream, !sender->current, &runtime);
}

/*
 * After the lock is released, the I/O thread may free the request at any time. There are two exceptions: the connection
 * is suspended (is_waiting), or the request has ended and was left to this job (has_left).
 */
static void fill_job(void *argument)
{
    struct sender *sender = argument;
    struct request *request = sender->request;
    struct http_server *server = request->server;
    const double begun = clock_now_ms();
    crash_request_begins(request->id, request->target);
    const bool is_filled = fill(sender);
    crash_request_ends();
    pthread_mutex_lock(&server->lock);
    sender->write_ms += clock_now_ms() - begun;
    sender->is_filling = false;
    sender->is_ready[!sender->current] = is_filled;
    sender->has_failed |= !is_filled;
    const bool has_left = sender->has_left, is_waiting = sender->is_waiting;
    sender->is_waiting = false;
    pthread_mutex_unlock(&server->lock);
    if (has_left) {
        stream_end(&sender->stream);
        request_free(request);
    } else if (is_waiting) {
        MHD_resume_connection(request->connection->mhd);
    }
    server_job_out(server);
}

/* ---- the I/O thread ---------------------------------------------------------------------------------------------- */

enum turn { TURN_SEND, TURN_WAIT, TURN_FAILED, TURN_OVER };

/*
 * Called when the current batch has been sent. If the other one is ready, the batches swap under the lock. *starts: the
 * caller must start a job that fills the free batch.
 */
static enum turn take_turn(struct sender *sender, bool *starts)
{
    struct http_server *server = sender->request->server;
    enum turn turn = TURN_WAIT;
    *starts = false;
    pthread_mutex_lock(&server->lock);
    if (sender->is_ready[!sender->current]) {
        sender->current = !sender->current;
        sender->is_ready[sender->current] = false;
        sender->at = sender->stream.batch[sender->current].first;
        sender->offset = 0;
        *starts = !stream_is_over(&sender->stream) && server_job_in(server);
        sender->is_filling = *starts;
        sender->has_failed |= !*starts && !stream_is_over(&sender->stream);
        turn = TURN_SEND;
    } else if (sender->is_filling) {
        sender->is_waiting = true;
        MHD_suspend_connection(sender->request->connection->mhd);
    } else {
        turn = sender->has_failed ? TURN_FAILED : TURN_OVER;
    }
    pthread_mutex_unlock(&server->lock);
    return turn;
}

static void hand_over(struct sender *sender)
{
    struct http_server *server = sender->request->server;
    if (executor_continue(server->setup.executor, fill_job, sender))
        return;
    pthread_mutex_lock(&server->lock);
    sender->is_filling = false;
    sender->has_failed = true;
    pthread_mutex_unlock(&server->lock);
    server_job_out(server);
}

/*
 * The library calls this for the next bytes. Returning 0 means that the connection is suspended; the library will ask
 * again.
 */
static ssize_t read_next(void *cls, uint64_t position, char *to, size_t most)
{
    struct sender *sender = cls;
    bool starts;
    (void)position;
    for (;;) {
        const size_t copied = chunks_copy(&sender->at, &sender->offset, to, most);
        sender->request->reply.sent_bytes += copied;
        if (copied > 0)
            return (ssize_t)copied;
        switch (take_turn(sender, &starts)) {
        case TURN_SEND:
            if (starts)
                hand_over(sender);
            break;
        case TURN_WAIT:
            return 0;
        case TURN_FAILED:
            return MHD_CONTENT_READER_END_WITH_ERROR;
        case TURN_OVER:
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
    }
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static bool chooses_coding(const struct sender *sender, enum coding *coding)
{
    const struct request *request = sender->request;
    *coding = negotiate_coding(request->fields.accept_encoding, CODING_ANSWERS);
    return *coding != CODING_IDENTITY && coding_is_worth_for(request->answer_media, stream_sample(&sender->stream, 0),
                                                             STREAM_FROM_BYTES, request->arena);
}

static struct MHD_Response *response_of(struct sender *sender)
{
    const struct reply *reply = &sender->request->reply;
    const bool is_known = reply->coding == CODING_IDENTITY && reply->chunks.total_bytes != CHUNKS_LENGTH_UNKNOWN;
    return MHD_create_response_from_callback(is_known ? reply->chunks.total_bytes : MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                             read_next, sender, NULL);
}

bool sender_begin(struct request *request, const attn_runtime *runtime)
{
    struct reply *reply = &request->reply;
    struct sender *sender = attn_arena_take_zeroed(request->arena, 1, sizeof *sender);
    enum coding coding;
    if (sender == NULL || !reply->chunks.is_ok)
        return false;
    sender->request = request;
    if (!stream_begin(&sender->stream, &reply->chunks, request->server->setup.budget) ||
        !stream_fill(&sender->stream, 0, runtime))
        return false;
    sender->is_ready[0] = true;
    sender->current = 1; /* pretends that batch 1 was sent, so that batch 0 is next */
    if (chooses_coding(sender, &coding))
        reply->coding = coding;
    if (reply->coding == CODING_IDENTITY || stream_compress(&sender->stream, coding, request->arena))
        reply->response = response_of(sender);
    if (reply->response == NULL) {
        stream_end(&sender->stream);
        return false;
    }
    reply->is_negotiated = true;
    reply->sender = sender;
    return true;
}
