/*
 * extent.c: bounds the tensors that the text of a request describes: it is read once, as words, numbers and brackets.
 */
#include "codec/json/skim.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/*
 * What an I/O thread may spend on one request: cells of a map, and products of a number with a row. No number takes less
 * than NUMBER_BYTES of a body.
 */
static const double CELLS_MAX = 1024, WORK_MAX = 1e6;
enum { NUMBER_BYTES = 2 };

/* A count that the text states, such as the features of a performer, costs at most as much as so many rows. */
enum { COUNT_COST = 8, RANK_MAX = 8 };

/*
 * Names say what the numbers after them are: a tensor, from QUERY to DATA; a key or a value among them; what may stand
 * between the name of a tensor and its shape, from DATA to TYPE. A name may have others before it: "inputs.key".
 */
enum name { OTHER, QUERY, WEIGHT, KEY, VALUE, DATA, DATA_OFFSETS, BASE64, SHAPE, TYPE, NUM_HEADS, CACHE, NAMES };
static const struct text_span names[NAMES] = {{"", 0},      {"query", 5}, {"weight", 6},        {"key", 3},
                                              {"value", 5}, {"data", 4},  {"data_offsets", 12}, {"base64", 6},
                                              {"shape", 5}, {"type", 4},  {"num_heads", 9},     {"cache", 5}};

struct extent {
    const char *begin, *at, *end;
    enum name name;                    /* the last one */
    bool is_key;                       /* the next tensor is a key or a value, so its rows are not those of a map */
    bool is_weight;                    /* the next matrices may be the heads of a weight */
    bool is_after_end;                 /* nothing but commas follows the last "]" */
    size_t depth, rank;                /* of arrays; of the shape that is read */
    double shape[RANK_MAX];            /* the lengths of that shape */
    double rows, run, matrices;        /* within the outermost array; run: rows of the present matrix */
    double count;                      /* the largest number that may be one */
    double most_rows, queries, length; /* rows of a tensor; of one that is no key or value; of a matrix */
    double heads;                      /* of a layer */
};

static bool is_digit(char c)
{
    return (unsigned)c - '0' < 10;
}

static bool is_in_word(char c)
{
    return ((unsigned)c | 32) - 'a' < 26 || is_digit(c) || c == '_' || c == '.';
}

/* fmax of the library is a call, and this is done for every number. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static void add_tensor(struct extent *extent, double rows, double length, double matrices)
{
    extent->most_rows = larger(extent->most_rows, rows);
    extent->length = larger(extent->length, length);
    extent->queries = larger(extent->queries, extent->is_key ? 0 : rows);
    extent->heads = larger(extent->heads, extent->is_weight ? matrices : 0);
}

static void add_shape(struct extent *extent)
{
    const double *end = extent->shape + extent->rank;
    const double length = extent->rank > 1 ? end[-2] : 1;
    double matrices = 1;
    for (const double *at = extent->shape; at + 2 < end; at++)
        matrices *= *at;
    add_tensor(extent, matrices * length, length, matrices);
}

static void open_array(struct extent *extent)
{
    if (extent->depth++ == 0) {
        extent->rows = extent->run = extent->matrices = 0;
        extent->rank = 0;
    }
    extent->is_after_end = false;
}

/* An array in which no array ends is a row. */
static void close_array(struct extent *extent)
{
    extent->depth -= extent->depth > 0;
    if (!extent->is_after_end) {
        extent->rows++;
        extent->run++;
    } else if (extent->run > 0) {
        extent->matrices++;
        extent->run = 0;
    }
    extent->is_after_end = true;
    if (extent->name == SHAPE)
        add_shape(extent);
    else
        add_tensor(extent, extent->rows, extent->run, extent->matrices);
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* Only a whole number without a sign may be a count. The "-" of the range "0-9" is no sign. */
static void read_number(struct extent *extent)
{
    const char *at = extent->at, *begin = extent->begin;
    const bool is_negative = at > begin && at[-1] == '-' && !(at - begin > 1 && is_digit(at[-2]));
    double value = 0;
    for (; at < extent->end && is_digit(*at); at++)
        value = 10 * value + (*at - '0');
    for (; at < extent->end && (is_digit(*at) || *at == '.' || *at == 'e' || *at == 'E'); at++)
        if (*at != '.' && !is_digit(*at) && extent->end - at > 1 && *++at != '-')
            value = (double)INFINITY;
    extent->at = at;
    if (is_negative || extent->name == DATA_OFFSETS)
        return;
    extent->count = larger(extent->count, value);
    if (extent->name == NUM_HEADS)
        extent->heads = larger(extent->heads, value);
    if (extent->name == SHAPE && extent->rank < RANK_MAX)
        extent->shape[extent->rank++] = value;
}

/* Moves to the next byte of that value, or to the end. */
static void skip_to(struct extent *extent, char c)
{
    const char *found = memchr(extent->at, c, (size_t)(extent->end - extent->at));
    extent->at = found != NULL ? found : extent->end;
}

static enum name name_of(struct text_span word)
{
    enum { SHORT = 4 }; /* such as "BF16" */
    const char *end = word.at + word.length;
    for (enum name name = QUERY; name < NAMES; name++) {
        const struct text_span *own = &names[name];
        if (word.length >= own->length && (end[-1] | 32) == (own->at[own->length - 1] | 32) &&
            strncasecmp(end - own->length, own->at, own->length) == 0)
            return name;
    }
    return word.length <= SHORT ? TYPE : OTHER;
}

/* A name has quotes around it. The bytes of "base64": "AAAA" count by their shape alone. */
static void read_word(struct extent *extent)
{
    const char *first = extent->at, *after = first;
    while (after < extent->end && is_in_word(*after))
        after++;
    const struct text_span word = {first, (size_t)(after - first)};
    const bool is_name =
        first > extent->begin && first[-1] == '"' && extent->end - after > 1 && (*after == '"' || *after == '\\');
    extent->at = after;
    extent->name = is_name ? name_of(word) : OTHER;
    extent->is_key = extent->name == KEY || extent->name == VALUE ||
                     (extent->is_key && extent->name >= DATA && extent->name <= TYPE);
    extent->is_weight = extent->is_weight || memmem(word.at, word.length, "weights", strlen("weights")) != NULL;
    if (extent->name == CACHE) /* which may hold any number of keys */
        extent->count = (double)INFINITY;
    if (extent->name == BASE64 && (after[1] == ':' || after[1] == ' ')) {
        skip_to(extent, ':');
        skip_to(extent, '"');
        extent->at += extent->at < extent->end;
        skip_to(extent, '"');
    }
}

/* Escapes could spell the letters of a name. A request within a text has only its quotes escaped. */
static void read_escape(struct extent *extent)
{
    const char *at = extent->at + 1;
    const ptrdiff_t left = extent->end - at, length = left > 0 && *at == 'u' ? 5 : 1;
    if ((left > 3 && memcmp(at, "u00", 3) == 0 && at[3] < '8') || (left > 0 && *at == '\\'))
        extent->count = (double)INFINITY;
    extent->at = left > length ? at + length : extent->end;
}

static void read_mark(struct extent *extent)
{
    const char mark = *extent->at++;
    if (mark == '[') {
        open_array(extent);
    } else if (mark == ']') {
        close_array(extent);
    } else if (mark == '{' || mark == '}') {
        extent->depth = 0;
        extent->is_key = extent->is_key && mark == '{';
    }
}

bool extent_is_small(struct text_span text, uint64_t body_bytes)
{
    struct extent extent = {.begin = text.at, .at = text.at, .end = text.at + text.length, .heads = 1};
    const double numbers = (double)(body_bytes / NUMBER_BYTES);
    while (extent.at < extent.end) {
        const char c = *extent.at;
        const bool is_tensor = extent.name >= QUERY && extent.name <= DATA;
        if (is_tensor && extent.depth > 0 && (is_digit(c) || c == '-' || c == '"'))
            skip_to(&extent, ']');
        else if (is_digit(c))
            read_number(&extent);
        else if (is_in_word(c))
            read_word(&extent);
        else if (c == '\\')
            read_escape(&extent);
        else
            read_mark(&extent);
    }
    return extent.queries * extent.length * extent.heads <= CELLS_MAX &&
           numbers * larger(extent.most_rows, COUNT_COST * extent.count) <= WORK_MAX;
}
