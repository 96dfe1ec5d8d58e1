/*
 * scratch.inc.h: what one task of attention works with: its place in the job and its scratch memory. Part of attend.inc.h.
 */
enum {
    FN(PANEL) = 2 * LANES,            /* columns of a register tile */
    /* rows whose softmax is taken together, in whole vectors of numbers a row */
    FN(GROUP) = ((REGISTER_ROWS > FEW_ROWS ? REGISTER_ROWS : FEW_ROWS) + LANES - 1) / LANES * LANES,
    FN(ROWS_TOGETHER) = VECTOR_BYTES == 64 ? 4 : 2, /* of few queries, which share the values they weigh */
    FN(TILE_STRIDE) = TILE_KEYS + LANES, /* of score rows: not a power of two, to spread over the cache's sets */
};
#define PANEL FN(PANEL)
#define PANELS (TILE_KEYS / PANEL) /* of a tile */
#define TILE_STRIDE FN(TILE_STRIDE)
#define GROUP FN(GROUP)
static_assert(TILE_ROWS % REGISTER_ROWS == 0 && TILE_KEYS % (2 * LANES) == 0, "tiles are whole register tiles");
static_assert(TILE_KEYS % RUN_KEYS == 0 && RUN_KEYS % (2 * LANES) == 0, "runs of keys are whole panels");
static_assert(RUN_KEYS % SUM_KEYS == 0, "a run is whole sums");

enum { FN(SEES_KEY) = 1, FN(SEES_ODD) = 2 };

/* What a task works with: its place in the job, and its parts of the scratch memory. */
typedef struct {
    const struct attn_heads_job *job;
    size_t b, h, first_row, rows; /* the task's queries; h: the first of its heads */
    size_t first_key, end_key;    /* and its keys */
    size_t v_columns;             /* d_v rounded up to whole vectors */
    size_t key_blocks;            /* tiles of keys in all */
    const REAL *q_head, *k_head, *v_head;
    /* per row of the task */
    REAL *o, *m, *l, *entropy_sum;
    REAL *o_low, *l_low; /* what rounding has left out of o and l */
    REAL *block_max; /* (row, key block): the maximum that p of the block was taken against; NULL: no weights kept */
    uint8_t *row_sees_key; /* SEES_KEY, and SEES_ODD beside it where the value of one is not finite; 0: none */
    bool skips_hidden; /* few queries: a value that is not finite was met, so that hidden ones are no longer read */
    size_t capped, saturated; /* scores with a softcap, for the diagnostics */
    /* the pack: keys pack_first … pack_first + pack_keys */
    size_t pack_first;
    REAL *k_pack, *v_pack;
    uint8_t *block_is_packed, *key_is_odd; /* odd: a value that is not finite */
    size_t *block_odd_keys;
    REAL *part; /* of o, for REGISTER_ROWS rows, or ROWS_TOGETHER of few: sums on their way */
    /* one tile */
    REAL *q_pack; /* the last group of rows, when it is not full */
    REAL *s, *alpha;
    uint8_t *allow; /* (TILE_ROWS, TILE_KEYS): the whole mask, where it takes looking up */
    uint8_t *keep;  /* one row of dropout's decisions */
    attn_span *span;  /* keys of each row */
    uint8_t *panel_is_seen; /* (group of REGISTER_ROWS, panel of the tile): whether any row of the group sees any key of it */
    attn_span *reach; /* columns of the tile that any row of each group of REGISTER_ROWS sees, in whole panels */
} FN(task);
#define task_t FN(task)

/* A tile: rows row0 … row0 + rows of the task, keys key0 … key0 + keys, of which columns from … to are computed. */
typedef struct {
    size_t row0, rows, key0, keys, from, to;
} FN(tile);
#define tile_t FN(tile)

/* ---- scratch memory ---- */

static size_t FN(round_up)(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static void *FN(lend)(char *scratch, size_t *used, size_t count, size_t size)
{
    void *block = scratch == NULL ? NULL : scratch + *used;
    *used += FN(round_up)(count * size, ATTN_ALIGNMENT);
    return block;
}

static bool FN(keeps_weights)(const struct attn_heads_job *job)
{
    return job->map[MAP_ATTENTION].data != NULL || job->map[MAP_DROPPED].data != NULL ||
           job->map[MAP_MEAN_SOURCE].data != NULL;
}

/*
 * What a row's softmax has come to: o, m, l and so on, for rows rows. block_max is shared by all that handle the row.
 * With memory NULL only measures.
 */
static size_t FN(lay_out_rows)(task_t *task, size_t rows, char *memory)
{
    size_t used = 0;
    task->o = FN(lend)(memory, &used, rows * task->v_columns, sizeof(REAL));
    task->o_low = FN(lend)(memory, &used, rows * task->v_columns, sizeof(REAL));
    task->m = FN(lend)(memory, &used, rows, sizeof(REAL));
    task->l = FN(lend)(memory, &used, rows, sizeof(REAL));
    task->l_low = FN(lend)(memory, &used, rows, sizeof(REAL));
    task->entropy_sum = FN(lend)(memory, &used, rows, sizeof(REAL));
    task->row_sees_key = FN(lend)(memory, &used, rows, 1);
    return used;
}

static size_t FN(lay_out_block_max)(const struct attn_heads_job *job, task_t *task, size_t rows, char *memory)
{
    size_t used = 0;
    task->block_max =
        FN(keeps_weights)(job) ? FN(lend)(memory, &used, rows * task->key_blocks, sizeof(REAL)) : NULL;
    return used;
}

static void FN(measure)(const struct attn_heads_job *job, task_t *task)
{
    task->job = job;
    task->v_columns = FN(round_up)(job->d_v, LANES);
    task->key_blocks = (job->kv_len + TILE_KEYS - 1) / TILE_KEYS;
}

/* The buffers of one tile, which a task has whatever its kind. */
static size_t FN(lay_out_tile)(task_t *task, size_t rows, char *scratch)
{
    size_t used = 0;
    task->s = FN(lend)(scratch, &used, rows * TILE_STRIDE, sizeof(REAL));
    task->alpha = FN(lend)(scratch, &used, rows + GROUP, sizeof(REAL));
    task->allow = FN(lend)(scratch, &used, rows * TILE_KEYS, 1);
    task->keep = FN(lend)(scratch, &used, TILE_KEYS, 1);
    task->span = FN(lend)(scratch, &used, rows, sizeof(attn_span));
    task->panel_is_seen = FN(lend)(scratch, &used, rows / REGISTER_ROWS + 1, TILE_KEYS / PANEL);
    task->reach = FN(lend)(scratch, &used, rows / REGISTER_ROWS + 1, sizeof(attn_span));
    return used;
}

static size_t FN(lay_out_pack)(const struct attn_heads_job *job, task_t *task, char *scratch)
{
    size_t used = 0, blocks = job->pack_keys / TILE_KEYS;
    task->k_pack = FN(lend)(scratch, &used, job->pack_keys * job->d_k, sizeof(REAL));
    task->v_pack = FN(lend)(scratch, &used, job->pack_keys * task->v_columns, sizeof(REAL));
    task->q_pack = FN(lend)(scratch, &used, REGISTER_ROWS * job->d_k, sizeof(REAL));
    task->block_is_packed = FN(lend)(scratch, &used, blocks, 1);
    task->key_is_odd = FN(lend)(scratch, &used, job->pack_keys, 1);
    task->block_odd_keys = FN(lend)(scratch, &used, blocks, sizeof(size_t));
    return used;
}

static char *FN(beyond)(char *memory, size_t used)
{
    return memory == NULL ? NULL : memory + used;
}

/* Hands out the scratch memory; with scratch NULL only measures. */
static size_t FN(lay_out)(const struct attn_heads_job *job, task_t *task, char *scratch)
{
    FN(measure)(job, task);
    size_t used = FN(lay_out_tile)(task, job->few_rows ? FEW_ROWS : TILE_ROWS, scratch);
    const size_t part_rows = job->few_rows ? FN(ROWS_TOGETHER) : REGISTER_ROWS;
    task->part = FN(lend)(scratch, &used, part_rows * task->v_columns, sizeof(REAL));
    if (job->few_rows) {
        task->key_is_odd = FN(lend)(scratch, &used, TILE_KEYS, 1);
        task->block_odd_keys = FN(lend)(scratch, &used, 1, sizeof(size_t));
        return used;
    }
    size_t rows = FN(round_up)(job->chunk_rows, TILE_ROWS);
    used += FN(lay_out_pack)(job, task, FN(beyond)(scratch, used));
    used += FN(lay_out_rows)(task, rows, FN(beyond)(scratch, used));
    used += FN(lay_out_block_max)(job, task, rows, FN(beyond)(scratch, used));
    return used;
}

static size_t FN(scratch_bytes)(const struct attn_heads_job *job)
{
    task_t task = {0};
    return FN(lay_out)(job, &task, NULL);
}

/* Rows of a task of few queries: all queries of its heads, head by head. */
static size_t FN(rows_together)(const struct attn_heads_job *job)
{
    return job->heads_together * job->q_len;
}

/* Of heads that go together: their maxima by block, then what each split has come to. */
static size_t FN(partials_of_heads)(const struct attn_heads_job *job, task_t *task, size_t split, char *memory)
{
    const size_t rows = FN(rows_together)(job);
    FN(measure)(job, task);
    size_t used = FN(lay_out_block_max)(job, task, rows, memory);
    size_t each = FN(lay_out_rows)(task, rows, NULL);
    FN(lay_out_rows)(task, rows, FN(beyond)(memory, used + split * each));
    return used + job->splits * each;
}

static size_t FN(partials_bytes)(const struct attn_heads_job *job)
{
    task_t task = {0};
    if (!job->few_rows)
        return 0;
    return job->batch * job->heads / job->heads_together * FN(partials_of_heads)(job, &task, 0, NULL);
}

static void FN(find_partials)(const struct attn_heads_job *job, task_t *task, size_t heads, size_t split)
{
    task_t measured = {0};
    size_t each = FN(partials_of_heads)(job, &measured, 0, NULL);
    FN(partials_of_heads)(job, task, split, (char *)job->partials + heads * each);
}

static const REAL *FN(head)(const struct attn_operand *operand, size_t b, size_t h)
{
    return (const REAL *)operand->data + (ptrdiff_t)b * operand->batch_stride + (ptrdiff_t)h * operand->head_stride;
}

static void FN(find_head)(const struct attn_heads_job *job, task_t *task, size_t head)
{
    task->b = head / job->heads;
    task->h = head % job->heads;
    size_t kv_head = task->h / (job->heads / job->kv_heads);
    task->q_head = FN(head)(&job->q, task->b, task->h);
    task->k_head = FN(head)(&job->k, task->b, kv_head);
    task->v_head = FN(head)(&job->v, task->b, kv_head);
}

/* The head and the query that a row of the task is. */
typedef struct {
    size_t h, i;
} FN(place);
#define place_t FN(place)

static place_t FN(place_of)(const task_t *task, size_t row)
{
    const size_t q_len = task->job->q_len;
    if (!task->job->few_rows)
        return (place_t){task->h, task->first_row + row};
    return (place_t){task->h + row / q_len, row % q_len};
}

static size_t FN(least)(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void FN(begin)(task_t *task, const struct attn_heads_job *job, size_t t, char *scratch)
{
    FN(lay_out)(job, task, scratch);
    const size_t tasks = job->few_rows ? job->splits : job->chunks, part = t % tasks;
    FN(find_head)(job, task, t / tasks * job->heads_together);
    task->rows = FN(rows_together)(job);
    task->end_key = job->kv_len;
    if (job->few_rows) {
        FN(find_partials)(job, task, t / tasks, part);
        task->first_key = part * SPLIT_KEYS;
        task->end_key = FN(least)(task->first_key + SPLIT_KEYS, job->kv_len);
    } else {
        task->first_row = part * job->chunk_rows;
        task->rows = FN(least)(job->q_len - task->first_row, job->chunk_rows);
    }
    size_t rows = job->few_rows ? task->rows : FN(round_up)(task->rows, REGISTER_ROWS);
    memset(task->o, 0, rows * task->v_columns * sizeof(REAL));
    memset(task->o_low, 0, rows * task->v_columns * sizeof(REAL));
    memset(task->row_sees_key, 0, rows);
    for (size_t r = 0; r < rows; r++) {
        task->m[r] = -(REAL)INFINITY;
        task->l[r] = task->l_low[r] = task->entropy_sum[r] = 0;
    }
}
