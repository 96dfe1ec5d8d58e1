/*
 * scan.c: reads a tensor from JSON text, in one pass and without recursion.
 *
 * The first innermost row sets the rank. The first row of each level sets the length of that level, and every later row
 * is compared with it. Elements are stored one after the other, because row-major order is the order of the text.
 */
#include "codec/tensor/scan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/pace.h"
#include "codec/json/habit.h"
#include "codec/number/number.h"

enum { POINTER_MAX = 160, RANK_UNKNOWN = -1 };

struct scan {
    const char *at, *begin, *end;
    const char *next_look; /* check the deadline when at reaches this byte */
    const attn_arena *arena;
    attn_dtype dtype;
    const struct tensor_rules *rules;
    void *data;
    size_t taken;                 /* elements read so far */
    int depth;                    /* open brackets */
    int rank;                     /* RANK_UNKNOWN before the first element or the first empty row */
    size_t filled[ATTN_MAX_RANK]; /* elements read so far in the open row of each level */
    size_t shape[ATTN_MAX_RANK];
    bool is_known[ATTN_MAX_RANK]; /* whether the length of each level is known */
    const char *pointer;
    attn_error *err;
};

/* Writes the pointer of the next element at the given depth: pointer/i/j… */
static void element_pointer(const struct scan *s, int depth, char *to)
{
    int used = snprintf(to, POINTER_MAX, "%s", s->pointer);
    for (int level = 0; level < depth && used >= 0 && used < POINTER_MAX; level++)
        used += snprintf(to + used, POINTER_MAX - (size_t)used, "/%zu", s->filled[level]);
}

static attn_status fail_at(struct scan *s, attn_status status, int depth, const char *message)
{
    char pointer[POINTER_MAX];
    element_pointer(s, depth, pointer);
    return attn_fail(s->err, status, pointer, "%s: %s", pointer, message);
}

static attn_status fail_expecting(struct scan *s, attn_status status, int depth, const char *message,
                                  const char *expected, const char *received)
{
    status = fail_at(s, status, depth, message);
    if (s->err)
        attn_expect(s->err, expected, received);
    return status;
}

static attn_status fail_syntax(struct scan *s, const char *message)
{
    return fail_at(s, ATTN_ERR_SYNTAX, s->depth, message);
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

static bool starts_with(const struct scan *s, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(s->end - s->at) >= length && memcmp(s->at, word, length) == 0;
}

/* Moves past word if the text continues with it. */
static bool take_word(struct scan *s, const char *word)
{
    if (!starts_with(s, word))
        return false;
    s->at += strlen(word);
    return true;
}

/* Reads a word that stands for a number. False when the text does not continue with such a word. */
static bool take_number_word(struct scan *s, double *value)
{
    if (s->rules->null_hides && take_word(s, "null")) {
        *value = -(double)INFINITY;
        return true;
    }
    const char *after = number_word_read(s->at, s->end, value);
    if (after == NULL && s->rules->takes_bare)
        after = number_word_read_bare(s->at, s->end, value);
    s->at = after != NULL ? after : s->at;
    return after != NULL;
}

/* Fails for a JSON value that is not a number. kind names the value; hint says what the client should send. */
static attn_status fail_kind(struct scan *s, const char *kind, const char *received, const char *hint)
{
    char message[400];
    bool is_flag = s->dtype == ATTN_BOOL;
    snprintf(message, sizeof message, "expected %s, received %s%s", is_flag ? "true, false, 0 or 1" : "a number", kind,
             hint);
    return fail_expecting(s, ATTN_ERR_FIELD, s->depth, message, is_flag ? "\"boolean\"" : "\"number\"", received);
}

static attn_status fail_string(struct scan *s)
{
    const char *text = s->at + 1, *quote = memchr(text, '"', (size_t)(s->end - text));
    const size_t length = quote != NULL ? (size_t)(quote - text) : 0;
    char hint[300] = ": write numbers without quotes (\"NaN\", \"Infinity\" and \"-Infinity\" stand for themselves)";
    if (s->dtype == ATTN_BOOL)
        snprintf(hint, sizeof hint, ": write true and false without quotes");
    else if (s->rules->texts_place != NULL && !number_word_is_number(text, length))
        snprintf(hint, sizeof hint, ": %s", s->rules->texts_place);
    return fail_kind(s, "a string", "\"string\"", hint);
}

static attn_status fail_element(struct scan *s)
{
    static const struct {
        const char *start, *kind, *received, *hint;
    } kinds[] = {
        {"null", "null", "null", ""},
        {"true", "true", "true", ""},
        {"false", "false", "false", ""},
        {"{", "an object", "\"object\"", ""},
    };
    if (starts_with(s, "\""))
        return fail_string(s);
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (starts_with(s, kinds[i].start))
            return fail_kind(s, kinds[i].kind, kinds[i].received, kinds[i].hint);
    }
    const char *habit = habit_find(s->begin, s->at, s->end);
    if (habit != NULL)
        return fail_syntax(s, habit);
    return fail_syntax(s,
                       s->at >= s->end || *s->at == ']' || *s->at == ',' ? "a number is missing" : "not a JSON number");
}

/* A bias refuses Infinity, and a score of Infinity makes its row NaN: where null hides, only -Infinity is named. */
static attn_status fail_range(struct scan *s)
{
    char message[160];
    double value = 0;
    (void)number_read_f64(s->at, s->end, &value);
    const char *word = value < 0              ? "send \"-Infinity\" if that is meant"
                       : s->rules->null_hides ? ""
                                              : "send \"Infinity\" if that is meant";
    const char *holder = isfinite(value) ? "compute \"float64\" holds it" : "";
    snprintf(message, sizeof message, "the number is beyond the range of %s%s%s%s%s", attn_dtype_name(s->dtype),
             *holder != '\0' || *word != '\0' ? ": " : "", holder, *holder != '\0' && *word != '\0' ? "; " : "", word);
    return fail_at(s, ATTN_ERR_VALUE, s->depth, message);
}

/* Each function reads one element and stores it at index s->taken. */
static attn_status read_f32(struct scan *s)
{
    float *to = (float *)s->data + s->taken;
    const char *after = number_read_f32(s->at, s->end, to);
    double word;
    if (after) {
        if (isinf(*to))
            return fail_range(s);
        s->at = after;
    } else if (take_number_word(s, &word)) {
        *to = (float)word;
    } else {
        return fail_element(s);
    }
    return ATTN_OK;
}

static attn_status read_f64(struct scan *s)
{
    double *to = (double *)s->data + s->taken;
    const char *after = number_read_f64(s->at, s->end, to);
    if (after) {
        if (isinf(*to))
            return fail_range(s);
        s->at = after;
        return ATTN_OK;
    }
    return take_number_word(s, to) ? ATTN_OK : fail_element(s);
}

static bool is_in_number(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* Fails because the number does not fit int64. */
static attn_status fail_integer(struct scan *s)
{
    enum { SHOWN_MAX = 40 };
    char message[160];
    int length = 0;
    bool is_real = false;
    for (const char *c = s->at; c < s->end && is_in_number(*c); c++) {
        is_real = is_real || *c == '.' || *c == 'e' || *c == 'E';
        length += length < SHOWN_MAX;
    }
    const char *rule = is_real         ? "an integer"
                       : *s->at == '-' ? "an integer of at least -9223372036854775808"
                                       : "an integer of at most 9223372036854775807";
    snprintf(message, sizeof message, "expected %s, received %.*s%s", rule, length, s->at,
             length == SHOWN_MAX ? "…" : "");
    return fail_at(s, ATTN_ERR_VALUE, s->depth, message);
}

static attn_status read_i64(struct scan *s)
{
    int64_t *to = (int64_t *)s->data + s->taken;
    const char *after = number_read_i64(s->at, s->end, to);
    double value = 0;
    if (after) {
        s->at = after;
    } else if (number_read_f64(s->at, s->end, &value)) {
        return fail_integer(s);
    } else if (take_number_word(s, &value)) {
        return fail_at(s, ATTN_ERR_VALUE, s->depth, "expected an integer");
    } else {
        return fail_element(s);
    }
    return ATTN_OK;
}

/* Numbers below 0 are meant to be added to the scores. */
static attn_status fail_flag(struct scan *s, double value)
{
    char message[160];
    char received[32];
    snprintf(received, sizeof received, "%g", value);
    snprintf(message, sizeof message, "expected true, false, 0 or 1, received %s%s%s",
             isnan(value)   ? "NaN"
             : isinf(value) ? value < 0 ? "-Infinity" : "Infinity"
                            : received,
             value < 0 ? "; " : "", value < 0 ? TENSOR_BIAS_PLACE : "");
    return fail_at(s, ATTN_ERR_VALUE, s->depth, message);
}

static bool take_truth_word(struct scan *s, double *value)
{
    *value = starts_with(s, "true");
    return take_word(s, "true") || take_word(s, "false");
}

static attn_status read_bool(struct scan *s)
{
    double value = 0;
    const bool is_truth = take_truth_word(s, &value);
    const char *after = is_truth ? NULL : number_read_f64(s->at, s->end, &value);
    if (!is_truth && !after && !take_number_word(s, &value))
        return fail_element(s);
    if (value != 0 && value != 1) /* also refuses NaN and infinities */
        return fail_flag(s, value);
    if (after)
        s->at = after;
    ((uint8_t *)s->data)[s->taken] = value != 0;
    return ATTN_OK;
}

static attn_status read_element(struct scan *s)
{
    switch (s->dtype) {
    case ATTN_F32:
        return read_f32(s);
    case ATTN_F64:
        return read_f64(s);
    case ATTN_I64:
        return read_i64(s);
    case ATTN_BOOL:
        return read_bool(s);
    case ATTN_F16:
    case ATTN_BF16:
    case ATTN_I32:
    case ATTN_U8:
    case ATTN_DTYPE_COUNT:
        break;
    }
    return attn_fail(s->err, ATTN_ERR_FIELD, s->pointer, "no tensor of %s can be read from text",
                     attn_dtype_name(s->dtype));
}

static attn_status fail_depth(struct scan *s, bool is_array)
{
    const char *array = "\"array\"", *number = "\"number\"";
    return fail_expecting(s, ATTN_ERR_SHAPE, s->depth,
                          is_array ? "expected a number as in the rows before, received an array"
                                   : "expected an array as in the rows before, received a number",
                          is_array ? number : array, is_array ? array : number);
}

/* Reads '[': goes one level deeper. */
static attn_status open_row(struct scan *s)
{
    if (s->depth == s->rank)
        return fail_depth(s, true);
    if (s->depth == ATTN_REQUEST_RANK) {
        char message[64];
        snprintf(message, sizeof message, "a tensor has at most %d levels of arrays", ATTN_REQUEST_RANK);
        return attn_fail(s->err, ATTN_ERR_SHAPE, s->pointer, "%s: %s", s->pointer, message);
    }
    s->filled[s->depth++] = 0;
    s->at++;
    return ATTN_OK;
}

/* Reads ']': the row is complete. It must be as long as the first row of its level. */
static attn_status close_row(struct scan *s)
{
    int level = --s->depth;
    size_t length = s->filled[level];
    if (!s->is_known[level]) {
        s->is_known[level] = true;
        s->shape[level] = length;
    } else if (s->shape[level] != length) {
        char message[96], expected[24], received[24];
        snprintf(message, sizeof message, "the row has length %zu, the first one %zu", length, s->shape[level]);
        snprintf(expected, sizeof expected, "%zu", s->shape[level]);
        snprintf(received, sizeof received, "%zu", length);
        return fail_expecting(s, ATTN_ERR_SHAPE, level, message, expected, received);
    }
    s->at++;
    if (s->depth > 0)
        s->filled[s->depth - 1]++;
    return ATTN_OK;
}

/* Closes a row that was just opened and has no elements. */
static attn_status close_empty_row(struct scan *s)
{
    if (s->rank == RANK_UNKNOWN)
        s->rank = s->depth;
    if (s->rank != s->depth) {
        char expected[24];
        snprintf(expected, sizeof expected, "%zu", s->shape[s->depth - 1]);
        s->depth--;
        return fail_expecting(s, ATTN_ERR_SHAPE, s->depth, "the row is empty, the rows before are not",
                              s->is_known[s->depth] ? expected : NULL, "0");
    }
    return close_row(s);
}

static bool begins_number(const struct scan *s)
{
    return s->at < s->end && ((*s->at >= '0' && *s->at <= '9') || strchr("-tfn\"", *s->at));
}

/* There is no branch on the sign, because branch prediction cannot learn it. */
static inline bool begins_float(char c)
{
    return (c == '-') | ((unsigned char)(c - '0') < 10);
}

static inline bool is_look_due(const struct scan *s)
{
    return s->at >= s->next_look;
}

/* Checks the deadline. ATTN_ERR_CANCELLED when the request was cancelled. */
static attn_status look(struct scan *s)
{
    s->next_look = s->end - s->at > PACE_BYTES ? s->at + PACE_BYTES : s->end;
    return attn_arena_is_cancelled(s->arena)
               ? attn_fail(s->err, ATTN_ERR_CANCELLED, s->pointer, "cancelled while %s was read", s->pointer)
               : ATTN_OK;
}

/*
 * Reads floats as long as a comma and the next number follow each of them without a space. Nearly all of a large body
 * is like this. Returns true when it has read the last number of a row and the bracket follows at once. Otherwise it
 * stops before an element, which the caller reads, or where the next check of the deadline is due.
 */
static bool read_plain_floats(struct scan *s)
{
    float *to = (float *)s->data + s->taken;
    const float *first = to;
    const char *at = s->at, *after = NULL;
    while (at < s->next_look) {
        after = number_read_f32(at, s->end, to);
        if (after == NULL || s->end - after < 2 || after[0] != ',' || isinf(*to) || !begins_float(after[1]))
            break;
        at = after + 1;
        to++;
    }
    const bool is_row_read = after != NULL && s->end - after >= 2 && after[0] == ']' && !isinf(*to);
    if (is_row_read) {
        at = after;
        to++;
    }
    s->at = at;
    s->taken += (size_t)(to - first);
    s->filled[s->depth - 1] += (size_t)(to - first);
    return is_row_read;
}

/*
 * Goes from the end of a row to the first number of the next row. This needs a row as long as the first of its level,
 * and only "],[" between the two. The loops below would take six steps for the same.
 */
static bool pass_to_next_row(struct scan *s)
{
    const int level = s->depth - 1;
    const char *at = s->at;
    if (level == 0 || !s->is_known[level] || s->filled[level] != s->shape[level])
        return false;
    if (s->end - at < 4 || at[1] != ',' || at[2] != '[' || !begins_float(at[3]))
        return false;
    s->filled[level] = 0;
    s->filled[level - 1]++;
    s->at = at + 3;
    return true;
}

/*
 * Reads the elements of one innermost row, up to the first character that is not a comma. This function takes most of
 * the time.
 */
static attn_status read_run(struct scan *s)
{
    if (s->rank == RANK_UNKNOWN)
        s->rank = s->depth;
    if (s->rank != s->depth)
        return begins_number(s) ? fail_depth(s, false) : fail_element(s);
    while (s->dtype == ATTN_F32) {
        const bool is_row_read = read_plain_floats(s), is_cut = is_look_due(s) && s->at < s->end;
        if (is_cut && look(s) != ATTN_OK)
            return ATTN_ERR_CANCELLED;
        if (is_row_read && !pass_to_next_row(s))
            return ATTN_OK;
        if (!is_row_read && !is_cut)
            break;
    }
    for (;;) {
        attn_status status = is_look_due(s) ? look(s) : ATTN_OK;
        if (status == ATTN_OK)
            status = read_element(s);
        if (status != ATTN_OK)
            return status;
        s->taken++;
        s->filled[s->depth - 1]++;
        skip_space(s);
        if (s->at == s->end || *s->at != ',')
            return ATTN_OK;
        s->at++;
        skip_space(s);
        if (s->at < s->end && *s->at == '[')
            return fail_depth(s, true);
    }
}

/*
 * Reads one value. For an array, it reads the opening bracket, and the closing one if the array is empty. For a number,
 * it reads the whole row of numbers.
 */
static attn_status read_value(struct scan *s)
{
    if (s->at == s->end || *s->at != '[')
        return read_run(s);
    attn_status status = open_row(s);
    if (status != ATTN_OK)
        return status;
    skip_space(s);
    return s->at < s->end && *s->at == ']' ? close_empty_row(s) : ATTN_OK;
}

/* Whether a value must follow: the row was just opened, or a comma was just read. */
static bool is_row_fresh(const struct scan *s)
{
    return s->depth > 0 && s->filled[s->depth - 1] == 0;
}

/* Fails because no comma and no bracket follows. What stands right behind a number is a part of that element. */
static attn_status fail_behind(struct scan *s)
{
    const char *habit = habit_find(s->begin, s->at, s->end);
    s->filled[s->depth - 1] -= habit != NULL && s->filled[s->depth - 1] > 0 && is_in_number(s->at[-1]);
    return fail_syntax(s, habit != NULL ? habit : "expected ',' or ']'");
}

static attn_status scan_array(struct scan *s)
{
    attn_status status = open_row(s);
    skip_space(s);
    if (status == ATTN_OK && s->at < s->end && *s->at == ']')
        status = close_empty_row(s);
    while (status == ATTN_OK && s->depth > 0) {
        if (is_look_due(s) && (status = look(s)) != ATTN_OK)
            break;
        skip_space(s);
        if (is_row_fresh(s)) {
            status = read_value(s);
        } else if (s->at < s->end && *s->at == ']') {
            status = close_row(s);
        } else if (s->at < s->end && *s->at == ',') {
            s->at++;
            skip_space(s);
            status = read_value(s);
        } else {
            status = fail_behind(s);
        }
    }
    return status;
}

attn_status tensor_scan(const struct lifted_text *text, attn_dtype dtype, const struct tensor_rules *rules,
                        const char *pointer, attn_arena *arena, attn_tensor *tensor, size_t *at, attn_error *err)
{
    struct scan s = {.at = text->text,
                     .begin = text->text,
                     .end = text->text + text->length,
                     .next_look = text->text,
                     .arena = arena,
                     .dtype = dtype,
                     .rules = rules,
                     .rank = RANK_UNKNOWN,
                     .pointer = pointer,
                     .err = err};
    *at = 0;
    /* A row of n elements has n - 1 commas between them. Commas between rows only add to the count. */
    s.data = attn_arena_take(arena, text->commas + 1, attn_dtype_bytes(dtype));
    if (!s.data)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, pointer, "no memory left for %s", pointer);
    attn_status status = s.at < s.end && *s.at == '[' ? scan_array(&s) : fail_syntax(&s, "expected an array");
    if (status == ATTN_OK && s.at != s.end)
        status = fail_syntax(&s, "expected the end of the array");
    *at = (size_t)(s.at - s.begin);
    if (status == ATTN_OK)
        *tensor = attn_tensor_view(s.data, dtype, s.rank, s.shape);
    return status;
}
