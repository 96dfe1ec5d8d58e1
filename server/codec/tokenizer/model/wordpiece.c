/*
 * wordpiece.c: WordPiece: the longest token that a word begins with, then the longest continuation, and so on. A word
 * that does not come out whole is unknown.
 *
 * Wu et al., "Google's Neural Machine Translation System" (2016), section 4.1.
 */
#include "base/array.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/model/kinds.h"

enum { WORD_CHARACTERS = 100 };

struct wordpiece {
    struct text_span unk_token, continuing_subword_prefix;
    uint32_t max_input_chars_per_word;
    uint32_t unknown;
    struct trie trie;
    uint32_t continuation; /* the node behind the prefix */
};

static const struct member members[] = {
    {"unk_token", step_text, offsetof(struct wordpiece, unk_token), MEMBER_ALWAYS},
    {"continuing_subword_prefix", step_text, offsetof(struct wordpiece, continuing_subword_prefix), MEMBER_ALWAYS},
    {"max_input_chars_per_word", step_count, offsetof(struct wordpiece, max_input_chars_per_word), MEMBER_ALWAYS},
};

static attn_status load(struct loading *loading, const struct node *node, const void **model)
{
    struct wordpiece *wordpiece = attn_arena_take_zeroed(loading->reading.arena, 1, sizeof *wordpiece);
    if (wordpiece == NULL)
        return node_fail_memory(&loading->reading, node);
    wordpiece->unk_token = text_span_of("[UNK]");
    wordpiece->continuing_subword_prefix = text_span_of("##");
    wordpiece->max_input_chars_per_word = WORD_CHARACTERS;
    if (node_decode_members(&loading->reading, node, members, ARRAY_LENGTH(members), wordpiece) != ATTN_OK ||
        loading_trie(loading, loading->vocabulary->texts, loading->vocabulary->size, &wordpiece->trie) != ATTN_OK)
        return loading->reading.status;
    const struct text_span prefix = wordpiece->continuing_subword_prefix;
    wordpiece->unknown = model_find_token(loading, wordpiece->unk_token);
    wordpiece->continuation = trie_walk(&wordpiece->trie, TRIE_ROOT, prefix.at, prefix.length);
    *model = wordpiece;
    return ATTN_OK;
}

/* The end of the longest token from begin on, whose id is *id; begin when there is none. */
static size_t longest(const struct trie *trie, uint32_t node, struct draft *draft, size_t begin, size_t end,
                      uint32_t *id)
{
    const char *text = draft->text.bytes;
    size_t found = begin;
    for (size_t at = begin; at < end && node != TRIE_NONE && !draft_stops(draft, 1);) {
        node = trie_next(trie, node, (unsigned char)text[at++]);
        if (node != TRIE_NONE && trie->values[node] != TRIE_NONE) {
            found = at;
            *id = trie->values[node];
        }
    }
    return found;
}

/* Whether the piece has more than max characters. */
static bool is_long(struct draft *draft, size_t begin, size_t end, size_t max)
{
    size_t characters = 0;
    for (size_t at = begin; at < end && characters <= max && !draft_stops(draft, 1); at++)
        characters += utf8_begins(draft->text.bytes[at]);
    return characters > max;
}

static void tokenize(const void *model, struct model_run *run, size_t begin, size_t end)
{
    const struct wordpiece *wordpiece = model;
    const size_t first = run->count;
    size_t at = is_long(run->draft, begin, end, wordpiece->max_input_chars_per_word) ? SIZE_MAX : begin;
    while (at < end && !draft_stops(run->draft, 1)) {
        uint32_t id = 0;
        const uint32_t node = at == begin ? TRIE_ROOT : wordpiece->continuation;
        const size_t next = node != TRIE_NONE ? longest(&wordpiece->trie, node, run->draft, at, end, &id) : at;
        if (next > at)
            model_add_token(run, (struct model_token){.id = id,
                                                      .begin = (uint32_t)at,
                                                      .end = (uint32_t)next,
                                                      .is_unknown = id == wordpiece->unknown});
        at = next > at ? next : SIZE_MAX;
    }
    if (at == end)
        return;
    run->count = first;
    if (wordpiece->unknown == VOCABULARY_NONE)
        model_fail_unknown(run);
    else
        model_add_token(
            run, (struct model_token){
                     .id = wordpiece->unknown, .begin = (uint32_t)begin, .end = (uint32_t)end, .is_unknown = true});
}

const struct model_kind model_wordpiece = {"WordPiece", load, tokenize, NULL};
