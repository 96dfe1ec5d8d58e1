/* added.c: added tokens. */
#include "codec/tokenizer/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/tokenizer/text/unicode.h"

/* ---- loading ---- */

static const struct member members[] = {
    {"id", step_count, offsetof(struct added_token, id), MEMBER_ALWAYS},
    {"content", step_text, offsetof(struct added_token, content), MEMBER_ALWAYS},
    {"single_word", node_decode_bool, offsetof(struct added_token, single_word), MEMBER_ALWAYS},
    {"lstrip", node_decode_bool, offsetof(struct added_token, lstrip), MEMBER_ALWAYS},
    {"rstrip", node_decode_bool, offsetof(struct added_token, rstrip), MEMBER_ALWAYS},
    {"normalized", node_decode_bool, offsetof(struct added_token, normalized), MEMBER_ALWAYS},
    {"special", node_decode_bool, offsetof(struct added_token, special), MEMBER_ALWAYS},
};

static attn_status normalize(struct loading *loading, const struct steps *normalizers, struct added_token *token)
{
    struct draft draft;
    struct reading *reading = &loading->reading;
    node_note(reading, draft_begin(&draft, "an added token", token->content.at, token->content.length, loading->scratch,
                                   reading->err));
    if (!node_has_failed(reading))
        steps_edit(normalizers, &draft);
    if (node_note(reading, draft.outcome.status) != ATTN_OK)
        return reading->status;
    const char *text = attn_arena_copy_text(reading->arena, draft.text.bytes, draft.text.length);
    token->normalized_text = (struct text_span){text, draft.text.length};
    return text != NULL ? ATTN_OK : node_note(reading, attn_fail_no_memory(reading->err));
}

/*
 * The id that Hugging Face's tokenizers gives the token: the model's, or the next free one. *next counts the free ones.
 */
static attn_status check_id(struct loading *loading, const struct node *node, const struct added_token *token,
                            uint32_t *next, struct vocabulary *vocabulary)
{
    const uint32_t known = vocabulary_find(vocabulary, token->content.at, token->content.length);
    const uint32_t expected = known != VOCABULARY_NONE ? known : *next;
    if (token->id != expected)
        return node_fail(&loading->reading, node, ATTN_ERR_VALUE, "gives \"%.60s\" the id %u, but it is number %u",
                         token->content.at, (unsigned)token->id, (unsigned)expected);
    if (known != VOCABULARY_NONE)
        return ATTN_OK;
    ++*next;
    if (token->id < vocabulary->size && vocabulary->texts[token->id].at == NULL) {
        vocabulary->texts[token->id] = token->content;
        return ATTN_OK;
    }
    return node_fail(&loading->reading, node, ATTN_ERR_VALUE, "gives \"%.60s\" the id %u, which another token has",
                     token->content.at, (unsigned)token->id);
}

static attn_status load_token(struct loading *loading, const struct node *node, const struct steps *normalizers,
                              struct added_token *token)
{
    token->normalized = true;
    node_decode_members(&loading->reading, node, members, ARRAY_LENGTH(members), token);
    if (token->content.length == 0)
        return node_fail(&loading->reading, node, ATTN_ERR_VALUE, "is a token without \"content\"");
    token->normalized_text = token->content;
    return node_has_failed(&loading->reading) || !token->normalized ? loading->reading.status
                                                                    : normalize(loading, normalizers, token);
}

/* The trie of the tokens that are looked for in normalized text, or of the others. */
static attn_status build_trie(struct loading *loading, const struct added *added, bool is_normalized, struct trie *trie,
                              bool *has_any)
{
    const attn_arena_mark mark = attn_arena_mark_here(loading->scratch);
    struct text_span *texts = attn_arena_take_zeroed(loading->scratch, added->count, sizeof *texts);
    struct reading *reading = &loading->reading;
    if (texts == NULL)
        return node_note(reading, attn_fail_no_memory(reading->err));
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].normalized == is_normalized) {
            texts[i] = added->tokens[i].normalized_text;
            *has_any = true;
        }
    loading_trie(loading, texts, added->count, trie);
    attn_arena_release(loading->scratch, mark);
    return reading->status;
}

static int compare_ids(const void *left, const void *right)
{
    const uint32_t a = ((const struct added_token *)left)->id, b = ((const struct added_token *)right)->id;
    return (a > b) - (a < b);
}

/* Sorted by id, so that they are found; an id has one token. */
static attn_status sort(struct loading *loading, const struct node *list, struct added *added)
{
    qsort(added->tokens, added->count, sizeof *added->tokens, compare_ids);
    for (size_t i = 1; i < added->count; i++)
        if (added->tokens[i].id == added->tokens[i - 1].id)
            return node_fail(&loading->reading, list, ATTN_ERR_VALUE, "has the token \"%.60s\" twice",
                             added->tokens[i].content.at);
    return ATTN_OK;
}

attn_status added_load(struct loading *loading, const struct node *list, const struct steps *normalizers,
                       struct vocabulary *vocabulary, struct added *added)
{
    const size_t count = json_array_size(list->json);
    uint32_t next = vocabulary->model_tokens;
    *added = (struct added){.count = count};
    added->tokens = attn_arena_take_zeroed(loading->reading.arena, count, sizeof *added->tokens);
    if (added->tokens == NULL)
        return node_fail_memory(&loading->reading, list);
    for (size_t i = 0; i < count; i++) {
        const struct node element = node_element(list, i);
        const attn_arena_mark mark = attn_arena_mark_here(loading->scratch);
        const attn_status status = load_token(loading, &element, normalizers, &added->tokens[i]);
        attn_arena_release(loading->scratch, mark);
        if (status != ATTN_OK || check_id(loading, &element, &added->tokens[i], &next, vocabulary) != ATTN_OK)
            return loading->reading.status;
    }
    if (sort(loading, list, added) == ATTN_OK &&
        build_trie(loading, added, false, &added->plain, &added->has_plain) == ATTN_OK)
        build_trie(loading, added, true, &added->normalized, &added->has_normalized);
    return loading->reading.status;
}

const struct added_token *added_find(const struct added *added, uint32_t id)
{
    const struct added_token key = {.id = id};
    return bsearch(&key, added->tokens, added->count, sizeof key, compare_ids);
}

/* ---- finding ---- */

/* The end of the longest token that begins at a place, whose index is *index; at itself when there is none. */
static size_t longest(struct draft *draft, const struct trie *trie, size_t at, size_t end, uint32_t *index)
{
    uint32_t node = TRIE_ROOT;
    size_t found = at;
    while (at < end && !draft_stops(draft, 1)) {
        node = trie_next(trie, node, (unsigned char)draft->text.bytes[at++]);
        if (node == TRIE_NONE)
            break;
        if (trie->values[node] != TRIE_NONE) {
            *index = trie->values[node];
            found = at;
        }
    }
    return found;
}

static bool is_single_word(const struct draft *draft, const struct piece *piece, size_t begin, size_t end)
{
    size_t before = begin > piece->begin ? draft_before(draft, begin) : begin;
    return (before == begin || !unicode_is_word(draft_next(draft, &before))) &&
           (end == piece->end || !unicode_is_word(draft_next(draft, &end)));
}

/* The start of the spaces before a place, not before low. */
static size_t skip_spaces_left(struct draft *draft, size_t low, size_t at)
{
    while (at > low && !draft_stops(draft, 1)) {
        const size_t before = draft_before(draft, at);
        size_t next = before;
        if (!unicode_is_space(draft_next(draft, &next)))
            break;
        at = before;
    }
    return at;
}

static size_t skip_spaces_right(struct draft *draft, size_t at, size_t high)
{
    for (size_t next = at; at < high && !draft_stops(draft, 1) && unicode_is_space(draft_next(draft, &next));)
        at = next;
    return at;
}

struct finding {
    const struct added *added;
    const struct trie *trie;
};

static void find(struct draft *draft, const struct piece *piece, const void *options)
{
    const struct finding *finding = options;
    size_t done = piece->begin; /* up to here, spans are added */
    for (size_t at = piece->begin; at < piece->end && !draft_stops(draft, 1);) {
        uint32_t index = 0;
        const size_t end = longest(draft, finding->trie, at, piece->end, &index);
        if (end == at) {
            at++;
            continue;
        }
        const struct added_token *token = &finding->added->tokens[index];
        const size_t found = at;
        at = end;
        if (token->single_word && !is_single_word(draft, piece, found, end))
            continue;
        const size_t begin = token->lstrip ? skip_spaces_left(draft, done < found ? done : found, found) : found;
        const size_t stop = token->rstrip ? skip_spaces_right(draft, end, piece->end) : end;
        if (done < begin)
            draft_add_span(draft, done, begin, false);
        draft_add_token(draft, begin, stop, token->id);
        done = stop;
    }
    if (done < piece->end)
        draft_add_span(draft, done, piece->end, false);
}

void added_split(struct draft *draft, const struct added *added, bool is_normalized)
{
    const struct finding finding = {added, is_normalized ? &added->normalized : &added->plain};
    if (is_normalized ? added->has_normalized : added->has_plain)
        draft_split(draft, find, &finding, DRAFT_ISOLATED);
}
