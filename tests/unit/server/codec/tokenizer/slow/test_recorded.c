/*
 * test_recorded.c: ids and decoded texts that transformers' slow tokenizers recorded, for the files of each class.
 *
 * tests/others/tokenizers/record_slow.py makes the recording; it says what is in it. ATTN_SLOW names another file, whose
 * differences are printed and not counted.
 */
#include <stdlib.h>
#include <zlib.h>

#include "base/array.h"
#include "codec/bytes/base64.h"
#include "codec/tokenizer/slow/slow.h"

#include "../tokenizer_stage.h"

#define OWN "tests/unit/server/codec/tokenizer/slow/recorded.json.gz"

enum { TEXT_MAX = 1 << 26, CLASSES_MAX = 64, IDS_MAX = 2048 };

/* How many strings of the recording differ, and how many pairs. docs/models.md has the reasons. The other classes agree. */
static const struct known {
    const char *name;
    unsigned ids, decoded, pairs;
} known[] = {
    {"m2m", 1, 154, 0},
};

static json_t *read_recording(const char *path)
{
    char *text = attn_arena_take(arena, TEXT_MAX, 1);
    gzFile file = gzopen(path, "rb");
    ck_assert_msg(file != NULL && text != NULL, "no %s", path);
    const int length = gzread(file, text, TEXT_MAX);
    ck_assert(length > 0 && length < TEXT_MAX);
    gzclose(file);
    json_error_t error;
    json_t *json = json_loadb(text, (size_t)length, 0, &error);
    ck_assert_msg(json != NULL, "%s: %s", path, error.text);
    return json;
}

static struct text_span text_of(const json_t *text)
{
    return (struct text_span){json_string_value(text), json_string_length(text)};
}

/* A file of the recording: a text, or base64 of a model. */
static struct text_span file_of(const json_t *recording, const json_t *name)
{
    const struct text_span text =
        text_of(json_object_get(json_object_get(recording, "files"), json_string_value(name)));
    const json_t *model;
    size_t i;
    json_array_foreach(json_object_get(recording, "models"), i, model)
    {
        if (!json_equal(model, name))
            continue;
        unsigned char *bytes = attn_arena_take(arena, text.length, 1);
        size_t length, bad;
        struct pace pace = pace_begin(arena);
        ck_assert(base64_decoded_length(text.at, text.length, &length));
        ck_assert(base64_decode(bytes, text.at, text.length, &pace, &bad));
        return (struct text_span){(const char *)bytes, length};
    }
    return text;
}

static const struct tokenizer *load_class(const json_t *recording, const json_t *class)
{
    struct slow_files files = {.config = text_span_of("{}")};
    files.files[SLOW_SETTINGS] =
        (struct slow_file_text){text_of(json_object_get(class, "settings")), "tokenizer_config.json"};
    const char *name;
    json_t *from;
    json_object_foreach(json_object_get(class, "files"), name, from)
    {
        for (size_t i = 0; i < slow_name_count; i++)
            if (strcmp(slow_names[i].name, name) == 0)
                files.files[slow_names[i].file] = (struct slow_file_text){file_of(recording, from), name};
    }
    struct slow_files target;
    struct text_span json;
    if (strcmp(json_string_value(json_object_get(class, "name")), "marian-target") == 0) {
        ck_assert(slow_has_target(&files, &target));
        files = target;
    }
    const attn_status status = slow_convert(&files, arena, &json, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    return load_slow(json);
}

/* ---- comparison ---- */

struct class
{
    const char *name;
    const struct tokenizer *tokenizer;
    struct known found;
};

static bool is_verbose;

static void show(const struct class *class, const char *what, struct text_span text, struct text_span got)
{
    if (is_verbose)
        printf("%s\t%s\t%.*s\t%.*s\n", class->name, what, (int)text.length, text.at, (int)got.length, got.at);
}

static bool are_ids(const struct tokenizer_output *output, const json_t *ids)
{
    bool are_equal = output->count == json_array_size(ids);
    for (size_t i = 0; are_equal && i < output->count; i++)
        are_equal = output->tokens[i].id == json_integer_value(json_array_get(ids, i));
    return are_equal;
}

static bool encodes(const struct class *class, struct text_span text, struct text_span pair, const json_t *ids)
{
    const struct tokenizer_input input = {.text = text, .pair = pair, .add_special = true};
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    const struct tokenizer_output output = encode(class->tokenizer, &input);
    const bool is_well = are_ids(&output, ids);
    char said[16 * IDS_MAX] = "";
    size_t used = 0;
    for (size_t i = 0; !is_well && is_verbose && i < output.count && i < IDS_MAX; i++)
        used += (size_t)snprintf(said + used, sizeof said - used, "%u ", (unsigned)output.tokens[i].id);
    if (!is_well)
        show(class, pair.at == NULL ? "ids" : "pair", text, (struct text_span){said, used});
    attn_arena_release(arena, mark);
    return is_well;
}

static bool decodes(const struct class *class, const json_t *ids, struct text_span wanted)
{
    uint32_t list[IDS_MAX];
    const size_t count = json_array_size(ids);
    ck_assert_uint_le(count, COUNT(list));
    for (size_t i = 0; i < count; i++)
        list[i] = (uint32_t)json_integer_value(json_array_get(ids, i));
    struct text_span text;
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    ck_assert_int_eq(tokenizer_decode(class->tokenizer, list, count, true, arena, scratch, &text, &err), ATTN_OK);
    const bool is_well = text.length == wanted.length && memcmp(text.at, wanted.at, wanted.length) == 0;
    if (!is_well)
        show(class, "decoded", wanted, text);
    attn_arena_release(arena, mark);
    return is_well;
}

static void compare(struct class *class, size_t place, const json_t *one)
{
    const json_t *ids = json_array_get(json_object_get(one, "ids"), place), *decoded = json_object_get(one, "decoded");
    const struct text_span text = text_of(json_object_get(one, "text")), pair = text_of(json_object_get(one, "pair"));
    if (json_is_null(ids))
        return;
    const bool is_well = encodes(class, text, pair, ids);
    class->found.ids += !is_well && pair.at == NULL;
    class->found.pairs += !is_well && pair.at != NULL;
    class->found.decoded += decoded != NULL && !decodes(class, ids, text_of(json_array_get(decoded, place)));
}

static struct known known_of(const char *name)
{
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i];
    return (struct known){.name = name};
}

START_TEST(slow_files_give_the_recorded_tokens)
{
    const char *other = getenv("ATTN_SLOW");
    json_t *recording = read_recording(other != NULL ? other : OWN), *one;
    json_t *list = json_object_get(recording, "classes"), *answers = json_object_get(recording, "answers");
    unsigned surprises = 0;
    size_t i, k;
    is_verbose = other != NULL;
    ck_assert_uint_ge(json_array_size(answers), 150);
    json_array_foreach(list, i, one)
    {
        struct class class = {.name = json_string_value(json_object_get(one, "name")),
                              .tokenizer = load_class(recording, one)};
        const struct known expected = known_of(class.name);
        json_array_foreach(answers, k, one) compare(&class, i, one);
        json_array_foreach(json_object_get(recording, "pairs"), k, one) compare(&class, i, one);
        const bool is_known = class.found.ids == expected.ids && class.found.decoded == expected.decoded &&
                              class.found.pairs == expected.pairs;
        surprises += !is_known;
        printf("%s{\"%s\", %u, %u, %u},\n", is_known ? "" : "not expected: ", class.name, class.found.ids,
               class.found.decoded, class.found.pairs);
    }
    ck_assert_uint_ge(i, 30);
    ck_assert(other != NULL || surprises == 0);
    json_decref(recording);
}
END_TEST

CHECK_MAIN("recorded slow tokenizers")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, slow_files_give_the_recorded_tokens);
}
