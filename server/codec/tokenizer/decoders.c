/* decoders.c: decoders, which turn the spellings of tokens into text. */
#include <string.h>

#include "base/array.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/parts.h"
#include "codec/tokenizer/text/unicode.h"

/* What a text costs in a step, besides its bytes: it may be searched for a dozen pairs of signs. */
enum { TEXT_COST_BYTES = 16 };

static const char replacement_text[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* ---- writing ---- */

/* Counts bytes of work. True: stop, because of the deadline or an earlier failure. */
static bool stops(struct decoding *decoding, size_t bytes)
{
    if (!outcome_has_failed(&decoding->outcome) && pace_stops(&decoding->pace, bytes))
        outcome_fail(&decoding->outcome, ATTN_ERR_CANCELLED, NULL, "cancelled while tokens were decoded");
    return outcome_has_failed(&decoding->outcome);
}

/* Room for so many bytes more; NULL after a failure. */
static char *reserve(struct decoding *decoding, size_t bytes)
{
    if (stops(decoding, bytes))
        return NULL;
    const size_t wanted = decoding->written_bytes + bytes;
    if (wanted > decoding->capacity || decoding->written == NULL) {
        const size_t capacity = wanted > 2 * decoding->capacity ? wanted + 64 : 2 * decoding->capacity;
        char *larger = outcome_take(&decoding->outcome, capacity, 1);
        if (larger == NULL)
            return NULL;
        if (decoding->written != NULL)
            memcpy(larger, decoding->written, decoding->written_bytes);
        decoding->written = larger;
        decoding->capacity = capacity;
    }
    return decoding->written + decoding->written_bytes;
}

static void write_text(struct decoding *decoding, const char *text, size_t length)
{
    char *to = reserve(decoding, length);
    if (to == NULL || length == 0)
        return;
    memcpy(to, text, length);
    decoding->written_bytes += length;
}

static void write_character(struct decoding *decoding, uint32_t c)
{
    char bytes[UTF8_BYTES_MAX];
    write_text(decoding, bytes, (size_t)(utf8_write(bytes, c) - bytes));
}

/* A step begins and ends; between, it stores the length of each text that it wrote. */
static void begin(struct decoding *decoding)
{
    decoding->written = NULL;
    decoding->written_bytes = decoding->capacity = 0;
}

static void end(struct decoding *decoding, size_t count)
{
    if (reserve(decoding, 1) == NULL)
        return;
    decoding->written[decoding->written_bytes] = '\0';
    decoding->count = count;
    char *at = decoding->written;
    for (size_t i = 0; i < count; i++) {
        decoding->texts[i].at = at;
        at += decoding->texts[i].length;
    }
}

static void write_each(struct decoding *decoding, const struct step *step)
{
    begin(decoding);
    for (size_t i = 0; i < decoding->count && !stops(decoding, TEXT_COST_BYTES); i++) {
        const size_t before = decoding->written_bytes;
        step->kind->write(decoding, i, decoding->texts[i], step->options);
        decoding->texts[i].length = decoding->written_bytes - before;
    }
    end(decoding, decoding->count);
}

/* What a kind writes of each text comes first, then what it makes of all. */
void decoders_run(const struct steps *decoders, struct decoding *decoding)
{
    for (size_t i = 0; i < decoders->count && !outcome_has_failed(&decoding->outcome); i++) {
        const struct step *step = &decoders->items[i];
        if (step->kind->write != NULL)
            write_each(decoding, step);
        if (step->kind->decode != NULL && !outcome_has_failed(&decoding->outcome))
            step->kind->decode(decoding, step->options);
    }
}

/* Replaces from, in a text of length bytes, by to, which is not longer. Returns the new length. */
static size_t replace_within(char *text, size_t length, struct text_span from, struct text_span to)
{
    char *out = text;
    const char *at = text, *stop = text + length;
    for (const char *found; (found = memmem(at, (size_t)(stop - at), from.at, from.length)) != NULL;) {
        memmove(out, at, (size_t)(found - at));
        out += found - at;
        memcpy(out, to.at, to.length);
        out += to.length;
        at = found + from.length;
    }
    memmove(out, at, (size_t)(stop - at));
    return (size_t)(out - text) + (size_t)(stop - at);
}

/* ---- WordPiece ---- */

struct wordpiece {
    struct text_span prefix;
    bool cleanup;
};

static void clean_up(struct decoding *decoding, size_t from)
{
    static const char *const pairs[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < ARRAY_LENGTH(pairs) && !outcome_has_failed(&decoding->outcome); i++)
        decoding->written_bytes = from + replace_within(decoding->written + from, decoding->written_bytes - from,
                                                        text_span_of(pairs[i][0]), text_span_of(pairs[i][1]));
}

static void write_wordpiece(struct decoding *decoding, size_t i, struct text_span text, const void *options)
{
    const struct wordpiece *wordpiece = options;
    const struct text_span prefix = wordpiece->prefix;
    const size_t from = decoding->written_bytes;
    const bool continues = i > 0 && text.length >= prefix.length && memcmp(text.at, prefix.at, prefix.length) == 0;
    const size_t skipped = continues ? prefix.length : 0;
    if (i > 0 && !continues)
        write_text(decoding, " ", 1);
    write_text(decoding, text.at + skipped, text.length - skipped);
    if (wordpiece->cleanup)
        clean_up(decoding, from);
}

static attn_status settle_wordpiece(struct loading *loading, const struct node *node, void *options)
{
    return step_needs(loading, node, ((struct wordpiece *)options)->prefix.at != NULL, "\"prefix\"");
}

/* ---- ByteLevel ---- */

/* The bytes of the first character that could begin at text, valid or not: a maximal part, as Unicode recommends. */
static size_t part_bytes(const char *text, size_t length, bool *is_valid)
{
    char padded[UTF8_BYTES_MAX + 1] = {0};
    const size_t bytes = length < UTF8_BYTES_MAX ? length : UTF8_BYTES_MAX;
    memcpy(padded, text, bytes);
    *is_valid = text[0] == '\0' || utf8_length(padded) > 0;
    if (*is_valid)
        return text[0] == '\0' ? 1 : utf8_length(padded);
    /* The longest beginning of a character: it can be completed. */
    size_t longest = 1;
    for (size_t n = 2; n < UTF8_BYTES_MAX && n <= bytes; n++) {
        char completed[UTF8_BYTES_MAX + 1] = {0};
        memcpy(completed, text, n);
        memset(completed + n, 0x80, UTF8_BYTES_MAX - n);
        if (utf8_length(completed) <= n)
            break;
        longest = n;
    }
    return longest;
}

static void write_lossy(struct decoding *decoding, const char *text, size_t length)
{
    for (size_t at = 0, good = 0; at < length && !outcome_has_failed(&decoding->outcome);) {
        bool is_valid;
        const size_t bytes = part_bytes(text + at, length - at, &is_valid);
        if (!is_valid)
            write_text(decoding, text + good, at - good);
        if (!is_valid)
            write_text(decoding, replacement_text, sizeof replacement_text - 1);
        at += bytes;
        if (!is_valid)
            good = at;
        else if (at == length)
            write_text(decoding, text + good, at - good);
    }
}

/* The bytes that the characters stand for, or the text's own when one stands for none. */
static void write_bytes(struct decoding *decoding, size_t i, struct text_span text, const void *options)
{
    (void)i, (void)options;
    const size_t before = decoding->written_bytes;
    for (const char *at = text.at; at < text.at + text.length && !outcome_has_failed(&decoding->outcome);) {
        const int byte = unicode_to_byte(utf8_next(&at));
        const char c = (char)byte;
        if (byte < 0) {
            decoding->written_bytes = before;
            write_text(decoding, text.at, text.length);
            return;
        }
        write_text(decoding, &c, 1);
    }
}

static void decode_byte_level(struct decoding *decoding, const void *options)
{
    (void)options;
    if (decoding->count == 0)
        return;
    const char *bytes = decoding->written;
    const size_t length = decoding->written_bytes;
    begin(decoding);
    write_lossy(decoding, bytes, length);
    decoding->texts[0].length = decoding->written_bytes;
    end(decoding, 1);
}

/* ---- Metaspace ---- */

struct metaspace {
    uint32_t replacement;
    struct text_span prepend_scheme;
    bool add_prefix_space, split, drops_first;
};

static attn_status settle_metaspace(struct loading *loading, const struct node *node, void *options)
{
    struct metaspace *metaspace = options;
    const struct text_span scheme = metaspace->prepend_scheme;
    const bool is_old = node_find(node->json, "add_prefix_space") != NULL;
    metaspace->drops_first =
        (scheme.at == NULL || !text_equal(scheme, "never")) && (!is_old || metaspace->add_prefix_space);
    return step_needs(loading, node, metaspace->replacement != 0, "\"replacement\"");
}

static void write_metaspace(struct decoding *decoding, size_t i, struct text_span text, const void *options)
{
    const struct metaspace *metaspace = options;
    for (const char *at = text.at; at < text.at + text.length && !outcome_has_failed(&decoding->outcome);) {
        const uint32_t c = utf8_next(&at);
        if (c != metaspace->replacement)
            write_character(decoding, c);
        else if (i > 0 || !metaspace->drops_first)
            write_text(decoding, " ", 1);
    }
}

/* ---- BPEDecoder ---- */

struct bpe {
    struct text_span suffix;
};

static attn_status settle_bpe(struct loading *loading, const struct node *node, void *options)
{
    return step_needs(loading, node, ((struct bpe *)options)->suffix.length > 0, "\"suffix\", which is not empty");
}

static void write_bpe(struct decoding *decoding, size_t i, struct text_span text, const void *options)
{
    const struct bpe *bpe = options;
    const size_t from = decoding->written_bytes;
    write_text(decoding, text.at, text.length);
    if (!outcome_has_failed(&decoding->outcome))
        decoding->written_bytes = from + replace_within(decoding->written + from, text.length, bpe->suffix,
                                                        text_span_of(i + 1 == decoding->count ? "" : " "));
}

/* ---- ByteFallback ---- */

bool decoder_read_byte(struct text_span text, char *byte)
{
    if (text.length != 6 || memcmp(text.at, "<0x", 3) != 0 || text.at[5] != '>')
        return false;
    const int high = text_hex_value(text.at[3]), low = text_hex_value(text.at[4]);
    if (high < 0 || low < 0)
        return false;
    *byte = (char)(high << 4 | low);
    return true;
}

static bool is_utf8(const char *text, size_t length)
{
    bool is_valid = true;
    for (size_t at = 0; at < length && is_valid;)
        at += part_bytes(text + at, length - at, &is_valid);
    return is_valid;
}

/* Bytes in a row are a text, or a replacement character each. They are the last bytes written. */
static void end_bytes(struct decoding *decoding, size_t bytes, size_t *count)
{
    if (bytes == 0 || outcome_has_failed(&decoding->outcome))
        return;
    if (is_utf8(decoding->written + decoding->written_bytes - bytes, bytes)) {
        decoding->texts[(*count)++].length = bytes;
        return;
    }
    decoding->written_bytes -= bytes;
    for (size_t i = 0; i < bytes; i++) {
        write_text(decoding, replacement_text, sizeof replacement_text - 1);
        decoding->texts[(*count)++].length = sizeof replacement_text - 1;
    }
}

static void decode_byte_fallback(struct decoding *decoding, const void *options)
{
    (void)options;
    size_t count = 0, bytes = 0;
    begin(decoding);
    for (size_t i = 0; i < decoding->count && !stops(decoding, TEXT_COST_BYTES); i++) {
        const struct text_span text = decoding->texts[i];
        char byte;
        if (decoder_read_byte(text, &byte)) {
            write_text(decoding, &byte, 1);
            bytes++;
            continue;
        }
        end_bytes(decoding, bytes, &count);
        bytes = 0;
        write_text(decoding, text.at, text.length);
        decoding->texts[count++].length = text.length;
    }
    end_bytes(decoding, bytes, &count);
    end(decoding, count);
}

/* ---- Fuse, Strip, Replace ---- */

static void write_same(struct decoding *decoding, size_t i, struct text_span text, const void *options)
{
    (void)i, (void)options;
    write_text(decoding, text.at, text.length);
}

static void decode_fuse(struct decoding *decoding, const void *options)
{
    (void)options;
    if (decoding->count > 0)
        decoding->texts[0].length = decoding->written_bytes;
    decoding->count = decoding->count > 0;
}

struct strip {
    uint32_t content, start, stop;
};

static void write_stripped(struct decoding *decoding, size_t i, struct text_span text, const void *options)
{
    (void)i;
    const struct strip *strip = options;
    char content[UTF8_BYTES_MAX];
    const size_t bytes = (size_t)(utf8_write(content, strip->content) - content);
    for (uint32_t n = 0; n < strip->start && text.length >= bytes && memcmp(text.at, content, bytes) == 0; n++) {
        text.at += bytes;
        text.length -= bytes;
    }
    for (uint32_t n = 0; n < strip->stop && text.length >= bytes; n++) {
        if (memcmp(text.at + text.length - bytes, content, bytes) != 0)
            break;
        text.length -= bytes;
    }
    write_text(decoding, text.at, text.length);
}

static attn_status settle_strip(struct loading *loading, const struct node *node, void *options)
{
    return step_needs(loading, node, ((struct strip *)options)->content != 0, "\"content\"");
}

static void write_replaced(struct decoding *decoding, size_t i, struct text_span text, const void *options)
{
    (void)i;
    const struct step_replace *replace = options;
    size_t last = 0, from = 0, to = 0;
    bool found = true;
    pattern_begin(&decoding->search, replace->pattern, text.at, text.length);
    while (text.length > 0 && !stops(decoding, TEXT_COST_BYTES)) {
        if (!outcome_note(&decoding->outcome,
                          pattern_next(&decoding->search, &from, &to, &found, decoding->outcome.err)) ||
            !found)
            break;
        write_text(decoding, text.at + last, from - last);
        write_text(decoding, replace->content.at, replace->content.length);
        last = to;
    }
    write_text(decoding, text.at + last, text.length - last);
}

/* ---- the table ---- */

#define IGNORED(name)                                                                                                  \
    {                                                                                                                  \
        name, step_ignored, 0, MEMBER_ALWAYS                                                                           \
    }

static const struct member wordpiece_members[] = {STEP_OPTION(wordpiece, prefix, step_text),
                                                  STEP_OPTION(wordpiece, cleanup, node_decode_bool)};
static const struct member byte_level_members[] = {IGNORED("add_prefix_space"), IGNORED("trim_offsets"),
                                                   IGNORED("use_regex")};
static const struct member metaspace_members[] = {STEP_OPTION(metaspace, replacement, step_character),
                                                  STEP_OPTION(metaspace, prepend_scheme, step_text),
                                                  STEP_OPTION(metaspace, add_prefix_space, node_decode_bool),
                                                  STEP_OPTION(metaspace, split, node_decode_bool), IGNORED("str_rep")};
static const struct member bpe_members[] = {STEP_OPTION(bpe, suffix, step_text)};
static const struct member strip_members[] = {STEP_OPTION(strip, content, step_character),
                                              STEP_OPTION(strip, start, step_count),
                                              STEP_OPTION(strip, stop, step_count)};

static const struct step_kind kinds[] = {
    {"WordPiece", STEP_OPTIONS(wordpiece), .settle = settle_wordpiece, .write = write_wordpiece},
    {"ByteLevel", byte_level_members, ARRAY_LENGTH(byte_level_members), .write = write_bytes,
     .decode = decode_byte_level},
    {"Metaspace", STEP_OPTIONS(metaspace), .settle = settle_metaspace, .write = write_metaspace},
    {"BPEDecoder", STEP_OPTIONS(bpe), .settle = settle_bpe, .write = write_bpe},
    {"ByteFallback", .decode = decode_byte_fallback},
    {"Fuse", .write = write_same, .decode = decode_fuse},
    {"Strip", STEP_OPTIONS(strip), .settle = settle_strip, .write = write_stripped},
    {"Replace", STEP_OPTIONS(step_replace), .settle = step_settle_replace, .write = write_replaced},
};

const struct step_table decoder_table = {kinds, ARRAY_LENGTH(kinds), "decoder", "decoders"};
