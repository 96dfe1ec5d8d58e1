/* coding.c: encodes answers and decodes bodies: gzip, deflate and zstd. */
#define ZLIB_CONST               /* zlib then takes its input as const */
#define ZSTD_STATIC_LINKING_ONLY /* for contexts in memory that we allocate */

#include "codec/bytes/coding.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "codec/bytes/pace.h"

enum {
    ZLIB_WINDOW = 15,         /* the largest window, in the frame of zlib */
    GZIP_WINDOW = 15 + 16,    /* the same window in the frame of gzip */
    GZIP_LEVEL = 1,           /* on JSON of floats level 4 takes twice the time to save 8 % */
    ZSTD_LEVEL = 1,           /* on JSON of floats levels 2 and 3 save nothing */
    ZSTD_WINDOW_LOG_MAX = 23, /* what RFC 8878 asks every decoder to take; a client cannot ask for more memory */
    RATIO_LIKELY_MAX = 1032,  /* deflate expands by no more */
    FIRST_GUESS = 64 << 10,   /* bytes of text, when the body does not state them */
    COPY_BYTES = 1 << 20,     /* of a text that moves, per copy: less than 1 ms, page faults included */
    OUT_PIECE = 16 << 10,     /* of a compressed answer, per piece */
    SAMPLE_BYTES = 16 << 10,
    SMALL_BYTES = 16 << 10, /* answers up to this size are compressed with small tables */
};

static const char *const names[] = {
#define CODING_NAME(code, name) name,
    CODING_LIST(CODING_NAME)
#undef CODING_NAME
        "identity"};

const char *coding_name(enum coding coding)
{
    return names[coding];
}

/* ---- memory: all blocks come from the arena and end with it ---- */

static void *take_zlib(void *arena, unsigned count, unsigned size)
{
    return attn_arena_take(arena, count, size);
}

static void leave_zlib(void *arena, void *block)
{
    (void)arena;
    (void)block;
}

static void *take_zstd(void *arena, size_t size)
{
    return attn_arena_take(arena, 1, size);
}

static ZSTD_customMem zstd_memory(attn_arena *arena)
{
    return (ZSTD_customMem){.customAlloc = take_zstd, .customFree = leave_zlib, .opaque = arena};
}

/* ---- expanding ---- */

/* A text that grows. When its memory is full, the text moves to a block twice as large. */
struct growing {
    attn_arena *arena;
    char *data;
    size_t used, room, limit; /* limit is one byte more than is allowed: a text that reaches it is too long */
};

static attn_status fail_damaged(enum coding coding, attn_error *err)
{
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the body is not valid %s, as Content-Encoding says it is",
                     coding_name(coding));
}

static attn_status fail_cancelled(attn_error *err)
{
    return attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled while the body was expanded");
}

static attn_status fail_length(const struct growing *text, attn_error *err)
{
    return attn_fail(err, ATTN_ERR_TOO_LARGE, NULL, "the expanded body has more than %zu bytes, which is the limit",
                     text->limit - 1);
}

/* A large text is copied in pieces, with a check of the deadline before each of them. */
static attn_status grow(struct growing *text, attn_error *err)
{
    size_t room = text->room < text->limit / 2 ? text->room * 2 : text->limit;
    char *data = attn_arena_take(text->arena, 1, room);
    if (data == NULL)
        return attn_fail_no_memory(err);
    for (size_t at = 0; at < text->used; at += COPY_BYTES) {
        if (attn_arena_is_cancelled(text->arena))
            return fail_cancelled(err);
        memcpy(data + at, text->data + at, text->used - at < COPY_BYTES ? text->used - at : COPY_BYTES);
    }
    text->data = data;
    text->room = room;
    return ATTN_OK;
}

/* Makes room for at least one more byte. A text over the limit is refused. */
static attn_status make_room(struct growing *text, attn_error *err)
{
    if (text->used < text->room)
        return ATTN_OK;
    if (text->room == text->limit)
        return fail_length(text, err);
    return grow(text, err);
}

/* One call of a library reads and writes at most this many bytes. The deadline is checked between two calls. */
static size_t at_most_a_pace(size_t n)
{
    return n < PACE_BYTES ? n : PACE_BYTES;
}

/* The work of one member or frame, in bytes. An empty one has few bytes, but beginning and ending it takes time. */
enum { FRAME_COST_BYTES = 1024 };

static int window_of(enum coding coding)
{
    return coding == CODING_DEFLATE ? ZLIB_WINDOW : GZIP_WINDOW;
}

static void begin_member(z_stream *stream)
{
    const int outcome = inflateReset(stream);
    assert(outcome == Z_OK); /* inflateReset fails only for a stream that was never begun */
}

/*
 * Expands gzip or deflate. A gzip body has one or more members, one after the other; a deflate body is a single stream.
 */
static attn_status expand_zlib(enum coding coding, struct text_span body, struct growing *text, attn_error *err)
{
    z_stream stream = {.zalloc = take_zlib, .zfree = leave_zlib, .opaque = text->arena};
    if (inflateInit2(&stream, window_of(coding)) != Z_OK)
        return attn_fail_no_memory(err);
    size_t at = 0;
    int outcome = Z_OK;
    attn_status status = ATTN_OK;
    struct pace pace = pace_begin(text->arena);
    while (status == ATTN_OK && (outcome != Z_STREAM_END || at < body.length)) {
        if (outcome == Z_STREAM_END && coding == CODING_DEFLATE)
            return fail_damaged(coding, err);
        if (outcome == Z_STREAM_END)
            begin_member(&stream);
        status = make_room(text, err);
        if (status != ATTN_OK)
            break;
        const unsigned given = (unsigned)at_most_a_pace(body.length - at);
        const unsigned room = (unsigned)at_most_a_pace(text->room - text->used);
        stream.next_in = (const Bytef *)(body.at + at);
        stream.avail_in = given;
        stream.next_out = (Bytef *)(text->data + text->used);
        stream.avail_out = room;
        outcome = inflate(&stream, Z_NO_FLUSH);
        at += given - stream.avail_in;
        text->used += room - stream.avail_out;
        const bool is_stuck = at == body.length && stream.avail_out > 0 && outcome != Z_STREAM_END;
        if (outcome == Z_MEM_ERROR)
            status = attn_fail_no_memory(err);
        else if ((outcome != Z_OK && outcome != Z_STREAM_END && outcome != Z_BUF_ERROR) || is_stuck)
            status = fail_damaged(coding, err);
        else if (pace_stops(&pace, FRAME_COST_BYTES + (given - stream.avail_in) + (room - stream.avail_out)))
            status = fail_cancelled(err);
    }
    return status;
}

/*
 * Whether a frame of RFC 8878 begins here. The library also accepts frames of its first versions. We refuse them,
 * because their decoders have no limit for a window and take their memory from malloc.
 */
static bool is_zstd_frame(const char *at, size_t length)
{
    uint32_t magic = 0;
    for (size_t i = 0; i < sizeof magic && i < length; i++)
        magic |= (uint32_t)(unsigned char)at[i] << (8 * i);
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static attn_status expand_zstd(struct text_span body, struct growing *text, attn_error *err)
{
    ZSTD_DCtx *context = ZSTD_createDCtx_advanced(zstd_memory(text->arena));
    if (context == NULL)
        return attn_fail_no_memory(err);
    (void)ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
    ZSTD_inBuffer in = {body.at, body.length, 0};
    size_t wanted = 1; /* 0: the frame is complete */
    attn_status status = ATTN_OK;
    bool is_begin = true;
    struct pace pace = pace_begin(text->arena);
    while (status == ATTN_OK && (wanted != 0 || in.pos < body.length)) {
        status = is_begin && !is_zstd_frame(body.at + in.pos, body.length - in.pos) ? fail_damaged(CODING_ZSTD, err)
                                                                                    : make_room(text, err);
        if (status != ATTN_OK)
            break;
        const size_t read_before = in.pos, written_before = text->used;
        ZSTD_outBuffer out = {text->data, text->used + at_most_a_pace(text->room - text->used), text->used};
        in.size = in.pos + at_most_a_pace(body.length - in.pos);
        wanted = ZSTD_decompressStream(context, &out, &in);
        text->used = out.pos;
        is_begin = wanted == 0;
        if (ZSTD_isError(wanted))
            status = ZSTD_getErrorCode(wanted) == ZSTD_error_memory_allocation ? attn_fail_no_memory(err)
                                                                               : fail_damaged(CODING_ZSTD, err);
        else if (wanted != 0 && in.pos == body.length && out.pos < out.size)
            status = fail_damaged(CODING_ZSTD, err);
        else if (pace_stops(&pace, FRAME_COST_BYTES + (in.pos - read_before) + (out.pos - written_before)))
            status = fail_cancelled(err);
    }
    return status;
}

/*
 * How many bytes to reserve for the text at first: the length that the body states, and one byte more, to see that
 * nothing follows. A zstd frame may expand by any ratio, so a body of a few bytes could state a length that takes all
 * memory of a request. So a stated length beyond gzip's largest ratio is ignored.
 */
static size_t guess_length(enum coding coding, struct text_span body)
{
    const size_t likely = body.length * RATIO_LIKELY_MAX;
    const unsigned char *end = (const unsigned char *)body.at + body.length;
    if (coding == CODING_ZSTD) {
        const unsigned long long said = ZSTD_getFrameContentSize(body.at, body.length);
        return said <= likely ? (size_t)said + 1 : FIRST_GUESS; /* a frame without its length reads as a huge one */
    }
    if (coding == CODING_DEFLATE || body.length < 4)
        return FIRST_GUESS;
    const size_t said = (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
    return said <= likely ? said + 1 : FIRST_GUESS;
}

attn_status coding_expand(enum coding coding, struct text_span body, size_t limit_bytes, attn_arena *arena,
                          struct text_span *text, attn_error *err)
{
    if (body.length == 0)
        return fail_damaged(coding, err);
    struct growing growing = {.arena = arena, .limit = limit_bytes + 1};
    const size_t guess = guess_length(coding, body);
    growing.room = guess < growing.limit ? guess : growing.limit;
    growing.data = attn_arena_take(arena, 1, growing.room);
    if (growing.data == NULL)
        return attn_fail_no_memory(err);
    attn_status status =
        coding == CODING_ZSTD ? expand_zstd(body, &growing, err) : expand_zlib(coding, body, &growing, err);
    *text = (struct text_span){growing.data, growing.used};
    return status == ATTN_OK && growing.used > limit_bytes ? fail_length(&growing, err) : status;
}

/* ---- compressing ---- */

struct compressor {
    enum coding coding;
    struct pace pace;
    z_stream zlib; /* of gzip and deflate */
    ZSTD_CCtx *zstd;
};

struct compressor *compressor_begin(enum coding coding, size_t likely_bytes, attn_arena *arena)
{
    struct compressor *compressor = attn_arena_take_zeroed(arena, 1, sizeof *compressor);
    if (compressor == NULL)
        return NULL;
    compressor->coding = coding;
    compressor->pace = pace_begin(arena);
    if (coding != CODING_ZSTD) {
        compressor->zlib = (z_stream){.zalloc = take_zlib, .zfree = leave_zlib, .opaque = arena};
        return deflateInit2(&compressor->zlib, GZIP_LEVEL, Z_DEFLATED, window_of(coding), 8, Z_DEFAULT_STRATEGY) == Z_OK
                   ? compressor
                   : NULL;
    }
    compressor->zstd = ZSTD_createCCtx_advanced(zstd_memory(arena));
    if (compressor->zstd == NULL)
        return NULL;
    (void)ZSTD_CCtx_setParameter(compressor->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    if (likely_bytes <= SMALL_BYTES) /* tables of 100 kB instead of 1.3 MB */
        (void)ZSTD_CCtx_setParameter(compressor->zstd, ZSTD_c_srcSizeHint, SMALL_BYTES);
    return compressor;
}

/* Compresses into one piece of out. True: the compressor has more output. */
static bool deflate_piece(z_stream *stream, bool is_last, struct chunks *out)
{
    char *piece = chunks_reserve(out, OUT_PIECE);
    if (piece == NULL)
        return false;
    stream->next_out = (Bytef *)piece;
    stream->avail_out = OUT_PIECE;
    const int outcome = deflate(stream, is_last ? Z_FINISH : Z_NO_FLUSH);
    chunks_commit(out, OUT_PIECE - stream->avail_out);
    return is_last ? outcome != Z_STREAM_END : stream->avail_out == 0;
}

static bool zstd_piece(ZSTD_CCtx *context, ZSTD_inBuffer *in, bool is_last, struct chunks *out)
{
    char *piece = chunks_reserve(out, OUT_PIECE);
    if (piece == NULL)
        return false;
    ZSTD_outBuffer to = {piece, OUT_PIECE, 0};
    const size_t left = ZSTD_compressStream2(context, &to, in, is_last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left)) { /* the first call allocates; the only possible error is that memory is short */
        out->is_ok = false;
        return false;
    }
    chunks_commit(out, to.pos);
    return is_last ? left > 0 : in->pos < in->size;
}

static void take_step(struct compressor *compressor, const char *data, size_t length, bool is_last, struct chunks *out)
{
    if (compressor->coding == CODING_ZSTD) {
        ZSTD_inBuffer in = {data, length, 0};
        while (zstd_piece(compressor->zstd, &in, is_last, out))
            continue;
        return;
    }
    compressor->zlib.next_in = (const Bytef *)data;
    compressor->zlib.avail_in = (unsigned)length;
    while (deflate_piece(&compressor->zlib, is_last, out))
        continue;
}

void compressor_take(struct compressor *compressor, const char *data, size_t length, bool is_last, struct chunks *out)
{
    size_t given = 0;
    do {
        const size_t step = at_most_a_pace(length - given);
        take_step(compressor, data + given, step, is_last && given + step == length, out);
        given += step;
        if (pace_stops(&compressor->pace, step))
            out->is_ok = false;
    } while (given < length && out->is_ok);
}

bool coding_is_worth(const char *sample, size_t length, attn_arena *arena)
{
    attn_arena_mark mark = attn_arena_mark_here(arena);
    const size_t taken = length < SAMPLE_BYTES ? length : SAMPLE_BYTES;
    struct chunks out = chunks_begin(arena);
    struct compressor *compressor = compressor_begin(CODING_ZSTD, taken, arena);
    bool is_worth = false;
    if (compressor != NULL) {
        compressor_take(compressor, sample, taken, true, &out);
        is_worth = out.is_ok && out.total_bytes < taken - taken / 10;
    }
    attn_arena_release(arena, mark);
    return is_worth;
}

bool coding_is_worth_for(enum media media, const struct chunk *sample, size_t bytes, attn_arena *arena)
{
    if (sample == NULL || bytes < CODING_WORTH_BYTES || media == MEDIA_PNG)
        return false;
    if (media != MEDIA_SAFETENSORS && media != MEDIA_BINARY)
        return true;
    return coding_is_worth(sample->data, sample->length, arena);
}
