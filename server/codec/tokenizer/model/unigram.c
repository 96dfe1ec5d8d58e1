/*
 * unigram.c: Unigram: of all ways to cut a text into tokens, the one with the highest sum of scores (Viterbi).
 *
 * Kudo, "Subword Regularization" (2018), section 3.2. A character without a token of its own costs 10 more than the
 * lowest score; neighbouring unknown characters become one token.
 */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "codec/tokenizer/model/kinds.h"

#define NOWHERE UINT32_MAX

static const double unknown_penalty = 10;
/* Of a model of SentencePiece that is no tokenizer.json: a token of this score is never found in a text. */
static const double score_never = -1e30;

struct unigram {
    const double *scores; /* by id */
    double unknown_score;
    uint32_t unknown; /* VOCABULARY_NONE: there is none */
    bool byte_fallback;
    bool is_single; /* sums are kept as float, as SentencePiece does, which decides between equal ones */
    struct model_bytes bytes;
    struct trie trie;
};

/* ---- loading ---- */

static const struct member members[] = {
    {"unk_id", step_count, offsetof(struct unigram, unknown), MEMBER_ALWAYS},
    {"byte_fallback", node_decode_bool, offsetof(struct unigram, byte_fallback), MEMBER_ALWAYS},
    {"single_precision", node_decode_bool, offsetof(struct unigram, is_single), STEP_OF_SLOW},
};

struct scores {
    double *by_id;
    double lowest, never;
};

static void add_score(struct scores *scores, size_t id, double score)
{
    scores->by_id[id] = score;
    scores->lowest = score < scores->lowest && score > scores->never ? score : scores->lowest;
}

static bool add_item(void *context, const struct json_item *item, size_t index)
{
    if (item->has_number)
        add_score(context, index, item->number);
    return item->has_number;
}

static attn_status add_list(void *context, const json_t *piece, size_t index)
{
    for (size_t i = 0; i < json_array_size(piece); i++)
        add_score(context, index + i, json_number_value(json_array_get(json_array_get(piece, i), 1)));
    return ATTN_OK;
}

/* The trie of the tokens that are found in texts. */
static attn_status build_trie(struct loading *loading, double never, struct unigram *unigram)
{
    const attn_arena_mark mark = attn_arena_mark_here(loading->scratch);
    const size_t count = loading->vocab.items;
    struct text_span *found = attn_arena_take(loading->scratch, count, sizeof *found);
    struct reading *reading = &loading->reading;
    if (found == NULL)
        return node_note(reading, attn_fail_no_memory(reading->err));
    for (size_t id = 0; id < count; id++)
        found[id] = unigram->scores[id] > never ? loading->vocabulary->texts[id] : (struct text_span){NULL, 0};
    loading_trie(loading, found, count, &unigram->trie);
    attn_arena_release(loading->scratch, mark);
    return reading->status;
}

static attn_status load_scores(struct loading *loading, struct unigram *unigram)
{
    static const struct json_taker taker = {add_item, add_list};
    struct reading *reading = &loading->reading;
    struct scores scores = {attn_arena_take_zeroed(reading->arena, loading->vocab.items, sizeof *scores.by_id),
                            (double)INFINITY, unigram->is_single ? score_never : (double)-INFINITY};
    if (scores.by_id == NULL)
        return node_note(reading, attn_fail_no_memory(reading->err));
    unigram->scores = scores.by_id;
    if (loading_each(loading, &loading->vocab, &taker, &scores) != ATTN_OK)
        return reading->status;
    unigram->unknown_score = scores.lowest - unknown_penalty;
    return build_trie(loading, scores.never, unigram);
}

static attn_status load(struct loading *loading, const struct node *node, const void **model)
{
    struct unigram *unigram = attn_arena_take_zeroed(loading->reading.arena, 1, sizeof *unigram);
    if (unigram == NULL)
        return node_fail_memory(&loading->reading, node);
    unigram->unknown = VOCABULARY_NONE;
    *model = unigram;
    struct reading *reading = &loading->reading;
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), unigram);
    if (unigram->unknown != VOCABULARY_NONE && unigram->unknown >= loading->vocab.items)
        node_fail(reading, node, ATTN_ERR_VALUE, "has an \"unk_id\" beyond its vocabulary");
    if (!node_has_failed(reading))
        load_scores(loading, unigram);
    model_find_bytes(loading->vocabulary, &unigram->bytes);
    return reading->status;
}

/* ---- the best path ---- */

/* The best way that ends at a byte: the last token, and where it begins. */
struct ending {
    double score;
    uint32_t begin, id; /* begin NOWHERE: no way ends here */
};

static void offer(const struct unigram *unigram, struct ending *ending, double score, uint32_t begin, uint32_t id)
{
    if (ending->begin == NOWHERE || score > ending->score)
        *ending = (struct ending){unigram->is_single ? (double)(float)score : score, begin, id};
}

/*
 * Offers all tokens that begin at a place, and the unknown one, which has a lower score than any of them: it counts where
 * the character has no token of its own. False without an unknown token where one is needed.
 */
static bool offer_tokens(const struct unigram *unigram, struct ending *endings, struct draft *draft, const char *text,
                         size_t at, size_t length, size_t character_bytes)
{
    const double before = endings[at].score;
    uint32_t node = TRIE_ROOT;
    for (size_t end = at; end < length && !draft_stops(draft, 4);) {
        node = trie_next(&unigram->trie, node, (unsigned char)text[end++]);
        if (node == TRIE_NONE)
            break;
        const uint32_t id = unigram->trie.values[node];
        if (id != TRIE_NONE)
            offer(unigram, &endings[end], before + unigram->scores[id], (uint32_t)at, id);
    }
    struct ending *next = &endings[at + character_bytes];
    offer(unigram, next, before + unigram->unknown_score, (uint32_t)at, unigram->unknown);
    return next->id != VOCABULARY_NONE;
}

static struct ending *find_endings(const struct unigram *unigram, struct model_run *run, size_t begin, size_t length)
{
    struct draft *draft = run->draft;
    if (!draft_grow(draft, &run->buffers[0], &run->buffer_capacities[0], length + 1, sizeof(struct ending)))
        return NULL;
    struct ending *endings = run->buffers[0];
    for (size_t i = 0; i <= length && !draft_stops(draft, sizeof *endings); i++)
        endings[i] = (struct ending){.begin = NOWHERE};
    for (size_t at = begin; at < begin + length && !draft_stops(draft, 8);) {
        const size_t here = at - begin;
        (void)draft_next(draft, &at);
        if (!offer_tokens(unigram, endings, draft, draft->text.bytes + begin, here, length, at - begin - here))
            model_fail_unknown(run);
    }
    return !draft_has_failed(draft) ? endings : NULL;
}

/* Adds a token, the bytes of one without a token, or the unknown one. */
static void add_token(const struct unigram *unigram, struct model_run *run, size_t begin, size_t end)
{
    const char *text = run->draft->text.bytes + begin;
    struct model_token token = {.begin = (uint32_t)begin, .end = (uint32_t)end};
    token.id = vocabulary_find(run->vocabulary, text, end - begin);
    if (token.id == VOCABULARY_NONE && unigram->byte_fallback && model_has_bytes(&unigram->bytes, text, end - begin)) {
        for (size_t i = 0; i < end - begin; i++) {
            token.id = unigram->bytes.ids[(unsigned char)text[i]];
            model_add_token(run, token);
        }
        return;
    }
    token.is_surface = token.id == VOCABULARY_NONE;
    if (token.is_surface)
        token.id = unigram->unknown;
    token.is_unknown = token.id == unigram->unknown;
    model_add_token(run, token);
}

static void tokenize(const void *model, struct model_run *run, size_t begin, size_t end)
{
    const struct unigram *unigram = model;
    struct ending *endings = find_endings(unigram, run, begin, end - begin);
    if (endings == NULL)
        return;
    /* From the end to the beginning, each ending is told where its successor begins. */
    uint32_t next = NOWHERE;
    for (size_t at = end - begin; at > 0 && !draft_stops(run->draft, sizeof *endings);) {
        struct ending *ending = &endings[at];
        const uint32_t from = ending->begin;
        ending->begin = next;
        next = (uint32_t)at;
        at = from;
    }
    size_t from = 0;
    while (next != NOWHERE && !draft_stops(run->draft, 1)) {
        size_t to = next;
        const bool is_unknown = endings[to].id == unigram->unknown;
        next = endings[to].begin;
        while (is_unknown && next != NOWHERE && endings[next].id == unigram->unknown) {
            to = next;
            next = endings[to].begin;
        }
        add_token(unigram, run, begin + from, begin + to);
        from = to;
    }
}

const struct model_kind model_unigram = {"Unigram", load, tokenize, NULL};
